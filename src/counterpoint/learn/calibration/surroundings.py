"""All that can be seen of a target and of the others, as columns that trees can ask about."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.learn.forests.case import asked_of
from counterpoint.learn.forests.outlook import Outlook, Placed
from counterpoint.masks.pairs import beside

_APART = 4  # distances of two that have a position, before the plain one
_AT_ONCE = 50_000  # rows
_MOST_PLACED = 8  # factors whose positions among each other are looked at, for a target that is nowhere


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What can be seen of each target's surroundings."""

    alone: OwnCourses

    @cached_property
    def outlook(self) -> Outlook:
        """How factors lie to each other."""
        return Outlook.of(self.alone)

    @cached_property
    def asked(self) -> Bools:
        """Pairs that may have an edge that comes and goes, (N, n)."""
        return asked_of(self.alone)

    @cached_property
    def targets(self) -> list[int]:
        """Factors on which others may act now and then."""
        return [int(j) for j in np.flatnonzero(self.asked.any(axis=0))]

    @cached_property
    def widest(self) -> int:
        """The largest number of columns of any target."""
        factors = self.alone.factors
        row = self.placed(np.zeros((1, factors.state_width)), np.zeros((1, factors.action_width)))
        nothing = np.zeros((1, 0))
        return max((self.of(j, row, nothing).shape[1] for j in self.targets), default=1)

    def placed(self, state: Array, action: Array) -> Placed:
        """Find out where everything is in some rows."""
        return self.outlook.placed(beside(state, action).astype(np.float64))

    def of(self, target: int, rows: Placed, own: Floats) -> Floats:
        """Return what can be seen, (B, F).

        Args:
            target: whose surroundings.
            rows: where everything is.
            own: (B, I) what is known of the target itself.
        """
        sources = [i for i in range(len(self.asked)) if i != target]
        parts = [own, *(self._source(i, target, rows) for i in sources)]
        if target not in rows.now:
            parts += _among(rows)
        return np.concatenate(parts, axis=1)

    def in_parts(self, target: int, data: Transitions, own: Floats) -> Iterator[Floats]:
        """Yield the same of many rows, some at a time, which bounds memory, (P, F) each."""
        for start in range(0, len(data), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            yield self.of(target, self.placed(data.state[some], data.action[some]), own[some])

    def _source(self, source: int, target: int, rows: Placed) -> Floats:
        """Return what can be seen of a source and how it lies to the target, without what the target is itself."""
        whole, pairs = self.outlook.pair(source, target, rows, rows), self.outlook.pairs
        own, other = pairs.own(source), pairs.own(target)
        first, left_out = len(own), len(other)
        if source in rows.now and target in rows.now:
            axes = rows.now[target].shape[1]
            first, left_out = 2 * axes + _APART + 1 + len(own) - axes, len(other) - axes
        return np.delete(whole, np.s_[first : first + left_out], axis=1)


def _among(rows: Placed) -> list[Floats]:
    """Return how all that have a position lie to each other, offset and distance of each two."""
    apart = [rows.now[a] - rows.now[b] for a, b in combinations(list(rows.now)[:_MOST_PLACED], 2)]
    return [np.concatenate([each, np.sqrt((each * each).sum(axis=1, keepdims=True))], axis=1) for each in apart]
