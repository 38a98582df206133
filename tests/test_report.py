"""The report: its numbers against slow definitions, its verdict, and the structure of the page."""

import dataclasses
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization, Provenance, Sparse, Transitions
from counterpoint.checks import Audit, audit
from counterpoint.core.graphs import components
from counterpoint.masks import Constant
from counterpoint.report import Calibration, write_report
from counterpoint.report import graphs as graph_module
from counterpoint.report.coverage import MOST_CELLS, cells, coverage
from counterpoint.report.distributions import column_names, compare, gap
from counterpoint.report.examples import first_crossing
from counterpoint.report.facts import measure
from counterpoint.report.gallery import card
from counterpoint.report.graphs import component_counts, graphs, rows_of
from counterpoint.report.markup import Html, number, share, table, tag, text
from counterpoint.report.options import Options
from counterpoint.report.provenance import parents, swap_sets
from counterpoint.report.svg import inline
from counterpoint.report.verdict import Level, judge, lower_bound
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites
from tests.examples import HashedMask, first_column, make_data, make_factors

RNG = np.random.default_rng(0)  # for tests that end before it is used
VOID = {"meta", "img", "br"}
seeds = st.integers(0, 2**32 - 1)
values = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=30).map(np.array)


def no_reward(state, action, next_state):
    return np.zeros(len(state))


class Page(HTMLParser):
    """A page taken apart: elements with their ancestors, texts, ids and addresses. Tags must balance."""

    def __init__(self, path):
        super().__init__()
        self.text = path.read_text(encoding="utf-8")
        self.open, self.elements, self.words = [], [], defaultdict(str)
        self.feed(self.text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, name, attributes):
        element = (name, dict(attributes), tuple(self.open))
        self.elements.append(element)
        if name not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_endtag(self, name):
        assert self.elements[self.open.pop()][0] == name, f"</{name}> closes something else"

    def handle_data(self, data):
        for index in self.open:
            self.words[index] += data

    def all(self, name, within=None):
        return [
            index
            for index, (found, _, ancestors) in enumerate(self.elements)
            if found == name and (within is None or within in ancestors)
        ]

    def get(self, index, key):
        return self.elements[index][1].get(key)

    def section(self, slug):
        return next(self.words[index] for index in self.all("section") if self.get(index, "id") == slug)

    def check(self):
        """What holds for every report."""
        ids = [attributes["id"] for _, attributes, _ in self.elements if "id" in attributes]
        assert [name for name, count in Counter(ids).items() if count > 1] == []
        for _, attributes, _ in self.elements:
            for key in ("href", "src", "xlink:href"):
                if key in attributes:
                    address = attributes[key]
                    assert address.startswith("data:image/png;base64,") or address[1:] in ids, address[:80]
            for name in (attributes.get("aria-labelledby") or "").split():
                assert name in ids
        assert not re.search(r"https?:", self.text.replace('xmlns="http://www.w3.org/2000/svg"', ""))
        assert set(re.findall(r"url\(#([^)]*)\)", self.text)) <= set(ids)
        for index in self.all("figure"):
            captions, drawings = self.all("figcaption", index), self.all("svg", index) + self.all("img", index)
            assert len(captions) == len(drawings) == 1
            assert self.words[captions[0]].strip()
            if self.elements[drawings[0]][0] == "img":
                assert self.get(drawings[0], "alt")
            else:
                assert self.get(drawings[0], "role") == "img"
                assert self.words[self.all("title", drawings[0])[0]].strip()
                assert len(self.all("path", drawings[0])) > 3
                assert len(self.all("text", drawings[0])) > 3
        for index in self.all("table"):
            assert self.words[self.all("caption", index)[0]].strip()
            widths = {len(self.all("th", row)) + len(self.all("td", row)) for row in self.all("tr", index)}
            assert len(widths) == 1
        for name in ("script", "link", "iframe", "object"):
            assert not self.all(name)
        assert len(self.all("style")) == 1
        return self


def world_data(rows=300, seed=0):
    world, task = Sprites(noise_std=0.0), Place(4)
    rng = np.random.default_rng(seed)
    data = collect(world, uniform_policy(world), rows, rng, reward_fn=task, episode_length=50, reset_probability=0.0)
    return world, data, Augmenter(world.factors, world.mask, task).fill(data, 4 * rows, rng=rng)


@pytest.fixture(scope="module")
def sprites():
    return world_data()


