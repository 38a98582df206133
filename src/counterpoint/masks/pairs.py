"""Pairs of factors, and how the two lie to each other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization

MOST_DIFFERENCES = 40  # of columns of two factors that are not known to be anywhere


@dataclass(frozen=True)
class Kind:
    """The pairs of nodes whose types are the same, so that what is learned of one holds for the others."""

    types: tuple[str, str]
    pairs: tuple[tuple[int, int], ...]  # source and target, or any order where both are alike
    labels: tuple[str, ...]  # what the features are, without the last two, which say which pair it is


@dataclass(frozen=True)
class FactorPairs:
    """The pairs of a factorisation: every node with every other state factor.

    The features of a pair are the position of the source relative to the target, the distance, and the
    remaining columns of both. Where positions are not known, they are the columns of both and, if these
    are few, all differences between them. The last two are the numbers of both, since factors of one type
    need not do the same.

    Attributes:
        factors: how columns split into factors.
        both_ways: whether a pair of state factors comes once for each direction, or once at all.
    """

    factors: Factorization
    both_ways: bool = True

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of pairs, by the types of both."""
        names, n = self.factors.names, self.factors.n
        context = self.factors.nodes(*self.factors.context)
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for source in range(len(names)):
            for target in range(n):
                if source == target or context[source] or context[target]:
                    continue
                if not self.both_ways and source < n and source > target:
                    continue
                types = self.factors.types[names[source]], self.factors.types[names[target]]
                found.setdefault(types, []).append((source, target))
        return tuple(Kind(types, tuple(own), self._labels(*own[0])) for types, own in found.items())

    def features(self, kind: Kind, source: Array, target: Array) -> Iterator[Floats]:
        """Yield the features of each pair of a kind, (B, F), the last two say which pair it is.

        So what holds for all pairs of a kind is learned from all of them, and a rope that ties one puck to the
        agent, and not the other, is found, too.

        Args:
            kind: which pairs.
            source: (B, S + A) the rows that the sources are taken from, states beside actions.
            target: (B, S + A) those of the targets; the same rows, unless factors are glued together.
        """
        for i, j in kind.pairs:
            which = np.broadcast_to(np.array([i, j], np.float64), (len(target), 2))
            yield np.concatenate([self.pair(source, target, i, j), which], axis=1)

    def pair(self, source: Array, target: Array, i: int, j: int) -> Floats:
        """Return the features of any two nodes, without the last two, (B, F)."""
        there, here = self.own(i), self.own(j)
        if not self._placed(i, j):
            one, two = source[:, there], target[:, here]
            parts = [one, two]
            if len(there) * len(here) <= MOST_DIFFERENCES:
                parts.append((one[:, :, None] - two[:, None]).reshape(len(one), len(there) * len(here)))
            return np.concatenate(parts, axis=1).astype(np.float64)
        offset = self.position(source, i) - self.position(target, j)
        distance = np.sqrt((offset * offset).sum(axis=1, keepdims=True))
        return np.concatenate([offset, distance, source[:, self.rest(i)], target[:, self.rest(j)]], axis=1)

    def _labels(self, i: int, j: int) -> tuple[str, ...]:
        names = self.factors.names
        if not self._placed(i, j):
            one = [f"{names[i]}[{k}]" for k in range(len(self.own(i)))]
            two = [f"{names[j]}[{k}]" for k in range(len(self.own(j)))]
            both = [f"{a} - {b}" for a in one for b in two] if len(one) * len(two) <= MOST_DIFFERENCES else []
            return (*one, *two, *both)
        axes = len(self.factors.positions[names[i]].columns)
        offsets = [f"offset {k}" for k in range(axes)]
        rest = [f"{names[node]}[{self.own(node).index(c)}]" for node in (i, j) for c in self.rest(node)]
        return (*offsets, "distance", *rest)

    def _placed(self, i: int, j: int) -> bool:
        return all(self.factors.names[node] in self.factors.positions for node in (i, j))

    def own(self, node: int) -> list[int]:
        """The columns of a node, of states beside actions."""
        return list(columns_of(self.factors, node))

    def rest(self, node: int) -> list[int]:
        """The columns of a node that do not say where it is."""
        shift = 0 if node < self.factors.n else self.factors.state_width
        place = {shift + column for column in self.factors.positions[self.factors.names[node]].columns}
        return [column for column in self.own(node) if column not in place]

    def position(self, rows: Array, node: int) -> Floats:
        """Return where a node is that has a position, (B, axes)."""
        values = rows[:, : self.factors.state_width] if node < self.factors.n else rows[:, self.factors.state_width :]
        return self.factors.positions[self.factors.names[node]].of(values.astype(np.float64))


def kinds_of_tau(factors: Factorization, tau: Floats) -> dict[str, float]:
    """Return thresholds for each edge, (N, n), by kind of edge: "source type > target type"."""
    kinds = FactorPairs(factors).kinds
    return {" > ".join(kind.types): float(tau[kind.pairs[0]]) for kind in kinds}


def tau_of_kinds(factors: Factorization, table: Mapping[str, float]) -> Floats:
    """Return a threshold for each edge, (N, n), given one for each kind of edge."""
    kinds = {" > ".join(kind.types): kind for kind in FactorPairs(factors).kinds}
    if set(kinds) != set(table):
        raise ValueError(f"tau: expected a number for each of {sorted(kinds)}, got {sorted(table)}.")
    tau = np.full((factors.n + factors.m, factors.n), min(table.values(), default=0.0))
    for name, kind in kinds.items():
        for pair in kind.pairs:
            tau[pair] = table[name]
    return tau


def columns_of(factors: Factorization, node: int) -> tuple[int, ...]:
    """Return the columns of states beside actions that a node owns."""
    name = factors.names[node]
    if node < factors.n:
        return factors.state[name]
    return tuple(factors.state_width + column for column in factors.action[name])


def beside(state: Array, action: Array) -> Array:
    """Return states beside actions, (B, S + A)."""
    return np.concatenate([state, action], axis=1)


def tied(kind: Kind, answers: list[Bools], mask: Bools, n: int) -> None:
    """Draw an edge, both ways, in place, where an answer about a pair is yes."""
    for (i, j), yes in zip(kind.pairs, answers, strict=True):
        mask[:, i, j] |= yes
        if i < n:
            mask[:, j, i] |= yes
