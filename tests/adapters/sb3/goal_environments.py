"""A small goal environment: a hand pushes a puck towards a goal, and a buffer filled with random play in it."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from stable_baselines3.common.vec_env import DummyVecEnv

from counterpoint import Augmenter, Factorization
from counterpoint.adapters.sb3 import CodaHerReplayBuffer
from counterpoint.goals import no_reward
from counterpoint.masks import Proximity
from counterpoint.replay import Mixing

NEAR = 0.3
FACTORS = Factorization.blocks(state={"hand": 2, "puck": 2}, action={"motor": 2})
MASK = Proximity(FACTORS, {"hand": (0, 1), "puck": (2, 3)}, NEAR, attached=("hand",))
ID = "tests/GoalPush-v0"


def step(state, action):
    """The hand moves; the puck moves with it if it is near."""
    near = np.linalg.norm(state[:, :2] - state[:, 2:], axis=1, keepdims=True) < NEAR
    return (state + np.hstack([action, near * action])).astype(np.float32)


class GoalPush(gymnasium.Env):
    """Move the puck to the goal; actions are in [-0.2, 0.4], so that they differ from what agents store."""

    action_space = Box(-0.2, 0.4, (2,))
    observation_space = Dict(
        {
            "observation": Box(-np.inf, np.inf, (4,)),
            "achieved_goal": Box(-np.inf, np.inf, (2,)),
            "desired_goal": Box(-np.inf, np.inf, (2,)),
        }
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 4).astype(np.float32)
        self.goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.shown(), {}

    def step(self, action):
        self.state = step(self.state[None], action[None])[0]
        shown = self.shown()
        return shown, float(self.compute_reward(shown["achieved_goal"], self.goal, {})), False, False, {}

    def shown(self):
        return {"observation": self.state, "achieved_goal": self.state[2:], "desired_goal": self.goal}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.5).astype(np.float32)


def make(length=10):
    return gymnasium.wrappers.TimeLimit(GoalPush(), length)


if ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="tests.adapters.sb3.goal_environments:GoalPush", max_episode_steps=10)


def settings(every=50, **mixing):
    """The two keywords of the buffer."""
    augmenter = Augmenter(FACTORS, MASK, no_reward, pairs=400, samples_per_pair=2)
    return {"augmenter": augmenter, "mixing": Mixing(every=every, max_fraction=0.75, **mixing)}


def play(buffer, env, rows, seed=1):
    """Fill a buffer with random play."""
    rng, seen = np.random.default_rng(seed), env.reset()
    low, high = env.action_space.low, env.action_space.high
    for _ in range(rows // env.num_envs):
        stored = rng.uniform(-1, 1, (env.num_envs, 2)).astype(np.float32)
        after, reward, done, infos = env.step(low + 0.5 * (stored + 1) * (high - low))
        real = {key: value.copy() for key, value in after.items()}
        for index in np.flatnonzero(done):
            for key, value in infos[index]["terminal_observation"].items():
                real[key][index] = value
        buffer.add(seen, real, stored, reward, done, infos)
        seen = after
    return buffer


def filled(rows=500, n_envs=1, length=10, kind=CodaHerReplayBuffer, **given):
    env = DummyVecEnv([lambda: make(length)] * n_envs)
    env.seed(3)
    given = {"buffer_size": 5000, **(settings() if kind is CodaHerReplayBuffer else {}), **given}
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    buffer = kind(**spaces, env=env, n_envs=n_envs, device="cpu", **given)
    return play(buffer, env, rows)