def draw(state, action, mask):
    return draw_sprites(state, action=action, mask=mask, size=96)


def write(path, sprites, **extras):
    world, data, made = sprites
    return write_report(path, data, made, world.factors, world.mask, rng=np.random.default_rng(1), **extras)


def small(n, m, rows, size, rng, *, mask=None, reward=first_column, **others):
    factors = make_factors(n, m, **others)
    data, mask = make_data(factors, rows, rng), mask or Constant.identity(factors)
    return factors, data, mask, Augmenter(factors, mask, reward).fill(data, size, rng=rng)


def facts_of(factors, data, mask, made, **options):
    return measure(data, made, factors, mask, rng=np.random.default_rng(0), options=Options(**options))


# The whole page


@pytest.fixture(scope="module")
def full(sprites, tmp_path_factory):
    extras = {
        "audit": audit(sprites[2], sprites[0].step),
        "draw": draw,
        "calibration": Calibration([0.1, 0.5, 0.9], [0.05, 0.6, 0.95], [100, 20, 50]),
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
    first = write_report(tmp_path / "a.html", data, made, factors, mask, rng=np.random.default_rng(0))
    with matplotlib.rc_context({"axes.grid": True, "font.size": 20, "svg.fonttype": "path", "text.usetex": True}):
        second = write_report(tmp_path / "b.html", data, made, factors, mask, rng=np.random.default_rng(0))
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
    with pytest.raises(OSError, match="folder"):
        write_report(tmp_path / "folder", data, made, factors, mask, rng=rng)
    assert os.listdir(tmp_path) == ["folder"]


# Odd data


def test_names_with_markup_are_escaped(rng, tmp_path):
    names = ['<script>alert("1")</script>', "a & 'b'", "$\\frac{x$ \x00 火"]
    factors = Factorization.blocks(state=dict.fromkeys(names, 1), action={"</style>": 1})
    data, mask = make_data(factors, 40, rng), HashedMask(factors, 0.1)
    made = Augmenter(factors, mask, first_column).fill(data, 60, rng=rng)
    path = write_report(tmp_path / "r.html", data, made, factors, mask, rng=rng, about={"<i>": "</table>"})
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
    page = Page(
        write_report(tmp_path / "r.html", data, made, factors, mask, rng=rng, policy=Sparse(), draw=None)
    ).check()
    assert "Only the first 64 factors are looked at; 2 are left out." in page.section("coverage")
    assert "58 more factors are not shown" in page.section("gallery")
    assert (tmp_path / "r.html").stat().st_size < 900_000


def test_no_actions_one_counterfactual_constant_rewards_and_none_rejected(rng, tmp_path):
    factors, data, mask, made = small(2, 0, 2, 1, rng, width=1, reward=no_reward)
    page = Page(write_report(tmp_path / "r.html", data, made, factors, mask, rng=rng)).check()
    assert "1 counterfactual made from 2 real transitions" in page.text
    assert "There are none to show." in page.section("gallery")
    assert "little variety" in page.section("verdict")
    assert "too few rows to tell" in page.section("verdict")


def test_nothing_was_made(rng, tmp_path):
    factors = make_factors(2, 1)
    data, mask = make_data(factors, 20, rng), Constant.full(factors)
    made = Augmenter(factors, mask, first_column)(data, rng=rng)
    page = Page(write_report(tmp_path / "r.html", data, made, factors, mask, rng=rng)).check()
    assert "Nothing was made." in page.section("verdict")
    assert "Nothing was swapped." in page.section("swaps")


def test_a_single_factor_and_a_single_row(rng, tmp_path):
    factors = Factorization.blocks(state={"all": 2})
    data, mask = make_data(factors, 1, rng), Constant.identity(factors)
    made = Augmenter(factors, mask, first_column)(data, rng=rng)
    page = Page(write_report(tmp_path / "r.html", data, made, factors, mask, rng=rng)).check()
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


# The statistics


@given(seeds, st.integers(1, 6), st.integers(0, 3))
def test_graphs_are_counted(seed, n, m):
    rng = np.random.default_rng(seed)
    factors = make_factors(n, m)
    data, mask_fn = make_data(factors, 17, rng), HashedMask(factors, 0.2, seed)
    found, mask = graphs(data, mask_fn, factors), mask_fn(data.state, data.action)
    assert np.allclose(found.edges, mask.mean(axis=0))
    sizes = [len(set(row)) for row in components(mask).tolist()]
    assert found.components.tolist() == [sizes.count(k) for k in range(n + m + 1)]
    assert found.factored == sum(size > 1 for size in sizes) / 17
    assert found.mean_components == pytest.approx(np.mean(sizes))
    touching = [any(row[i, j] for i in range(n) for j in range(n) if i != j) for row in mask]
    assert found.interactions == sum(touching) / 17


def test_graphs_do_not_depend_on_chunks(rng, monkeypatch):
    factors = make_factors(4, 2)
    data, mask = make_data(factors, 100, rng), HashedMask(factors, 0.2)
    whole = graphs(data, mask, factors)
    monkeypatch.setattr(graph_module, "CHUNK_BYTES", 7 * 24)
    parts = graphs(data, mask, factors)
    assert np.allclose(whole.edges, parts.edges)
    assert whole.components.tolist() == parts.components.tolist()


def test_context_factors_are_not_components(rng):
    labels, free = np.array([[0, 1, 1], [0, 0, 2], [0, 1, 2]]), np.array([False, True, True])
    assert component_counts(labels, free).tolist() == [1, 2, 2]


@given(seeds, st.integers(0, 40), st.integers(1, 40))
def test_rows_are_drawn_without_replacement_and_in_order(seed, total, most):
    rows = rows_of(total, most, np.random.default_rng(seed)).tolist()
    assert rows == sorted(set(rows))
    assert len(rows) == min(total, most)
    assert all(0 <= row < total for row in rows)


@given(seeds, st.integers(1, 30), st.integers(0, 30))
def test_coverage_is_the_share_of_combinations_that_occur(seed, rows, made_rows):
    rng = np.random.default_rng(seed)
    factors = make_factors(2, 1)
    real, made = make_data(factors, rows, rng), make_data(factors, made_rows, rng)
    found = coverage(real, made, factors)
    columns = [slice(0, 2), slice(2, 4)]
    codes = [cells(real.state[:, c], made.state[:, c]).tolist() for c in columns]
    codes.append(cells(real.action, made.action).tolist())
    for i in range(3):
        assert np.isnan(found.before[i, i])
        for j in set(range(3)) - {i}:
            total = len(set(codes[i])) * len(set(codes[j]))
            both = list(zip(codes[i], codes[j], strict=True))
            assert found.before[i, j] == len(set(both[:rows])) / total
            assert found.after[i, j] == len(set(both)) / total
    assert found.means[0] <= found.means[1]


@given(values, values)
def test_cells_follow_the_values(real, made):
    code = cells(real[:, None], made[:, None])
    assert sorted(set(code.tolist())) == list(range(code.max() + 1))
    assert code.max() < MOST_CELLS
    order = np.argsort(np.concatenate([real, made]), kind="stable")
    assert (np.diff(code[order]) >= 0).all()
    for value in np.unique(real):
        assert len(set(code[np.concatenate([real, made]) == value].tolist())) == 1


def test_coverage_takes_positions_where_they_are_declared(rng):
    factors = Factorization.blocks(state={"a": 4, "b": 1}, positions={"a": (2, 3)})
    data = make_data(factors, 400, rng)
    constant = data.replace(state=np.where(np.arange(5) < 2, 0.0, data.state))
    assert coverage(constant, constant[:0], factors).cells[0] > 10


@given(values, values)
def test_the_gap_is_that_of_the_distribution_functions(first, second):
    slow = max(abs(np.mean(first <= x) - np.mean(second <= x)) for x in np.concatenate([first, second]))
    assert gap(first, second) == pytest.approx(slow)
    assert gap(first, first) == 0.0


@given(values, values)
def test_bars_of_single_values_are_shares(first, second):
    found = compare("x", first, second)
    assert found.discrete
    assert found.before.tolist() == [np.mean(first == value) for value in found.bounds]
    assert found.after.tolist() == [np.mean(second == value) for value in found.bounds]
    assert (found.real.low, found.real.high, found.real.mean) == (first.min(), first.max(), first.mean())


@given(seeds, st.booleans())
def test_bars_of_ranges_hold_everything_even_outliers(seed, outlier):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=300), rng.normal(size=500)
    first[0] = 1e6 if outlier else first[0]
    found = compare("x", first, second)
    assert not found.discrete
    assert found.before.sum() == pytest.approx(1)
    assert found.after.sum() == pytest.approx(1)
    assert (found.bounds[-1] < 10) or not outlier
    inside = (first >= found.bounds[3]) & (first < found.bounds[4])
    assert found.before[3] == pytest.approx(inside.mean())


