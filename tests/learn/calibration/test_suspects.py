"""Who could move a factor that no law explains."""

import numpy as np

from counterpoint import Factorization, Transitions
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.learn.calibration.suspects import suspects
from counterpoint.learn.calibration.witness import Witness
from counterpoint.masks.pairs import FactorPairs, beside

FACTORS = Factorization.blocks(
    state={"hand": 2, "block": 3}, action={"motor": 2}, positions={"hand": (0, 1), "block": (2, 3)}
)
REACH = 0.2


def tumbling(rng, size=12_000):
    """A hand, and a block that lies still or tumbles, which nobody can foretell; a near hand pushes it about."""
    hand, block = rng.random((size, 2)), rng.random((size, 2))
    motor = rng.uniform(-1, 1, (size, 2))
    tumbles = rng.random((size, 1)) < 0.4
    near = np.linalg.norm(hand - block, axis=1, keepdims=True) < REACH
    moved = np.where(tumbles, rng.normal(0, 0.05, (size, 2)), 0.0) + np.where(near, 0.3 * motor, 0.0)
    state = np.hstack([hand, block, tumbles])
    after = np.hstack([hand + 0.05 * motor, block + moved, tumbles & (rng.random((size, 1)) < 0.9)])
    zeros = np.zeros(size)
    return Transitions(state, motor, zeros, after.astype(float), zeros > 0, episode=np.arange(size) // 20)


def apart(data):
    return np.linalg.norm(data.state[:, :2] - data.state[:, 2:4], axis=1)


def test_a_hand_that_is_far_from_a_tumbling_block_is_acquitted_and_a_near_one_is_not(rng):
    data = tumbling(rng)
    witness = Witness.fit(data[:6000], data[6000:], FACTORS, rng)
    judged = witness.judged
    rows = witness.lawless[:, 1]
    assert rows[judged.state[:, 4] > 0].mean() > 0.9
    could = witness.could_move(judged)[:, 0, 1]
    assert could[rows & (apart(judged) < 0.7 * REACH)].mean() > 0.9
    assert could[rows & (apart(judged) > 2 * REACH)].mean() < 0.1


def test_where_hardly_any_row_is_without_a_law_everybody_is_suspected(rng):
    data = tumbling(rng, 4000)
    calm = data[data.state[:, 4] == 0]
    halves = calm[:1000], calm[1000:2000]
    alone, pairs = OwnCourses.fit(halves[0], FACTORS, rng), FactorPairs(FACTORS)
    found = suspects(pairs.kinds, alone, halves, [alone.residuals(half) for half in halves], rng)
    for each in found:
        assert all(each.could[where].all() for where in each.where(pairs, beside(calm.state, calm.action)))


def test_what_is_held_may_be_moved_by_what_holds_it(rng):
    """It is never seen without it, so that nothing can be compared."""
    data = tumbling(rng)
    held = data.state[:, 4] > 0
    state, after = data.state.copy(), data.next_state.copy()
    state[held, :2] = state[held, 2:4] + rng.normal(0, 0.01, (held.sum(), 2))
    after[held, :2] = state[held, :2] + 0.05 * data.action[held]
    data = data.replace(state=state, next_state=after)
    halves = data[:6000], data[6000:]
    alone, pairs = OwnCourses.fit(halves[0], FACTORS, rng), FactorPairs(FACTORS)
    kinds = [kind for kind in pairs.kinds if (0, 1) in kind.pairs]
    (found,) = suspects(kinds, alone, halves, [alone.residuals(half) for half in halves], rng)
    rows = beside(state[held], data.action[held])
    assert found.could[found.where(pairs, rows)[0]].mean() > 0.9
