"""The verdict is never more certain than the evidence."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.checks import Audit, audit
from counterpoint.report import Extras, Judgement
from counterpoint.report.distributions import compare
from counterpoint.report.verdict import Level, judge, lower_bound
from tests.report.reading import Page, facts_of, report, small


def test_without_a_simulator_it_is_never_green(sprites):
    world, data, made = sprites
    verdict = judge(facts_of(world.factors, data, world.mask, made))
    assert verdict.level == Level.AMBER
    assert "No simulator was given, so nothing here proves" in verdict.findings[0].sentence
    assert [finding.level for finding in verdict.findings[1:]] == [Level.GREEN] * 5


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


@pytest.mark.parametrize(
    ("fine", "words", "level"),
    [
        (True, "about 0.1% would be wrong; fine", Level.GREEN),
        (False, "cannot tell: bring more data.", Level.AMBER),
        (False, "do not augment: about 20% would be wrong.", Level.RED),
    ],
)
def test_what_recordings_say_of_the_mask_counts(sprites, fine, words, level):
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made, audit=audit(made, world.step))
    facts = dataclasses.replace(facts, extras=Extras(judgement=Judgement(fine, words)))
    verdict = judge(facts)
    assert verdict.level == level
    assert verdict.findings[1].sentence.startswith(f"Judged by the recordings alone: {words}")
    assert ("the recordings contradict too much" in verdict.headline) == (level == Level.RED)


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
        "Rewards": {"reward": compare("reward", np.arange(1000) % 4 == 0, np.arange(1000) % 20 == 0)},
        "Variety": {"parents": dataclasses.replace(facts.parents, donors=3)},
    }
    for topic, change in changes.items():
        verdict = judge(dataclasses.replace(facts, **change))
        assert verdict.level == Level.AMBER
        assert [f.topic for f in verdict.findings if f.level == Level.AMBER] == [topic]


def test_a_success_that_becomes_rare_is_a_finding(sprites):
    """A share that falls from 23% to 5%, or from 8% to 2%, is said; the same share is not."""
    world, data, made = sprites
    facts = facts_of(world.factors, data, world.mask, made)
    for before, after, level in ((23, 5, Level.AMBER), (8, 2, Level.AMBER), (23, 22, Level.GREEN), (0, 0, Level.GREEN)):
        real, new = (np.arange(1000) % 100 < share for share in (before, after))
        verdict = judge(dataclasses.replace(facts, reward=compare("reward", real - 1.0, new - 1.0)))
        (found,) = [finding for finding in verdict.findings if finding.topic == "Rewards"]
        assert found.level == level
        if level == Level.AMBER:
            assert f"a share of {before}.0% in the real rows and of {after}.0% in the counterfactuals" in found.sentence


def test_the_audit_section_names_what_is_wrong(rng, tmp_path):
    factors, data, mask, made = small(3, 1, 50, 100, rng)
    found = audit(made, lambda state, action: made.transitions.next_state + np.array([0, 0, 9, 0, 0, 0]))
    page = Page(report(tmp_path / "r.html", data, made, factors, mask, rng=rng, audit=found)).check()
    assert "s1[0] (column 2)9" in page.section("audit")
    assert "Sets behind the wrong rows" in page.section("audit")
    assert "Do not train on this" in page.section("verdict")
