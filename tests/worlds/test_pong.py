"""Pong: the batch against a scalar reading of the rules, and the relations that make its mask exact."""

import re
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from counterpoint.worlds.pong import CODE_LENGTH, Pong, pong_policy
from tests.worlds import scalar_pong

AGENT, OPPONENT, BALL, ACTION = range(4)
SCALE = np.array([0.3, 1.1, 2, 2, 0.3, 1.1, 2, 2, 2.1, 1.1, 2, 2])  # metres and m/s of a column at 1
STATE_OWNER = np.repeat([AGENT, OPPONENT, BALL], 4)
MIRRORED = np.tile([1, -1], 6)  # y and vy change sign


def crowded(size, rng, dtype=np.float64):
    """Draw states full of incidents, with actions and targets: most balls near a paddle, some near walls."""
    state = rng.uniform(-1, 1, (size, 3, 4)) * [1, 1, 1.5, 1.5]
    state[:, :2, :2] = np.where(rng.random((size, 2, 2)) < 0.1, np.sign(state[:, :2, :2]), state[:, :2, :2])
    side = rng.integers(0, 2, size)
    paddle = state[np.arange(size), side, :2] * [0.3, 1.1] + np.stack([2.6 * side - 1.3, 0 * side], axis=1)
    near = np.clip(paddle + rng.uniform(-1, 1, (size, 2)) * [0.1, 0.23], [-2.1, -1.1], [2.1, 1.1])
    edge = np.where(rng.random((size, 2)) < 0.5, rng.choice([-1, 1], (size, 2)) * rng.uniform(0.9, 1, (size, 2)), 0)
    state[:, 2, :2] = np.where(rng.random((size, 1)) < 0.8, near / [2.1, 1.1], edge)
    fast = rng.random(size) < 0.05
    state[fast, 2, 2:] *= 5
    columns = state.reshape(size, 12), rng.uniform(-1, 1, (size, 2)), rng.uniform(-0.9, 0.9, (size, 2))
    return tuple(column.astype(dtype) for column in columns)


def played(environments, steps, *, noise_level, rng, world):
    """Run `pong_policy` with the episode rules; return state, action, noise, next state of all steps."""
    rows, state, noise = [], world.reset(environments, rng), world.noise(environments, rng)
    count, scored = np.zeros(environments, int), np.zeros(environments, int)
    for _ in range(steps):
        action = pong_policy(state, rng, noise_level=noise_level)
        after = world.step(state, action, noise)
        rows.append((state, action, noise, after))
        count, scored = count + 1, scored + (world.reward(state, action, after) != 0)
        over = world.ends(count, scored)
        state, noise = after.copy(), noise.copy()
        state[over], noise[over] = world.reset(over.sum(), rng), world.noise(over.sum(), rng)
        count[over] = scored[over] = 0
    return tuple(np.concatenate(column) for column in zip(*rows, strict=True))


def alone(**values):
    """Build one float64 state in metres and m/s; what is not given is 0."""
    names = [f"{factor}_{column}" for factor in ("agent", "opponent", "ball") for column in ("x", "y", "vx", "vy")]
    state = np.zeros((1, 12))
    for name, value in values.items():
        state[0, names.index(name)] = value
    return state / SCALE


# --- against the rules, one row at a time --------------------------------------------------------


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


# --- what kind of function it is -----------------------------------------------------------------


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


def test_a_hundred_thousand_steps_with_masks_take_less_than_a_second():
    world, rng = Pong(), np.random.default_rng(7)
    state, noise = world.reset(1000, rng), world.noise(1000, rng)
    action = pong_policy(state, rng)
    world.step_and_mask(state, action, noise)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        state, _ = world.step_and_mask(state, action, noise)
        times.append(time.perf_counter() - start)
    assert 1000 / min(times) > 100_000


# --- the physics, by its consequences ------------------------------------------------------------


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


# --- the mask ------------------------------------------------------------------------------------


