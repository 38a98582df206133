"""Finer laws: trees that help in episodes that they have not seen, and none elsewhere."""

import numpy as np

from counterpoint import Factorization, Transitions
from counterpoint.learn.calibration.finer import finer
from counterpoint.learn.calibration.own_course import OwnCourses


def test_what_a_law_leaves_over_is_foretold_where_it_can_be(rng):
    given = rng.uniform(-1, 1, (6000, 2))
    noise = rng.normal(0, 1, (6000, 1))
    left = 6 * np.sin(4 * given[:, [0]]) * given[:, [1]] + noise
    found = finer(left, given, rng.random(6000) < 0.5)
    assert found is not None
    fresh = rng.uniform(-1, 1, (3000, 2))
    off = 6 * np.sin(4 * fresh[:, [0]]) * fresh[:, [1]]
    assert np.median(np.abs(off - found(fresh))) < 0.4 * np.median(np.abs(off))


def test_of_noise_nothing_is_foretold(rng):
    assert finer(rng.normal(0, 1, (6000, 2)), rng.uniform(-1, 1, (6000, 3)), rng.random(6000) < 0.5) is None


def test_rare_pushes_do_not_bend_it(rng):
    given = rng.uniform(-1, 1, (6000, 2))
    left = rng.normal(0, 1, (6000, 1)) + np.where(rng.random((6000, 1)) < 0.1, 500.0, 0.0)
    found = finer(left, given, rng.random(6000) < 0.5)
    assert found is None or np.abs(found(given)).max() < 3.0


def test_a_hand_that_follows_its_action_through_joints_is_known_better(rng):
    """What is left of its law no longer tells its action; what was ordinary stays so."""
    factors = Factorization.blocks(state={"hand": 2}, action={"motor": 2})
    hand, motor = rng.uniform(-1, 1, (8000, 2)), rng.uniform(-1, 1, (8000, 2))
    turn = 2.0 * hand[:, [0]]
    after = hand + 0.1 * np.hstack(
        [np.cos(turn) * motor[:, [0]] - np.sin(turn) * motor[:, [1]], np.sin(turn) * motor[:, [0]]]
    )
    zeros = np.zeros(8000)
    data = Transitions(hand, motor, zeros, after, zeros > 0, episode=np.arange(8000) // 40)
    rough = OwnCourses.fit(data[:4000], factors, rng)
    fine = rough.refined(data[:4000], rng)
    before, now = (np.median(np.abs(each.residuals(data[4000:])[0])) for each in (rough, fine))
    assert now < 0.7 * before
    assert all(np.array_equal(one, other) for one, other in zip(rough.units, fine.units, strict=True))
