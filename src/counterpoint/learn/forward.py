"""An independent model of the next state given everything, to ask how plausible a proposal is."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.baseline import Baseline, chunks, train
from counterpoint.learn.fitting import seeded
from counterpoint.learn.inputs import Batch, Scaling, Tokens

_COMPONENTS, _WIDTH = 3, 64  # Gaussians of a mixture, hidden units
_LOG_STD = (-5.0, 1.0)  # range of the logarithm of standard deviations
_OUTLIER, _BROAD = 1e-3, 5.0  # weight and standard deviation of a component that bounds the density from below
_FAR_LESS = 5.0  # nats
_FAR, _CLOSE = 3.0, 0.05  # spreads of position; beyond and below these, distances are hardly told apart
_TINY = 1e-6


class Offsets(nn.Module):
    """How each source lies to each target, now and one step ahead, and whether another target is nearer.

    Ahead is where a factor would be by itself. Pairs without positions have zeros.
    """

    def __init__(self, factors: Factorization, scaling: Scaling) -> None:
        super().__init__()
        self.n, self.scaling = factors.n, scaling
        places = [factors.positions.get(name) for name in factors.names]
        self.axes = max((len(place.columns) for place in places if place is not None), default=0)
        self.columns = torch.zeros(len(places), self.axes, dtype=torch.long)
        self.scale, self.offset = torch.zeros(2, len(places), self.axes)
        for node, place in enumerate(places):
            if place is not None:
                self.columns[node] = torch.tensor(place.columns) + (0 if node < self.n else factors.state_width)
                self.scale[node], self.offset[node] = torch.tensor(place.scale), torch.tensor(place.offset)
        placed = torch.tensor([place is not None for place in places])
        self.both = placed[:, None] & placed[: self.n] & ~torch.eye(len(places), self.n, dtype=torch.bool)
        spread = torch.tensor([*scaling.state.std, *scaling.action.std])[self.columns] * self.scale
        self.unit = spread[placed].square().mean().sqrt() if self.axes else torch.ones(())
        self.width = 3 * (2 * self.axes + 2) + 1

    def forward(self, batch: Batch, alone: Tensor) -> Tensor:
        """Return features of all pairs, (B, N, n, width), given the changes of each factor by itself, (B, S)."""
        true = self.scaling.original(batch)
        here = self._places(true.state, true.action)
        ahead = self._places(true.state + self.scaling.change.undo(alone), true.action)
        features = []
        for source, target in ((here, here), (ahead, ahead), (here, ahead)):
            offset = source.unsqueeze(2) - target[:, None, : self.n]
            distance = (offset.square().sum(dim=-1, keepdim=True) + _TINY).sqrt()
            features += [offset.clamp(-_FAR, _FAR), _magnified(offset), distance.clamp(max=_FAR), distance.log()]
        now = (here.unsqueeze(2) - here[:, None, : self.n]).norm(dim=-1)
        others = self.both.unsqueeze(1) & ~torch.eye(self.n, dtype=torch.bool)  # (N, n, n)
        rival = now.unsqueeze(2).masked_fill(~others, _FAR).amin(dim=-1)
        features.append(_magnified(now - rival).unsqueeze(-1))
        return torch.cat(features, dim=-1) * self.both.unsqueeze(-1)

    def _places(self, state: Tensor, action: Tensor) -> Tensor:
        """Return where the nodes are, (B, N, axes), in units of the spread of all positions."""
        place: Tensor = torch.cat([state, action], dim=1)[:, self.columns] * self.scale + self.offset
        return place / self.unit


class ForwardNetwork(nn.Module):
    """The change of each factor as a mixture: what it does by itself, corrected by messages of all others."""

    def __init__(self, baseline: Baseline) -> None:
        super().__init__()
        self.baseline = baseline  # no module itself, so it is not trained further
        self.tokens = Tokens(baseline.factors, "typed")
        self.offsets = Offsets(baseline.factors, baseline.scaling)
        size, outputs = self.tokens.width, _COMPONENTS * (1 + 2 * self.tokens.width)
        self.message = _layers(2 * size + self.offsets.width)
        self.head = nn.Sequential(_layers(2 * size + _WIDTH), nn.Linear(_WIDTH, outputs))

    def log_prob(self, batch: Batch) -> Tensor:
        """Return the log density of each target's change, (B, n)."""
        n, real = self.tokens.n, self.tokens.real[: self.tokens.n, None].float()
        with torch.no_grad():
            alone = self.baseline.network(batch)
        tokens, own = self.tokens.pack(batch.state, batch.action), self.tokens.pack_state(alone)
        pairs = tokens.unsqueeze(2).expand(-1, -1, n, -1), tokens[:, None, :n].expand(-1, tokens.shape[1], -1, -1)
        messages = self.message(torch.cat([*pairs, self.offsets(batch, alone)], dim=-1))
        others = ~torch.eye(*messages.shape[1:3], dtype=torch.bool).unsqueeze(-1)
        out = self.head(torch.cat([tokens[:, :n], own, (messages * others).sum(dim=1)], dim=-1))
        weight, rest = out.split([_COMPONENTS, out.shape[-1] - _COMPONENTS], dim=-1)
        mean, log_std = rest.unflatten(-1, (2, _COMPONENTS, -1)).unbind(dim=-3)  # (B, n, components, W)
        value = self.tokens.pack_state(batch.target("change")).unsqueeze(-2)
        each = _log_normal(value - own.unsqueeze(-2) - mean, (log_std - 1.0).clamp(*_LOG_STD))
        inside = torch.logsumexp(weight.log_softmax(dim=-1) + (each * real).sum(dim=-1), dim=-1)
        outside = (_log_normal(value, torch.tensor(math.log(_BROAD))) * real).sum(dim=(-2, -1))
        return torch.logaddexp(inside + math.log1p(-_OUTLIER), outside + math.log(_OUTLIER))