def test_shape_of_the_mask():
    world = Pong()
    state, action, noise = crowded(3000, np.random.default_rng(10))
    for mask in (world.mask(state, action, noise), world.mask(state, action)):
        assert mask.shape == (3000, 4, 3)
        assert mask.dtype == bool
        assert mask[:, [AGENT, OPPONENT, BALL, ACTION], [AGENT, OPPONENT, BALL, AGENT]].all()
        assert not mask[:, [AGENT, OPPONENT, ACTION], [OPPONENT, AGENT, OPPONENT]].any()
        for paddle in (AGENT, OPPONENT):
            assert np.array_equal(mask[:, paddle, BALL], mask[:, BALL, paddle])
            assert 0.1 < mask[:, paddle, BALL].mean() < 0.5
        assert np.array_equal(mask[:, ACTION, BALL], mask[:, AGENT, BALL])


@pytest.mark.parametrize("source", [AGENT, OPPONENT, BALL, ACTION])
def test_an_edge_is_there_if_and_only_if_an_intervention_shows(source):
    """Replace one source by a value that touches nothing either: only its children may change."""
    world, rng = Pong(), np.random.default_rng(11)
    state, action, noise = crowded(20_000, rng)
    after, mask = world.step_and_mask(state, action, noise)
    other, other_action = state.copy(), action.copy()
    if source == ACTION:
        other_action = rng.uniform(-1, 1, action.shape)
    else:  # the ball far away; a paddle at the other end of its range
        far = np.where(state[:, [9]] > 0, -1.0, 1.0)
        values = np.hstack([0 * far, far, 0 * far, 0 * far]) if source < BALL else [0.5, 0.0, 0.0, 0.0]
        other[:, 4 * source : 4 * source + 4] = values
    changed_after, changed_mask = world.step_and_mask(other, other_action, noise)
    changed = (changed_after != after).reshape(-1, 3, 4).any(axis=2)
    either = mask[:, source] | changed_mask[:, source]
    assert not (changed & ~either).any()
    responds = changed[mask[:, source]].mean()
    assert responds > 0.98, responds  # the rest: the action saturates the motor, or a stop hides the push


def test_without_noise_no_edge_is_missing_for_any_target():
    world, rng, size = Pong(), np.random.default_rng(12), 50_000
    state, action, _ = crowded(size, rng)
    state[:, 6:8] *= rng.choice([0.1, 1, 3, 10], (size, 2))  # also where limits and damping matter
    unknown = world.mask(state, action)
    possible = np.zeros_like(unknown)
    for x, y in [(0, 0), (-9, -9), (-9, 9), (9, -9), (9, 9), *rng.uniform(-0.9, 0.9, (3, 2))]:
        known = world.mask(state, action, np.tile([float(x), float(y)], (size, 1)))
        assert not (known & ~unknown).any(), (x, y)
        possible |= known
    extra = (unknown & ~possible)[:, OPPONENT, BALL].mean()
    assert 0 < extra < 0.05
    assert unknown[:, OPPONENT, BALL].mean() > 0.2


@pytest.mark.parametrize("sign", [-1, 1])
def test_without_noise_no_edge_is_missing_when_the_ball_barely_catches_up(sign):
    """The paddle runs away as slowly as it can, so the bounds are tight, damping included."""
    world, rng, size = Pong(), np.random.default_rng(24), 100_000
    state, action = np.zeros((size, 12)), np.zeros((size, 2))
    state[:, 4] = -sign * 0.2 / 0.3
    state[:, 6:8] = np.stack([sign * rng.uniform(0.5, 3, size), rng.uniform(-8, 8, size)], axis=1) / 2
    state[:, 8] = (1.3 - sign * (0.2 + 0.055 + rng.uniform(0, 0.05, size))) / 2.1
    state[:, 10] = sign * rng.uniform(2, 6, size) / 2
    known, unknown = world.mask(state, action, np.full((size, 2), -9.0 * sign)), world.mask(state, action)
    assert not (known & ~unknown).any()
    assert 0 < (unknown & ~known).any(axis=(1, 2)).mean() < 0.01


