"""Transitions handed over to trainers: each row comes back out of the trainer's own data structure."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from stable_baselines3 import DQN, TD3

from counterpoint import Augmenter, Transitions
from counterpoint.adapters.d3rlpy import to_d3rlpy
from counterpoint.adapters.sb3 import to_sb3_buffer
from counterpoint.adapters.torchrl import to_torchrl
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors
from tests.files.examples import make_recording


@pytest.fixture
def single(rng):
    """Transitions without episodes, some of them terminal."""
    data = make_data(make_factors(2, 1), 40, rng, np.float32)
    return data.replace(terminated=rng.random(40) < 0.3, reward=rng.random(40).astype(np.float32))


@pytest.fixture
def whole(rng):
    """Three episodes; the second ends, the others are cut off."""
    data = make_recording(rng, (4, 3, 6), full=False).transitions
    return data.replace(terminated=np.arange(13) == 6)


class TestStableBaselines3:
    spaces = Box(-np.inf, np.inf, (4,)), Box(np.float32([-2]), np.float32([6]))

    def test_the_buffer_holds_every_row(self, single):
        buffer = to_sb3_buffer(single, *self.spaces, device="cpu")
        assert (buffer.size(), buffer.full, buffer.pos) == (40, True, 0)
        batch = buffer._get_samples(np.arange(40))
        np.testing.assert_array_equal(batch.observations, single.state)
        np.testing.assert_array_equal(batch.next_observations, single.next_state)
        np.testing.assert_array_equal(batch.rewards[:, 0], single.reward)
        np.testing.assert_array_equal(batch.dones[:, 0], single.terminated)
        np.testing.assert_allclose(batch.actions, (single.action + 2) / 4 - 1, atol=1e-6)

    def test_room_for_more(self, single):
        buffer = to_sb3_buffer(single, *self.spaces, size=100, device="cpu")
        assert (buffer.size(), buffer.full, buffer.pos) == (40, False, 40)
        for size in (39, 0):
            with pytest.raises(ValueError, match="size: expected room for the 40 rows"):
                to_sb3_buffer(single, *self.spaces, size=size)

    def test_spaces_must_fit(self, single):
        with pytest.raises(ValueError, match=r"state: the data has 4 columns, its space needs \(3,\)"):
            to_sb3_buffer(single, Box(-1, 1, (3,)), self.spaces[1])
        with pytest.raises(ValueError, match=r"action: .*columns"):
            to_sb3_buffer(single, self.spaces[0], Box(-1, 1, (2,)))
        with pytest.raises(ValueError, match="action: some lie outside the bounds"):
            to_sb3_buffer(single, self.spaces[0], Box(0, 0.5, (1,)))

    def test_a_space_of_parts_is_refused_with_what_to_do(self, single):
        parts = Dict({name: Box(-1, 1, (2,)) for name in ("observation", "achieved_goal", "desired_goal")})
        with pytest.raises(TypeError, match=r"expected a Box, got a Dict with .*achieved_goal.*CodaHerReplayBuffer"):
            to_sb3_buffer(single, parts, self.spaces[1])
        with pytest.raises(TypeError, match=r"expected a Box, got a Tuple"):
            to_sb3_buffer(single, Tuple([Box(-1, 1, (2,))] * 2), self.spaces[1])

    def test_an_agent_learns_from_counterfactuals(self, rng):
        factors = make_factors(2, 1)
        data = make_data(factors, 60, rng, np.float32)
        made = Augmenter(factors, Constant.identity(factors), first_column).fill(data, 200, rng=rng)
        agent = TD3(
            "MlpPolicy", _Nothing(self.spaces[0], Box(-1, 1, (1,))), policy_kwargs={"net_arch": [8]}, device="cpu"
        )
        agent.replay_buffer = to_sb3_buffer(made, agent.observation_space, agent.action_space, device="cpu")
        agent.learn(0)
        agent.train(gradient_steps=3, batch_size=16)
        assert agent._n_updates == 3

    def test_numbered_actions(self, single):
        data = single.replace(action=np.arange(40)[:, None] % 3)
        agent = DQN("MlpPolicy", _Nothing(self.spaces[0], Discrete(3)), policy_kwargs={"net_arch": [8]}, device="cpu")
        agent.replay_buffer = to_sb3_buffer(data, agent.observation_space, agent.action_space, device="cpu")
        np.testing.assert_array_equal(agent.replay_buffer.actions[:, 0], data.action)
        agent.learn(0)
        agent.train(gradient_steps=1, batch_size=16)


class _Nothing(gymnasium.Env):
    """An environment in which nothing happens; only its spaces matter here."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, np.float32), {}


