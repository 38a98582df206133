"""How factors lie to each other, now and after the step that each would make by itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.threads import run
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.learn.forests.kernels import NodeTable, RowArrays, describe_rows
from counterpoint.masks.pairs import MOST_DIFFERENCES, FactorPairs


@dataclass(frozen=True, eq=False)
class Placed:
    """Rows, states beside actions, and where the factors that have a position are in them."""

    values: Array  # (B, S + A)
    nodes: tuple[int, ...]  # that have a position
    here: Floats  # (B, N, axes) where they are; 0 for all others
    there: Floats  # where they would be after the step

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Ints) -> "Placed":
        return Placed(self.values[rows], self.nodes, self.here[rows], self.there[rows])

    @cached_property
    def now(self) -> Mapping[int, Floats]:
        """Where each node is that has a position, (B, axes) each."""
        return {node: self.here[:, node] for node in self.nodes}

    @cached_property
    def ahead(self) -> Mapping[int, Floats]:
        """Where each of these would be after the step."""
        return {node: self.there[:, node] for node in self.nodes}

    @property
    def arrays(self) -> RowArrays:
        """The same for compiled loops, which know two kinds of numbers."""
        plain = self.values if self.values.dtype in (np.float32, np.float64) else self.values.astype(np.float64)
        return np.ascontiguousarray(plain), self.here, self.there


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
        nodes = tuple(np.flatnonzero(self.plan[0]).tolist())
        return Placed(values, nodes, self._points(values), self._points(ahead))

    def _points(self, rows: Array) -> Floats:
        """Return where all nodes are, (B, N, axes)."""
        axes = max((len(each.columns) for each in self.factors.positions.values()), default=1)
        points = np.zeros((len(rows), len(self.factors.names), axes))
        for node in np.flatnonzero(self.plan[0]).tolist():
            points[:, node] = self.pairs.position(rows, node)
        return points

    @cached_property
    def plan(self) -> NodeTable:
        """Which columns nodes have, and which others are like them, for compiled loops."""
        names, types, placed = self.factors.names, self.factors.types, self.factors.positions
        somewhere = np.array([name in placed for name in names])
        rest = [self.pairs.rest(j) if somewhere[j] else [] for j in range(len(names))]
        alike = [
            [k for k, other in enumerate(names) if k != j and somewhere[k] and types[other] == types[name]]
            for j, name in enumerate(names)
        ]
        own = [self.pairs.own(j) for j in range(len(names))]
        return somewhere, *_in_line(own), *_in_line(rest), *_in_line(alike)

    def width(self, i: int, j: int) -> int:
        """Return how many features a pair has."""
        somewhere, own_at, _, rest_at, _, _, _ = self.plan
        if not (somewhere[i] and somewhere[j]):
            one, two = (int(own_at[node + 1] - own_at[node]) for node in (i, j))
            return one + two + 2 + (one * two if one * two <= MOST_DIFFERENCES else 0)
        rivals = bool(self._rivals(i, j)) + bool(self._rivals(j, i))
        rest = sum(int(rest_at[node + 1] - rest_at[node]) for node in (i, j))
        return 2 * len(self.factors.positions[self.factors.names[i]].columns) + 5 + rest + 2 + 2 * rivals

    def features(self, pairs: Sequence[tuple[int, int]], source: Placed, target: Placed) -> list[Floats]:
        """Return the features of each pair of nodes, (B, F)."""
        return [self.pair(i, j, source, target) for i, j in pairs]

    def pair(self, i: int, j: int, source: Placed, target: Placed) -> Floats:
        """Return the features of one pair of nodes, (B, F).

        With positions these are: how the source lies to the target after the step, the distances when they are
        nearest, after the step, and if only one of the two moves; the same before the step, and the other columns of
        both; which pair it is; and, now and after the step, the distance less that to the nearest rival of the target,
        and of the source. A rival of the target is another factor of its type, which the source may be nearer to.
        Without positions they are the columns of both and the differences between them, and which pair it is.

        Args:
            i: the source.
            j: the target.
            source: the rows that the source is taken from.
            target: the rows that the target is taken from, and all rivals.
        """
        out = np.empty((len(target), self.width(i, j)))
        near = _couples(self._rivals(i, j)), _couples(self._rivals(j, i))
        run(describe_rows, len(target), source.arrays, target.arrays, self.plan, near, i, j, out)
        return out

    def near(self, pairs: Iterable[tuple[int, int]]) -> Ints:
        """Return the pairs of nodes whose distances must be known to tell rivals of these, (G, 2), each once."""
        found = {(min(both), max(both)) for i, j in pairs for both in (*self._rivals(i, j), *self._rivals(j, i))}
        return _couples(sorted(found))

    def _rivals(self, one: int, other: int) -> list[tuple[int, int]]:
        """Return a node with each rival of another one."""
        somewhere, _, _, _, _, at, alike = self.plan
        if not (somewhere[one] and somewhere[other]):
            return []
        return [(one, k) for k in alike[at[other] : at[other + 1]].tolist() if k != one]


def _couples(nodes: list[tuple[int, int]]) -> Ints:
    return np.array(nodes, np.int64).reshape(-1, 2)


def _in_line(lists: list[list[int]]) -> tuple[Ints, Ints]:
    """Return lists one after another, and where each begins, and the last ends."""
    places = np.cumsum([0, *map(len, lists)])
    return places, np.array([each for some in lists for each in some], np.int64)
