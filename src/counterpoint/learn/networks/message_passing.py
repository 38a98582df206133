"""Networks that predict every factor and can do without a source.

What a source contributes enters as a summand, so that a prediction without the source is a subtraction
and one more pass through the head. There are two such networks with the same methods. ``MessageNetwork`` has a
message from every source to every target, with weights shared by pairs of the same types: for factors
that are alike or are somewhere. ``TrunkNetwork`` reads all factors at once, for factors that have nothing in
common: every target profits from what was learned for the others.
"""

from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import glu, silu

from counterpoint.core.factors import Factorization
from counterpoint.learn.networks.relations import Relations
from counterpoint.learn.networks.typed import TypedMLP
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.tokens import Tokens


class Contributions(NamedTuple):
    """What the sources contribute. T is n for ``MessageNetwork``, and 1 for ``TrunkNetwork``: one sum for all."""

    total: Tensor  # (T, B, width)
    each: Tensor  # (N, T, B, width)


class MessageNetwork(nn.Module):
    """A message from every source to every target; the target itself is never left out.

    Args:
        factors: how columns split into factors.
        scaling: how they were standardised.
        outputs: number of outputs for each target.
        width: hidden units of a target; messages have half as many.
        deep: whether messages have two hidden layers of the whole width: sharper gates, for a fifth more time.

    Cost: N·n small messages and n heads for each row.
    """

    def __init__(
        self, factors: Factorization, scaling: Scaling, outputs: int, width: int, *, deep: bool = False
    ) -> None:
        super().__init__()
        self.tokens, self.relations = Tokens(factors), Relations(factors, scaling)
        nodes = self.relations.nodes
        kinds, pairs = nodes.kind[: nodes.n].tolist(), nodes.pair_kind.tolist()
        self.own = TypedMLP(kinds, [nodes.width, width])
        hidden = [width, width] if deep else [width // 2]
        self.message = TypedMLP(pairs, [self.relations.width, *hidden, width], activation=silu)
        self.layers = nn.ModuleList([TypedMLP(kinds, [width, width]) for _ in range(2)])
        self.last = TypedMLP(kinds, [width, outputs])

    def encode(self, batch: ScaledBatch) -> Contributions:
        """Return what each source tells each target."""
        nodes, (own, messages) = self.relations.nodes, self._told(batch)
        each = messages.new_zeros(nodes.count, *own.shape).index_put((nodes.source, nodes.target), messages)
        return Contributions(own + each.sum(0), each)

    def total(self, batch: ScaledBatch) -> Tensor:
        """Return the sum of what all sources tell each target, (n, B, width)."""
        own, messages = self._told(batch)
        return own + messages.reshape(len(own), -1, *own.shape[1:]).sum(1)  # pairs are in the order of targets

    def _told(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        """Return what each target knows of itself, (n, B, width), and what it is told by others, (P, B, width)."""
        own = self.relations.nodes.see(batch).tokens[:, : self.relations.nodes.n]
        return self.own.slots(own.transpose(0, 1)), self.message.slots(self.relations(batch).transpose(0, 1))

    def head(self, total: Tensor) -> Tensor:
        """Return the outputs for each target, (n, B, outputs)."""
        hidden = silu(total)
        for layer in self.layers:
            hidden = hidden + silu(layer.slots(hidden))  # type: ignore[operator]
        return self.last.slots(hidden)

    def observe(self, batch: ScaledBatch) -> None:
        """Look at the training data once, before training."""
        self.relations.observe(batch)


class TrunkNetwork(nn.Module):
    """One network of all factors, with a readout for each target. Arguments as for ``MessageNetwork``.

    It sees the squares of columns too, and its units are gated: "if this is far out, then add that" is one
    unit of it. Without a source, a prediction of that very factor is one without the factor itself.

    Cost: one pass for each row.
    """

    def __init__(self, factors: Factorization, scaling: Scaling, outputs: int, width: int) -> None:  # noqa: ARG002
        super().__init__()
        self.tokens, self.n = Tokens(factors), factors.n
        self.first = TypedMLP(factors.names, [2 * self.tokens.width, 2 * width])
        self.layers = nn.ModuleList([nn.Linear(width, 2 * width) for _ in range(2)])
        self.last = nn.Linear(width, self.n * outputs)

    def encode(self, batch: ScaledBatch) -> Contributions:
        """Return what each source contributes to the first hidden layer."""
        tokens = self.tokens.pack(batch.state, batch.action).transpose(0, 1)
        each = self.first.slots(torch.cat([tokens, tokens.square()], dim=-1)).unsqueeze(1)
        return Contributions(each.sum(0), each)

    def total(self, batch: ScaledBatch) -> Tensor:
        """Return the sum of what all sources contribute, (1, B, width)."""
        return self.encode(batch).total

    def head(self, total: Tensor) -> Tensor:
        """Return the outputs for each target, (n, B, outputs)."""
        hidden = glu(total.squeeze(0))
        for layer in self.layers:
            hidden = hidden + glu(layer(hidden))
        return torch.stack(torch.chunk(self.last(hidden), self.n, dim=-1))

    def observe(self, batch: ScaledBatch) -> None:
        """Do nothing: this network needs no look at the data before training."""


Network: TypeAlias = MessageNetwork | TrunkNetwork


def without(parts: Contributions, source: Tensor) -> Tensor:
    """Return the sum that is left when row b does without source ``source[b]``, (T, B, width)."""
    rows = torch.arange(len(source))
    return parts.total - parts.each[source, :, rows].transpose(0, 1)


def network_for(factors: Factorization, scaling: Scaling, outputs: int, width: int, *, deep: bool = False) -> Network:
    """Return ``MessageNetwork`` if some factors are somewhere or alike, otherwise a ``TrunkNetwork``."""
    alike = len(set(factors.types.values())) < len(factors.names)
    if alike or len(factors.positions) > 1:
        return MessageNetwork(factors, scaling, outputs, width, deep=deep)
    return TrunkNetwork(factors, scaling, outputs, width)
