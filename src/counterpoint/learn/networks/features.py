"""What residual attribution sees of a batch: factors in units of their type, where they are, and how they lie.

Factors of one type go through the same network, so their columns are scaled alike, by the moments of
the type. Where the factorisation says which columns are positions, relative features are formed from
them: a network that sees two factors' raw columns learns slowly that what matters is their distance.

Letters, besides those of ``counterpoint.core.arrays``: ``W`` columns of the widest factor, ``X`` axes of
positions (0 if there are none), ``P`` ordered pairs of a node and another one that is a state factor.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Array
from counterpoint.core.factors import Factorization
from counterpoint.learn.networks.typed import numbered
from counterpoint.learn.training.scaling import Moments, ScaledBatch, Scaling
from counterpoint.learn.training.tokens import Tokens

_ABSENT = 1e3  # a distance larger than any real one, of nodes that are nowhere
_TINY = 1e-12


class Seen(NamedTuple):
    """A batch as networks see it."""

    tokens: Tensor  # (B, N, W) columns of each node in units of its type, zero where padded
    places: Tensor  # (B, N, X) where each node is, in units of the spread of all positions


class Nodes:
    """The nodes of a factorisation: how a batch becomes tokens and places, and these become features.

    Attributes:
        n, count: number of state factors, and of nodes.
        width, axes: ``W`` and ``X``.
        real: which columns of a state factor are not padding, (n, W), zeros and ones.
        kind: the type of each node as a number, (N,).
        source, target: the nodes of each pair, (P,).
        pair_kind: the types of a pair as one number, (P,).
    """

    def __init__(self, factors: Factorization, scaling: Scaling) -> None:
        self.n, self.count = factors.n, factors.n + factors.m
        self.packing = Tokens(factors)
        self.width = self.packing.width
        self.real = self.packing.real[: self.n].float()
        self.kind = numbered([factors.types[name] for name in factors.names])
        pairs = [(i, j) for j in range(self.n) for i in range(self.count) if i != j]
        self.source, self.target = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
        self.pair_kind = numbered([(int(self.kind[i]), int(self.kind[j])) for i, j in pairs])
        self.rank = ((self.kind[self.source] == self.kind[self.target]) * (self.target - self.source).sign()).float()
        self._find_units(factors, scaling)

    def _find_units(self, factors: Factorization, scaling: Scaling) -> None:
        """Find the maps from standard scores of columns to those of types, and to places."""
        columns = [*factors.state.values(), *factors.action.values()]
        pooled = scaling.pooled(factors)
        mean, std = _by_node(factors, pooled.state, pooled.action, self.width)
        moved, spread_moved = (each[: self.n] for each in _by_node(factors, pooled.change, pooled.action, self.width))
        self._before = _conversion(_by_node(factors, scaling.state, scaling.action, self.width), (mean, std))
        before = tuple(each[: self.n] for each in _by_node(factors, scaling.change, scaling.action, self.width))
        self._after = _conversion(before, (moved, spread_moved))
        places = [factors.positions.get(name) for name in factors.names]
        self.axes = max((len(place.columns) for place in places if place is not None), default=0)
        self.placed = torch.tensor([place is not None for place in places])
        where, origin = np.zeros((self.count, self.width, self.axes)), np.zeros((self.count, self.axes))
        for node, place in enumerate(places):
            if place is not None:
                own = [columns[node].index(column) for column in place.columns]
                where[node, own, range(self.axes)] = place.scale
                origin[node] = place.offset
        centre = np.einsum("nw,nwx->nx", mean, where) + origin  # (N, X)
        spread = np.einsum("nw,nwx->nx", std, where)
        unit = _spread(centre[: self.n], spread[: self.n], self.placed[: self.n].numpy())
        self._where = _floats(where * std[:, :, None] / unit), _floats(centre / unit)
        moves = where[: self.n] / unit
        self._moves = _floats(moves * spread_moved[:, :, None]), _floats(np.einsum("nw,nwx->nx", moved, moves))

    def see(self, batch: ScaledBatch) -> Seen:
        """Return the tokens and places of a batch."""
        scale, shift = self._before
        tokens = self.packing.pack(batch.state, batch.action) * scale + shift
        return Seen(tokens, torch.einsum("bnw,nwx->bnx", tokens, self._where[0]) + self._where[1])

    def change(self, batch: ScaledBatch) -> Tensor:
        """Return by how much each state factor changed, in units of its type's changes, (B, n, W)."""
        scale, shift = self._after
        return self.packing.pack_state(batch.target("change")) * scale + shift

    def ahead(self, places: Tensor, change: Tensor) -> Tensor:
        """Return where each node is after such a change, (B, N, X); action factors stay."""
        moved = torch.einsum("bnw,nwx->bnx", change, self._moves[0]) + self._moves[1]
        return torch.cat([places[:, : self.n] + moved, places[:, self.n :]], dim=1)

    def inputs(self, seen: Seen, visible: Tensor) -> Tensor:
        """Return what a model of each state factor's motion sees, (B, n, inputs).

        That is its own token, those of the nodes that are ``visible`` to it (n, N), and for each visible
        action how it lies to the factor: offset, distance, and by how much it is nearer than its rivals.
        """
        tokens, places = seen
        others = (tokens.unsqueeze(1) * visible.unsqueeze(-1)).flatten(2)
        offset = places[:, self.n :].unsqueeze(1) - places[:, : self.n].unsqueeze(2)  # (B, n, m, X)
        nearer = self.nearer(places)[:, self.n :].transpose(1, 2).unsqueeze(-1)
        lying = torch.cat([offset, _length(offset), nearer], dim=-1)
        shown = visible * self.placed * self.placed[: self.n, None]
        return torch.cat([tokens[:, : self.n], others, (lying * shown[:, self.n :, None]).flatten(2)], dim=2)

    @property
    def input_width(self) -> int:
        """Number of features that ``inputs`` returns."""
        return self.width * (1 + self.count) + (self.count - self.n) * (self.axes + 2)

    def pairs(self, seen: Seen, ahead: Tensor) -> Tensor:
        """Return the features of all pairs, (B, P, features).

        Both tokens; for pairs with positions the offset and distance of the source from the target now,
        from the target ahead, and of both ahead, and by how much the target is nearer to the source than
        its rivals are; and which of two factors of one type comes first.
        """
        (tokens, places), i, j = seen, self.source, self.target
        offsets = [places[:, i] - places[:, j], places[:, i] - ahead[:, j], ahead[:, i] - ahead[:, j]]
        lying = [feature for offset in offsets for feature in (offset, _length(offset))]
        both = (self.placed[i] & self.placed[j]).unsqueeze(-1)
        nearer = self.nearer(places)[:, i, j].unsqueeze(-1)
        rank = self.rank.expand(len(tokens), -1).unsqueeze(-1)
        return torch.cat([tokens[:, i], tokens[:, j], torch.cat(lying, dim=-1) * both, nearer, rank], dim=-1)

    @property
    def pair_width(self) -> int:
        """Number of features that ``pairs`` returns."""
        return 2 * self.width + 3 * (self.axes + 1) + 2

    def nearer(self, places: Tensor) -> Tensor:
        """Return by how much each target is nearer to each node than any other of its type, (B, N, n).

        It is 0 where target or node has no position, or the target has no rival.
        """
        distance = _length(places.unsqueeze(2) - places[:, None, : self.n]).squeeze(-1)
        absent = ~(self.placed[:, None] & self.placed[: self.n]) | torch.eye(self.count, self.n, dtype=torch.bool)
        distance = distance.masked_fill(absent, _ABSENT)
        margin = torch.zeros_like(distance)
        for kind in range(int(self.kind[: self.n].max()) + 1):
            alike = torch.nonzero(self.kind[: self.n] == kind).squeeze(-1)
            if len(alike) > 1:
                part = distance[:, :, alike]
                nearest = part.topk(2, dim=-1, largest=False).values
                rival = torch.where(part <= nearest[..., :1], nearest[..., 1:], nearest[..., :1])
                margin[:, :, alike] = torch.where(torch.maximum(part, rival) < _ABSENT, rival - part, 0.0)
        return margin


