"""Agents that train with the buffer: they notice nothing, whatever their actions and environments."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from counterpoint.adapters.sb3 import CodaHerReplayBuffer, CodaReplayBuffer, FutureActual, LogCounterfactuals
from counterpoint.checks import audit
from counterpoint.replay import Mixing, Rollouts
from tests.adapters.sb3 import goal_environments as goals
from tests.adapters.sb3.environments import ID, TASK, WORLD, Slider, Steps, coda, filled, slider_coda, small, td3


def over_thirty(state, action, next_state):
    return next_state[:, 0] > 30


def weights(agent):
    return torch.cat([p.flatten() for p in agent.policy.parameters()]).detach()


def test_the_agent_is_untouched():
    """If batches have no room for counterfactuals, it is the plain agent, bit for bit; with them it is another one."""
    plain = weights(td3(replay_buffer_class=None, replay_buffer_kwargs=None).learn(250))
    none = weights(td3(replay_buffer_kwargs=coda(max_fraction=0.0)).learn(250))
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
    real, made = agent.replay_buffer.real_transitions(), agent.replay_buffer.counterfactual_transitions()
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

    settings = {"augmenter": Rollouts(model, lambda s, a, s2: 2.0 + a[:, 0], starts=20), "mixing": Mixing(every=50)}
    agent = DQN(
        "MlpPolicy", Steps(Slider()), **small(), replay_buffer_class=CodaReplayBuffer, replay_buffer_kwargs=settings
    ).learn(150)
    made = agent.replay_buffer.counterfactual_transitions()
    assert set(made.action[:, 0]) == {0, 1, 2, 3, 4}
    assert agent.replay_buffer.sample(50).actions.dtype == torch.int64


def test_dyna_with_the_true_model():
    settings = {"augmenter": Rollouts(WORLD.step, TASK, starts=50, steps=3), "mixing": Mixing(every=100)}
    agent = td3(replay_buffer_kwargs=settings).learn(250)
    made = agent.replay_buffer.counterfactual_transitions()
    assert len(made) == 2 * 50 * 3
    assert audit(made, WORLD.step).confirmed == 1
    assert agent.replay_buffer.counterfactual.share == pytest.approx(300 / 550, abs=0.05)


def test_dyna_is_capped_too():
    mixing = Mixing(every=200, max_fraction=0.1, capacity=70)
    buffer = filled(augmenter=Rollouts(WORLD.step, TASK), mixing=mixing)
    buffer.sample(100)
    assert (len(buffer.counterfactual_transitions()), buffer.counterfactual.share) == (
        70,
        pytest.approx(0.065, abs=0.01),
    )


def test_vectorised_agents_train():
    agent = TD3(
        "MlpPolicy",
        make_vec_env(ID, 4, seed=0),
        **small(),
        replay_buffer_class=CodaReplayBuffer,
        replay_buffer_kwargs=coda(),
    ).learn(400)
    assert agent.replay_buffer.counterfactual.rounds == 4


def test_sbx_takes_it():
    sbx = pytest.importorskip("sbx")
    agent = sbx.TD3("MlpPolicy", ID, **small(), replay_buffer_class=CodaReplayBuffer, replay_buffer_kwargs=coda())
    agent.learn(250)
    assert agent.replay_buffer.counterfactual.rounds == 2


def goal_agent(kind, env, **more):
    wiring = {"replay_buffer_class": CodaHerReplayBuffer, "replay_buffer_kwargs": {**goals.settings(), **more}}
    return kind("MultiInputPolicy", env, **small(), **wiring)


@pytest.mark.parametrize("kind", [DDPG, TD3, SAC, "TQC"])
def test_goal_agents_train_with_hindsight_and_counterfactuals(kind, tmp_path):
    kind = pytest.importorskip("sb3_contrib").TQC if kind == "TQC" else kind
    strategy = FutureActual(2, 2, future_until=150)
    agent = goal_agent(kind, goals.make(), goal_selection_strategy=strategy).learn(250, callback=LogCounterfactuals())
    buffer = agent.replay_buffer
    assert buffer.counterfactual.rounds == 5
    assert 0 < buffer.counterfactual.share <= 0.75
    assert audit(buffer.counterfactual_transitions(), goals.step, atol=1e-6).confirmed == 1
    agent.save_replay_buffer(tmp_path / "buffer")
    other = goal_agent(kind, goals.make())
    other.load_replay_buffer(tmp_path / "buffer")
    other.learn(30, reset_num_timesteps=False)
    assert other.replay_buffer.counterfactual.added == 280


def test_goal_agents_train_in_several_environments_at_once():
    agent = goal_agent(SAC, VecNormalize(make_vec_env(goals.make, 4, seed=0))).learn(400)
    assert agent.replay_buffer.counterfactual.rounds == 8
    log = LogCounterfactuals()
    log.init_callback(agent)
    log.on_step()
    assert agent.logger.name_to_value["counterfactual/share"] == agent.replay_buffer.counterfactual.share > 0
    assert -1 <= agent.logger.name_to_value["counterfactual/reward_mean"] <= 0


def test_the_example_with_a_robot_is_wired_up():
    """The example at a hundredth of its size: its keywords fit, and the rows are those of the robot's observation."""
    pytest.importorskip("gymnasium_robotics")
    import gymnasium

    from examples import her_sb3

    wiring = {"replay_buffer_class": CodaHerReplayBuffer, "replay_buffer_kwargs": dict(her_sb3.coda)}
    env = gymnasium.make("counterpoint/FetchPushDisentangled-v0")
    agent = SAC("MultiInputPolicy", env, **{**small(), "learning_starts": 300}, **wiring).learn(310)
    rows = agent.replay_buffer.counterfactual_transitions()
    assert rows.state.shape[1] == 22
    assert agent.replay_buffer._achieved().which == (10, 11, 12)
