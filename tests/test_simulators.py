"""Simulators of all kinds are asked alike, and compared with the right measure."""

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import audit, check_counterfactuals
from counterpoint.core.augment import Counterfactuals
from counterpoint.masks import Constant
from counterpoint.simulators import Tolerance, next_states

FACTORS = Factorization.blocks(state={"hand": 2, "wheel": 1}, action={"motor": 1})


def drifting(state, action):
    """A batch, or one row: the motor moves everything."""
    return state + 0.5 * action


def one_row_only(state, action):
    if state.ndim != 1:
        raise IndexError("one row, please")
    return np.array([float(state[0]) + 0.5 * float(action[0]), *(state[1:] + 0.5 * action)])


def recorded(rng, rows=300):
    state, action = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 1))
    return Transitions(state, action, np.zeros(rows), drifting(state, action), np.zeros(rows, bool))


def test_a_simulator_of_one_row_is_asked_row_by_row(rng):
    data = recorded(rng)
    np.testing.assert_array_equal(next_states(one_row_only, data.state, data.action), data.next_state)
    assert audit(data, one_row_only).confirmed == 1


def test_what_takes_neither_is_told(rng):
    data = recorded(rng)
    with pytest.raises(ValueError, match=r"expected next states of shape \(300, 3\), got \(300, 1\).*a single row"):
        audit(data, lambda state, action: action)
    with pytest.raises(IndexError, match="my own mistake"):
        audit(data, lambda state, action: (_ for _ in ()).throw(IndexError("my own mistake")))
    with pytest.raises(ValueError, match=r"step\(state, action, noise\). Give one that takes the noise"):
        audit(data.replace(noise=np.zeros((len(data), 2))), drifting)


def test_tolerances_are_per_factor_and_angles_go_the_shorter_way_round(rng):
    data = recorded(rng)
    off = data.next_state + np.array([0.2, 0.2, 2 * np.pi])
    found = audit(
        data.replace(next_state=off), drifting, atol=Tolerance.of(FACTORS, per_factor={"hand": 0.3}, angles=[2])
    )
    assert found.confirmed == 1
    assert audit(data.replace(next_state=off), drifting, atol=Tolerance.of(FACTORS, angles=[2])).confirmed == 0
    assert (
        audit(data.replace(next_state=off), drifting, atol=Tolerance.of(FACTORS, per_factor={"hand": 1})).confirmed == 0
    )
    plain = audit(data, drifting, atol=1e-6)
    np.testing.assert_array_equal(plain.error, audit(data, drifting, atol=Tolerance.of(FACTORS)).error)


@pytest.mark.parametrize("wrong", [{"per_factor": {"motor": 1}}, {"per_factor": {"hand": -1}}, {"angles": [3]}])
def test_wrong_tolerances_are_refused(wrong):
    with pytest.raises(ValueError, match=r"tolerance: |angles: "):
        Tolerance.of(FACTORS, **wrong)


def test_each_swapped_set_has_its_result(rng):
    """Where the motor moves the wheel, and the mask does not know, swaps that part the two are wrong."""
    data = recorded(rng)
    made = Augmenter(FACTORS, Constant.identity(FACTORS), lambda s, a, n: n[:, 0]).fill(data, 200, rng=rng)
    parts = [
        Counterfactuals(made.transitions[k], made.provenance[k], made.funnel) for k in (slice(80), slice(80, None))
    ]
    halves = audit(parts[0], drifting) + audit(parts[1], drifting)
    whole = audit(made, drifting)
    assert dict(halves.sets) == dict(whole.sets)
    by_set = whole.by_set(FACTORS)
    assert sum(tried for _, tried, _ in by_set) == 200
    assert sum(wrong for _, _, wrong in by_set) == len(whole.wrong) > 0
    for names, tried, wrong in by_set:
        rows = (made.swapped == FACTORS.nodes(*names)).all(axis=1)
        assert tried == rows.sum()
        assert wrong == np.isin(np.flatnonzero(rows), whole.wrong).sum()
    with pytest.raises(ValueError, match=r"columns \d"):
        check_counterfactuals(made, drifting, atol=Tolerance.of(FACTORS))


def test_progress_moves_within_a_slow_simulator(rng, monkeypatch):
    monkeypatch.setattr("counterpoint.checks.MOMENT", 0.0)  # as if every answer took long
    seen = []
    audit(recorded(rng, 1000), drifting, progress=seen.append)
    assert seen == [256, 512, 768, 1000]