def test_every_column_is_compared_and_what_moved_most_comes_first(sprites):
    world, data, made = sprites
    found = facts_of(world.factors, data, world.mask, made).features
    assert sorted(item.label for item in found) == sorted(column_names(world.factors, {}))
    gaps = [item.gap for item in found]
    assert gaps == sorted(gaps, reverse=True)
    first = next(item for item in found if item.label == "action[1]")
    assert first.gap == gap(data.action[:, 1], made.transitions.action[:, 1])


@given(seeds, st.integers(1, 70), st.integers(0, 60))
def test_swapped_sets_and_their_parents(seed, nodes, rows):
    rng = np.random.default_rng(seed)
    swapped = rng.random((4, nodes))[rng.integers(4, size=rows)] < 0.5
    base, donor = rng.integers(9, size=rows), rng.integers(9, size=rows)
    slow = defaultdict(list)
    for row in range(rows):
        slow[tuple(swapped[row].tolist())].append(row)
    found, different = swap_sets(Provenance(base, donor, swapped))
    assert different == len(slow)
    assert [item.rows for item in found] == sorted(map(len, slow.values()), reverse=True)
    for item in found:
        mine = slow[tuple(item.nodes.tolist())]
        assert (item.rows, item.donors, item.bases) == (len(mine), len(set(donor[mine])), len(set(base[mine])))
    count = parents(Provenance(base, donor, swapped))
    assert (count.bases, count.donors) == (len(set(base)), len(set(donor)))
    assert count.either == len(set(base) | set(donor))
    busiest = max((sum((base == row) | (donor == row)) for row in range(9)), default=0)
    assert count.heaviest == pytest.approx(busiest / max(1, rows))


