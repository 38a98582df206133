"""Factors found by trying an environment out."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from counterpoint import Factorization
from counterpoint.adapters.mujoco import Islands, Simulator, collect, derive, factorization, goals
from counterpoint.adapters.mujoco.access import access
from counterpoint.adapters.mujoco.anatomy import anatomy
from counterpoint.adapters.mujoco.probing import put
from counterpoint.worlds.fetch import PUSH, SLIDE2
from tests.adapters.mujoco.conftest import TWO_BALLS, Balls


def test_trees_of_fetch_push_are_found_with_their_columns(push):
    factors = factorization(push)
    assert factors.names == ("robot0:base_link", "object0", "goal", "action")
    assert factors.state["robot0:base_link"] == (0, 1, 2, 9, 10, 20, 21, 22, 23, 24)
    assert factors.state["object0"][:9] == (3, 4, 5, 11, 12, 13, 17, 18, 19)
    assert factors.derived == (6, 7, 8, 14, 15, 16)  # positions and velocities relative to the gripper
    assert goals(push).achieved == (3, 4, 5)
    assert factors.noise_width == pytest.approx(73 + 3)


def test_relative_columns_are_recomputed(push, pushed):
    function, factors = derive(push), factorization(push)
    blind = pushed.state.copy()
    blind[:, list(factors.derived)] = np.nan
    assert np.allclose(function(blind), pushed.state[:, list(factors.derived)], atol=1e-15)
    beside = pushed.state[:, 25:28]  # the absolute velocity of the object, which the observation lacks
    assert np.allclose(beside, pushed.state[:, 14:17] + pushed.state[:, 20:23])


def test_the_worlds_own_factors_are_the_trees():
    for name, task in (("FetchPushDisentangled-v0", PUSH), ("Slide2-v0", SLIDE2)):
        env = gymnasium.make(f"counterpoint/{name}")
        found = factorization(env)
        assert list(found.state.values()) == list(task.factors.state.values())
        assert derive(env) is None
        named = factorization(env, task.factors)
        assert named.names == task.factors.names
        assert list(named.noise.values()) == list(found.noise.values())
        assert goals(env) == task.goals


def test_positions_are_where_bodies_and_sites_are(push, pushed):
    assert {name: place.columns for name, place in factorization(push).positions.items()} == {
        "robot0:base_link": (0, 1, 2),
        "object0": (3, 4, 5),
    }
    slide = factorization(gymnasium.make("counterpoint/Slide2-v0")).positions
    assert {name: place.columns for name, place in slide.items()} == {  # pucks show no height that could change
        "robot0:base_link": (0, 1),
        "object0": (10, 11),
        "object1": (22, 23),
    }
    inside = anatomy(push)
    for row in (3, 100):
        put(inside.way, inside.packing.unpack(pushed.noise[row, : inside.packing.width]))
        assert np.allclose(inside.way.data.body("object0").xpos, pushed.state[row, 3:6], atol=1e-9)
        assert np.allclose(inside.way.data.site("robot0:grip").xpos, pushed.state[row, :3], atol=1e-9)


def test_without_two_places_there_are_no_positions():
    assert not factorization(Balls()).positions  # a single coordinate says nothing about where something is
    still = {"robot_noise_ratio": 0.0, "object_noise_ratio": 0.0}
    lone = gymnasium.make("FrankaKitchen-v1", disable_env_checker=True, **still)
    assert not factorization(lone).positions  # joint angles, and the kettle alone


def test_an_equality_constraint_joins_trees():
    joined = TWO_BALLS.replace("<actuator>", '<equality><joint joint1="lx" joint2="rx"/></equality><actuator>')
    env = Balls(xml=joined)
    assert factorization(env).names == ("left+right", "action")
    assert anatomy(env).bodies.joined == ("equality constraint 0 joins left and right",)
    spring = '<tendon><fixed stiffness="5"><joint joint="lx" coef="1"/><joint joint="rx" coef="-1"/></fixed></tendon>'
    env = Balls(xml=TWO_BALLS.replace("<actuator>", spring + "<actuator>"))
    assert factorization(env).names == ("left+right", "action")


def test_two_motors_are_two_action_factors():
    two = TWO_BALLS.replace("</actuator>", '<motor name="pull" joint="rx" gear="20"/></actuator>')
    env = Balls(xml=two)
    env.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
    factors = factorization(env)
    assert dict(factors.action) == {"action on left": (0,), "action on right": (1,)}


def test_code_that_reads_another_body_is_noticed():
    assert not anatomy(Balls()).trial.reading.any()
    assert anatomy(Balls(reads=True)).trial.reading.tolist() == [[False, False], [True, False]]


def test_a_tree_that_is_not_shown_stands_beside_the_observation():
    class Blind(Balls):
        def _get_obs(self):
            return np.array([self.data.qpos[0], self.data.qvel[0]])

    env = Blind()
    assert dict(factorization(env).state) == {"left": (0, 1), "right": (2,)}
    data = collect(env, None, 5, rng=np.random.default_rng(0))
    assert data.state.shape == (5, 3)


@pytest.mark.parametrize(
    ("show", "message"),
    [
        ("distance", "mixes left, right"),
        ("product", "mixes left, right"),
        ("clock", "no position or velocity moves it"),
    ],
)
def test_columns_that_cannot_be_owned_are_refused(show, message):
    with pytest.raises(ValueError, match=message):
        factorization(Balls(show=show))


def test_observation_noise_is_refused():
    with pytest.raises(ValueError, match="Observation noise"):
        factorization(Balls(show="noisy"))


def test_a_factor_that_holds_part_of_a_tree_is_refused(push):
    split = Factorization(
        {
            "hand": (0, 1, 2),
            "arm": (9, 10, 20, 21, 22, 23, 24),
            "rest": (3, 4, 5, *range(11, 14), *range(17, 20), *range(25, 31)),
        },
        {"a": (0, 1, 2, 3)},
        derived=(6, 7, 8, 14, 15, 16),
    )
    with pytest.raises(ValueError, match="'robot0:base_link' is split between 'hand', 'arm'"):
        factorization(push, split)


def test_observation_wrappers_are_seen_through(push):
    wrapped = gymnasium.wrappers.FlattenObservation(gymnasium.make("counterpoint/Slide2-v0"))
    factors = factorization(wrapped)
    assert {"robot0:base_link", "object0", "object1"} < set(factors.names)


def test_without_mujoco_there_is_a_clear_word():
    with pytest.raises(TypeError, match="no MuJoCo simulator that can be found"):
        factorization(gymnasium.make("CartPole-v1"))
    with pytest.raises(TypeError, match="expected a Gymnasium environment, got str"):
        factorization("FetchPush-v4")


def test_other_paths_to_the_simulator():
    """As the wrappers of other libraries hold it; their models and data are MuJoCo's own."""
    inner = Balls()

    class Pointer:
        def __init__(self, ptr):
            self.ptr = ptr

    class Suite(gymnasium.Env):
        class physics:
            model, data = Pointer(inner.model), Pointer(inner.data)

        class task:
            @staticmethod
            def get_observation(physics):
                return {"joints": physics.data.ptr.qpos.copy()}

    assert access(Suite()).model is inner.model
    assert access(Suite()).observe()["joints"].shape == (2,)