@dataclass(frozen=True, eq=False)
class Forward:
    """A fitted forward model."""

    network: ForwardNetwork

    @classmethod
    def fit(cls, baseline: Baseline, data: Transitions, rng: np.random.Generator) -> "Forward":
        """Fit to transitions, on top of what each factor does by itself."""
        with seeded(rng):
            network = ForwardNetwork(baseline)
        rows = baseline.scaling.batch(data.state, data.action, data.next_state)
        train(network, lambda batch, _: -network.log_prob(batch).mean(), rows, rng)
        return cls(network)

    def log_prob(self, data: Transitions) -> Floats:
        """Return the log density of what each factor did, (B, n)."""
        scaling = self.network.baseline.scaling
        return torch.cat([self.network.log_prob(batch) for batch in chunks(scaling, data)]).numpy()


def implausible(before: Floats, after: Floats) -> Floats:
    """Return 1 for each proposal that a forward model finds far less likely than its parents, −1 for far more, (R,).

    Every factor of a proposal has the next state that it had in its parent; only the factors across the
    cut are others. If these do not matter, the densities of that next state given the parent and given
    the proposal differ by errors of the model alone, one way as often as the other. So the mean is the
    share of proposals that became implausible. A model that knows little sees little: it is a lower bound.

    Args:
        before: (R,) log density of the proposals' next states given the parents.
        after: (R,) the same given the proposals.
    """
    lost = before - after
    return 1.0 * (lost > _FAR_LESS) - 1.0 * (lost < -_FAR_LESS)


def _layers(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, _WIDTH), nn.SiLU(), nn.Linear(_WIDTH, _WIDTH), nn.SiLU())


def _magnified(values: Tensor) -> Tensor:
    """Return values on a scale on which small ones are told apart and large ones are not."""
    return 0.5 * torch.asinh(values / _CLOSE)


def _log_normal(value: Tensor, log_std: Tensor) -> Tensor:
    return -0.5 * (value * torch.exp(-log_std)).square() - log_std - 0.5 * math.log(2.0 * math.pi)
