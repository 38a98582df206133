"""Pong: the batch against a scalar reading of the rules, its tasks and its errors."""

import re
from collections import Counter
from functools import partial

import numpy as np
import pytest

from counterpoint.worlds.pong import CODE_LENGTH, Pong, pong_policy
from tests.worlds import scalar_pong
from tests.worlds.pong_games import MIRRORED, OPPONENT, SCALE, crowded, played


def test_step_and_mask_follow_the_rules_in_every_situation():
    world, rng = Pong(dtype=np.float64), np.random.default_rng(0)
    state, action, noise = crowded(12_000, rng)
    after, mask = world.step_and_mask(state, action, noise)
    reports = [scalar_pong.step(*rows) for rows in zip(state.tolist(), action.tolist(), noise.tolist(), strict=True)]
    np.testing.assert_allclose(after, [report.after for report in reports], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(mask, [report.mask for report in reports])

    first = Counter((report.contacts[0][0], report.contacts[0][1]) for report in reports if report.contacts)
    places = Counter((paddle, where) for report in reports for paddle, _, where in report.contacts)
    events = Counter(event for report in reports for event in report.events)
    for paddle in ("agent", "opponent"):
        for substep in range(4):
            assert first[paddle, substep] > 100, (paddle, substep, first)
        for where in ("face", "end", "corner", "inside, by the face", "inside, by the end"):
            assert places[paddle, where] > 30, (paddle, where, places)
    limits = {f"{name} limit {axis}" for name in ("agent", "opponent", "ball") for axis in "xy"}
    for event in limits | {"wall", "parked", "overlap without push"}:
        assert events[event] > 30, (event, events)


def test_played_games_follow_the_rules_too():
    world, rng = Pong(dtype=np.float64), np.random.default_rng(1)
    state, action, noise, after = played(40, 120, noise_level=0.3, rng=rng, world=world)
    rows = zip(state.tolist(), action.tolist(), noise.tolist(), strict=True)
    reports = [scalar_pong.step(*row) for row in rows]
    np.testing.assert_allclose(after, [report.after for report in reports], rtol=0, atol=1e-9)
    assert sum(bool(report.contacts) for report in reports) > 30


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_step_is_pure_and_keeps_the_dtype_of_the_state(dtype):
    world = Pong()
    inputs = crowded(500, np.random.default_rng(2), dtype)
    copies = [array.copy() for array in inputs]
    for array in inputs:
        array.flags.writeable = False
    after, mask = world.step_and_mask(*inputs)
    assert after.dtype == dtype
    assert after.tobytes() == world.step(*inputs).tobytes()
    assert np.array_equal(mask, world.mask(*inputs))
    assert all(np.array_equal(array, copy) for array, copy in zip(inputs, copies, strict=True))
    after[:] = 0
    mask[:] = False
    assert all(np.array_equal(array, copy) for array, copy in zip(inputs, copies, strict=True))


def test_a_batch_is_its_rows_in_any_order_and_layout():
    world = Pong()
    inputs = crowded(300, np.random.default_rng(3), np.float32)
    after, mask = world.step_and_mask(*inputs)
    blind = world.mask(*inputs[:2])
    for row in range(300):
        one = [array[row : row + 1] for array in inputs]
        assert np.array_equal(world.step(*one)[0], after[row])
        assert np.array_equal(world.mask(*one)[0], mask[row])
        assert np.array_equal(world.mask(*one[:2])[0], blind[row])
    strided = [np.asfortranarray(array)[::-1] for array in inputs]
    assert np.array_equal(world.step(*strided), after[::-1])
    assert world.step(*[array[:0] for array in inputs]).shape == (0, 12)
    assert world.mask(*[array[:0] for array in inputs]).shape == (0, 4, 3)


def test_single_precision_is_double_precision_rounded_once():
    world = Pong()
    inputs = crowded(2000, np.random.default_rng(4), np.float32)
    exact = world.step(*[array.astype(np.float64) for array in inputs])
    assert np.array_equal(world.step(*inputs), exact.astype(np.float32))


def test_left_and_right_are_the_same_to_the_physics():
    world = Pong()
    state, action, noise = crowded(3000, np.random.default_rng(5))
    after, mask = world.step_and_mask(state, action, noise)
    mirror = world.step_and_mask(state * MIRRORED, action * [1, -1], noise * [1, -1])
    assert np.array_equal(mirror[0], after * MIRRORED)
    assert np.array_equal(mirror[1], mask)


def test_without_noise_the_opponent_aims_at_the_middle():
    world = Pong()
    state, action, noise = crowded(200, np.random.default_rng(6))
    assert np.array_equal(world.step(state, action), world.step(state, action, noise * 0))
    assert not np.array_equal(world.step(state, action), world.step(state, action, noise))


def test_the_reward_compares_places_on_the_court():
    world, rng = Pong(), np.random.default_rng(19)
    after = crowded(5000, rng)[0]
    after[:, 8] = rng.uniform(-1, 1, 5000)
    agent, opponent, ball = after[:, 0] * 0.3 - 1.3, after[:, 4] * 0.3 + 1.3, after[:, 8] * 2.1
    reward = world.reward(after * 0, after[:, :2], after)
    assert np.array_equal(reward == 1, ball >= opponent)
    assert np.array_equal(reward == -1, ball <= agent)
    assert set(reward) == {-1, 0, 1}
    assert reward.shape == (5000,)
    assert world.reward(after, after[:, :2], after.astype(np.float32)).dtype == np.float32
    shuffled = after.copy()
    shuffled[:, [1, 5, 9, 2, 3, 6, 7, 10, 11]] = rng.uniform(-1, 1, (5000, 9))
    assert np.array_equal(world.reward(after, after[:, :2], shuffled), reward)  # x of the next state alone


def test_the_rules_of_episodes():
    steps, scored = np.array([149, 150, 20, 20, 250]), np.array([9, 0, 10, 9, 0])
    assert Pong().ends(steps, scored).tolist() == [False, True, True, False, True]
    assert Pong(length=CODE_LENGTH).ends(steps, scored).tolist() == [False, False, True, False, True]
    assert Pong(points=9).ends(steps, scored).tolist() == [True, True, True, True, True]
    assert Pong.success(np.array([1.0, 0.0, -1.0])).tolist() == [True, False, False]


def test_observations_are_clipped_and_states_are_not():
    state = Pong().reset(1000, np.random.default_rng(20))
    seen = Pong.observe(state)
    assert (state[:, 10] < -1).mean() > 0.99
    assert (seen[:, 10] == -1).all()
    assert np.abs(seen).max() == 1
    inside = np.abs(state) <= 1
    assert np.array_equal(seen[inside], state[inside])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_states_and_targets(dtype):
    world = Pong(dtype=dtype)
    state, noise = world.reset(5000, np.random.default_rng(21)), world.noise(5000, np.random.default_rng(21))
    assert state.dtype == noise.dtype == dtype
    metres = state * SCALE
    bounds = [0, 0.9, 0, 0, 0, 0.9, 0, 0, 0, 0.9, 2.5, 2.0]
    np.testing.assert_allclose(np.abs(metres).max(axis=0), bounds, atol=0.01)
    np.testing.assert_allclose(metres.mean(axis=0)[[1, 5, 9, 10, 11]], [0, 0, 0, -2.25, 0], atol=0.05)
    assert metres[:, 10].max() < -1.99
    assert np.abs(np.corrcoef(metres[:, [1, 5, 9, 10, 11]].T) - np.eye(5)).max() < 0.06
    np.testing.assert_allclose(noise.std(axis=0), 0.9 / np.sqrt(3), atol=0.02)
    assert 0.85 < np.abs(noise).max() <= 0.9
    assert (np.abs(noise[:, 0]) > 0.3).mean() == pytest.approx(2 / 3, abs=0.03)
    assert np.array_equal(world.reset(9, np.random.default_rng(1)), world.reset(9, np.random.default_rng(1)))


def test_factors():
    world = Pong()
    assert world.factors.names == ("agent", "opponent", "ball", "action")
    assert world.factors.state["ball"] == (8, 9, 10, 11)
    assert world.noise_owner.tolist() == [OPPONENT, OPPONENT]
    assert world.noise_per_episode is True


def spoiled(array, index, value):
    copy = array.copy()
    copy[index] = value
    return copy


GOOD = Pong().reset(3, np.random.default_rng(0)), np.zeros((3, 2)), np.zeros((3, 2))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((GOOD[0][:, :11], GOOD[1], GOOD[2]), r"state: expected 12 columns \(agent, opponent, ball\), got 11"),
        ((GOOD[0][0], GOOD[1], GOOD[2]), r"state: expected shape \(B, columns\), got \(12,\)"),
        ((spoiled(GOOD[0], (1, 9), np.nan), GOOD[1], GOOD[2]), r"state: row 1, column 9 \(ball\) is nan"),
        ((GOOD[0], GOOD[1][:, :1], GOOD[2]), r"action: expected 2 columns \(action\), got 1"),
        ((GOOD[0], GOOD[1][:2], GOOD[2]), r"action: expected 3 rows, one per row of state, got 2"),
        ((GOOD[0], spoiled(GOOD[1], (2, 0), np.nan), GOOD[2]), r"action: row 2, column 0 \(action\) is nan"),
        ((GOOD[0], spoiled(GOOD[1], (2, 1), 1.5), GOOD[2]), r"action: row 2, column 1 .*1\.5.*clip them"),
        ((GOOD[0], GOOD[1], GOOD[2][:, :1]), r"noise: expected 2 columns \(opponent\), got 1"),
        ((GOOD[0], GOOD[1], GOOD[2][:2]), r"noise: expected 3 rows"),
        ((GOOD[0], GOOD[1], spoiled(GOOD[2], (0, 1), np.inf)), r"noise: row 0, column 1 \(opponent\) is inf"),
    ],
)
def test_bad_inputs_are_explained(inputs, message):
    world = Pong()
    for call in (world.step, world.mask, world.step_and_mask):
        with pytest.raises(ValueError, match=message):
            call(*inputs)
    if "noise" not in message:
        with pytest.raises(ValueError, match=message):
            world.mask(*inputs[:2])


