"""What a factor does by itself, and what always moves it."""

import numpy as np

from counterpoint import Factorization, Transitions
from counterpoint.learn.calibration.motion_alone import MotionAlone


def test_a_baseline_knows_what_moves_a_factor_always(rng):
    """The arm follows its motor; the ball moves by itself, unless the arm is near."""
    state, motor = rng.uniform(-1, 1, (2000, 3)), rng.uniform(-1, 1, (2000, 1))
    near = np.abs(state[:, 0] - state[:, 1]) < 0.1
    after = np.stack([state[:, 0] + motor[:, 0], state[:, 1] + np.where(near, 0.5, 0.1 * state[:, 2]), state[:, 2]], 1)
    factors = Factorization.blocks(state={"arm": 1, "ball": 2}, action={"motor": 1})
    data = Transitions(state, motor, np.zeros(2000), after, np.zeros(2000, bool))
    baseline = MotionAlone.fit(data, factors, rng)
    np.testing.assert_array_equal(baseline.always, [[False, False], [False, False], [True, False]])
    off = baseline.residual(data)
    assert np.median(off[near, 1]) > 20 * np.median(off[~near, 1])
    undisturbed = np.abs(baseline.next_state(data) - after)[~near]
    assert np.median(undisturbed, axis=0).max() < 0.02


def test_what_a_policy_looks_at_is_not_what_moves_a_factor(rng):
    """The player follows the ball, so the ball tells as much as the action does; still the action moves the paddle."""
    factors = Factorization.blocks(state={"paddle": 1, "ball": 1}, action={"motor": 1})
    state = rng.uniform(-1, 1, (1500, 2))
    action = np.tanh(2.0 * (state[:, 1:] - state[:, :1])) + 0.01 * rng.normal(size=(1500, 1))
    next_state = state + np.concatenate([0.3 * action, 0.1 * np.sin(3.0 * state[:, 1:])], axis=1)
    data = Transitions(state, action, np.zeros(1500), next_state, np.zeros(1500, bool))
    always = MotionAlone.fit(data, factors, rng).always
    np.testing.assert_array_equal(always, [[False, False], [False, False], [True, False]])
