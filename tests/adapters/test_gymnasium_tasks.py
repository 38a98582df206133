"""What tasks accept and refuse."""

import gymnasium
import numpy as np
import pytest

from counterpoint.adapters.gymnasium import Task, WorldEnv, WorldVectorEnv, named_task, place_task, pong_task
from counterpoint.worlds.place import Place
from counterpoint.worlds.pong import Pong
from counterpoint.worlds.sprites import Sprites
from tests.adapters.gymnasium_runs import TASKS


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("value", [1.5, -1.0001, np.inf, np.nan])
def test_actions_out_of_range_are_refused(task, value):
    env, envs = WorldEnv(task), WorldVectorEnv(task, 3)
    env.reset(seed=0)
    envs.reset(seed=0)
    before = env._play
    with pytest.raises(
        ValueError, match=rf"action: expected numbers in \[-1, 1\], got {value:g} at index 1\. .*np.clip"
    ):
        env.step(np.array([0.0, value]))
    with pytest.raises(ValueError, match=rf"action: expected numbers in \[-1, 1\], got {value:g} at index 2, 0\. "):
        envs.step(np.array([[0.0, 0.0], [0.0, 0.0], [value, 0.0]]))
    assert env._play is before  # nothing happened


@pytest.mark.parametrize("action", [0.5, [0.5], [[0.0, 0.0]], [0.0, 0.0, 0.0], ["a", "b"], [True, False], None])
def test_actions_of_another_shape_are_refused(action):
    env = WorldEnv("place-1")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action: expected numbers of shape \(2,\), got"):
        env.step(action)


def test_lists_and_whole_numbers_are_actions_too():
    env = WorldEnv("place-1")
    env.reset(seed=0)
    first = env.step([1, -1])[0]
    env.reset(seed=0)
    np.testing.assert_array_equal(first, env.step(np.array([1.0, -1.0]))[0])


def test_unknown_tasks_modes_and_settings_are_refused():
    with pytest.raises(
        ValueError, match=r"no task is called 'place-5'; the tasks are place-1, .*place-4-sparse, pong\."
    ):
        named_task("place-5")
    with pytest.raises(gymnasium.error.NameNotFound):
        gymnasium.make("counterpoint/Place5-v0")
    for kind, modes in ((WorldEnv, "rgb_array, human"), (WorldVectorEnv, "rgb_array")):
        with pytest.raises(ValueError, match=f"render_mode: expected None or one of {modes}, got 'ansi'"):
            kind("pong", render_mode="ansi")
    with pytest.raises(TypeError, match="unexpected keyword argument 'clip'"):
        WorldEnv("place-1", clip=True)
    with pytest.raises(TypeError, match="clip: these settings belong to a task given by its name"):
        WorldEnv(pong_task(), clip=True)
    with pytest.raises(ValueError, match="length: expected a number of steps, 1 or more, got 0"):
        place_task("place-1", length=0)
    with pytest.raises(ValueError, match="num_envs: expected a number of environments, 1 or more, got 0"):
        WorldVectorEnv("place-1", 0)
    with pytest.raises(ValueError, match=r"bounds: expected .* shape \(2, 16\), got \(2, 12\)"):
        Task(Sprites(), Place(1), np.zeros((2, 12)), Pong().ends)


def test_states_of_another_width_are_refused():
    env, envs = WorldEnv("place-1"), WorldVectorEnv("pong", 2)
    with pytest.raises(ValueError, match=r"options\['state'\]: expected shape \(16,\), got \(12,\)"):
        env.reset(options={"state": np.zeros(12)})
    with pytest.raises(ValueError, match=r"options\['state'\]: expected shape \(2, 12\), got \(12,\)"):
        envs.reset(options={"state": np.zeros(12)})
    for value in (2.0, np.nan):
        with pytest.raises(ValueError, match="expected a state within observation_space"):
            env.reset(options={"state": np.full(16, value)})
    with pytest.raises(ValueError, match="options: expected no other than 'state', got 'position'"):
        env.reset(options={"position": 0})


def test_a_step_needs_a_reset():
    for env, action in ((WorldEnv("place-1"), np.zeros(2)), (WorldVectorEnv("place-1", 2), np.zeros((2, 2)))):
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
            env.step(action)
