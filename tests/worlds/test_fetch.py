"""FetchPush without entangled columns, and Slide2: columns, goals, rewards, masks, pictures."""

import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from counterpoint.worlds import fetch
from counterpoint.worlds.fetch import PUSH, SLIDE2
from counterpoint.worlds.fetch.environments import APART
from counterpoint.worlds.fetch.slide_scene import CENTRE, RAILS
from counterpoint.worlds.fetch.tasks import sparse_reward

TASKS = {"counterpoint/FetchPushDisentangled-v0": PUSH, "counterpoint/Slide2-v0": SLIDE2}


@pytest.fixture(scope="module", params=TASKS)
def world(request):
    return gymnasium.make(request.param), TASKS[request.param]


def batch(shown):
    return {key: value[None] for key, value in shown.items()}


def played(env, steps, seed=0):
    """Play at random, and return what is shown before each step and after it."""
    env.action_space.seed(seed)
    shown = [env.reset(seed=seed)[0]]
    shown += [env.step(env.action_space.sample())[0] for _ in range(steps)]
    return {key: np.array([each[key] for each in shown]) for key in shown[0]}


def test_importing_the_worlds_prints_nothing():
    code = [sys.executable, "-c", "import counterpoint.worlds.fetch"]
    found = subprocess.run(code, capture_output=True, text=True, check=True)
    assert found.stdout + found.stderr == ""


def test_states_are_covered_by_the_factors(world):
    env, task = world
    shown = played(env, 5)
    state = task.goals.flatten(shown)  # raises unless the achieved goal is the columns that it should be
    task.factors.require_widths(state.shape[1], env.action_space.shape[0])
    assert env.observation_space["observation"].shape == (task.observation_factors.state_width,)
    assert np.array_equal(task.goals.unflatten(state)["desired_goal"], shown["desired_goal"])