@pytest.mark.parametrize(("column", "name"), [(0, "x = 1.2 for the agent"), (5, "y = 1.2 for the opponent")])
def test_positions_beyond_the_joints_are_explained(column, name):
    bad = spoiled(GOOD[0], (2, column), 1.2)
    with pytest.raises(ValueError, match=re.escape(name) + ".*row 2.*x, y, vx, vy"):
        Pong().step(bad, *GOOD[1:])
    with pytest.raises(ValueError, match=re.escape(name)):
        Pong().mask(bad, GOOD[1])
    Pong().step(spoiled(GOOD[0], (2, column), 1.0005), *GOOD[1:])  # rounding is forgiven


def test_clipping_actions_is_a_setting():
    world, action = Pong(clip_actions=True), np.array([[2.0, -7.0]] * 3)
    assert np.array_equal(world.step(GOOD[0], action, GOOD[2]), Pong().step(GOOD[0], action / [2, 7], GOOD[2]))
    assert action[0].tolist() == [2.0, -7.0]
    with pytest.raises(ValueError, match=r"action: row 0, column 0 \(action\) is nan"):
        world.step(GOOD[0], spoiled(action, (0, 0), np.nan), GOOD[2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": np.float16}, "dtype: expected np.float32 or np.float64, got float16"),
        ({"length": 0}, "length: expected a number of steps, 1 or more, got 0"),
        ({"points": -1}, "points: expected a number of steps, 1 or more, got -1"),
    ],
)
def test_bad_settings_are_explained(settings, message):
    with pytest.raises(ValueError, match=message):
        Pong(**settings)


def test_bad_draws_and_levels_are_explained():
    rng = np.random.default_rng(0)
    for draw in (Pong().reset, Pong().noise):
        with pytest.raises(ValueError, match="size: expected a number of rows"):
            draw(-1, rng)
        with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
            draw(3, 0)
    with pytest.raises(TypeError, match="rng: expected"):
        pong_policy(GOOD[0], None)
    with pytest.raises(ValueError, match=r"noise_level: expected a probability within \[0, 1\], got 1\.5"):
        pong_policy(GOOD[0], rng, noise_level=1.5)
    for function in (Pong.observe, partial(pong_policy, rng=rng), partial(Pong.reward, GOOD[0], GOOD[1])):
        with pytest.raises(ValueError, match="state: expected 12 columns"):
            function(GOOD[0][:, :8])
