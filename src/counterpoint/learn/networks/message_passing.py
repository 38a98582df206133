"""Networks that predict every factor and can do without a source.

What a source contributes enters as a summand, so that a prediction without the source is a subtraction
and one more pass through the head. There are two such networks with the same methods. ``Messages`` has a
message from every source to every target, with weights shared by pairs of the same types: for factors
that are alike or are somewhere. ``Trunk`` reads all factors at once, for factors that have nothing in
common: every target profits from what was learned for the others.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import glu, silu

from counterpoint.core.factors import Factorization
from counterpoint.learn.networks.relations import Relations
from counterpoint.learn.training.inputs import Batch, Scaling, Tokens


class Parts(NamedTuple):
    """What the sources contribute. T is n for ``Messages``, and 1 for ``Trunk``, which has one sum for all."""

    total: Tensor  # (T, B, width)
    each: Tensor  # (N, T, B, width)


class Messages(nn.Module):
    """A message from every source to every target; the target itself is never left out.

    Args:
        factors: how columns split into factors.
        scaling: how they were standardised.
        outputs: number of outputs for each target.
        width: hidden units of a target; messages have half as many.

    Cost: N·n small messages and n heads for each row.
    """

    def __init__(self, factors: Factorization, scaling: Scaling, outputs: int, width: int) -> None:
        super().__init__()
        self.tokens, self.relations = Tokens(factors), Relations(factors, scaling)
        nodes = self.relations.nodes
        kinds, pairs = nodes.kind[: nodes.n].tolist(), nodes.pair_kind.tolist()
        self.own = Typed(kinds, nodes.width, width)
        self.first, self.second = Typed(pairs, self.relations.width, width // 2), Typed(pairs, width // 2, width)
        self.layers = nn.ModuleList([Typed(kinds, width, width) for _ in range(2)])
        self.last = Typed(kinds, width, outputs)

    def encode(self, batch: Batch) -> Parts:
        """Return what each source tells each target."""
        nodes, (own, messages) = self.relations.nodes, self._told(batch)
        each = messages.new_zeros(nodes.count, *own.shape).index_put((nodes.source, nodes.target), messages)
        return Parts(own + each.sum(0), each)

    def total(self, batch: Batch) -> Tensor:
        """Return the sum of what all sources tell each target, (n, B, width)."""
        own, messages = self._told(batch)
        return own + messages.reshape(len(own), -1, *own.shape[1:]).sum(1)  # pairs are in the order of targets

    def _told(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return what each target knows of itself, (n, B, width), and what it is told by others, (P, B, width)."""
        own = self.own(self.relations.nodes.see(batch).tokens[:, : self.relations.nodes.n].transpose(0, 1))
        return own, self.second(silu(self.first(self.relations(batch).transpose(0, 1))))

    def head(self, total: Tensor) -> Tensor:
        """Return the outputs for each target, (n, B, outputs)."""
        hidden = silu(total)
        for layer in self.layers:
            hidden = hidden + silu(layer(hidden))
        outputs: Tensor = self.last(hidden)
        return outputs

    def observe(self, batch: Batch) -> None:
        """Look at the training data once, before training."""
        self.relations.observe(batch)


class Trunk(nn.Module):
    """One network of all factors, with a readout for each target. Arguments as for ``Messages``.

    It sees the squares of columns too, and its units are gated: "if this is far out, then add that" is one
    unit of it. Without a source, a prediction of that very factor is one without the factor itself.

    Cost: one pass for each row.
    """

    def __init__(self, factors: Factorization, scaling: Scaling, outputs: int, width: int) -> None:  # noqa: ARG002
        super().__init__()
        self.tokens, self.n = Tokens(factors), factors.n
        self.first = Typed(factors.names, 2 * self.tokens.width, 2 * width)
        self.layers = nn.ModuleList([nn.Linear(width, 2 * width) for _ in range(2)])
        self.last = nn.Linear(width, self.n * outputs)

    def encode(self, batch: Batch) -> Parts:
        """Return what each source contributes to the first hidden layer."""
        tokens = self.tokens.pack(batch.state, batch.action).transpose(0, 1)
        each = self.first(torch.cat([tokens, tokens.square()], dim=-1)).unsqueeze(1)
        return Parts(each.sum(0), each)

    def total(self, batch: Batch) -> Tensor:
        """Return the sum of what all sources contribute, (1, B, width)."""
        return self.encode(batch).total

    def head(self, total: Tensor) -> Tensor:
        """Return the outputs for each target, (n, B, outputs)."""
        hidden = glu(total.squeeze(0))
        for layer in self.layers:
            hidden = hidden + glu(layer(hidden))
        return torch.stack(torch.chunk(self.last(hidden), self.n, dim=-1))

    def observe(self, batch: Batch) -> None:
        """Do nothing: this network needs no look at the data before training."""


Network: TypeAlias = Messages | Trunk


class Typed(nn.Module):
    """A linear layer with weights of its own for each kind of item."""

    def __init__(self, kinds: Sequence[object], inputs: int, outputs: int) -> None:
        super().__init__()
        distinct = list(dict.fromkeys(kinds))
        self.index = torch.tensor([distinct.index(kind) for kind in kinds])
        bound = 1.0 / math.sqrt(max(1, inputs))
        self.weight = nn.Parameter(torch.empty(len(distinct), inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(len(distinct), 1, outputs).uniform_(-bound, bound))

    def forward(self, items: Tensor) -> Tensor:
        """Map (items, B, inputs) to (items, B, outputs)."""
        return torch.baddbmm(self.bias[self.index], items, self.weight[self.index])


def without(parts: Parts, source: Tensor) -> Tensor:
    """Return the sum that is left when row b does without source ``source[b]``, (T, B, width)."""
    rows = torch.arange(len(source))
    return parts.total - parts.each[source, :, rows].transpose(0, 1)


def network_for(factors: Factorization, scaling: Scaling, outputs: int, width: int) -> Network:
    """Return ``Messages`` if some factors are somewhere or alike, otherwise a ``Trunk``."""
    alike = len(set(factors.types.values())) < len(factors.names)
    kind = Messages if alike or len(factors.positions) > 1 else Trunk
    return kind(factors, scaling, outputs, width)
