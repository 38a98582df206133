"""Reports on windows: yield by step, film strips, and what never changes counted apart."""

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import audit
from counterpoint.core.static import static_nodes
from counterpoint.masks import Constant
from counterpoint.report import Extras, write_report
from counterpoint.report.examples import rejected
from counterpoint.report.facts import measure
from counterpoint.report.gallery import card, frames
from counterpoint.report.verdict import Level, judge
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from tests.report.reading import Page, draw, no_reward

WORLD = Sprites(noise_std=0.0)
LENGTH = 6


@pytest.fixture(scope="module", params=["uniform", "sharing"])
def windows(request):
    rng = np.random.default_rng(0)
    data = collect(
        WORLD, uniform_policy(WORLD), 1500, rng, reward_fn=Place(4), episode_length=50, reset_probability=0.0
    )
    augmenter = Augmenter(WORLD.factors, WORLD.mask, Place(4), window=LENGTH, pairing=request.param)
    return data, augmenter.fill(data, 40, rng=rng), augmenter


def facts_of(windows, **more):
    data, made, augmenter = windows
    return measure(data, made, augmenter, rng=np.random.default_rng(1), **more)


def check(example, data):
    """Base, donor and result are windows, and the result is the swap of the other two at every step."""
    (base, donor), length = example.rows, len(example.base)
    assert np.array_equal(example.base.state, data.state[base : base + length])
    assert np.array_equal(example.donor.state, data.state[donor : donor + length])
    from_donor = example.swapped[WORLD.factors.state_owner]
    assert np.array_equal(example.result.state, np.where(from_donor, example.donor.state, example.base.state))
    for part, rows in enumerate((example.base, example.donor, example.result)):
        assert np.array_equal(WORLD.mask(rows.state, rows.action), example.masks[:, part])


def test_examples_are_windows(windows):
    facts = facts_of(windows)
    assert facts.accepted
    assert facts.rejections.examples
    for example in (*facts.accepted, *facts.rejections.examples):
        assert len(example.base) == LENGTH
        check(example, windows[0])
    for example in facts.rejections.examples:
        crossed = example.masks[:, 2] & (example.swapped[:, None] != example.swapped[: WORLD.factors.n])
        assert not crossed[: example.step].any()
        assert crossed[example.step][example.edge]
        assert not example.masks[:, :2][(slice(None), slice(None), *example.edge)].any()


def test_the_yield_by_step_falls_to_that_of_whole_windows(windows):
    data, _, augmenter = windows
    found = rejected(data, np.arange(len(data)), augmenter, rng=np.random.default_rng(3))
    assert found.uncrossed.shape == (LENGTH,)
    assert (np.diff(found.uncrossed) <= 0).all()
    assert found.uncrossed[-1] == pytest.approx(1 - found.rejected / found.tried)
    assert 0 < found.uncrossed[-1] < found.uncrossed[0] < 1


@pytest.mark.parametrize("own", [draw, None])
def test_the_page_has_a_film_strip_and_the_yield_by_step(own, windows, tmp_path):
    """Drawn by a function of one's own, or from the positions that the mask knows."""
    data, made, augmenter = windows
    path = write_report(
        tmp_path / "page.html", data, made, augmenter, rng=np.random.default_rng(1),
        audit=audit(made, WORLD.step), extras=Extras(draw=own),
    )  # fmt: skip
    page = Page(path).check()
    assert "40 counterfactual windows of 6 rows" in page.text
    assert "valid in their first row" in page.section("windows")
    assert "started once for each window" in page.section("audit")
    strips = [index for index in page.all("div") if page.get(index, "class") == "film"]
    assert len(strips) == 8
    for strip in strips:
        assert len(page.all("img", strip)) == 3 * LENGTH
    assert "row 6" in page.words[strips[0]]


def test_a_rejected_window_says_where(windows):
    facts = facts_of(windows)
    for example in facts.rejections.examples:
        assert f"It is there in row {example.step + 1} of 6." in card("slug", example, WORLD.factors, draw)
        assert f"row {example.step + 1} of 6" in card("slug", example, WORLD.factors, None)


@pytest.mark.parametrize(("length", "step"), [(2, 1), (8, 3), (16, 5), (300, 299), (300, 1)])
def test_frames_are_few_and_show_what_matters(length, step):
    found = frames(length, step)
    assert found == sorted(set(found))
    assert {0, length - 1, step} <= set(found)
    assert len(found) == min(length, 8)


class TestStatic:
    """A robot that pushes nothing, and a goal: swaps of goals must not make it look good."""

    factors = Factorization.blocks(state={"arm": 1, "cup": 1, "goal": 1})

    def facts(self, rng, share, audited=True):
        state = np.column_stack([rng.random((300, 2)), rng.integers(0, 9, 300)])
        data = Transitions(state, np.zeros((300, 0)), np.zeros(300), self.step(state), np.zeros(300, bool))
        make = Augmenter(self.factors, Constant.identity(self.factors), no_reward, static_share=share)
        made = make.fill(data, 400, rng=rng)
        assert np.array_equal(made.static_nodes, static_nodes(data, self.factors))
        return measure(data, made, make, rng=rng, audit=audit(made, self.step) if audited else None)

    @staticmethod
    def step(state, action=None):
        return np.column_stack([state[:, 0] + 1, state[:, 0] + state[:, 1], state[:, 2]])

    def test_the_verdict_speaks_of_the_others(self, rng):
        verdict = judge(self.facts(rng, 0.8))
        assert verdict.level == Level.RED
        simulator, made = verdict.findings[:2]
        assert "only exchange what never changes, 0 of them wrong" in simulator.sentence
        assert made.level == Level.AMBER
        assert "They say nothing about the dynamics." in made.sentence

    def test_pure_relabelling_is_judged_by_itself(self, rng):
        verdict = judge(self.facts(rng, 1.0))
        assert verdict.findings[0].level == Level.GREEN
        assert verdict.findings[0].sentence.startswith("All 400 counterfactuals")

    def test_the_page_counts_them_apart(self, rng, tmp_path):
        from counterpoint.report.page import page

        facts = self.facts(rng, 0.3)
        path = tmp_path / "page.html"
        path.write_text(page(facts), encoding="utf-8")
        found = Page(path).check()
        apart = f"{facts.made.funnel.static:,}"
        assert (
            f"Swaps of what never changes (goal) are valid whatever the rest does. They are counted apart: {apart}."
            in (found.section("funnel"))
        )
        assert "apart: only what never changes" + apart in found.section("audit")
        assert "exchange nothing but what never changes (goal)" in found.section("swaps")
