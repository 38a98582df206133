import numpy as np
import pytest

from counterpoint.worlds import Pong, Room, Sprites, StationaryMP, collect, pong_policy, uniform_policy

WORLD = Sprites()
RANDOM = uniform_policy(WORLD)


def gather(size=3000, seed=0, world=WORLD, policy=RANDOM, **settings):
    return collect(world, policy, size, np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 1000])
@pytest.mark.parametrize("environments", [1, 7, 64])
def test_there_are_exactly_as_many_rows_as_asked_for(size, environments):
    data = gather(size, environments=environments)
    assert len(data) == size
    assert {name for name, _ in data.columns()} >= {"episode", "step", "noise"}


def test_every_row_is_a_transition_of_the_world():
    data = gather()
    again = WORLD.step(data.state, data.action, data.noise)
    assert again.tobytes() == data.next_state.tobytes()


def test_episodes_are_contiguous_ordered_and_connected():
    data = gather()
    same = data.episode[1:] == data.episode[:-1]
    np.testing.assert_array_equal(np.diff(data.episode), ~same)
    np.testing.assert_array_equal(data.step[1:], np.where(same, data.step[:-1] + 1, 0))
    assert (data.episode[0], data.step[0]) == (0, 0)
    np.testing.assert_array_equal(data.state[1:][same], data.next_state[:-1][same])
    assert (data.state[1:][~same] != data.next_state[:-1][~same]).any(axis=1).all()
    assert 100 < same.sum() < len(data) - 100


def test_episodes_are_cut_off_at_their_length():
    data = gather(1000, episode_length=10, reset_probability=0.0, environments=10)
    assert np.bincount(data.episode).tolist() == [10] * 100
    assert not data.terminated.any()
    np.testing.assert_array_equal(gather(500, episode_length=1).step, np.zeros(500))


def test_random_resets_come_at_their_rate():
    data = gather(40_000, reset_probability=0.05, environments=8)
    assert len(data) / (data.episode[-1] + 1) == pytest.approx(20, rel=0.1)
    never = gather(4000, reset_probability=0.0, environments=8)
    assert never.episode[-1] == 7


def test_terminal_states_end_their_episode():
    def hit_wall(_state, _action, next_state):
        return (next_state[:, :2] == 0).any(axis=1) | (next_state[:, :2] == 1).any(axis=1)

    data = gather(terminal_fn=hit_wall, reset_probability=0.0)
    np.testing.assert_array_equal(data.terminated, hit_wall(data.state, data.action, data.next_state))
    assert data.terminated.sum() > 50
    ended = np.flatnonzero(data.terminated[:-1])
    assert (data.step[ended + 1] == 0).all()


def test_rewards_come_from_the_reward_function_and_are_zero_without():
    def speed(state, action, next_state):
        return np.abs(next_state[:, 2:4]).sum(axis=1) + action[:, 0] - state[:, 0]

    data = gather(reward_fn=speed)
    np.testing.assert_array_equal(data.reward, speed(data.state, data.action, data.next_state))
    assert not gather().reward.any()


def test_the_same_generator_gives_the_same_bits():
    first, second, other = gather(seed=1), gather(seed=1), gather(seed=2)
    for (name, left), (_, right) in zip(first.columns(), second.columns(), strict=True):
        assert left.tobytes() == right.tobytes(), name
    assert (first.state != other.state).any(axis=1).all()


def test_environments_and_steps_have_noise_of_their_own():
    data = gather(2000, environments=20)
    assert len(np.unique(data.noise, axis=0)) == 2000


def test_noise_of_an_episode_is_drawn_when_it_begins_and_kept():
    data = gather(5000, world=Room(hidden=True), policy=uniform_policy(Room(hidden=True)))
    by_episode = [np.unique(part) for part in np.split(data.noise[:, 0], np.flatnonzero(data.step == 0)[1:])]
    assert {len(values) for values in by_episode} == {1}
    assert {float(values[0]) for values in by_episode} == {0.0, 1.0}


def test_the_uniform_policy_fills_the_range_of_actions():
    action = RANDOM(WORLD.reset(20_000, np.random.default_rng(0)), np.random.default_rng(1))
    assert (action.shape, action.dtype) == ((20_000, 2), np.float32)
    assert -1 <= action.min() < -0.999 < 0.999 < action.max() <= 1
    assert action.std() == pytest.approx(1 / np.sqrt(3), rel=0.01)
    world = StationaryMP()
    assert gather(10, world=world, policy=uniform_policy(world)).action.shape == (10, 0)


def test_a_policy_may_reuse_its_buffer_but_not_touch_the_state():
    buffer = np.zeros((64, 2), np.float32)

    def reusing(_state, rng):
        buffer[:] = rng.uniform(-1, 1, buffer.shape)
        return buffer

    data = gather(640, policy=reusing)
    assert len(np.unique(data.action, axis=0)) == 640

    def meddling(state, _rng):
        state[:] = 0
        return np.zeros((len(state), 2))

    with pytest.raises(ValueError, match="read-only"):
        gather(policy=meddling)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size: expected at least one row, got 0"),
        ({"size": -5}, "size: expected a number of rows, 0 or more, got -5"),
        ({"episode_length": 0}, "episode_length: expected a whole number, 1 or more, got 0"),
        ({"environments": 2.5}, "environments: expected a whole number, 1 or more, got 2.5"),
        ({"reset_probability": 1.5}, "reset_probability: expected a share between 0 and 1, got 1.5"),
        ({"reset_probability": float("nan")}, "reset_probability: expected a share"),
        ({"reward_fn": lambda *_: 1.0}, r"reward_fn: expected shape \(3000,\), .* got \(\)"),
        ({"terminal_fn": lambda s, *_: s[:, :1] > 0}, r"terminal_fn: expected shape \(64,\), .* got \(64, 1\)"),
        ({"policy": lambda s, _: np.full((len(s), 2), 2.0)}, r"action: row 0, column 0 \(action\) is 2; expected"),
        ({"policy": lambda s, _: np.zeros((len(s), 3))}, "action: expected 2 columns"),
    ],
)
def test_mistakes_are_explained(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        gather(**settings)


def test_misspelt_settings_and_seeds_for_generators_are_refused():
    with pytest.raises(TypeError, match="episode_lenght"):
        gather(episode_lenght=10)
    with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
        collect(WORLD, RANDOM, 10, 0)
    with pytest.raises(TypeError, match="terminal_fn: expected booleans, got dtype float64"):
        gather(terminal_fn=lambda s, *_: np.zeros(len(s)))


def test_an_episode_is_cut_off_when_it_has_scored_often_enough():
    """In Pong an episode ends at its tenth step with a reward, or after 150 steps."""
    world = Pong()
    rules = {"episode_length": 150, "reset_probability": 0.0, "points": 10, "environments": 1}
    data = collect(world, pong_policy, 3000, np.random.default_rng(3), reward_fn=world.reward, **rules)
    whole = [data[data.episode == e] for e in range(data.episode[-1])]
    scores = [(len(part), int((part.reward != 0).sum()), part.reward[-1] != 0) for part in whole]
    assert all((points == 10 and last) or (length == 150 and points < 10) for length, points, last in scores)
    assert any(length < 150 for length, _, _ in scores)
    with pytest.raises(ValueError, match="points: expected a whole number, 1 or more, got 0"):
        collect(world, pong_policy, 10, np.random.default_rng(0), points=0)
