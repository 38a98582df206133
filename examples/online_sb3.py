"""Your own environment, a mask of distances, and an agent of Stable-Baselines3 that trains on counterfactuals."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from stable_baselines3 import SAC

from counterpoint import Augmenter, Factorization
from counterpoint.adapters.sb3 import CodaReplayBuffer, LogCounterfactuals
from counterpoint.masks import Proximity

FACTORS = Factorization.blocks(state={"hand": 2, "puck": 2}, action={"motor": 2})


def reward_fn(state: Any, action: Any, next_state: Any) -> Any:  # noqa: ARG001
    return -np.linalg.norm(next_state[:, 2:], axis=1)


class Push(gymnasium.Env[Any, Any]):  # noqa: D101
    observation_space, action_space = Box(-9.0, 9.0, (4,)), Box(-0.1, 0.1, (2,))

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:  # noqa: ARG002, D102
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 4).astype(np.float32)
        return self.state, {}

    def step(self, action: Any) -> Any:  # noqa: D102
        near = np.linalg.norm(self.state[:2] - self.state[2:]) < 0.15
        self.state = self.state + np.hstack([action, near * action])
        return self.state, float(reward_fn(None, None, self.state[None])[0]), False, False, {}


mask_fn = Proximity(FACTORS, {"hand": (0, 1), "puck": (2, 3)}, radius=0.15, attached=("hand",))
coda = {"augmenter": Augmenter(FACTORS, mask_fn, reward_fn)}

if __name__ == "__main__":
    env = gymnasium.wrappers.TimeLimit(Push(), 50)
    agent = SAC("MlpPolicy", env, replay_buffer_class=CodaReplayBuffer, replay_buffer_kwargs=coda, verbose=1)
    agent.learn(3000, callback=LogCounterfactuals())
