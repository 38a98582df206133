"""The agent of the batch experiment: TD3 of Stable-Baselines3, trained from a table of rows that never changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3 import TD3
from stable_baselines3.common.utils import update_learning_rate
from torch import Tensor, nn
from torch.nn.functional import linear, mse_loss
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import counterpoint.adapters.gymnasium as worlds
from counterpoint import Transitions
from counterpoint.worlds import Pong

BOUND = 50.0  # 1 / (1 - 0.98): no return of rewards within ±1 is beyond it
AHEAD = 1000  # batches that are drawn at once

Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]  # state, action, reward, discount, next state


@dataclass(frozen=True)
class Units:
    """What networks see of a state: columns as they are, or in standard deviations around their mean."""

    mean: np.ndarray | float = 0.0
    std: np.ndarray | float = 1.0

    @classmethod
    def of(cls, data: Transitions) -> "Units":
        """Return those in which the columns of ``data`` have mean 0 and standard deviation 1."""
        return cls(data.state.mean(axis=0, dtype=np.float64), data.state.std(axis=0, dtype=np.float64))

    def __call__(self, state: np.ndarray) -> Tensor:
        """Return what networks see, (B, S)."""
        return torch.from_numpy(((state - self.mean) / self.std).astype(np.float32))


class Weights:
    """The weights of a network as one vector: an optimiser makes one step on it, and not one on each of its parts."""

    def __init__(self, module: nn.Module) -> None:
        parts = list(module.parameters())
        self.vector = parameters_to_vector(parts).detach()
        vector_to_parameters(self.vector, parts)  # from now on they are views of it
        self.vector.grad = torch.zeros_like(self.vector)
        for part, slope in zip(parts, self.vector.grad.split([part.numel() for part in parts]), strict=True):
            part.grad = slope.view_as(part) if part.requires_grad else None

    def optimiser(self, learning_rate: float) -> torch.optim.Adam:
        """Return Adam on the vector."""
        return torch.optim.Adam([self.vector], lr=learning_rate, fused=True)


class BatchTD3(TD3):
    """TD3 with targets within ±50, and with rows that are tensors from the beginning.

    Networks and the rule of an update are those of Stable-Baselines3. ``train`` is written anew because small networks
    on one core spend more time around their products than in them: rows are not copied from arrays, batches are drawn
    ahead, weights are one vector, and the actor's step does not ask for gradients of the critics that nobody uses.
    """

    def prepare(self, data: Transitions, units: Units) -> None:
        """Take the rows to learn from, and lay out the networks for it."""
        columns = data.action, data.reward[:, None], (self.gamma * ~data.terminated)[:, None]
        plain = (torch.from_numpy(column.astype(np.float32)) for column in columns)
        self.units = units
        self.rows = (units(data.state), *plain, units(data.next_state))
        networks = self.actor, self.critic, self.actor_target, self.critic_target
        self.weights = tuple(Weights(network) for network in networks)
        rate = self.lr_schedule(1.0)
        self.optimisers = tuple(weights.optimiser(rate) for weights in self.weights[:2])
        self.actors = tuple(list(network.mu.parameters()) for network in (self.actor, self.actor_target))
        self.critics = tuple([list(q.parameters()) for q in c.q_networks] for c in (self.critic, self.critic_target))
        self.first_critic = [part.detach() for part in self.critics[0][0]]  # the same memory, without gradients

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Make ``gradient_steps`` updates of the critics, and every ``policy_delay`` one of actor and targets."""
        for optimiser in self.optimisers:
            update_learning_rate(optimiser, self.lr_schedule(self._current_progress_remaining))
        for batch, noise in self._batches(gradient_steps, batch_size):
            self._n_updates += 1
            self._improve_critics(batch, noise)
            if self._n_updates % self.policy_delay == 0:
                self._improve_actor(batch[0])
                for leader, target in zip(self.weights[:2], self.weights[2:], strict=True):
                    target.vector.lerp_(leader.vector, self.tau)

    def _batches(self, count: int, size: int) -> Iterator[tuple[Batch, Tensor]]:
        for start in range(0, count, AHEAD):
            now = min(AHEAD, count - start)
            chosen = torch.randint(len(self.rows[0]), (now, size))
            noise = torch.randn(now, size, self.rows[1].shape[1]).mul_(self.target_policy_noise)
            noise.clamp_(-self.target_noise_clip, self.target_noise_clip)
            for index, disturbance in zip(chosen, noise, strict=True):
                state, action, reward, discount, after = (column[index] for column in self.rows)
                yield (state, action, reward, discount, after), disturbance

    def _improve_critics(self, batch: Batch, noise: Tensor) -> None:
        state, action, reward, discount, after = batch
        with torch.no_grad():
            wanted = (forward(self.actors[1], after).tanh_() + noise).clamp_(-1.0, 1.0)
            ahead = torch.cat([after, wanted], dim=1)
            one, two = (forward(critic, ahead) for critic in self.critics[1])
            target = (reward + discount * torch.minimum(one, two)).clamp_(-BOUND, BOUND)
        seen = torch.cat([state, action], dim=1)
        one, two = (mse_loss(forward(critic, seen), target) for critic in self.critics[0])
        self._step(1, one + two)

    def _improve_actor(self, state: Tensor) -> None:
        wanted = torch.cat([state, forward(self.actors[0], state).tanh()], dim=1)
        self._step(0, -forward(self.first_critic, wanted).mean())

    def _step(self, which: int, loss: Tensor) -> None:
        loss.backward()
        self.optimisers[which].step()
        self.optimisers[which].zero_grad(set_to_none=False)


def forward(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Return what a network with two hidden layers makes of ``x``, before any last nonlinearity."""
    one, offset_one, two, offset_two, three, offset_three = weights
    hidden = torch.relu(linear(torch.relu(linear(x, one, offset_one)), two, offset_two))
    return linear(hidden, three, offset_three)


def agent(data: Transitions, units: Units, *, seed: int, width: int = 128, **settings: Any) -> BatchTD3:
    """Return an agent that will learn from ``data``, all of it and nothing else.

    Args:
        data: the rows.
        units: in which networks see states.
        seed: of networks and batches.
        width: of both hidden layers.
        **settings: of TD3: ``learning_rate``, ``tau`` and ``policy_delay``.
    """
    made = BatchTD3(
        "MlpPolicy",
        worlds.WorldEnv("pong"),
        buffer_size=1,
        gamma=0.98,
        policy_kwargs={"net_arch": [width, width]},
        seed=seed,
        device="cpu",
        **settings,
    )
    made.prepare(data, units)
    return made


def success(made: BatchTD3, world: Pong, games: int, rng: np.random.Generator) -> float:
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


def greedy(made: BatchTD3, state: np.ndarray) -> np.ndarray:
    """Return the actions that the agent thinks best, (B, 2)."""
    with torch.no_grad():
        return np.asarray(made.actor.mu(made.units(state)).numpy())