def test_the_same_seed_gives_the_same_bits(world):
    env, _ = world
    one, two, other = (played(env, 8, seed)["observation"] for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_velocities_are_those_of_the_positions(world):
    """Positions differ from step to step by about the velocity: it is absolute, and per environment step."""
    env, task = world
    seen = played(env, 12)["observation"]
    for name, place in task.observation_factors.positions.items():
        first = place.columns[0]
        offset = 5 if name == "gripper" else 6
        moved = np.diff(seen[:, first : first + 3], axis=0)
        assert np.allclose(moved, seen[1:, first + offset : first + offset + 3], atol=0.02), name


def test_push_shows_what_fetch_push_shows_but_unmixed():
    env = gymnasium.make("counterpoint/FetchPushDisentangled-v0")
    mixed = gymnasium.make("counterpoint/FetchPushDisentangled-v0", relative_velocity=True)
    stock = gymnasium.make("FetchPush-v4")
    one, two, raw = (played(each, 6)["observation"] for each in (env, mixed, stock))
    from_stock = raw[:, [0, 1, 2, 9, 10, 20, 21, 22, 23, 24, 3, 4, 5, 11, 12, 13, 14, 15, 16, 17, 18, 19]]
    assert np.array_equal(two, from_stock)
    assert np.array_equal(two[:, 16:19], one[:, 16:19] - one[:, 5:8])
    assert np.array_equal(np.delete(one, np.s_[16:19], 1), np.delete(two, np.s_[16:19], 1))


def test_slide2_starts_as_the_paper_says():
    env = gymnasium.make("counterpoint/Slide2-v0")
    assert env.spec.max_episode_steps == 75
    starts = [env.reset(seed=seed)[0] for seed in range(20)]
    gripper = np.array([each["observation"][:3] for each in starts])
    assert np.allclose(gripper, (1.0, 0.75, 0.416), atol=0.01)
    pucks = np.array([each["achieved_goal"].reshape(2, 3) for each in starts])
    goals = np.array([each["desired_goal"].reshape(2, 3) for each in starts])
    assert np.allclose(pucks[..., 2], 0.443, atol=1e-6)
    assert np.allclose(goals[..., 2], 0.443)
    for things, reach in ((pucks, 0.15), (goals, 0.30)):
        assert (np.abs(things[..., :2] - gripper[:, None, :2]) <= reach + 1e-9).all()
        assert (np.linalg.norm(things[:, 0] - things[:, 1], axis=1) >= 0.08).all()
    assert (np.linalg.norm((pucks - gripper[:, None])[..., :2], axis=-1) >= 0.08).all()


def test_rails_keep_the_pucks_in(rng):
    env = gymnasium.make("counterpoint/Slide2-v0").unwrapped
    env.reset(seed=1)
    for index in range(2):
        env.data.joint(f"object{index}:joint").qvel[:2] = rng.normal(size=2) * 3
    for _ in range(40):
        seen = env.step(np.zeros(4))[0]["achieved_goal"].reshape(2, 3)
        assert (np.abs(seen[:, :2] - (1.0, 0.75)) < 0.33).all()


def test_rewards_of_a_batch_are_those_of_its_rows(world, rng):
    env, task = world
    goals = rng.normal(size=(50, task.goals.G)) * 0.03
    zero = np.zeros_like(goals)
    whole = env.unwrapped.compute_reward(goals, zero, {})
    rows = [env.unwrapped.compute_reward(one, none, {}) for one, none in zip(goals, zero, strict=True)]
    assert np.array_equal(whole, rows)
    assert 0 < (whole == 0).sum() < 50
    assert np.array_equal(whole, sparse_reward(goals, zero, task.threshold))


def test_the_threshold_of_slide2_can_be_the_one_of_the_papers_test():
    wide = gymnasium.make("counterpoint/Slide2-v0", distance_threshold=fetch.SLIDE2_TEST_THRESHOLD).unwrapped
    near = np.array([0.06, 0, 0, 0, 0.06, 0])
    assert wide.compute_reward(near, np.zeros(6), {}) == 0
    assert SLIDE2.reward_fn()(None, None, np.r_[np.zeros(34), near][None]) == -1
    assert pickle.loads(pickle.dumps(wide)).distance_threshold == 0.075
    with pytest.raises(ValueError, match="positive distance"):
        gymnasium.make("counterpoint/Slide2-v0", distance_threshold=0)


def test_pucks_of_slide2_can_be_rough():
    rough = gymnasium.make("counterpoint/Slide2-v0", friction=0.5).unwrapped
    slippery = gymnasium.make("counterpoint/Slide2-v0").unwrapped
    slid = [_slid(env) for env in (slippery, rough)]
    assert slid[0] > 0.1
    assert 0 < slid[1] < 0.05
    assert pickle.loads(pickle.dumps(rough)).friction == 0.5
    for wrong in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match="friction: expected a coefficient"):
            gymnasium.make("counterpoint/Slide2-v0", friction=wrong)


def test_one_puck_can_be_settled_at_the_start():
    for settled in (0, 1):
        env = gymnasium.make("counterpoint/Slide2-v0", settled=settled)
        for seed in range(5):
            shown, _ = env.reset(seed=seed)
            apart = np.linalg.norm((shown["achieved_goal"] - shown["desired_goal"]).reshape(2, 3), axis=1)
            assert apart[settled] < 1e-3
            assert np.linalg.norm(shown["desired_goal"][:2] - shown["desired_goal"][3:5]) >= APART
        assert pickle.loads(pickle.dumps(env.unwrapped)).settled == settled
    with pytest.raises(ValueError, match="settled: expected the number of a puck"):
        gymnasium.make("counterpoint/Slide2-v0", settled=2)


def _slid(env):
    """How far a puck goes by itself in ten steps, when it starts with 40 cm in a second."""
    env.reset(seed=0)
    joint = env.data.joint("object0:joint")
    env.data.joint("object1:joint").qpos[:2] = np.add(CENTRE[:2], (0, -0.2))
    joint.qpos[:2], joint.qvel[:] = np.add(CENTRE[:2], (0, 0.1)), (0, 0.4, 0, 0, 0, 0)
    start = joint.qpos[1]
    for _ in range(10):
        env.step(np.zeros(4))
    return env.data.joint("object0:joint").qpos[1] - start


