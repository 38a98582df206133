"""The whole page: every part of it, whatever the data."""

import os
import re

import matplotlib
import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Sparse
from counterpoint.checks import audit
from counterpoint.files import FileProblem
from counterpoint.masks import Constant
from counterpoint.report import Reliability
from tests.examples import HashedMask, first_column, make_data, make_factors
from tests.report.reading import Page, check_origin, draw, facts_of, no_reward, report, small, write


@pytest.fixture(scope="module")
def full(sprites, tmp_path_factory):
    extras = {
        "audit": audit(sprites[2], sprites[0].step),
        "draw": draw,
        "reliability": Reliability([0.1, 0.5, 0.9], [0.05, 0.6, 0.95], [100, 20, 50]),
        "about": {"seed": 0, "command": "counterpoint augment <in> --report", "date": "2020-11-12"},
        "labels": {"action": ("click x (−1 to 1)", "click y (−1 to 1)")},
    }
    return write(tmp_path_factory.mktemp("report") / "new folder" / "report.html", sprites, **extras), extras


def test_the_page_holds_every_part(full):
    page = Page(full[0]).check()
    links = [page.get(index, "href") for index in page.all("a")]
    assert links[0] == "#verdict"  # the skip link comes first
    assert [link[1:] for link in links[1:]] == [page.get(index, "id") for index in page.all("section")]
    assert len(links) == 13
    figures = {page.get(index, "id") for index in page.all("figure")}
    assert figures >= {"fig-funnel", "fig-edges-real", "fig-edges-made", "fig-components", "fig-sets", "fig-reward"}
    assert figures >= {"fig-coverage-before", "fig-coverage-after", "fig-calibration", "fig-feature-0"}
    assert len(page.all("article")) == 8
    assert len(page.all("img")) == 24
    assert "Confirmed by the simulator" in page.section("verdict")
    assert "Rejected by the edge" in page.section("gallery")
    assert "click x (−1 to 1)" in page.section("features")
    for word in ("counterpoint augment <in> --report", "2020-11-12", np.__version__, "Sprites.mask", "1,200"):
        assert word in page.section("about")
    assert page.text.count("<h1>") == 1
    assert full[0].stat().st_size < 600_000


def test_axes_are_labelled_with_units(full):
    page = Page(full[0])
    for slug, words in {
        "fig-funnel": ["proposals"],
        "fig-edges-real": ["cause at time t", "effect at time t + 1", "share of transitions with this edge", "sprite3"],
        "fig-components": ["independent components in a transition", "share of transitions"],
        "fig-sets": ["counterfactuals"],
        "fig-coverage-after": ["share of combinations that occur"],
        "fig-reward": ["reward per step", "share of rows"],
    }.items():
        shown = next(page.words[index] for index in page.all("figure") if page.get(index, "id") == slug)
        assert all(word in shown for word in words), slug


def test_drawings_take_their_colours_from_the_page(full):
    drawings = "".join(re.findall(r"<svg.*?</svg>", full[0].read_text(), re.DOTALL))
    assert "#0102" not in drawings
    assert set(re.findall(r"(?:fill|stroke): (#\w+)", drawings)) == set()
    assert {"currentColor", "var(--real)", "var(--made)"} <= set(re.findall(r"(?:fill|stroke): ([^;\"]+)", drawings))


def test_same_arguments_same_bytes(full, sprites, tmp_path):
    again = write(tmp_path / "again.html", sprites, **full[1])
    assert again.read_bytes() == full[0].read_bytes()


def test_a_style_of_the_user_is_neither_used_nor_changed(tmp_path, rng):
    factors, data, mask, made = small(2, 0, 20, 30, rng, width=1)
    first = report(tmp_path / "a.html", data, made, factors, mask, rng=np.random.default_rng(0))
    with matplotlib.rc_context({"axes.grid": True, "font.size": 20, "svg.fonttype": "path", "text.usetex": True}):
        second = report(tmp_path / "b.html", data, made, factors, mask, rng=np.random.default_rng(0))
        assert matplotlib.rcParams["font.size"] == 20
    assert first.read_bytes() == second.read_bytes()


def test_nothing_is_changed(sprites, tmp_path):
    _, data, made = sprites
    before = [array.copy() for part in (data, made.transitions) for _, array in part.columns()]
    write(tmp_path / "report.html", sprites)
    after = [array for part in (data, made.transitions) for _, array in part.columns()]
    assert all(map(np.array_equal, before, after))


