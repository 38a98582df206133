"""A small offline agent that clicks on sprites, by fitted Q iteration.

It is here to show what data is worth, not to be used: for agents see the adapters.
"""

import copy

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Floats
from counterpoint.core.protocols import RewardFn
from counterpoint.core.transitions import Transitions
from counterpoint.learn.networks.layers import mlp
from counterpoint.learn.training.fitting import seeded
from counterpoint.worlds import World, uniform_policy

WIDTH = 128  # hidden units of each of two layers
BATCH = 256
DISCOUNT = 0.9
LEARNING_RATE = 2e-3  # at the beginning; it falls to zero
CANDIDATES = 8  # random clicks, of which the best one counts as the next action
TARGET_EVERY = 100  # steps between two copies of the target network
CHOICES = 32  # random clicks that a trained agent chooses from
HORIZON = 50  # steps of an episode in which agents are compared


class Units:
    """Columns in units of one dataset, so that a network sees numbers around 1."""

    def __init__(self, data: Transitions) -> None:
        self.mean = torch.from_numpy(data.state.mean(axis=0))
        self.std = torch.from_numpy(data.state.std(axis=0))

    def __call__(self, state: Floats) -> Tensor:
        """Return standardised states."""
        return (torch.from_numpy(state) - self.mean) / self.std


def train(data: Transitions, units: Units, *, steps: int, seed: int) -> nn.Module:
    """Train an agent on transitions; return its network Q(state, action), (B, S + A) to (B, 1).

    Args:
        data: all that it learns from.
        units: how to standardise states.
        steps: minibatches, the same number however much data there is.
        seed: of its first weights and of the rows it sees, so that agents of one seed differ by their data alone.
    """
    with seeded(np.random.default_rng(seed)):
        values = mlp([data.state.shape[1] + data.action.shape[1], WIDTH, WIDTH, 1])
    target, source = copy.deepcopy(values), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(values.parameters(), lr=LEARNING_RATE, fused=True)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 - step / steps)
    now = torch.cat([units(data.state), torch.from_numpy(data.action)], dim=1)
    reward, later = torch.from_numpy(data.reward.astype(np.float32)), units(data.next_state)
    for step in range(steps):
        if step % TARGET_EVERY == 0:
            target.load_state_dict(values.state_dict())
        rows = torch.randint(len(now), (BATCH,), generator=source)
        wanted = reward[rows] + DISCOUNT * _best(target, later[rows], data.action.shape[1], source)
        loss = (values(now[rows]).squeeze(1) - wanted).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
    return values


@torch.no_grad()
def _best(values: nn.Module, state: Tensor, width: int, source: torch.Generator) -> Tensor:
    """Return the value of the best of some random clicks in each state, (B,)."""
    clicks = torch.rand(len(state) * CANDIDATES, width, generator=source) * 2.0 - 1.0
    inputs = torch.cat([state.repeat_interleave(CANDIDATES, dim=0), clicks], dim=1)
    best: Tensor = values(inputs).reshape(len(state), CANDIDATES).amax(1)
    return best


@torch.no_grad()
def play(
    values: nn.Module | None, world: World, reward_fn: RewardFn, units: Units, *, episodes: int, seed: int
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
            chosen = values(inputs).reshape(episodes, CHOICES).argmax(1).numpy()
        action = clicks.reshape(episodes, CHOICES, -1)[np.arange(episodes), chosen]
        after = world.step(state, action, world.noise(episodes, rng))
        total += float(reward_fn(state, action, after).mean())
        state = after
    return total / HORIZON
