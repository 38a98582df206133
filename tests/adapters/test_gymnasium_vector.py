"""Worlds as native vector environments."""

import dataclasses
from typing import ClassVar

import gymnasium
import numpy as np
import pytest

from counterpoint.adapters.gymnasium import IDS, WorldEnv, WorldVectorEnv, place_task
from counterpoint.worlds.sprites import Sprites
from tests.adapters.gymnasium_runs import TASKS, equal, random_actions, run


@pytest.mark.parametrize("identifier", IDS.values())
def test_make_vec_finds_the_native_batch(identifier):
    envs = gymnasium.make_vec(identifier, num_envs=3, vectorization_mode="vector_entry_point", with_mask=True)
    assert isinstance(envs, WorldVectorEnv)
    assert envs.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    envs.action_space.seed(0)
    observations, rewards, terminated, truncated, info = envs.step(envs.action_space.sample())
    assert observations in envs.observation_space
    assert (rewards.shape, rewards.dtype) == ((3,), np.float64)
    assert (terminated.dtype, truncated.dtype) == (np.bool_, np.bool_)
    assert info["mask"].shape[0] == info["noise"].shape[0] == info["_mask"].sum() == 3
    envs.close()


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_step_is_a_step_of_the_world(task):
    envs = WorldVectorEnv(task, 16, with_mask=True)
    world = envs.task.world
    state, over = envs.reset(seed=2)[0], np.zeros(16, bool)
    resets = 0
    for actions in random_actions(170, 16):
        after, rewards, terminated, truncated, info = envs.step(actions)
        moved = ~over
        given = state[moved], actions[moved], info["noise"][moved]
        np.testing.assert_array_equal(after[moved], world.step(*given) if moved.any() else after[moved])
        np.testing.assert_array_equal(info["mask"][moved], world.mask(*given))
        np.testing.assert_array_equal(info["_noise"], moved)
        np.testing.assert_array_equal(info["_mask"], moved)
        assert not rewards[over].any()
        assert not info["noise"][over].any()
        assert not info["mask"][over].any()
        assert not truncated[over].any()
        assert not terminated.any()
        assert ("is_success" in info) == (task == "pong" and truncated.any())
        if "is_success" in info:
            np.testing.assert_array_equal(info["_is_success"], truncated)
            np.testing.assert_array_equal(info["is_success"], truncated & (rewards == 1))
        resets += over.sum()
        state, over = after, truncated
    assert resets >= 16


def test_a_batch_is_advanced_by_one_call_of_the_world():
    class Counting(Sprites):
        calls: ClassVar[list[int]] = []

        def step(self, state, action, noise=None):
            self.calls.append(len(state))
            return super().step(state, action, noise)

    task = dataclasses.replace(place_task("place-4"), world=Counting())
    envs = WorldVectorEnv(task, 100)
    envs.reset(seed=0)
    for actions in random_actions(5, 100):
        envs.step(actions)
    assert Counting.calls == [100] * 5


@pytest.mark.parametrize("task", TASKS)
def test_the_action_of_a_row_that_begins_anew_is_ignored(task):
    envs = WorldVectorEnv(task, 8, length=60)
    envs.reset(seed=0)
    over = np.zeros(8, bool)
    for actions in random_actions(150, 8):
        actions[over] = np.nan
        over = envs.step(actions)[3]


@pytest.mark.parametrize("task", TASKS)
def test_same_seed_same_bits_in_a_batch(task):
    actions = random_actions(120, 4)
    first, second, other = (run(WorldVectorEnv(task, 4), actions, seed) for seed in (5, 5, 6))
    assert equal(first, second)
    assert not equal(first, other)


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_of_one_is_a_single_environment(task):
    env, envs = WorldEnv(task), WorldVectorEnv(task, 1)
    np.testing.assert_array_equal(envs.reset(seed=4)[0][0], env.reset(seed=4)[0])
    over = False
    for action in random_actions(330):
        observations, rewards, _, truncated, info = envs.step(action[None])
        if over:
            np.testing.assert_array_equal(observations[0], env.reset()[0])
            over = False
        else:
            observation, reward, _, over, single = env.step(action)
            np.testing.assert_array_equal(observations[0], observation)
            np.testing.assert_array_equal(info["noise"][0], single["noise"])
            assert rewards[0] == reward
        assert truncated[0] == over
