"""Figures about counterfactuals in the agent's logger."""

import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import TD3
from stable_baselines3.common.logger import configure

from counterpoint.adapters.sb3 import LogCounterfactuals
from tests.adapters.sb3.environments import ID, small, td3


def test_figures_reach_tensorboard(tmp_path):
    agent = td3()
    agent.set_logger(configure(str(tmp_path), ["tensorboard", "json", "csv", "log"]))
    agent.learn(450, callback=LogCounterfactuals(), log_interval=1)
    agent.logger.close()
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = loading.EventAccumulator(str(tmp_path)).Reload()
    tags = events.Tags()
    expected = {"acceptance", "share", "size", "seconds", "reward_mean", "reward_std"}
    assert {f"counterfactual/{name}" for name in expected} <= set(tags["scalars"])
    assert {"counterfactual/rewards", "real/rewards"} <= set(tags["histograms"])
    assert 0 < events.Scalars("counterfactual/share")[-1].value < 1
    assert events.Scalars("counterfactual/size")[-1].value == len(agent.replay_buffer.counterfactual_transitions())


def test_a_plain_agent_may_have_the_callback():
    agent = TD3("MlpPolicy", ID, **small()).learn(50, callback=LogCounterfactuals())
    assert agent.num_timesteps == 50
    assert not [name for name in agent.logger.name_to_value if name.startswith(("counterfactual/", "real/"))]
