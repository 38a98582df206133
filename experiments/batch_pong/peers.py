"""Two ways to add rows without factors: a small diffusion model of whole transitions, and noise on states."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint import Transitions
from counterpoint.learn.training.fitting import flushed_denormals, seeded, torch_generator

SMALLEST, LARGEST, BEND = 0.002, 80.0, 7.0  # noise levels of Karras et al. (2022), and how they are spaced
LEVEL_MEAN, LEVEL_STD = -1.2, 1.2  # of the logarithm of noise levels in training, likewise
WAVES = 16  # of the embedding of a noise level


@dataclass(frozen=True)
class Diffusion:
    """Settings of a diffusion model in the manner of SynthER (Lu et al., 2023), at a size for a processor.

    The published one has 6 layers of 2048 and 100,000 steps; here the state has 12 columns.
    """

    layers: int = 4
    width: int = 256
    steps: int = 50_000
    batch_size: int = 256
    learning_rate: float = 3e-4
    sampling_steps: int = 32
    averaging: float = 0.999  # of the weights that are drawn from

    def enlarge(self, data: Transitions, size: int, rng: np.random.Generator) -> Transitions:
        """Fit the model to rows (s, a, r, s') and return ``size`` rows that it draws.

        Rewards become the nearest value that the data has; positions and actions are kept within their limits.
        """
        table = np.concatenate([data.state, data.action, data.reward[:, None], data.next_state], axis=1)
        mean = table.mean(axis=0, dtype=np.float64)
        std = table.std(axis=0, dtype=np.float64).clip(min=1e-6)
        rows = torch.from_numpy(((table - mean) / std).astype(np.float32))
        generator = torch_generator(rng)
        with seeded(rng):
            network = Denoiser(table.shape[1], self.layers, self.width)
        with flushed_denormals():
            average = self._train(network, rows, generator)
            drawn = torch.cat([self._draw(average, part, generator) for part in _parts(size, table.shape[1])])
        made = (drawn.numpy() * std + mean).clip(table.min(axis=0), table.max(axis=0)).astype(np.float32)
        known = np.unique(data.reward)
        width = data.state.shape[1]
        reward = known[np.abs(made[:, -width - 1 : -width] - known).argmin(axis=1)]
        state, action, after = made[:, :width], made[:, width : -width - 1], made[:, -width:]
        return Transitions(state, action, reward, after, np.zeros(size, bool))

    def _train(self, network: "Denoiser", rows: Tensor, generator: torch.Generator) -> nn.Module:
        """Minimise the weighted denoising error, and return a network with averaged weights."""
        optimiser = torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.steps)
        average = torch.optim.swa_utils.AveragedModel(
            network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(self.averaging)
        )
        for _ in range(self.steps):
            clean = rows[torch.randint(len(rows), (self.batch_size,), generator=generator)]
            level = torch.exp(LEVEL_MEAN + LEVEL_STD * torch.randn(len(clean), 1, generator=generator))
            noisy = clean + level * torch.randn(clean.shape, generator=generator)
            error = (network(noisy, level) - clean).square().mean(dim=1, keepdim=True)
            loss = (error * (1.0 + level.square()) / level.square()).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            falling.step()
            average.update_parameters(network)
        return average.module

    @torch.no_grad()
    def _draw(self, network: nn.Module, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        """Remove noise from noise, step by step, each with a correction (Heun's rule)."""
        spaced = torch.linspace(LARGEST ** (1 / BEND), SMALLEST ** (1 / BEND), self.sampling_steps) ** BEND
        levels = [*spaced.tolist(), 0.0]
        x = levels[0] * torch.randn(shape, generator=generator)
        for level, lower in pairwise(levels):
            slope = (x - network(x, torch.full((1, 1), level))) / level
            ahead = x + (lower - level) * slope
            if lower > 0:
                after = (ahead - network(ahead, torch.full((1, 1), lower))) / lower
                ahead = x + (lower - level) * 0.5 * (slope + after)
            x = ahead
        return x


class Denoiser(nn.Module):
    """A residual network, preconditioned as by Karras et al. (2022) for data of unit spread."""

    waves: Tensor

    def __init__(self, columns: int, layers: int, width: int) -> None:
        super().__init__()
        self.register_buffer("waves", torch.randn(WAVES))
        self.enter = nn.Linear(columns + 2 * WAVES, width)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(layers))
        self.leave = nn.Linear(width, columns)

    def forward(self, noisy: Tensor, level: Tensor) -> Tensor:
        """Return the expected clean rows, (B, columns), given noisy ones and their noise levels, (B or 1, 1)."""
        norm = (1.0 + level.square()).sqrt()
        angle = 2.0 * math.pi * 0.25 * level.log() * self.waves
        told = torch.cat([angle.sin(), angle.cos()], dim=1).expand(len(noisy), -1)
        x = self.enter(torch.cat([noisy / norm, told], dim=1))
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return torch.as_tensor(noisy / norm.square() + level / norm * self.leave(x))


def with_noise(data: Transitions, size: int, rng: np.random.Generator, *, std: float = 3e-4) -> Transitions:
    """Return copies of random rows with Gaussian noise on both states, in the manner of S4RL (Sinha et al., 2021).

    Args:
        data: real rows.
        size: how many to return.
        rng: source of randomness.
        std: of the noise, in standard deviations of each column; 3e-4 is the published value.
    """
    made = data.replace(episode=None, step=None, noise=None)[rng.integers(len(data), size=size)]
    unit = std * data.state.std(axis=0)

    def disturbed(state: np.ndarray) -> np.ndarray:
        shaken = state + unit * rng.standard_normal(state.shape, np.float32)
        return shaken.clip(data.state.min(axis=0), data.state.max(axis=0)).astype(state.dtype)

    return made.replace(state=disturbed(made.state), next_state=disturbed(made.next_state))


def _parts(size: int, columns: int, most: int = 4096) -> list[tuple[int, int]]:
    return [(min(most, size - start), columns) for start in range(0, size, most)]
