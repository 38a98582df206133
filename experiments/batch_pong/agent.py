"""The agents of the batch experiment: TD3 of Stable-Baselines3, trained from tables of rows that never change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3 import TD3
from stable_baselines3.common.utils import update_learning_rate
from torch import Tensor, nn

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
    """The same network of several agents: each part stacked, (agents, in, out), and all parts views of one vector."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        parts = zip(*(network.parameters() for network in networks), strict=True)
        stacked = [torch.stack([_as_factor(part) for part in same]) for same in parts]
        self.vector = torch.cat([part.reshape(-1) for part in stacked])
        self.vector.grad = torch.zeros_like(self.vector)
        sizes = [part.numel() for part in stacked]
        self.parts: list[Tensor] = []
        pieces = zip(stacked, self.vector.split(sizes), self.vector.grad.split(sizes), strict=True)
        for part, values, slopes in pieces:
            self.parts.append(values.view_as(part).requires_grad_())
            self.parts[-1].grad = slopes.view_as(part)

    def optimiser(self) -> torch.optim.Adam:
        """Return Adam on the vector: one step on it, and not one on each of its parts."""
        return torch.optim.Adam([self.vector], fused=True)

    def __call__(self, x: Tensor) -> Tensor:
        """Return what the networks make of ``x``, (agents, B, in), before any last nonlinearity."""
        return forward(self.parts, x)


def _as_factor(part: Tensor) -> Tensor:
    """Return weights of a layer as what its input is multiplied by, offsets as a row."""
    return part.detach().t() if part.dim() == 2 else part.detach()[None]


class Agents:
    """Agents of Stable-Baselines3's TD3 that learn in step, each from a table of its own, with targets within ±50.

    Networks and the rule of an update are theirs. Small networks on one core spend more time around their products than
    in them, hence one program for all agents: weights are stacked, rows are tensors from the beginning, batches are
    drawn ahead, and the actors' step does not ask for gradients of the critics that nobody uses. No agent sees anything
    of another, and each has its own generator: it comes out the same, but for rounding, in any company.
    """

    def __init__(self, made: Sequence[TD3], tables: Sequence[Transitions], units: Sequence[Units]) -> None:
        self.rule, self.units, self.updates = made[0], tuple(units), 0
        self.generators = [torch.Generator().manual_seed(int(one.seed or 0)) for one in made]
        self.sizes = [len(table) for table in tables]
        self.first_row = torch.tensor([0, *self.sizes[:-1]]).cumsum(0)[:, None]
        self.widths = _widths(tables[0])
        rows = zip(tables, self.units, strict=True)
        self.rows = torch.cat([_as_rows(table, unit, self.rule.gamma) for table, unit in rows])
        self.actor = Weights([one.actor for one in made])
        self.critic = Weights([one.critic.q_networks[which] for which in range(2) for one in made])
        self.actor_target = Weights([one.actor_target for one in made])
        self.critic_target = Weights([one.critic_target.q_networks[which] for which in range(2) for one in made])
        self.first_critic = [part.detach()[: len(made)] for part in self.critic.parts]  # the same memory
        self.optimisers = {network: network.optimiser() for network in (self.actor, self.critic)}

    def train(self, steps: int, batch_size: int, remaining: float = 1.0) -> None:
        """Make ``steps`` updates of the critics, and every ``policy_delay`` one of actors and targets.

        Args:
            steps: how many.
            batch_size: rows of each, for every agent.
            remaining: share of the training that is still ahead, for a learning rate that falls.
        """
        for optimiser in self.optimisers.values():
            update_learning_rate(optimiser, self.rule.lr_schedule(remaining))
        for batch, noise in self.batches(steps, batch_size):
            self.updates += 1
            self._improve_critics(batch, noise)
            if self.updates % self.rule.policy_delay == 0:
                self._improve_actors(batch[0])
                self.actor_target.vector.lerp_(self.actor.vector, self.rule.tau)
                self.critic_target.vector.lerp_(self.critic.vector, self.rule.tau)

    def batches(self, count: int, size: int) -> Iterator[tuple[Batch, Tensor]]:
        """Give batches, (agents, B, width) each, and the noise on their target actions."""
        for start in range(0, count, AHEAD):
            now = min(AHEAD, count - start)
            drawn = [
                (torch.randint(rows, (now, size), generator=own), torch.randn(now, size, self.widths[1], generator=own))
                for rows, own in zip(self.sizes, self.generators, strict=True)
            ]
            chosen = torch.stack([index for index, _ in drawn], dim=1) + self.first_row
            noise = torch.stack([disturbance for _, disturbance in drawn], dim=1).mul_(self.rule.target_policy_noise)
            noise.clamp_(-self.rule.target_noise_clip, self.rule.target_noise_clip)
            for index, disturbance in zip(chosen, noise, strict=True):
                rows = self.rows[index.view(-1)].view(*index.shape, -1)
                state, action, reward, discount, after = rows.split(self.widths, dim=2)
                yield (state, action, reward, discount, after), disturbance

    def _improve_critics(self, batch: Batch, noise: Tensor) -> None:
        state, action, reward, discount, after = batch
        with torch.no_grad():
            wanted = (self.actor_target(after).tanh_() + noise).clamp_(-1.0, 1.0)
            one, two = self.critic_target(torch.cat([after, wanted], dim=2).repeat(2, 1, 1)).chunk(2)
            target = (reward + discount * torch.minimum(one, two)).clamp_(-BOUND, BOUND)
        promised = self.critic(torch.cat([state, action], dim=2).repeat(2, 1, 1))
        self._step(self.critic, (promised - target.repeat(2, 1, 1)).square().mean(dim=(1, 2)).sum())

    def _improve_actors(self, state: Tensor) -> None:
        wanted = torch.cat([state, self.actor(state).tanh()], dim=2)
        self._step(self.actor, -forward(self.first_critic, wanted).mean(dim=(1, 2)).sum())

    def _step(self, network: Weights, loss: Tensor) -> None:
        loss.backward()
        self.optimisers[network].step()
        self.optimisers[network].zero_grad(set_to_none=False)

    def greedy(self, state: np.ndarray) -> np.ndarray:
        """Return the actions that the agents think best in ``state``, (agents, B, S), as (agents, B, 2)."""
        seen = torch.stack([unit(own) for unit, own in zip(self.units, state, strict=True)])
        with torch.no_grad():
            return np.asarray(self.actor(seen).tanh_().numpy())