class Lift:
    """As robosuite builds them: no environment of Gymnasium's, with a wrapper that is none of its wrappers."""

    def __init__(self):
        self.balls = Balls()
        self.sim = SimpleNamespace(
            model=SimpleNamespace(_model=self.balls.model), data=SimpleNamespace(_data=self.balls.data)
        )

    def _get_observations(self, force_update=False):
        return {"joints": self.balls._get_obs(), "fresh": np.array([float(force_update)])}


class Wrapped(gymnasium.Env):
    """As robosuite's own wrapper: it chooses some of the observations and makes one row of them."""

    flatten_obs = True

    def __init__(self):
        self.env = Lift()
        self.action_space, self.observation_space = self.env.balls.action_space, self.env.balls.observation_space

    @property
    def unwrapped(self):
        return self.env

    def _flatten_obs(self, shown):
        return shown["joints"]

    def reset(self, *, seed=None, options=None):
        self.env.balls.reset(seed=seed)
        return self._flatten_obs(self.env._get_observations()), {}

    def step(self, action):
        return self.env.balls.step(action)


def test_the_path_of_robosuite(rng):
    env = Wrapped()
    found = access(env)
    assert found.data is env.env.balls.data
    assert np.array_equal(found.observe(), env.env.balls._get_obs())
    assert access(gymnasium.wrappers.TimeLimit(env, 9)).observe().shape == (4,)
    env.flatten_obs, env._filter_obs = False, lambda shown: shown["fresh"]
    assert access(env).observe() == 1.0
    env.flatten_obs = True
    data = collect(gymnasium.wrappers.TimeLimit(env, 20), None, 60, rng=rng)
    assert Simulator(env, workers=1).replay(data).same == 1.0


def test_a_reset_that_builds_a_new_simulator_is_refused():
    class Hard(Wrapped):
        def reset(self, *, seed=None, options=None):
            self.env = Lift()
            return super().reset(seed=seed)

    with pytest.raises(ValueError, match=r"reset\(\) builds a new simulator.*hard_reset=False"):
        factorization(Hard())


def test_an_environment_that_remembers_is_not_exact():
    class Remembers(Balls):
        last = 0.0

        def step(self, action):
            self.last = 0.5 * self.last + action
            return super().step(self.last)

    mask = Islands(Remembers(), workers=1)
    assert not mask.exact
    assert any("keeps a state of its own" in each for each in mask.remarks)
    assert not any("influence" in each for each in mask.remarks)  # it reads nothing


def test_an_environment_of_dm_control():
    shimmy = pytest.importorskip("shimmy")
    pytest.importorskip("dm_control")
    gymnasium.register_envs(shimmy)
    env = gymnasium.make("dm_control/finger-spin-v0")
    assert factorization(env).names[:2] == ("proximal", "spinner")
    data = collect(env, None, 30, rng=np.random.default_rng(0))
    assert Simulator(env, workers=1).replay(data).same == 1.0


def test_a_model_that_changes_with_each_reset_is_said():
    class Targets(Balls):
        def reset(self, *, seed=None, options=None):
            found = super().reset(seed=seed)
            self.model.body_pos[2, 1] = self.np_random.uniform(0.0, 0.01)
            return found

    env = Targets()
    assert any("changes its model when it is reset" in each for each in Islands(env, workers=1).remarks)
    data = collect(env, None, 50, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="rows of other episodes cannot be put back"):
        Simulator(env, workers=1).replay(data)
