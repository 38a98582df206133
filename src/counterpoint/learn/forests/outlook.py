"""How factors lie to each other, now and after the step that each would make by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.masks.pairs import FactorPairs

_SHORTEST = 1e-12  # squared way


@dataclass(frozen=True, eq=False)
class Placed:
    """Rows, states beside actions, and where the factors that have a position are in them."""

    values: Array  # (B, S + A)
    now: Mapping[int, Floats]  # by node, (B, axes) each
    ahead: Mapping[int, Floats]  # where it would be after the step

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Ints) -> "Placed":
        now, ahead = ({node: each[rows] for node, each in where.items()} for where in (self.now, self.ahead))
        return Placed(self.values[rows], now, ahead)

    @cached_property
    def gaps(self) -> tuple[dict[tuple[int, int], Floats], ...]:
        """Distances between nodes of the same row, now and after the step, (B,) each, as they were asked for."""
        return {}, {}


def _gap(source: Placed, i: int, target: Placed, j: int, then: int) -> Floats:
    """Return the distance of two nodes, now or after the step, (B,)."""
    here, there = (rows.ahead if then else rows.now for rows in (source, target))
    if source is not target:
        return _length(here[i] - there[j])
    known, pair = source.gaps[then], (min(i, j), max(i, j))
    if pair not in known:
        known[pair] = _length(here[i] - there[j])
    return known[pair]


def _length(to: Floats) -> Floats:
    """Return the length of each row, (B,)."""
    return np.asarray(np.sqrt((to * to).sum(axis=1)))


@dataclass(frozen=True, eq=False)
class Outlook:
    """What can be seen of a pair: features of both, and how near they come to each other in the step.

    Attributes:
        factors: how columns split into factors.
        drift: (S + A + 1, S + A) what is added to a row, given the row and a one: the straight laws of all factors.
    """

    factors: Factorization
    drift: Floats

    @classmethod
    def of(cls, alone: OwnCourses) -> "Outlook":
        """Take over the straight laws of all factors; those with hidden velocities stay where they are."""
        width = alone.factors.state_width + alone.factors.action_width
        drift = np.zeros((width + 1, width))
        for course in alone.courses:
            if not course.still and not course.lagged:
                slope = course.scale * course.law[:-1] / course.spread[:, None]
                drift[np.ix_(course.inputs, course.own)] = slope
                drift[-1, list(course.own)] = course.scale * course.law[-1] - course.centre @ slope
        return cls(alone.factors, drift)

    @cached_property
    def pairs(self) -> FactorPairs:
        """The pairs of the factorisation."""
        return FactorPairs(self.factors)

    def kinds(self, asked: Bools) -> list[tuple[tuple[int, int], ...]]:
        """Return the pairs of each kind that are asked for, (N, n); kinds without any are left out."""
        kept = [tuple(pair for pair in kind.pairs if asked[pair]) for kind in self.pairs.kinds]
        return [pairs for pairs in kept if pairs]

    def placed(self, values: Array) -> Placed:
        """Find out where everything is in some rows, and where it goes."""
        ahead = values + (values @ self.drift[:-1] + self.drift[-1])
        nodes = [node for node, name in enumerate(self.factors.names) if name in self.factors.positions]
        now, then = ({node: self.pairs.position(rows, node) for node in nodes} for rows in (values, ahead))
        return Placed(values, now, then)

    def features(self, pairs: Sequence[tuple[int, int]], source: Placed, target: Placed) -> list[Floats]:
        """Return the features of each pair of nodes, (B, F)."""
        return [self.pair(i, j, source, target) for i, j in pairs]

    def pair(self, i: int, j: int, source: Placed, target: Placed) -> Floats:
        """Return the features of one pair of nodes, (B, F).

        Those of both come first, then which pair it is, then how much nearer they are to each other than to rivals.

        Args:
            i: the source.
            j: the target.
            source: the rows that the source is taken from.
            target: the rows that the target is taken from, and all rivals.
        """
        plain = self.pairs.pair(source.values, target.values, i, j)
        which = np.broadcast_to(np.array([i, j], np.float64), (len(target), 2))
        if i not in source.now or j not in target.now:
            return np.concatenate([plain, which], axis=1)
        now, then = source.now[i] - target.now[j], source.ahead[i] - target.ahead[j]
        way = then - now
        when = np.clip(-(now * way).sum(axis=1) / np.maximum((way * way).sum(axis=1), _SHORTEST), 0.0, 1.0)
        met = source.now[i] - target.ahead[j], source.ahead[i] - target.now[j]  # if only one of the two moves
        apart = [_length(to)[:, None] for to in (now + when[:, None] * way, then, *met)]
        return np.concatenate([then, *apart, plain, which, *self._before_rivals(i, j, source, target)], axis=1)

    def _before_rivals(self, i: int, j: int, source: Placed, target: Placed) -> list[Floats]:
        """Return the distance of a pair less that to the nearest rival of either, now and after the step, (B, 1) each.

        A rival of the target is another factor of its type, which the source may be nearer to; and so for the source.
        """
        found = []
        for then in (0, 1):
            apart = _gap(source, i, target, j, then)
            of_target = [_gap(source, i, target, k, then) for k in self._alike[j] if k != i]
            of_source = [_gap(target, k, target, j, then) for k in self._alike[i] if k != j]
            found += [np.maximum(apart - np.min(each, axis=0), 0.0)[:, None] for each in (of_target, of_source) if each]
        return found

    @cached_property
    def _alike(self) -> tuple[tuple[int, ...], ...]:
        """For each node the others of its type that have a position."""
        names, types, placed = self.factors.names, self.factors.types, self.factors.positions
        return tuple(
            tuple(k for k, other in enumerate(names) if k != j and other in placed and types[other] == types[name])
            for j, name in enumerate(names)
        )