def forward(weights: Sequence[Tensor], x: Tensor) -> Tensor:
    """Return what networks with two hidden layers make of ``x``, (agents, B, in), before any last nonlinearity."""
    one, offset_one, two, offset_two, three, offset_three = weights
    hidden = torch.baddbmm(offset_two, torch.baddbmm(offset_one, x, one).relu_(), two).relu_()
    return torch.baddbmm(offset_three, hidden, three)


def _widths(table: Transitions) -> list[int]:
    return [table.state.shape[1], table.action.shape[1], 1, 1, table.state.shape[1]]


def _as_rows(table: Transitions, units: Units, gamma: float) -> Tensor:
    """Return state, action, reward, discount and next state side by side."""
    columns = table.action, table.reward[:, None], (gamma * ~table.terminated)[:, None]
    plain = (torch.from_numpy(column.astype(np.float32)) for column in columns)
    return torch.cat([units(table.state), *plain, units(table.next_state)], dim=1)


def untrained(*, seed: int, width: int = 128, **settings: Any) -> TD3:
    """Return an agent of Stable-Baselines3 that knows nothing yet.

    Args:
        seed: of networks and batches.
        width: of both hidden layers.
        **settings: of TD3: ``learning_rate``, ``tau`` and ``policy_delay``.
    """
    return TD3(
        "MlpPolicy",
        worlds.WorldEnv("pong"),
        buffer_size=1,
        gamma=0.98,
        policy_kwargs={"net_arch": [width, width]},
        seed=seed,
        device="cpu",
        **settings,
    )


def success(agents: Agents, world: Pong, games: int, rngs: Sequence[np.random.Generator]) -> np.ndarray:
    """Return the share of games that each greedy agent wins: the last reward is +1. All are played at once."""
    many = games * len(rngs)
    state = np.concatenate([world.reset(games, rng) for rng in rngs])
    noise = np.concatenate([world.noise(games, rng) for rng in rngs])
    scored = np.zeros(many, np.int64)
    over, won = np.zeros(many, bool), np.zeros(many, bool)
    for step in range(1, world.length + 1):
        action = agents.greedy(state.reshape(len(rngs), games, -1)).reshape(many, -1)
        after = world.step(state, action, noise)
        reward = world.reward(state, action, after)
        scored += reward != 0
        ends = world.ends(np.full(many, step), scored) & ~over
        won |= ends & world.success(reward)
        over |= ends
        state = after
        if over.all():
            break
    return np.asarray(won.reshape(len(rngs), games).mean(axis=1))
