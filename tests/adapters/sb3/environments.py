"""What the tests of replay buffers share: small agents, filled buffers, and an environment with other actions."""

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from stable_baselines3 import TD3
from stable_baselines3.common.env_util import make_vec_env

import counterpoint.adapters.gymnasium
from counterpoint import Augmenter, Factorization
from counterpoint.adapters.sb3 import CodaReplayBuffer
from counterpoint.masks import Constant
from counterpoint.replay import Mixing
from counterpoint.worlds import Place, Sprites

torch.set_num_threads(1)
WORLD, TASK, ID = Sprites(), Place(2), "counterpoint/Place2-v0"
assert counterpoint.adapters.gymnasium.IDS["place-2"] == ID


def coda(pairs=200, every=100, **mixing):
    """The two keywords of the buffer."""
    augmenter = Augmenter(WORLD.factors, WORLD.mask, TASK, pairs=pairs)
    return {"augmenter": augmenter, "mixing": Mixing(every=every, **mixing)}


def small():
    """Settings of a small agent; new ones each time, because agents write into them."""
    sizes = {"buffer_size": 2000, "learning_starts": 100, "batch_size": 32}
    return {**sizes, "device": "cpu", "seed": 0, "policy_kwargs": {"net_arch": [16]}}


def filled(rows=1000, n_envs=1, **settings):
    """A buffer that has seen random play, without an agent."""
    envs = make_vec_env(ID, n_envs, seed=0)
    given = {"buffer_size": 5000, "n_envs": n_envs, **coda(), **settings}
    spaces = {"observation_space": envs.observation_space, "action_space": envs.action_space}
    buffer = CodaReplayBuffer(**spaces, device="cpu", **given)
    rng, seen = np.random.default_rng(1), envs.reset()
    for _ in range(rows // n_envs):
        action = buffer.scale.draw(n_envs, rng)
        after, reward, done, infos = envs.step(action)
        real = np.array([i.get("terminal_observation", a) for i, a in zip(infos, after, strict=True)])
        buffer.add(seen, real, action, reward, done, infos)
        seen = after
    return buffer


def td3(**more):
    kwargs = {"replay_buffer_class": CodaReplayBuffer, "replay_buffer_kwargs": coda(), **more}
    return TD3("MlpPolicy", ID, **small(), **kwargs)


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


def slider_coda(terminal_fn=None):
    def reward(state, action, next_state):
        assert ((action >= 1.999) & (action <= 6.001)).all(), "the functions must see real actions"
        return action[:, 0]

    mask = Constant.edges(Slider.factors, [("push", "mine")])
    augmenter = Augmenter(Slider.factors, mask, reward, terminal_fn, pairs=30)
    return {"augmenter": augmenter, "mixing": Mixing(every=50)}