def test_without_noise_no_edge_is_missing_even_if_the_ball_crosses_the_court_in_one_step():
    rng, world = np.random.default_rng(13), Pong()
    state = np.repeat(alone(ball_x=1.3 - 0.05), 20_000, axis=0)
    state[:, 6] = rng.uniform(-400, -100, 20_000) / 2
    action, noise = np.zeros((20_000, 2)), rng.uniform(-0.9, 0.9, (20_000, 2))
    known, unknown = world.mask(state, action, noise), world.mask(state, action)
    both = known[:, AGENT, BALL] & known[:, OPPONENT, BALL]
    assert both.sum() > 100
    assert not (known & ~unknown).any()


def test_how_much_more_the_mask_ties_without_noise():
    world = Pong(length=CODE_LENGTH)
    rng = np.random.default_rng(14)
    state, action, noise, _ = played(1000, 300, noise_level=0.5, rng=rng, world=world)
    known, unknown = world.mask(state, action, noise), world.mask(state, action)
    assert not (known & ~unknown).any()
    assert 0 < (unknown != known).any(axis=(1, 2)).mean() < 0.002
    assert 0.005 < known[:, AGENT, BALL].mean() < 0.015
    assert 0.0005 < known[:, OPPONENT, BALL].mean() < unknown[:, OPPONENT, BALL].mean() < 0.004


# --- exactness: CoDA by the letter, and back into the world --------------------------------------


def components(mask):
    """Label the nodes of each row by connected component, (B, 4); labels differ between rows."""
    rows, sources, columns = np.nonzero(mask)
    shape = (4 * len(mask), 4 * len(mask))
    graph = coo_matrix((np.ones(len(rows)), (4 * rows + sources, 4 * rows + columns)), shape=shape)
    return connected_components(graph, directed=False)[1].reshape(-1, 4)


def counterfactuals(data, mask_fn, rng):
    """Propose one swap per random pair; return the accepted state, action, noise, next state, and nodes."""
    pairs = rng.integers(0, len(data[0]), (2, 40_000))
    base, donor = ([column[index] for column in data] for index in pairs)
    labels = components(mask_fn(*base[:3]) | mask_fn(*donor[:3]))
    nodes = rng.integers(0, 2, labels.max() + 1).astype(bool)[labels]
    owners = (STATE_OWNER, [ACTION, ACTION], [OPPONENT, OPPONENT], STATE_OWNER)
    made = [np.where(nodes[:, owner], d, b) for b, d, owner in zip(base, donor, owners, strict=True)]
    crossing = mask_fn(*made[:3]) & (nodes[:, :, None] != nodes[:, None, :3])
    accepted = ~crossing.any(axis=(1, 2)) & nodes.any(axis=1) & ~nodes.all(axis=1)
    return [column[accepted] for column in made], nodes[accepted]


def audit(data, mask_fn, size, rng):
    """Count wrong ones among at least ``size`` accepted counterfactuals; also contacts and swaps seen."""
    world, wrong, total, seen, contacts = Pong(), 0, 0, set(), 0
    while total < size:
        (state, action, noise, after), nodes = counterfactuals(data, mask_fn, rng)
        truth, mask = world.step_and_mask(state, action, noise)
        wrong += int((truth != after).any(axis=1).sum())
        total += len(state)
        contacts += int(mask[:, BALL, :2].any(axis=1).sum())
        seen |= {tuple(row) for row in np.unique(nodes, axis=0)}
    return wrong, contacts, seen


@pytest.fixture(scope="module")
def mixed_data():
    """Transitions of games and of crowded states, half and half, in single precision."""
    world, rng = Pong(), np.random.default_rng(15)
    games = played(200, 150, noise_level=0.5, rng=rng, world=world)
    incidents = crowded(30_000, rng, np.float32)
    return [np.concatenate(pair) for pair in zip(games, (*incidents, world.step(*incidents)), strict=True)]