def episodes(arrays):
    """Split arrays as d3rlpy does: an episode ends with a terminal or a timeout."""
    ends = np.flatnonzero(arrays["terminals"] + arrays["timeouts"]) + 1
    assert ends[-1] == len(arrays["observations"])
    return zip([0, *ends[:-1]], ends, strict=True)


def transitions_of_d3rlpy(arrays):
    """Pick transitions as d3rlpy's ``BasicTransitionPicker`` does."""
    for start, stop in episodes(arrays):
        terminated = bool(arrays["terminals"][stop - 1])
        for row in range(start, stop if terminated else stop - 1):
            last = terminated and row == stop - 1
            following = np.zeros_like(arrays["observations"][row]) if last else arrays["observations"][row + 1]
            yield arrays["observations"][row], arrays["actions"][row], arrays["rewards"][row, 0], following, last


def assert_same_transitions(found, data):
    assert len(found) == len(data)
    for row, (state, action, reward, next_state, terminated) in enumerate(found):
        np.testing.assert_array_equal(state, data.state[row])
        np.testing.assert_array_equal(action, data.action[row])
        assert reward == data.reward[row]
        assert terminated == data.terminated[row]
        np.testing.assert_array_equal(next_state, data.next_state[row] * (not terminated))


class TestD3rlpy:
    def test_every_transition_comes_back(self, single, whole):
        for data, length in ((single, 80 - single.terminated.sum()), (whole, 13 + 2)):
            arrays = to_d3rlpy(data)
            assert len(arrays["observations"]) == length
            assert not (arrays["terminals"] * arrays["timeouts"]).any()
            assert_same_transitions(list(transitions_of_d3rlpy(arrays)), data)
            assert arrays["rewards"].dtype == arrays["terminals"].dtype == np.float32

    def test_broken_episodes_are_split(self, whole):
        broken = whole.replace(next_state=whole.next_state + (np.arange(13) == 9)[:, None])
        assert len(list(episodes(to_d3rlpy(broken)))) == 4
        assert_same_transitions(list(transitions_of_d3rlpy(to_d3rlpy(broken))), broken)

    def test_with_the_library_itself(self, single, whole):
        d3rlpy = pytest.importorskip("d3rlpy", reason="d3rlpy pins an old Gymnasium: own environment")
        pick = d3rlpy.dataset.BasicTransitionPicker()
        for data in (single, whole):
            dataset = d3rlpy.dataset.MDPDataset(**to_d3rlpy(data))
            picked = [pick(episode, row) for episode in dataset.episodes for row in range(episode.transition_count)]
            found = [(t.observation, t.action, t.reward[0], t.next_observation, t.terminal) for t in picked]
            assert_same_transitions(found, data)


class TestTorchRL:
    def test_single_transitions_never_join(self, single):
        arrays = to_torchrl(single)
        assert arrays["collector"]["traj_ids"].tolist() == list(range(40))
        assert arrays["next"]["done"].all()
        np.testing.assert_array_equal(arrays["next"]["truncated"][:, 0], ~single.terminated)
        np.testing.assert_array_equal(arrays["next"]["terminated"][:, 0], single.terminated)
        np.testing.assert_array_equal(arrays["next"]["observation"], single.next_state)
        for name in ("done", "terminated", "truncated"):
            assert arrays[name].shape == arrays["next"][name].shape == (40, 1)
            assert not arrays[name].any()

    def test_episodes_stay_together(self, whole):
        arrays = to_torchrl(whole)
        assert arrays["collector"]["traj_ids"].tolist() == [0] * 4 + [1] * 3 + [2] * 6
        assert np.flatnonzero(arrays["next"]["done"]).tolist() == [3, 6, 12]
        assert np.flatnonzero(arrays["next"]["truncated"]).tolist() == [3, 12]

    def test_with_the_library_itself(self, single):
        data = pytest.importorskip("torchrl.data", reason="TorchRL is not among the development tools")
        tensordict = pytest.importorskip("tensordict")
        rows = tensordict.TensorDict(to_torchrl(single), batch_size=[len(single)])
        buffer = data.TensorDictReplayBuffer(storage=data.LazyTensorStorage(len(single)), batch_size=8)
        buffer.extend(rows)
        assert buffer.sample()["next", "reward"].shape == (8, 1)


def test_empty_data_gives_empty_arrays():
    empty = Transitions(np.zeros((0, 2)), np.zeros((0, 1)), np.zeros(0), np.zeros((0, 2)), np.zeros(0, bool))
    assert to_d3rlpy(empty)["observations"].shape == (0, 2)
    assert to_torchrl(empty)["next"]["reward"].shape == (0, 1)
