"""An independent model of the next state given everything, to ask how plausible a proposal is."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Floats
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.motion_alone import MotionAlone, scaled_batches, train
from counterpoint.learn.networks.densities import GaussianMixture
from counterpoint.learn.networks.relations import Relations
from counterpoint.learn.networks.typed import TypedMLP
from counterpoint.learn.training.fitting import seeded
from counterpoint.learn.training.scaling import ScaledBatch

_COMPONENTS, _WIDTH = 3, 64  # Gaussians of a mixture, hidden units
_LOG_STD = (-5.0, 1.0)  # range of the logarithm of standard deviations
_FAR_LESS = 5.0  # nats


class ForwardNetwork(nn.Module):
    """The change of each factor as a mixture: what it does by itself, corrected by messages of all others."""

    def __init__(self, baseline: MotionAlone) -> None:
        super().__init__()
        self.baseline = baseline  # no module itself, so it is not trained further
        self.relations = Relations(baseline.factors, baseline.scaling)
        nodes = self.relations.nodes
        outputs = _COMPONENTS * (1 + 2 * nodes.width)
        self.message = TypedMLP(nodes.pair_kind.tolist(), [self.relations.width, _WIDTH, _WIDTH])
        self.head = TypedMLP(nodes.kind[: nodes.n].tolist(), [2 * nodes.width + _WIDTH, _WIDTH, _WIDTH, outputs])

    def log_prob(self, batch: ScaledBatch) -> Tensor:
        """Return the log density of each target's change, (B, n)."""
        nodes = self.relations.nodes
        with torch.no_grad():
            alone = self.baseline.network(batch)
        messages = torch.relu(self.message(self.relations(batch)))  # (B, P, width), target by target
        received = messages.reshape(len(batch), nodes.n, nodes.count - 1, _WIDTH).sum(dim=2)
        tokens, own = nodes.see(batch).tokens[:, : nodes.n], alone
        out = self.head(torch.cat([tokens, own, received], dim=-1))
        weight, rest = out.split([_COMPONENTS, out.shape[-1] - _COMPONENTS], dim=-1)
        mean, log_std = rest.unflatten(-1, (2, _COMPONENTS, -1)).unbind(dim=-3)  # (B, n, components, W)
        found = GaussianMixture(weight.log_softmax(dim=-1), own.unsqueeze(-2) + mean, (log_std - 1.0).clamp(*_LOG_STD))
        return found.log_prob(nodes.packing.pack_state(batch.target("change")), nodes.real)


@dataclass(frozen=True, eq=False)
class Forward:
    """A fitted forward model."""

    network: ForwardNetwork

    @classmethod
    def fit(cls, baseline: MotionAlone, data: Transitions, rng: np.random.Generator) -> "Forward":
        """Fit to transitions, on top of what each factor does by itself."""
        with seeded(rng):
            network = ForwardNetwork(baseline)
        rows = baseline.scaling.batch(data.state, data.action, data.next_state)
        network.relations.observe(rows)
        train(network, lambda batch, _: -network.log_prob(batch).mean(), rows, rng)
        return cls(network)

    def log_prob(self, data: Transitions) -> Floats:
        """Return the log density of what each factor did, (B, n)."""
        scaling = self.network.baseline.scaling
        return torch.cat([self.network.log_prob(batch) for batch in scaled_batches(scaling, data)]).numpy()


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