def test_every_accepted_counterfactual_is_true_with_a_mask_that_never_saw_the_noise(mixed_data):
    world = Pong()
    mask_fn = lambda state, action, _: world.mask(state, action)  # noqa: E731
    wrong, contacts, seen = audit(mixed_data, mask_fn, 100_000, np.random.default_rng(16))
    assert wrong == 0
    assert contacts > 10_000
    assert len(seen) == 2**3 - 2  # the action goes with the agent; all proper unions of three components


def test_every_accepted_counterfactual_is_true_with_the_mask_of_the_noise(mixed_data):
    wrong, contacts, seen = audit(mixed_data, Pong().mask, 50_000, np.random.default_rng(17))
    assert wrong == 0
    assert contacts > 5_000
    assert len(seen) == 2**3 - 2


def test_the_audit_finds_masks_that_miss_edges(mixed_data):
    """Without the edges of contact, or with a target of zero taken for the truth, some swaps are wrong."""
    world, rng = Pong(), np.random.default_rng(18)
    still = world.mask(alone(ball_x=0), np.zeros((1, 2)), np.zeros((1, 2)))
    assert audit(mixed_data, lambda state, *_: np.repeat(still, len(state), axis=0), 30_000, rng)[0] > 1000
    assert audit(mixed_data, lambda state, action, noise: world.mask(state, action, 0 * noise), 30_000, rng)[0] > 0


# --- rewards, episodes, draws --------------------------------------------------------------------


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


# --- the player ----------------------------------------------------------------------------------


def success_rate(noise_level, *, length, rng, episodes=600):
    world = Pong(length=length)
    state, noise = world.reset(episodes, rng), world.noise(episodes, rng)
    scored, last, over = np.zeros(episodes, int), np.zeros(episodes), np.zeros(episodes, bool)
    for count in range(1, length + 1):
        action = pong_policy(state, rng, noise_level=noise_level)
        after = world.step(state, action, noise)
        reward = world.reward(state, action, after)
        scored += ~over & (reward != 0)
        last = np.where(over, last, reward)
        over |= world.ends(np.full(episodes, count), scored)
        state = after
    return world.success(last).mean()


def test_the_player_is_good_and_noise_makes_it_worse():
    rng = np.random.default_rng(22)
    rates = [success_rate(level, length=CODE_LENGTH, rng=rng) for level in (0.0, 0.5, 0.7, 1.0)]
    np.testing.assert_allclose(rates, [0.88, 0.60, 0.37, 0.13], atol=0.09)  # the original's, see the sheet
    assert rates[0] > 0.85
    assert np.all(np.diff(rates) < -0.1)
    assert 0.8 < success_rate(0.0, length=150, rng=rng) < rates[0]


def test_actions_of_the_player():
    rng = np.random.default_rng(23)
    state = crowded(4000, rng, np.float32)[0]
    certain = pong_policy(state, rng)
    assert certain.shape == (4000, 2)
    assert certain.dtype == np.float32
    assert np.abs(certain).max() == 1
    assert np.array_equal(certain, pong_policy(state, rng))
    kept = (partial(pong_policy, noise_level=0.3)(state, rng) == certain).all(axis=1).mean()
    assert kept == pytest.approx(0.7, abs=0.03)
    random = pong_policy(state, rng, noise_level=1.0)
    np.testing.assert_allclose(random.std(axis=0), 1 / np.sqrt(3), atol=0.02)
    assert np.abs(np.corrcoef(random.T, certain.T)[:2, 2:]).max() < 0.06


# --- errors --------------------------------------------------------------------------------------


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
        with pytest.raises(TypeError, match=r"rng: expected a numpy\.random\.Generator, got int"):
            draw(3, 0)
    with pytest.raises(TypeError, match="rng: expected"):
        pong_policy(GOOD[0], None)
    with pytest.raises(ValueError, match=r"noise_level: expected a probability within \[0, 1\], got 1\.5"):
        pong_policy(GOOD[0], rng, noise_level=1.5)
    for function in (Pong.observe, partial(pong_policy, rng=rng), partial(Pong.reward, GOOD[0], GOOD[1])):
        with pytest.raises(ValueError, match="state: expected 12 columns"):
            function(GOOD[0][:, :8])