def test_a_failure_leaves_the_old_page_and_nothing_else(sprites, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="draw: expected a picture, uint8 of shape"):
        write(path, sprites, draw=lambda state, action, mask: np.zeros((3, 3)))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_path_that_cannot_be_written_leaves_nothing_behind(tmp_path, rng):
    factors, data, mask, made = small(2, 0, 20, 30, rng, width=1)
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileProblem, match="folder: this is a folder or a device, not a file"):
        report(tmp_path / "folder", data, made, factors, mask, rng=rng)
    assert os.listdir(tmp_path) == ["folder"]


def test_names_with_markup_are_escaped(rng, tmp_path):
    names = ['<script>alert("1")</script>', "a & 'b'", "$\\frac{x$ \x00 火"]
    factors = Factorization.blocks(state=dict.fromkeys(names, 1), action={"</style>": 1})
    data, mask = make_data(factors, 40, rng), HashedMask(factors, 0.1)
    made = Augmenter(factors, mask, first_column).fill(data, 60, rng=rng)
    path = report(tmp_path / "r.html", data, made, factors, mask, rng=rng, about={"<i>": "</table>"})
    page = Page(path).check()
    assert not page.all("script")
    assert not page.all("i")
    assert names[0] in page.section("swaps")
    assert names[1] in page.section("gallery")
    assert "\x00" not in page.text
    assert "</table>" in page.section("about")


def test_many_factors(rng, tmp_path):
    factors, data, _, _ = small(64, 2, 60, 1, rng)
    mask = HashedMask(factors, 0.005)
    made = Augmenter(factors, mask, first_column, policy=Sparse()).fill(data, 100, rng=rng)
    page = Page(report(tmp_path / "r.html", data, made, factors, mask, rng=rng, policy=Sparse(), draw=None)).check()
    assert "This covers only the first 64 factors; 2 are left out." in page.section("coverage")
    assert "58 more factors are not shown" in page.section("gallery")
    assert (tmp_path / "r.html").stat().st_size < 900_000


def test_no_actions_one_counterfactual_constant_rewards_and_none_rejected(rng, tmp_path):
    factors, data, mask, made = small(2, 0, 2, 1, rng, width=1, reward=no_reward)
    page = Page(report(tmp_path / "r.html", data, made, factors, mask, rng=rng)).check()
    assert "1 counterfactual made from 2 real transitions" in page.text
    assert "There are none to show." in page.section("gallery")
    assert "little variety" in page.section("verdict")
    assert "too few rows to tell" in page.section("verdict")


def test_nothing_was_made(rng, tmp_path):
    factors = make_factors(2, 1)
    data, mask = make_data(factors, 20, rng), Constant.full(factors)
    made = Augmenter(factors, mask, first_column)(data, rng=rng)
    page = Page(report(tmp_path / "r.html", data, made, factors, mask, rng=rng)).check()
    assert "Nothing was made." in page.section("verdict")
    assert "Nothing was swapped." in page.section("swaps")


def test_a_single_factor_and_a_single_row(rng, tmp_path):
    factors = Factorization.blocks(state={"all": 2})
    data, mask = make_data(factors, 1, rng), Constant.identity(factors)
    made = Augmenter(factors, mask, first_column)(data, rng=rng)
    page = Page(report(tmp_path / "r.html", data, made, factors, mask, rng=rng)).check()
    assert "no combinations" in page.section("coverage")


def test_rows_are_sampled_when_there_are_many(rng, monkeypatch):
    monkeypatch.setattr("counterpoint.report.facts.MOST_ROWS", 50)
    monkeypatch.setattr("counterpoint.report.facts.MOST_PROVENANCE", 70)
    factors, data, mask, made = small(3, 1, 100, 200, rng, mask=HashedMask(make_factors(3, 1), 0.1))
    facts = facts_of(factors, data, mask, made)
    assert facts.rejections.examples
    for example in facts.rejections.examples:
        check_origin(example, data, factors)
    assert (facts.real.rows, facts.synthetic.rows, facts.traced) == (50, 50, 70)
    assert facts.blend(1.0, 0.0) == pytest.approx(1 / 3)  # by the rows there are, not by those looked at
