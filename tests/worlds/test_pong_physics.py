"""The physics of Pong, by its consequences."""

import numpy as np
import pytest

from counterpoint.worlds.pong import Pong
from tests.worlds.pong_games import AGENT, BALL, SCALE, alone, crowded


def test_a_ball_in_free_flight_loses_six_percent_in_thirty_steps_and_keeps_its_direction():
    state = alone(ball_x=-1, ball_vx=1.6, ball_vy=1.2)
    start, world = state.copy(), Pong()
    for _ in range(30):
        state = world.step(state, np.zeros((1, 2)))
    kept = np.hypot(*state[0, 10:]) / np.hypot(*start[0, 10:])
    assert 0.935 < kept < 0.945
    assert state[0, 10] / state[0, 11] == pytest.approx(1.6 / 1.2)


def test_full_throttle():
    state, speeds = alone(agent_y=-1, ball_x=2), []
    for _ in range(10):
        state = Pong().step(state, np.array([[0.0, 1.0]]))
        speeds.append(state[0, 3] * 2)
    assert speeds[0] == pytest.approx(0.54, abs=0.005)
    assert speeds[-1] == pytest.approx(2.6, abs=0.05)
    assert np.all(np.diff(speeds) > 0)


def test_the_opponent_swings_about_its_target_with_a_period_of_about_55_steps():
    state, noise, heights = alone(opponent_y=0.85, ball_x=2), np.array([[0.9, 0.3]]), []
    for _ in range(1000):
        state = Pong().step(state, np.zeros((1, 2)), noise)
        heights.append(state[0, 5] * 1.1 - 0.3)
    heights = np.array(heights)
    crossings = np.flatnonzero(np.diff(np.sign(heights)))
    assert 48 < crossings[2] - crossings[0] < 60
    swings = [np.abs(heights[start : start + 60]).max() for start in range(0, 420, 60)]
    assert np.all(np.diff(swings) < 0)
    assert swings[1] > 0.6 * swings[0]
    assert np.abs(heights[-50:]).max() < 0.01
    assert state[0, 4] == 1.0  # x target beyond the joint's limit: there it stays
    assert state[0, 6] == 0.0


def test_paddles_stop_at_their_limits_and_can_leave_them():
    state, world = alone(ball_x=2), Pong()
    for _ in range(60):
        state = world.step(state, np.array([[1.0, -1.0]]))
    assert state[0, :4].tolist() == [1.0, -1.0, 0.0, 0.0]
    state = world.step(state, np.array([[-1.0, 1.0]]))
    assert state[0, 0] < 1.0
    assert state[0, 1] > -1.0


def test_the_ball_turns_at_the_sides_and_parks_behind_the_paddles():
    world, still = Pong(), np.zeros((1, 2))
    turned = world.step(alone(ball_y=0.99, ball_vy=2.0, ball_vx=1.0), still) * SCALE
    assert turned[0, 9] > 1.0
    assert turned[0, 11] == pytest.approx(-2.0, rel=0.01)
    assert turned[0, 10] == pytest.approx(1.0, rel=0.01)
    assert world.step(turned / SCALE, still)[0, 11] < 0  # moving inward outside the wall: left alone
    parked = world.step(alone(ball_x=-1.99, ball_vx=-2.0, ball_vy=1.0), still)
    assert parked[0, 10:].tolist() == [0.0, 0.0]
    assert np.array_equal(world.step(parked, still)[0, 8:], parked[0, 8:])


def serves(speed, size, rng):
    """Balls at one speed on their way to a still paddle, at random distances."""
    state = np.repeat(alone(ball_vx=-speed), size, axis=0)
    state[:, 8] = (-1.3 + 0.055 + 0.1 + rng.uniform(0, speed * 0.0165, size)) / 2.1
    state[:, 9] = rng.uniform(-0.1, 0.1, size) / 1.1
    state[:, 11] = rng.uniform(-0.1, 0.1, size) / 2
    return state


@pytest.mark.parametrize("speed", [2.0, 2.25, 2.5])
def test_a_bounce_returns_between_nothing_and_four_fifths_of_the_speed(speed):
    world, rng = Pong(), np.random.default_rng(8)
    start = state = serves(speed, 4000, rng)
    for _ in range(12):
        state = world.step(state, np.zeros((4000, 2)))
    share = -state[:, 10] / start[:, 10]
    assert share.mean() == pytest.approx(0.39, abs=0.02)
    assert share.std() == pytest.approx(0.23, abs=0.02)
    assert -0.02 < share.min() < 0.05
    assert 0.75 < share.max() < 0.85
    free = np.exp(-0.04 * (1 + speed) * 12 * 0.0165)  # tangential velocity is damped, nothing else
    np.testing.assert_allclose(state[:, 11], start[:, 11] * free, rtol=0.02)


def test_a_ball_that_leaves_fast_enough_is_not_pushed_again():
    speeds = np.linspace(0.1, 5, 50)
    state = np.concatenate([alone(ball_x=-1.3 + 0.055 - 0.005, ball_vx=speed) for speed in speeds])
    after, mask = Pong().step_and_mask(state, np.zeros((50, 2)))
    needed = 0.9 * 0.005 / 0.004125 / (1 - 0.004125 * 0.04 * (1 + speeds))
    pushed = mask[:, BALL, AGENT]
    assert np.array_equal(pushed, speeds < needed)
    assert 5 < pushed.sum() < 45
    assert np.array_equal(after[:, :4] != 0, pushed[:, None] * [[True, False, True, False]])


def test_momentum_goes_from_the_ball_to_the_paddle():
    """Opposite kicks, and the motor takes away at most its largest push."""
    state, action, noise = crowded(20_000, np.random.default_rng(9))
    away = state.copy()
    away[:, 8:10] = [1.0, 0.0]  # the same paddles without a ball
    world = Pong()
    after, mask = world.step_and_mask(state, action, noise)
    free = world.step(away, action, noise)
    kick = (after - free)[:, 2:4] * 2 * 0.848
    gain = (after - state)[:, 10:12] * 2 * 0.0654
    unstopped = (np.abs(state[:, :2]) < 0.7).all(axis=1) & (np.abs(after[:, 9]) < 0.8)
    hit = mask[:, BALL, AGENT] & unstopped
    assert hit.sum() > 1000
    lost = np.abs(kick[hit] + gain[hit])
    assert lost.max() < 4 * 2 * 0.136 * 0.848
    assert np.corrcoef(kick[hit, 0], gain[hit, 0])[0, 1] < -0.8