@given(seeds)
def test_the_first_crossing_edge(seed):
    rng = np.random.default_rng(seed)
    mask, nodes = rng.random((5, 4, 3)) < 0.4, rng.random((5, 4)) < 0.5
    mask[:, 0, 1], nodes[:, 0], nodes[:, 1] = True, True, False
    for row, (source, target) in enumerate(first_crossing(mask, nodes).tolist()):
        crossing = [(i, j) for i in range(4) for j in range(3) if mask[row, i, j] and nodes[row, i] != nodes[row, j]]
        assert (source, target) == crossing[0]


# Examples


def test_rejected_examples_are_rejected_by_their_edge(sprites):
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made)
    assert facts.rejections.examples
    assert 0 < facts.rejections.rejected < facts.rejections.tried
    for example in facts.rejections.examples:
        source, target = example.edge
        assert example.swapped[source] != example.swapped[target]
        assert example.masks[:, source, target].tolist() == [False, False, True]
        assert np.array_equal(world.mask(example.result.state, example.result.action)[0], example.masks[2])
        check_origin(example, data, world.factors)


def test_a_card_says_in_words_what_came_from_whom(sprites):
    world, data, made = sprites
    names, facts = world.factors.names, facts_of(world.factors, data, world.mask, made)
    for example in [*facts.accepted, *facts.rejections.examples]:
        written = card("slug", example, world.factors, None)
        origin = ["donor" if swapped else "base" for swapped in example.swapped]
        for node, name in enumerate(names):
            assert f'{name}</th><td><span class="chip {origin[node]}">from {origin[node]}</span>' in written
            assert (f"{name} is the {origin[node]}’s" in written) == (node in (example.edge or ()))
        assert ("Rejected" in written, "Accepted" in written) == (example.edge is not None, example.edge is None)
        if example.edge:
            assert " → ".join(names[node] for node in example.edge) in written


def test_accepted_examples_are_those_that_were_made(sprites):
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made)
    assert len(facts.accepted) == 4
    assert len({tuple(example.swapped.tolist()) for example in facts.accepted}) == 4
    for example in facts.accepted:
        assert example.edge is None
        check_origin(example, data, world.factors)


def check_origin(example, data, factors):
    base, donor = (data[row] for row in example.rows)
    assert np.array_equal(base.state, example.base.state)
    assert np.array_equal(donor.state, example.donor.state)
    from_donor = example.swapped[factors.state_owner]
    assert np.array_equal(example.result.state, np.where(from_donor, donor.state, base.state))


