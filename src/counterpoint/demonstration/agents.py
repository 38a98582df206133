"""A small offline agent that clicks on sprites: fitted Q iteration, several agents trained side by side.

It is here to show what data is worth, not to be used: for agents see the adapters. All agents are one batched
program, so that a dozen of them cost one loop.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from counterpoint.core.arrays import Floats
from counterpoint.core.protocols import RewardFn
from counterpoint.core.transitions import Transitions
from counterpoint.worlds import World, uniform_policy

WIDTH = 128  # hidden units of each of two layers
BATCH = 256
DISCOUNT = 0.9
LEARNING_RATE = 2e-3  # at the beginning; it falls to zero
CANDIDATES = 8  # random clicks, of which the best one counts as the next action
TARGET_EVERY = 100  # steps between two copies of the target network
CHOICES = 32  # random clicks that a trained agent chooses from
HORIZON = 50  # steps of an episode in which agents are compared


class ActionValues(nn.Module):
    """One network Q(state, action) for each of M agents; inputs (M, B, S + A) give values (M, B).

    Agents of one seed begin with the same weights, so that they differ by their data alone.
    """

    def __init__(self, inputs: int, seeds: Sequence[int]) -> None:
        super().__init__()
        sizes = [inputs, WIDTH, WIDTH, 1]
        drawn = {seed: torch.Generator().manual_seed(seed) for seed in seeds}
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for rows, columns in pairwise(sizes):
            bound = rows**-0.5
            layers = {seed: torch.rand(rows + 1, columns, generator=source) for seed, source in drawn.items()}
            layer = torch.stack([layers[seed] for seed in seeds]) * (2 * bound) - bound
            self.weights.append(nn.Parameter(layer[:, :-1].contiguous()))
            self.biases.append(nn.Parameter(layer[:, -1:].contiguous()))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the values of states and actions, (M, B)."""
        hidden = inputs
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden = torch.baddbmm(bias, hidden, weight).relu()
        return torch.baddbmm(self.biases[-1], hidden, self.weights[-1]).squeeze(-1)

    def one(self, agent: int) -> "ActionValues":
        """Return one agent, sharing its weights."""
        alone = ActionValues(self.weights[0].shape[1], [0])
        for name in ("weights", "biases"):
            kept = [nn.Parameter(values[agent : agent + 1]) for values in getattr(self, name)]
            setattr(alone, name, nn.ParameterList(kept))
        return alone


class Units:
    """Columns in units of one data set, so that a network sees numbers around 1."""

    def __init__(self, data: Transitions) -> None:
        self.mean = torch.from_numpy(data.state.mean(axis=0))
        self.std = torch.from_numpy(data.state.std(axis=0))

    def __call__(self, state: Floats) -> Tensor:
        """Return standardised states."""
        return (torch.from_numpy(state) - self.mean) / self.std


def train(
    sets: Sequence[Transitions], seeds: Sequence[int], units: Units, *, steps: int, progress: bool = True
) -> ActionValues:
    """Train an agent on each set of transitions, by fitted Q iteration.

    Args:
        sets: the data of each agent.
        seeds: the seed of each agent, of its first weights and of the rows it sees.
        units: how to standardise states.
        steps: minibatches, the same number for each agent however much data it has.
        progress: whether to show a progress bar if the error stream is a terminal.
    """
    values, target = (ActionValues(sets[0].state.shape[1] + sets[0].action.shape[1], seeds) for _ in range(2))
    optimiser = torch.optim.Adam(values.parameters(), lr=LEARNING_RATE, fused=True)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 - step / steps)
    sources = [torch.Generator().manual_seed(seed + 1) for seed in seeds]
    tables = [_Table(rows, units) for rows in sets]
    for step in tqdm(range(steps), desc=f"{len(sets)} agents", unit="step", disable=None if progress else True):
        if step % TARGET_EVERY == 0:
            target.load_state_dict(values.state_dict())
        drawn = [table.draw(source) for table, source in zip(tables, sources, strict=True)]
        now, reward, later = (torch.stack(parts) for parts in zip(*drawn, strict=True))
        with torch.no_grad():
            best = target(later).unflatten(1, (BATCH, CANDIDATES)).amax(2)
        loss = (values(now) - reward - DISCOUNT * best).square().mean(1).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
    return values


class _Table:
    """The transitions of one agent as tensors, from which it draws minibatches."""

    def __init__(self, data: Transitions, units: Units) -> None:
        self.now = torch.cat([units(data.state), torch.from_numpy(data.action)], dim=1)
        self.reward = torch.from_numpy(data.reward.astype(np.float32))
        self.later = units(data.next_state)
        self.clicks = data.action.shape[1]

    def draw(self, source: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return state and action (B, S + A), reward (B,), and next states with clicks (B * CANDIDATES, S + A)."""
        rows = torch.randint(len(self.now), (BATCH,), generator=source)
        clicks = torch.rand(BATCH * CANDIDATES, self.clicks, generator=source) * 2.0 - 1.0
        later = torch.cat([self.later[rows].repeat_interleave(CANDIDATES, dim=0), clicks], dim=1)
        return self.now[rows], self.reward[rows], later


@torch.no_grad()
def play(
    values: ActionValues | None, world: World, reward_fn: RewardFn, units: Units, *, episodes: int, seed: int
) -> float:
    """Return the mean reward per step of one agent, or without one of random clicks.

    The same seed gives the same first states and the same clicks to choose from, whoever chooses.
    """
    rng, policy = np.random.default_rng(seed), uniform_policy(world)
    state, total = world.reset(episodes, rng), 0.0
    for _ in range(HORIZON):
        clicks = policy(np.repeat(state, CHOICES, axis=0), rng)
        chosen = np.zeros(episodes, np.int64)
        if values is not None:
            inputs = torch.cat([units(state).repeat_interleave(CHOICES, dim=0), torch.from_numpy(clicks)], dim=1)
            chosen = values(inputs[None]).reshape(episodes, CHOICES).argmax(1).numpy()
        action = clicks.reshape(episodes, CHOICES, -1)[np.arange(episodes), chosen]
        after = world.step(state, action, world.noise(episodes, rng))
        total += float(reward_fn(state, action, after).mean())
        state = after
    return total / HORIZON