def test_the_papers_mask_ties_what_is_near():
    state = np.zeros((3, 40))
    state[:, 10:13], state[:, 22:25] = (0.3, 0, 0), (0.6, 0, 0)
    state[1, 10] = 0.09  # the first puck at the gripper
    state[2, 10] = 0.55  # both pucks together
    mask = SLIDE2.near()(state, np.zeros((3, 4)))
    ties = [[set(map(SLIDE2.factors.names.__getitem__, np.flatnonzero(one[:, j]))) for j in range(4)] for one in mask]
    assert ties[0] == [{"gripper", "move"}, {"puck0"}, {"puck1"}, {"goal"}]
    assert ties[1][:2] == [{"gripper", "puck0", "move"}, {"gripper", "puck0"}]
    assert ties[2][1] == {"puck0", "puck1"}
    small = SLIDE2.near(goal=False)(state[:, :34], np.zeros((3, 4)))
    assert np.array_equal(small[:, :3], mask[:, :3, :3])


def test_the_careful_mask_ties_what_has_fallen_to_the_robot():
    state = np.zeros((2, 25))
    state[:, 10:13] = (0.5, 0, 0.42)
    state[1, 12] = 0.3
    mask = PUSH.near_or_fallen()(state, np.zeros((2, 4)))
    assert np.array_equal(mask[0], PUSH.near()(state[:1], np.zeros((1, 4)))[0])
    assert mask[1, 0, 1]
    assert mask[1, 1, 0]
    assert not mask[1, 2, :2].any()
    both = SLIDE2.near_or_fallen(radius=0.01)(np.zeros((1, 40)), np.zeros((1, 4)))
    assert both[0, :3, :3].all()


def test_the_careful_mask_ties_what_has_left_the_rails_to_the_robot():
    """A puck that was pressed over the rails slides on at the same height, and into the robot's torso."""
    sides = [
        np.add(*RAILS["rail0"])[0],
        np.add(*RAILS["rail2"])[1],
        *(np.subtract(*RAILS[f"rail{k}"])[k // 2] for k in (1, 3)),
    ]
    assert np.allclose([*SLIDE2.low[:2], *SLIDE2.high[:2]], sides)
    state = np.zeros((3, 40))
    state[:, :3], state[:, 10:13], state[:, 22:25] = (1.3, 0.75, 0.42), (1.0, 0.9, 0.443), (1.0, 0.6, 0.443)
    state[1, 10] = 0.65
    state[2, 23] = 1.1
    mask, near = (make()(state, np.zeros((3, 4))) for make in (SLIDE2.near_or_fallen, SLIDE2.near))
    assert np.array_equal(mask[0], near[0])
    assert [tuple(each[0, 1:3]) for each in mask] == [(False, False), (True, False), (False, True)]
    assert np.array_equal(mask[:, :3, :3], mask[:, :3, :3].transpose(0, 2, 1))


def test_without_opengl_the_scene_is_drawn_from_above(world):
    _, task = world
    name = next(name for name, each in TASKS.items() if each is task)
    env = gymnasium.make(name, render_mode="rgb_array", width=96, height=96).unwrapped
    env.reset(seed=0)

    def fails():
        raise ImportError("no OpenGL here")

    first = env.pictures.render(fails)
    assert first.dtype == np.uint8
    assert first.shape[0] == 96
    assert env.pictures.plain
    env.step(np.ones(4, np.float32))
    assert not np.array_equal(first, env.render())  # the gripper moved
    silent = gymnasium.make(name).unwrapped
    assert silent.pictures.render(fails) is None


@pytest.mark.slow
def test_with_opengl_the_simulator_draws():
    env = gymnasium.make("counterpoint/Slide2-v0", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    if env.unwrapped.pictures.plain:
        pytest.skip("this machine has no OpenGL library")
    assert picture.shape == (480, 480, 3)
    assert picture.std() > 10
