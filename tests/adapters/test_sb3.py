"""The replay buffers for Stable-Baselines3: true rows, promised proportions, an agent that notices nothing."""

import errno
import os

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from gymnasium.spaces import Box, Dict, Discrete
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import VecNormalize

import counterpoint.adapters.gymnasium
from counterpoint import Factorization
from counterpoint.adapters.sb3 import CodaReplayBuffer, DynaReplayBuffer, LogMadeRows
from counterpoint.checks import audit
from counterpoint.masks import Constant
from counterpoint.worlds import Place, Sprites

torch.set_num_threads(1)
WORLD, TASK, ID = Sprites(), Place(2), "counterpoint/Place2-v0"
CODA = {"factors": WORLD.factors, "mask_fn": WORLD.mask, "reward_fn": TASK, "every": 100, "pairs": 200}
assert counterpoint.adapters.gymnasium.IDS["place-2"] == ID


def small():
    """Settings of a small agent; new ones each time, because agents write into them."""
    sizes = {"buffer_size": 2000, "learning_starts": 100, "batch_size": 32}
    return {**sizes, "device": "cpu", "seed": 0, "policy_kwargs": {"net_arch": [16]}}


def filled(rows=1000, n_envs=1, **settings):
    """A buffer that has seen random play, without an agent."""
    envs = make_vec_env(ID, n_envs, seed=0)
    kind = settings.pop("kind", CodaReplayBuffer)
    given = {"buffer_size": 5000, "n_envs": n_envs, **(CODA if kind is CodaReplayBuffer else {}), **settings}
    buffer = kind(observation_space=envs.observation_space, action_space=envs.action_space, device="cpu", **given)
    rng, seen = np.random.default_rng(1), envs.reset()
    for _ in range(rows // n_envs):
        action = buffer.scale.draw(n_envs, rng)
        after, reward, done, infos = envs.step(action)
        real = np.array([i.get("terminal_observation", a) for i, a in zip(infos, after, strict=True)])
        buffer.add(seen, real, action, reward, done, infos)
        seen = after
    return buffer


class Slider(gymnasium.Env):
    """Two things side by side on a line; the action, in [2, 6], moves the first. It may end there."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Box(2.0, 6.0, (1,), np.float32)
    factors = Factorization.blocks(state={"mine": 1, "other": 1}, action={"push": 1})

    def __init__(self, ends=False):
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.time = self.np_random.uniform(0, 1, 2).astype(np.float32), 0
        return self.state, {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.state = self.state + np.float32([action[0], 1])
        self.time += 1
        over = bool(self.state[0] > 30)
        return self.state, float(action[0]), over and self.ends, self.time >= 10, {}


class Steps(gymnasium.ActionWrapper):
    """The same with whole-number actions."""

    def __init__(self, env):
        super().__init__(env)
        self.action_space = Discrete(5)

    def action(self, action):
        return np.float32([2 + action])


def slider_coda(**more):
    def reward(state, action, next_state):
        assert ((action >= 1.999) & (action <= 6.001)).all(), "the functions must see real actions"
        return action[:, 0]

    mask = Constant.edges(Slider.factors, [("push", "mine")])
    return {"factors": Slider.factors, "mask_fn": mask, "reward_fn": reward, "every": 50, "pairs": 30} | more


def over_thirty(state, action, next_state):
    return next_state[:, 0] > 30


@pytest.mark.parametrize("n_envs", [1, 4])
def test_made_rows_are_confirmed_by_the_world(n_envs):
    """The mask does not know the noise, and allows for two standard deviations of it."""
    buffer = filled(2000, n_envs, noise_key="noise", pairs=500)
    assert audit(buffer.real_transitions(), WORLD.step).confirmed == 1
    made = buffer.made_transitions()
    assert len(made) > 10_000
    assert audit(made, WORLD.step).confirmed >= 0.999
    np.testing.assert_array_equal(made.reward, TASK(made.state, made.action, made.next_state))


def test_batches_hold_both_kinds_in_proportion():
    buffer = filled()
    real, made = 1000, len(buffer.made_transitions())
    batch = buffer.sample(500)
    rows = 500 - 500 * real // (real + made)
    assert buffer.made.share == rows / 500
    assert batch.observations.shape == (500, 16)
    assert batch.discounts is None
    for half, source in (
        (slice(0, 500 - rows), buffer.real_transitions()),
        (slice(500 - rows, None), buffer.made_transitions()),
    ):
        known = {row.tobytes() for row in np.hstack([source.state, source.next_state, source.reward[:, None]])}
        drawn = np.hstack([t.numpy() for t in (batch.observations, batch.next_observations, batch.rewards)])[half]
        assert {row.tobytes() for row in drawn} <= known


def test_columns_are_those_of_the_plain_buffer():
    buffer = filled()
    plain, mixed = ReplayBuffer.sample(buffer, 100), buffer.sample(100)
    for name in ("observations", "actions", "next_observations", "dones", "rewards"):
        one, other = getattr(plain, name), getattr(mixed, name)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_the_share_is_capped():
    buffer = filled(max_coda_fraction=0.25)
    assert len(buffer.made_transitions()) > 1000
    buffer.sample(200)
    assert buffer.made.share == 0.25


def test_the_ring_is_capped():
    assert len(filled(coda_capacity=300).made_transitions()) == 300


def test_the_same_seed_gives_the_same_rows():
    one, again, other = filled(seed=5), filled(seed=5), filled(seed=6)
    np.testing.assert_array_equal(one.made_transitions().state, again.made_transitions().state)
    assert not np.array_equal(one.made_transitions().state[:50], other.made_transitions().state[:50])


def test_vectorised_environments_bring_as_many_rounds():
    assert filled(1000, 1).made.rounds == filled(1000, 4).made.rounds == 10


def test_time_limits_are_no_ends():
    """Episodes of 50 steps: 20 rows are done, none is terminal, in either half."""
    buffer = filled(1000)
    assert buffer.dones.sum() == 20
    assert not buffer.real_transitions().terminated.any()
    assert not buffer.sample(1000).dones.any()


def test_memory_optimisation_is_refused_with_a_reason():
    with pytest.raises(ValueError, match="reads the next row as the next state"):
        filled(0, optimize_memory_usage=True)


@pytest.mark.parametrize(
    ("space", "action", "message"),
    [
        (Dict({"x": Box(0, 1)}), Box(-1, 1, (2,)), "flat Box"),
        (Box(0, 1, (4, 4)), Box(-1, 1, (2,)), "flat Box"),
        (Box(0, 1, (16,)), Dict({"x": Discrete(2)}), "action_space"),
    ],
)
def test_unfit_spaces_are_refused(space, action, message):
    with pytest.raises(TypeError, match=message):
        CodaReplayBuffer(100, space, action, **CODA)


def test_wrong_widths_and_names_are_refused():
    with pytest.raises(ValueError, match="reach up to column 15"):
        CodaReplayBuffer(100, Box(0, 1, (15,)), Box(-1, 1, (2,)), **CODA)
    with pytest.raises(TypeError, match="pears"):
        CodaReplayBuffer(100, Box(0, 1, (16,)), Box(-1, 1, (2,)), **CODA, pears=3)


def test_noise_that_is_not_there_is_missed():
    with pytest.raises(ValueError, match="noise_key: the environment's info has no 'luck'"):
        filled(1, noise_key="luck")


def test_save_and_load(tmp_path):
    buffer, other = filled(noise_key="noise"), filled(0, noise_key="noise")
    buffer.save(tmp_path / "buffer.npz")
    other.load(tmp_path / "buffer.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["buffer.npz"]
    for name in ("state", "action", "reward", "next_state", "noise"):
        for half in ("real_transitions", "made_transitions"):
            np.testing.assert_array_equal(getattr(getattr(buffer, half)(), name), getattr(getattr(other, half)(), name))
    samples = []
    for each in (buffer, other):
        np.random.seed(0)  # noqa: NPY002 (the real half is drawn by Stable-Baselines3, from the global state)
        samples.append(each.sample(100).observations.numpy())
    np.testing.assert_array_equal(*samples)


def test_a_full_ring_is_loaded_in_place(tmp_path):
    buffer, other = filled(700, buffer_size=500), filled(0, buffer_size=500)
    buffer.save(tmp_path / "buffer.npz")
    other.load(tmp_path / "buffer.npz")
    assert (other.pos, other.full) == (buffer.pos, True)
    np.testing.assert_array_equal(other.observations, buffer.observations)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"buffer_size": 50}, r"has room for \(\d+, 1, 16\), this buffer for \(50, 1, 16\)"),
        ({"coda_capacity": 10}, "its made rows have room for 4000000, this buffer's for 10"),
        ({"noise_key": "noise"}, "this buffer has .*noise"),
    ],
)
def test_a_file_of_another_buffer_is_refused(tmp_path, settings, message):
    filled(200).save(tmp_path / "buffer.npz")
    other = filled(0, **settings)
    with pytest.raises(ValueError, match=rf"buffer.npz: .*{message}"):
        other.load(tmp_path / "buffer.npz")
    assert (other.pos, other.observations.any(), len(other.made.ring)) == (0, False, 0)


def test_a_truncated_file_is_refused_and_the_buffer_stays(tmp_path):
    path, buffer = tmp_path / "buffer.npz", filled(200)
    buffer.save(path)
    before = buffer.observations.copy()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"buffer.npz: it is damaged, incomplete"):
        buffer.load(path)
    np.testing.assert_array_equal(buffer.observations, before)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        buffer.load(tmp_path / "other.npz")


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path, buffer = tmp_path / "buffer.npz", filled(200)
    buffer.save(path)
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(ValueError, match=r"buffer.npz: not written, the disk is full"):
        buffer.save(path)
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == ["buffer.npz"]
    assert path.read_bytes() == before


def test_stable_baselines_own_saving_works_too(tmp_path):
    agent = td3().learn(250)
    agent.save_replay_buffer(tmp_path / "buffer")
    other = td3()
    other.load_replay_buffer(tmp_path / "buffer")
    before, after = agent.replay_buffer.made_transitions(), other.replay_buffer.made_transitions()
    np.testing.assert_array_equal(before.state, after.state)
    other.learn(50, reset_num_timesteps=False)


def test_reset_forgets_both_halves():
    buffer = filled()
    buffer.reset()
    assert (buffer.size(), len(buffer.made.ring), buffer.made.added) == (0, 0, 0)


def test_normalisation_is_that_of_the_real_half():
    env = VecNormalize(make_vec_env(ID, 1, seed=0), clip_obs=100.0)
    env.reset()
    for _ in range(200):
        env.step(np.random.default_rng(0).uniform(-1, 1, (1, 2)).astype(np.float32))
    plain, normal = filled(seed=2), filled(seed=2)
    np.random.seed(0)  # noqa: NPY002
    raw = plain.sample(100)
    np.random.seed(0)  # noqa: NPY002
    scaled = normal.sample(100, env)
    np.testing.assert_allclose(scaled.observations, env.normalize_obs(raw.observations.numpy()), rtol=1e-6)
    np.testing.assert_allclose(scaled.next_observations, env.normalize_obs(raw.next_observations.numpy()), rtol=1e-6)
    np.testing.assert_allclose(scaled.rewards, env.normalize_reward(raw.rewards.numpy()), rtol=1e-6)
    assert torch.equal(scaled.actions, raw.actions)


def td3(**more):
    kwargs = {"replay_buffer_class": CodaReplayBuffer, "replay_buffer_kwargs": CODA, **more}
    return TD3("MlpPolicy", ID, **small(), **kwargs)


def weights(agent):
    return torch.cat([p.flatten() for p in agent.policy.parameters()]).detach()


def test_the_agent_is_untouched():
    """Without room for made rows it is the plain agent, bit for bit; with them it is another one."""
    plain = weights(td3(replay_buffer_class=None, replay_buffer_kwargs=None).learn(250))
    none = weights(td3(replay_buffer_kwargs={**CODA, "max_coda_fraction": 0.0}).learn(250))
    some, again = weights(td3().learn(250)), weights(td3().learn(250))
    assert torch.equal(plain, none)
    assert torch.equal(some, again)
    assert not torch.equal(plain, some)


@pytest.mark.parametrize("kind", [TD3, DDPG, SAC])
def test_agents_train_on_an_environment_with_other_actions_and_ends(kind):
    settings = slider_coda(terminal_fn=over_thirty)
    agent = kind(
        "MlpPolicy", Slider(ends=True), **small(), replay_buffer_class=CodaReplayBuffer, replay_buffer_kwargs=settings
    ).learn(250)
    real, made = agent.replay_buffer.real_transitions(), agent.replay_buffer.made_transitions()
    for rows in (real, made):
        assert rows.terminated.any()
        np.testing.assert_array_equal(rows.terminated, rows.next_state[:, 0] > 30)
        np.testing.assert_allclose(rows.next_state[:, 0], rows.state[:, 0] + rows.action[:, 0], rtol=1e-5)
    assert agent.replay_buffer.sample(100).actions.abs().max() <= 1 + 1e-6


def test_an_end_without_a_terminal_function_is_refused():
    agent = TD3(
        "MlpPolicy",
        Slider(ends=True),
        **small(),
        replay_buffer_class=CodaReplayBuffer,
        replay_buffer_kwargs=slider_coda(),
    )
    with pytest.raises(ValueError, match="terminal_fn: an episode terminated"):
        agent.learn(200)


def test_whole_number_actions():
    def model(state, action):
        return state + np.hstack([2 + action, np.ones_like(action)]).astype(state.dtype)

    settings = {"forward_model": model, "reward_fn": lambda s, a, s2: 2.0 + a[:, 0], "every": 50, "starts": 20}
    agent = DQN(
        "MlpPolicy", Steps(Slider()), **small(), replay_buffer_class=DynaReplayBuffer, replay_buffer_kwargs=settings
    ).learn(150)
    made = agent.replay_buffer.made_transitions()
    assert set(made.action[:, 0]) == {0, 1, 2, 3, 4}
    assert agent.replay_buffer.sample(50).actions.dtype == torch.int64


def test_dyna_with_the_true_model():
    settings = {"forward_model": WORLD.step, "reward_fn": TASK, "every": 100, "starts": 50, "steps": 3}
    agent = td3(replay_buffer_class=DynaReplayBuffer, replay_buffer_kwargs=settings).learn(250)
    made = agent.replay_buffer.made_transitions()
    assert len(made) == 2 * 50 * 3
    assert audit(made, WORLD.step).confirmed == 1
    assert agent.replay_buffer.made.share == pytest.approx(300 / 550, abs=0.05)


def test_dyna_is_capped_too():
    settings = {"forward_model": WORLD.step, "reward_fn": TASK, "max_dyna_fraction": 0.1, "dyna_capacity": 70}
    buffer = filled(kind=DynaReplayBuffer, every=200, **settings)
    buffer.sample(100)
    assert (len(buffer.made_transitions()), buffer.made.share) == (70, pytest.approx(0.065, abs=0.01))


def test_vectorised_agents_train():
    agent = TD3(
        "MlpPolicy",
        make_vec_env(ID, 4, seed=0),
        **small(),
        replay_buffer_class=CodaReplayBuffer,
        replay_buffer_kwargs=CODA,
    ).learn(400)
    assert agent.replay_buffer.made.rounds == 4


def test_figures_reach_tensorboard(tmp_path):
    agent = td3()
    agent.set_logger(configure(str(tmp_path), ["tensorboard", "json", "csv", "log"]))
    agent.learn(450, callback=LogMadeRows(), log_interval=1)
    agent.logger.close()
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loading.EventAccumulator(str(tmp_path)).Reload()
    tags = events.Tags()
    expected = {"acceptance", "share", "size", "seconds", "reward_mean", "reward_std"}
    assert {f"made/{name}" for name in expected} <= set(tags["scalars"])
    assert {"made/rewards", "real/rewards"} <= set(tags["histograms"])
    assert 0 < events.Scalars("made/share")[-1].value < 1
    assert events.Scalars("made/size")[-1].value == len(agent.replay_buffer.made_transitions())


def test_a_plain_agent_may_have_the_callback():
    agent = TD3("MlpPolicy", ID, **small()).learn(50, callback=LogMadeRows())
    assert agent.num_timesteps == 50
    assert not [name for name in agent.logger.name_to_value if name.startswith(("made/", "real/"))]


def test_sbx_takes_it():
    sbx = pytest.importorskip("sbx")
    agent = sbx.TD3("MlpPolicy", ID, **small(), replay_buffer_class=CodaReplayBuffer, replay_buffer_kwargs=CODA)
    agent.learn(250)
    assert agent.replay_buffer.made.rounds == 2
