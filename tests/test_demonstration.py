"""The demonstration, at a small size: the audit tells masks apart, agents learn, and there is a table and a report."""

import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

import torch

from counterpoint import demonstration
from counterpoint.checks import audit
from counterpoint.demonstration import agents
from counterpoint.masks import Threshold
from counterpoint.worlds import collect, uniform_policy

WORLD, TASK = demonstration.WORLD, demonstration.TASK


def recorded(rows, seed):
    return collect(WORLD, uniform_policy(WORLD), rows, np.random.default_rng(seed), reward_fn=TASK)


def exact_scores(state, action):
    return 1.0 * WORLD.mask(state, action)


def test_it_ends_with_a_table_and_a_report(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(demonstration, "learned_mask", lambda *_: Threshold(exact_scores, 0.5))  # tested elsewhere
    monkeypatch.setattr(demonstration, "judged", lambda *_: "as good as the exact one")
    size = demonstration.Size(log=300, held=300, real=300, counterfactuals=600, seeds=2, steps=3, episodes=20)
    page = demonstration.run(tmp_path / "demo", 0, size, said.append)
    table = {line.split()[0]: line.split() for line in said if re.match(r"(none|identity|learned|exact) ", line)}
    assert list(table) == list(demonstration.ARMS)
    assert [table[name][1] for name in table] == ["300", "900", "900", "900"]
    assert float(table["identity"][2].rstrip("%")) < 50
    assert float(table["learned"][2].rstrip("%")) >= 99.5 <= float(table["exact"][2].rstrip("%"))
    assert all(len(re.findall(r"0\.\d{3}", " ".join(row))) == 4 for row in table.values())  # mean, spread, two seeds
    text = page.read_text()
    assert page == tmp_path / "demo" / "report.html"
    assert "as good as the exact one" in text


def test_the_table_says_how_far_each_arm_went():
    arms = [
        demonstration.Arm("none", 10, None, (0.1, 0.3)),
        demonstration.Arm("learned", 30, 0.99, (0.35, 0.35)),
        demonstration.Arm("exact", 30, 1.0, (0.4, 0.4)),
    ]
    none, learned, exact = list(demonstration.table(arms, 0.15))[1:4]
    for line, words in ((none, ("0.200 ± 0.141", " 0%")), (learned, ("99.0%", " 75%")), (exact, ("100.0%", " 100%"))):
        assert all(word in line for word in words)
    assert "0.150" in list(demonstration.table(arms, 0.15))[-1]


def test_an_agent_is_a_function_of_its_data_and_seed():
    data, units = recorded(300, 1), agents.Units(recorded(500, 3))
    one, again, other = (agents.train(data, units, steps=20, seed=seed) for seed in (5, 5, 6))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_an_exam_is_the_same_for_everyone():
    data, units = recorded(300, 1), agents.Units(recorded(500, 3))
    values = agents.train(data, units, steps=3, seed=1)
    first, second = (agents.play(values, WORLD, TASK, units, episodes=50, seed=seed) for seed in (8, 8))
    assert first == second
    assert 0 < agents.play(None, WORLD, TASK, units, episodes=200, seed=8) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [40, 41])
def test_agents_learn_more_from_true_counterfactuals(seed):
    """In short: none < exact. With wrong ones an agent is in between, which takes more training to tell."""
    data, size = recorded(2000, seed), demonstration.Size(counterfactuals=30_000, steps=1500, episodes=1000)
    exercise = demonstration.Exercise(data, agents.Units(data), size, seed, exam=9)
    without, exact = (demonstration.outcome(mask, exercise) for mask in (None, WORLD.mask))
    assert without.confirmed is None
    assert exact.confirmed > 0.999  # noise beyond the margin of the exact mask: 3 of 100,000 rows
    assert exact.reward > without.reward + 0.02


@pytest.mark.slow
def test_the_mask_is_learned_well_enough_to_be_useful():
    rng = np.random.default_rng(0)
    mask = demonstration.learned_mask(recorded(8000, 1), 20, rng)
    data, size = recorded(2000, 3), demonstration.Size(counterfactuals=5000)
    made = demonstration.augmented(mask, demonstration.Exercise(data, agents.Units(data), size, seed=0, exam=0))
    assert demonstration.judged(mask, recorded(4000, 2), rng).startswith("Without labels it expects ")
    assert audit(made, WORLD.step).confirmed > 0.9
