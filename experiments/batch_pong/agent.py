"""The agent of the batch experiment: TD3 of Stable-Baselines3, trained from a buffer that is filled once."""

import numpy as np
import torch
from stable_baselines3 import TD3
from stable_baselines3.common.logger import Logger
from torch import Tensor, nn

import counterpoint.adapters.gymnasium as worlds
from counterpoint import Transitions
from counterpoint.adapters.sb3 import to_sb3_buffer
from counterpoint.worlds import Pong

BOUND = 50.0  # 1 / (1 - 0.98): no return of rewards within ±1 is beyond it


class Bounded(nn.Module):
    """A target critic that never promises more than a game can give.

    The paper clips the target r + γ Q' to ±50. With rewards within ±1 and γ = 0.98 that is what clipping Q' does.
    """

    def __init__(self, critic: nn.Module) -> None:
        super().__init__()
        self.critic = critic

    def forward(self, observation: Tensor, action: Tensor) -> tuple[Tensor, ...]:
        """Return the values of both critics, each (B, 1), within ±50."""
        return tuple(value.clamp(-BOUND, BOUND) for value in self.critic(observation, action))


class BatchTD3(TD3):
    """TD3 whose target values are bounded. Nothing else is changed."""

    def _create_aliases(self) -> None:
        super()._create_aliases()
        self.critic_target = Bounded(self.policy.critic_target)  # type: ignore[assignment]


def agent(data: Transitions, *, seed: int, batch_size: int = 1000, width: int = 128, policy_delay: int = 1) -> BatchTD3:
    """Return an agent whose replay buffer holds ``data``, all of it and nothing else."""
    made = BatchTD3(
        "MlpPolicy",
        worlds.WorldEnv("pong"),
        learning_rate=3e-4,
        buffer_size=1,
        batch_size=batch_size,
        gamma=0.98,
        policy_delay=policy_delay,
        policy_kwargs={"net_arch": [width, width], "optimizer_kwargs": {"fused": True}},
        seed=seed,
        device="cpu",
    )
    made.set_logger(Logger(None, []))
    made.replay_buffer = to_sb3_buffer(data, made.observation_space, made.action_space, device="cpu")
    return made


def success(made: TD3, world: Pong, games: int, rng: np.random.Generator) -> float:
    """Return the share of games that the greedy agent wins: the last reward is +1. All are played at once."""
    state, noise = world.reset(games, rng), world.noise(games, rng)
    scored = np.zeros(games, np.int64)
    over, won = np.zeros(games, bool), np.zeros(games, bool)
    for step in range(1, world.length + 1):
        action = greedy(made, state)
        after = world.step(state, action, noise)
        reward = world.reward(state, action, after)
        scored += reward != 0
        ends = world.ends(np.full(games, step), scored) & ~over
        won |= ends & world.success(reward)
        over |= ends
        state = after
        if over.all():
            break
    return float(won.mean())


def greedy(made: TD3, state: np.ndarray) -> np.ndarray:
    """Return the actions that the agent thinks best, (B, 2)."""
    with torch.no_grad():
        return made.actor(torch.from_numpy(state)).clamp(-1.0, 1.0).numpy()
