import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

from counterpoint.adapters.gymnasium import IDS, Task, WorldEnv, WorldVectorEnv
from counterpoint.worlds.pong import pong_policy
from counterpoint.worlds.processes import StationaryMP
from counterpoint.worlds.room import Room
from tests.adapters.gymnasium_runs import BODIES, TASKS, equal, random_actions, run


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def test_the_registered_ids():
    expected = [f"counterpoint/Place{n}{kind}-v0" for kind in ("", "Sparse") for n in (1, 2, 3, 4)]
    assert list(IDS.values()) == [*expected, "counterpoint/Pong-v0"]
    for name, identifier in IDS.items():
        assert gymnasium.spec(identifier).kwargs == {"task": name}


def test_an_id_imports_its_module():
    code = """
import gymnasium
env = gymnasium.make("counterpoint.adapters.gymnasium:counterpoint/Place1-v0")
print(env.reset(seed=0)[0].shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(16,)"


@pytest.mark.parametrize("identifier", IDS.values())
def test_gymnasium_finds_nothing_to_complain_about(identifier):
    check_env(gymnasium.make(identifier, size=32, with_mask=True).unwrapped)


@pytest.mark.parametrize("identifier", [*IDS.values()])
def test_stable_baselines_finds_nothing_to_complain_about(identifier):
    check_env_for_sb3(gymnasium.make(identifier, render_mode="rgb_array", size=32), skip_render_check=False)


def test_settings_reach_the_task_through_make_and_its_spec():
    env = gymnasium.make("counterpoint/Pong-v0", clip=True, length=7)
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    for made in (env, again):
        made.reset(seed=0)
        ends = [made.step(np.zeros(2, np.float32))[3] for _ in range(7)]
        assert ends == [False] * 6 + [True]
        assert made.observation_space.high.max() == 1


@pytest.mark.parametrize("task", TASKS)
def test_same_seed_same_bits(task):
    actions = random_actions(120)
    first, second, other = (run(WorldEnv(task, with_mask=True), actions, seed) for seed in (5, 5, 6))
    assert equal(first, second)
    assert not equal(first, other)


def test_only_its_own_generator_is_used():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    run(WorldEnv("place-1"), random_actions(60), 0)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("task", TASKS)
def test_noise_and_mask_in_info_explain_the_transition(task):
    env = WorldEnv(task, with_mask=True)
    world, reward_fn = env.task.world, env.task.reward_fn
    state, info = env.reset(seed=1)
    assert info == {}
    touched = False
    for random in random_actions(150):
        action = pong_policy(state[None], np.random.default_rng(0))[0] if task == "pong" else random
        after, reward, terminated, truncated, info = env.step(action)
        given = state[None], action[None], info["noise"][None]
        assert after.dtype == np.float32
        np.testing.assert_array_equal(after, world.step(*given)[0])
        np.testing.assert_array_equal(info["mask"], world.mask(*given)[0])
        assert reward == reward_fn(state[None], action[None], after[None])[0]
        assert after in env.observation_space
        assert terminated is False
        touched |= info["mask"][: BODIES[task]].sum() > BODIES[task]
        state = env.reset()[0] if truncated else after
    assert touched


def test_noise_is_drawn_anew_each_step_in_place_and_each_episode_in_pong():
    for task, same in (("place-1", False), ("pong", True)):
        env = WorldEnv(task)
        env.reset(seed=0)
        first, second = (env.step(np.zeros(2))[4]["noise"] for _ in range(2))
        assert np.array_equal(first, second) == same
        env.reset()
        assert not np.array_equal(env.step(np.zeros(2))[4]["noise"], first)


def test_what_is_returned_may_be_changed():
    env, other = (WorldEnv("pong", with_mask=True, render_mode="rgb_array", draw_graph=True, size=32) for _ in range(2))
    first, action = env.reset(seed=0)[0], np.zeros(2)
    other.reset(seed=0)
    first[:] = 0.5
    for _ in range(3):
        observation, *_, info = env.step(action)
        expected = other.step(np.zeros(2))
        np.testing.assert_array_equal(observation, expected[0])
        np.testing.assert_array_equal(info["noise"], expected[4]["noise"])
        observation[:], info["noise"][:], info["mask"][:], action[:] = 0, 0, True, 1
        np.testing.assert_array_equal(env.render(), other.render())
        action[:] = 0


@pytest.mark.parametrize(("settings", "length"), [({}, 50), ({"length": 3}, 3)])
def test_a_place_episode_is_cut_off_after_its_length(settings, length):
    env = WorldEnv("place-2", **settings)
    for _ in range(2):
        env.reset(seed=0)
        results = [env.step(action) for action in random_actions(length)]
        assert [result[3] for result in results] == [False] * (length - 1) + [True]
        assert not any("is_success" in result[4] for result in results)


def pong_episode(env, policy, seed):
    state, _ = env.reset(seed=seed)
    rewards, over = [], False
    rng = np.random.default_rng(seed)
    while not over:
        state, reward, _, over, info = env.step(policy(state[None], rng)[0])
        assert ("is_success" in info) == over
        rewards.append(reward)
    return rewards, info["is_success"]


def idle(state, rng):
    return np.zeros((1, 2), np.float32)


def test_a_pong_episode_ends_after_ten_scores_or_its_length():
    env, outcomes = WorldEnv("pong"), set()
    for seed in range(12):
        for policy in (pong_policy, idle):
            rewards, success = pong_episode(env, policy, seed)
            scores = np.count_nonzero(rewards)
            assert set(rewards) <= {-1.0, 0.0, 1.0}
            assert scores == 10 if len(rewards) < 150 else scores <= 10
            assert success is (rewards[-1] == 1.0)
            outcomes.add((len(rewards) == 150, success))
    assert {(False, True), (False, False), (True, False)} <= outcomes
    assert len(pong_episode(WorldEnv("pong", length=20), idle, 0)[0]) == 20
    assert np.count_nonzero(pong_episode(WorldEnv("pong", points=3), idle, 1)[0]) == 3


def test_the_papers_observation_of_pong_is_the_clipped_state():
    seen, true = WorldEnv("pong", clip=True), WorldEnv("pong")
    pairs = [(seen.reset(seed=3)[0], true.reset(seed=3)[0])]
    pairs += [(seen.step(action)[0], true.step(action)[0]) for action in random_actions(30)]
    for clipped, state in pairs:
        np.testing.assert_array_equal(clipped, np.clip(state, -1, 1))
        assert clipped in seen.observation_space
        assert state in true.observation_space
    assert pairs[0][0][10] == -1 > pairs[0][1][10]  # the speed of the serve


def test_an_episode_can_begin_in_a_given_state():
    state = WorldEnv("place-1").reset(seed=8)[0]
    env, envs = WorldEnv("place-1"), WorldVectorEnv("place-1", 3)
    np.testing.assert_array_equal(env.reset(options={"state": state})[0], state)
    np.testing.assert_array_equal(envs.reset(options={"state": np.tile(state, (3, 1))})[0], np.tile(state, (3, 1)))


def test_a_task_of_ones_own():
    room = Room(hidden=True)
    bounds = np.array([[0, 0, -1, -1] * 2, [1, 1, 1, 1] * 2])
    task = Task(room, lambda s, a, t: t[:, 0], bounds, lambda steps, scored: steps >= 5)
    env = WorldEnv(task, with_mask=True)
    record = run(env, random_actions(8), 0)
    assert len({float(item[0]) for item in record if np.shape(item) == (1,)}) <= 2  # one room per episode
    with pytest.raises(ValueError, match="render: there is no picture of Room. Give its Task a draw function"):
        WorldEnv(task, render_mode="human").reset()
    process = StationaryMP()
    silent = Task(process, lambda s, a, t: np.zeros(len(s)), np.full((2, 9), [[-99], [99]]), lambda steps, _: steps > 9)
    envs = WorldVectorEnv(silent, 4)
    envs.reset(seed=0)
    assert envs.step(np.zeros((4, 0)))[0].shape == (4, 9)


@pytest.mark.parametrize("task", TASKS)
def test_pictures(task):
    env = WorldEnv(task, render_mode="rgb_array", size=48)
    envs = WorldVectorEnv(task, 3, render_mode="rgb_array", size=48)
    env.reset(seed=0)
    envs.reset(seed=0)
    first = env.render()
    env.step(np.zeros(2))
    envs.step(np.zeros((3, 2)))
    frames = [first, env.render(), *envs.render()]
    assert len(frames) == 5
    for frame in frames:
        assert frame.shape == first.shape
        assert (frame.shape[0], frame.shape[2], frame.dtype) == (48, 3, np.uint8)
    assert not np.array_equal(first, frames[1])


def test_the_graph_is_drawn_if_asked_for():
    plain, drawn = (WorldEnv("place-1", render_mode="rgb_array", draw_graph=graph, size=64) for graph in (False, True))
    for env in (plain, drawn):
        env.reset(seed=0)
    np.testing.assert_array_equal(plain.render(), drawn.render())  # before the first step there is none
    for env in (plain, drawn):
        env.step(np.array([0.9, -0.9]))
    assert not np.array_equal(plain.render(), drawn.render())


def test_a_window_shows_the_same_picture():
    import pygame

    for task in ("place-1", "pong"):
        window, array = WorldEnv(task, render_mode="human", size=40), WorldEnv(task, render_mode="rgb_array", size=40)
        for env in (window, array):
            env.reset(seed=0)
            env.step(np.zeros(2))
        assert window.render() is None
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        np.testing.assert_array_equal(shown, array.render())
        window.close()
        window.close()
        assert not pygame.display.get_init()


def test_rendering_without_a_mode_is_a_warning():
    env, envs = WorldEnv("place-1"), WorldVectorEnv("place-1", 2)
    for made in (env, envs):
        made.reset(seed=0)
        with pytest.warns(UserWarning, match="no render_mode was given"):
            assert made.render() is None