def test_examples_keep_to_the_context_and_derive(rng):
    factors = Factorization.blocks(state={"room": 1, "a": 1, "b": 1}, derived=(3,), context=("room",))

    def derive(state):
        return state[:, 1:2] - state[:, 2:3]

    state, after = rng.random((2, 80, 4))
    state[:, 0] = after[:, 0] = rng.integers(2, size=80)
    for part in (state, after):
        part[:, 3:] = derive(part)
    data = Transitions(state, np.zeros((80, 0)), np.zeros(80), after, np.zeros(80, bool))

    def mask(state, action):
        edges = np.broadcast_to(np.eye(3, dtype=bool), (len(state), 3, 3)).copy()
        edges[:, 0], edges[:, 1, 2] = True, state[:, 3] > 0.2
        return edges

    made = Augmenter(factors, mask, no_reward, derive=derive).fill(data, 100, rng=rng)
    facts = facts_of(factors, data, mask, made, derive=derive)
    assert facts.rejections.examples
    for example in facts.rejections.examples:
        assert example.base.state[0, 0] == example.donor.state[0, 0]
        assert not example.swapped[0]
        assert np.allclose(example.result.state[:, 3:], derive(example.result.state))
    assert facts.real.factored == pytest.approx(np.mean(state[:, 3] <= 0.2))


# The verdict


def test_without_a_simulator_it_is_never_green(sprites):
    world, data, made = sprites
    verdict = judge(facts_of(world.factors, data, world.mask, made))
    assert verdict.level == Level.AMBER
    assert "No simulator was given, so nothing here proves" in verdict.findings[0].sentence
    assert [finding.level for finding in verdict.findings[1:]] == [Level.GREEN] * 4


def test_with_one_it_depends_on_what_it_says(sprites):
    world, data, made = sprites
    found = audit(made, world.step)
    levels = []
    for wrong in (0, 6, 300):
        error = np.where(np.arange(len(made)) < wrong, 1.0, 0.0)
        verdict = judge(facts_of(world.factors, data, world.mask, made, audit=Audit(error, 1e-6, found.columns)))
        levels.append(verdict.level)
        assert ("every one came out as stored" in verdict.findings[0].sentence) == (wrong == 0)
    assert levels == [Level.GREEN, Level.AMBER, Level.RED]
    few = Audit(np.zeros(20), 1e-6, found.columns)  # twenty rows prove little
    verdict = judge(facts_of(world.factors, data, world.mask, made, audit=few))
    assert verdict.level == Level.AMBER
    assert "20 of 1,200" in verdict.findings[0].sentence


@given(st.integers(1, 500), st.integers(0, 500))
def test_the_lower_bound_is_careful(rows, wrong):
    error = np.where(np.arange(rows) < wrong, 1.0, 0.0)
    found = Audit(error, 0.0, np.zeros(1))
    assert lower_bound(found, rows) == found.confirmed
    assert 0 <= lower_bound(found, 2 * rows) <= found.confirmed
    if wrong <= rows:
        more = Audit(np.tile(error, 10), 0.0, np.zeros(1))
        assert lower_bound(found, 100 * rows) <= lower_bound(more, 100 * rows) + 1e-12


def test_low_yield_lost_interactions_and_moved_features_are_said(sprites):
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made, audit=audit(made, world.step))
    assert judge(facts).level == Level.GREEN
    funnel = dataclasses.replace(made.funnel, rejected=10**6)
    moved = compare("sprite0 x", np.arange(1000.0), np.arange(1000.0) + 300)
    changes = {
        "Yield": {"made": dataclasses.replace(made, funnel=funnel)},
        "Selection": {"synthetic": dataclasses.replace(facts.synthetic, interacting=1)},
        "Features": {"features": [moved, *facts.features]},
        "Variety": {"parents": dataclasses.replace(facts.parents, donors=3)},
    }
    for topic, change in changes.items():
        verdict = judge(dataclasses.replace(facts, **change))
        assert verdict.level == Level.AMBER
        assert [f.topic for f in verdict.findings if f.level == Level.AMBER] == [topic]


def test_the_audit_section_names_what_is_wrong(rng, tmp_path):
    factors, data, mask, made = small(3, 1, 50, 100, rng)
    found = audit(made, lambda state, action: made.transitions.next_state + np.array([0, 0, 9, 0, 0, 0]))
    page = Page(write_report(tmp_path / "r.html", data, made, factors, mask, rng=rng, audit=found)).check()
    assert "s1[0]9" in page.section("audit")
    assert "Sets behind the wrong rows" in page.section("audit")
    assert "Do not train on this" in page.section("verdict")