def _spread(centre: Array, spread: Array, placed: Array) -> float:
    """Return the standard deviation of all positions together; 1 if there are none."""
    if not placed.any():
        return 1.0
    apart = centre[placed] - centre[placed].mean(axis=0)
    return float(np.sqrt((spread[placed] ** 2 + apart**2).mean() + _TINY))


def _length(offset: Tensor) -> Tensor:
    return (offset.square().sum(dim=-1, keepdim=True) + _TINY).sqrt()


def _floats(array: Array) -> Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def _conversion(own: tuple[Array, ...], common: tuple[Array, ...]) -> tuple[Tensor, Tensor]:
    """Return scale and shift that turn standard scores by the own moments into those by common ones."""
    return _floats(own[1] / common[1]), _floats((own[0] - common[0]) / common[1])


def _by_node(factors: Factorization, state: Moments, action: Moments, width: int) -> tuple[Array, Array]:
    """Return means and standard deviations of the columns of each node, padded by 0 and 1, (N, W) each."""
    mean, std = np.zeros((factors.n + factors.m, width)), np.ones((factors.n + factors.m, width))
    spaces = [(state, own) for own in factors.state.values()] + [(action, own) for own in factors.action.values()]
    for node, (moments, own) in enumerate(spaces):
        mean[node, : len(own)] = np.array(moments.mean)[list(own)]
        std[node, : len(own)] = np.array(moments.std)[list(own)]
    return mean, std
