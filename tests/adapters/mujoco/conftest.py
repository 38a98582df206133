"""Environments small enough for tests: two of the package's, one of Gymnasium-Robotics, and one made here."""

import gymnasium
import mujoco
import numpy as np
import pytest

import counterpoint.worlds.fetch  # noqa: F401  registers the environments
from counterpoint.adapters.mujoco import collect

TWO_BALLS = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="left" pos="-0.5 0 .1"><joint name="lx" type="slide" axis="1 0 0" damping="1"/>
      <geom type="sphere" size=".1" mass="1"/></body>
    <body name="right" pos="0.5 0 .1"><joint name="rx" type="slide" axis="1 0 0" damping="1"/>
      <geom type="sphere" size=".1" mass="1"/></body>
  </worldbody>
  <actuator><motor name="push" joint="lx" gear="20"/></actuator>
</mujoco>
"""


class Balls(gymnasium.Env):
    """Two balls on a rail; the action pushes the left one. ``show`` and ``reads`` make it as awkward as needed."""

    def __init__(self, show="plain", reads=False, xml=TWO_BALLS):
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.model)
        self.show, self.reads, self.clock = show, reads, 0
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._get_obs().shape, np.float64)

    def _get_obs(self):
        q, v = self.data.qpos, self.data.qvel
        more = {
            "plain": [],
            "distance": [abs(q[0] - q[1])],
            "product": [q[0] * q[1]],
            "clock": [self.clock],
            "stale": [self.data.xpos[1, 0]],
            "noisy": [q[0] + 1e-3 * self.np_random.normal()],
        }[self.show]
        return np.concatenate([q, v, more])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.np_random.uniform(-0.3, 0.3, self.model.nq)
        self.clock = 0
        mujoco.mj_forward(self.model, self.data)
        return self._get_obs(), {}

    def step(self, action):
        self.data.ctrl[:] = action
        if self.reads:  # a controller that looks at the other ball
            self.data.ctrl[:] += self.data.qpos[1]
        if self.show == "stale":  # one that uses what was computed in the last substep but one
            self.data.ctrl[:] += self.data.xpos[1, 0]
        mujoco.mj_step(self.model, self.data, nstep=5)
        self.clock += 1
        return self._get_obs(), 0.0, False, self.clock >= 20, {}


@pytest.fixture(scope="session")
def push():
    return gymnasium.make("FetchPush-v4")


@pytest.fixture(scope="session")
def pushed(push):
    """Half random, half towards the object, so that there are contacts."""

    def policy(shown, rng):
        seen = shown["observation"]
        if rng.random() < 0.3:
            return rng.uniform(-1, 1, 4).astype(np.float32)
        return np.clip(np.r_[10 * (seen[3:6] - seen[:3]), 0], -1, 1).astype(np.float32)

    return collect(push, policy, 250, rng=np.random.default_rng(1))


@pytest.fixture(scope="session")
def balls():
    return Balls()


@pytest.fixture(scope="session")
def rolled(balls):
    return collect(balls, None, 200, rng=np.random.default_rng(0))