# At the door


def test_what_does_not_belong_together_is_refused(sprites, tmp_path):
    world, data, made = sprites
    path = tmp_path / "r.html"

    def attempt(data=data, made=made, factors=world.factors, rng=RNG, **extras):
        return write_report(path, data, made, factors, world.mask, rng=rng, **extras)

    with pytest.raises(ValueError, match="made: it has a parent in row .* but the data holds 10 rows"):
        attempt(data=data[:10])
    with pytest.raises(TypeError, match="made: expected Counterfactuals"):
        attempt(made=made.transitions)
    with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
        attempt(rng=0)
    with pytest.raises(ValueError, match="audit: it judged 5,000 rows of 16 columns, but there are 1,200"):
        attempt(audit=Audit(np.zeros(5000), 1e-6, np.zeros(16)))
    with pytest.raises(ValueError, match="audit: it judged 5 rows of 3 columns, .* counterfactuals of 16"):
        attempt(audit=Audit(np.zeros(5), 1e-6, np.zeros(3)))
    with pytest.raises(ValueError, match="made: it swapped 5 factors, but factors has 2: everything, action"):
        attempt(factors=Factorization.blocks(state={"everything": 16}, action={"action": 2}))
    with pytest.raises(TypeError, match="audit: expected .*Audit, got True"):
        attempt(audit=True)
    with pytest.raises(TypeError, match="draw: expected a function"):
        attempt(draw="sprites")
    with pytest.raises(ValueError, match="labels: no factor is called 'ball'"):
        attempt(labels={"ball": ("x",)})
    with pytest.raises(ValueError, match="labels: 'sprite0' has 4 columns"):
        attempt(labels={"sprite0": ("x", "y")})
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        attempt(colour="red")
    with pytest.raises(ValueError, match="calibration: expected three arrays of one length"):
        Calibration([0.1], [0.2, 0.3], [1])
    with pytest.raises(ValueError, match="calibration: expected scores and shares between 0 and 1"):
        Calibration([1.1], [0.2], [1])
    assert not path.exists()


def test_a_missing_matplotlib_is_reported_with_its_install_line():
    code = "import sys; sys.modules['matplotlib'] = None; import counterpoint.report"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: Reports need matplotlib and Pillow: pip install counterpoint-rl[report]" in result.stderr


# Pieces


def test_calibration_error_is_weighted():
    assert Calibration([0.0, 1.0], [0.5, 1.0], [1, 3]).error == pytest.approx(0.125)


@given(st.floats(-1e300, 1e300))
def test_numbers_read_back(value):
    read = float(number(value).replace(",", "").replace("−", "-"))
    assert read == pytest.approx(value, rel=1e-3)


@given(st.floats(0, 1))
def test_a_share_never_rounds_to_all_or_nothing(value):
    assert (share(value) == "100%") == (value == 1)
    assert (share(value) == "0%") == (value == 0)


@given(st.text())
def test_text_survives_escaping(value):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = ""

        def handle_data(self, data):
            self.seen += data

    reader = Reader()
    reader.feed(tag("p", value))
    reader.close()
    kept = [ord(character) >= 32 or character in "\t\n" for character in value]
    expected = "".join(
        c if keep and not 0xD7FF < ord(c) < 0xE000 else "\ufffd" for c, keep in zip(value, kept, strict=True)
    )
    expected = re.sub("[\x7f\ufffe\uffff]", "\ufffd", expected)
    assert reader.seen == expected
    assert text(Html("<b>")) == "<b>"


def test_columns_of_numbers_are_flush_right():
    made = table("t", ["a", "b", "c"], [["x", "1,200", "−1e−7"], ["y", "–", "word" * 9]])
    assert made.count('class="number"') == 3  # the heading and two cells of the second column
    assert made.count('class="long"') == 3


def test_columns_are_named_after_their_factors():
    factors = Factorization(state={"a": (0, 2), "b": (3,)}, action={"push": (0, 1)}, derived=(1,))
    names = column_names(factors, {"push": ("x (m)", "y (m)")})
    assert names == ["a[0]", "derived[1]", "a[1]", "b", "push x (m)", "push y (m)"]


def test_a_drawing_without_a_view_box_is_refused():
    with pytest.raises(ValueError, match="viewBox"):
        inline("<svg></svg>", "x", "y")
