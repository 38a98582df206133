"""What happens next, as a density: networks whose outputs are mixtures of Gaussians."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from counterpoint.core.factors import Factorization
from counterpoint.learn.networks.densities import GaussianMixture
from counterpoint.learn.networks.message_passing import Contributions, network_for
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.tokens import node_columns

_BATCH = 4096  # rows that are predicted at once
_BROADEST = math.log(100.0)  # of a component, in those of the target; one that is never needed would drift away


class DensityNetwork(nn.Module):
    """A network whose outputs are mixtures of Gaussians, one for the next state of each factor.

    Args:
        factors: how columns split into factors.
        scaling: how they were standardised.
        components: Gaussians of each mixture.
        width: hidden units.
        finest: smallest standard deviation, in those of the target.
        draws: how many rows of the training data to remember, for ``redrawn``.
        deep: as in ``MessageNetwork``.

    Attributes:
        n, nodes: number of state factors, and of all factors.
        real: which columns of a target are no padding, (n, 1, D).
        changes: which columns are predicted as changes rather than next values, (S,) bool.
        drawn: the remembered rows, states beside actions; only columns of one node belong together.
    """

    drawn: Tensor  # (draws, S + A)

    def __init__(
        self,
        factors: Factorization,
        scaling: Scaling,
        *,
        components: int,
        width: int,
        finest: float,
        draws: int,
        deep: bool = False,
    ) -> None:
        super().__init__()
        self.n, self.nodes = factors.n, factors.n + factors.m
        self.components, self.floor = components, math.log(finest)
        self.columns = max(map(len, factors.state.values()))
        self.network = network_for(factors, scaling, components * (1 + 2 * self.columns), width, deep=deep)
        self.real = self.network.tokens.real[: self.n, None, : self.columns].float()
        self.changes = steadier_as_changes(factors, scaling)
        self.owned = torch.split(torch.from_numpy(node_columns(factors)), list(factors.widths))
        self.register_buffer("drawn", torch.zeros(draws, factors.state_width + factors.action_width))

    def observe(self, batch: ScaledBatch, rng: np.random.Generator) -> None:
        """Look at the training data once, before training, and remember some rows of it.

        For a node of one column these are evenly spaced quantiles of it, which vary less than random rows.
        """
        with torch.no_grad():
            self.network.observe(batch)
            rows, count = torch.cat([batch.state, batch.action], dim=1), len(self.drawn)
            self.drawn.copy_(rows[torch.from_numpy(rng.integers(len(rows), size=count))])
            even = ((torch.arange(count) + 0.5) / count * len(rows)).long()
            for own in self.owned:
                if len(own) == 1:
                    self.drawn[:, own] = rows[:, own].sort(dim=0).values[even]

    def encode(self, batch: ScaledBatch) -> Contributions:
        """Return what the sources contribute."""
        return self.network.encode(batch)

    def target(self, batch: ScaledBatch) -> Tensor:
        """Return what is predicted, standardised, (n, B, D)."""
        value = torch.where(self.changes, batch.target("change"), batch.target("next"))
        return self.network.tokens.pack_state(value)[..., : self.columns].transpose(0, 1)

    def densities(self, total: Tensor) -> GaussianMixture:
        """Return the predictions that follow from a sum of contributions, (n, B)."""
        k, d = self.components, self.columns
        weight, mean, spread = torch.split(self.network.head(total), [k, k * d, k * d], dim=-1)
        log_std = (self.floor + softplus(spread - self.floor - 1.0)).clamp(max=_BROADEST)
        shape = (*weight.shape, d)
        return GaussianMixture(weight.log_softmax(-1), mean.reshape(shape), log_std.reshape(shape))

    def redrawn(self, batch: ScaledBatch, node: int) -> GaussianMixture:
        """Return the mean of the predictions if a node had the values of the remembered rows instead, (n, B).

        It is one mixture of all their components. Memory is that of its result and of one batch of rows.
        """
        given, own = torch.cat([batch.state, batch.action], dim=1), self.owned[node]
        parts = []
        for values in torch.split(self.drawn[:, own], max(1, _BATCH // max(1, len(batch)))):
            many = given.repeat(len(values), 1, 1)  # (draws, B, S + A)
            many[:, :, own] = values[:, None]
            state, action = torch.split(many.flatten(0, 1), [batch.state.shape[1], batch.action.shape[1]], dim=1)
            found = self.densities(self.network.total(ScaledBatch(state, action)))
            parts.append([torch.stack(torch.split(part, len(batch), dim=1), dim=2).flatten(2, 3) for part in found])
        weight, mean, log_std = (torch.cat(part, dim=2) for part in zip(*parts, strict=True))
        return GaussianMixture(weight - math.log(len(self.drawn)), mean, log_std)


def steadier_as_changes(factors: Factorization, scaling: Scaling) -> Tensor:
    """Tell for each state column whether its change varies less than its next value, (S,) bool.

    What varies less is easier to predict well. Factors of one type decide together.
    """
    change, after = np.square(scaling.change.std), np.square(scaling.next_state.std)
    less = np.asarray(change < after)
    for kind in dict.fromkeys(factors.types[name] for name in factors.state):
        alike = np.array([own for name, own in factors.state.items() if factors.types[name] == kind])
        less[alike] = change[alike].mean(axis=0) < after[alike].mean(axis=0)
    return torch.from_numpy(less)
