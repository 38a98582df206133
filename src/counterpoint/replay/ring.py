"""A ring of transitions: the newest ones, up to a capacity."""

import numpy as np

from counterpoint.core.arrays import Ints
from counterpoint.core.require import require_count
from counterpoint.core.transitions import Transitions

UNKEPT = ("episode", "step")  # a counterfactual row is part of no episode


class Ring:
    """The newest transitions, up to a capacity. Memory grows as it fills, to twice what it holds at most."""

    def __init__(self, capacity: int) -> None:
        require_count("capacity", capacity)
        self.capacity, self.size, self.position = int(capacity), 0, 0
        self._rows: Transitions | None = None

    def __len__(self) -> int:
        return self.size

    def extend(self, rows: Transitions) -> None:
        """Append rows; the first ones to be appended decide columns and dtypes."""
        rows = rows[-self.capacity :]
        kept = self._room(rows)
        index = (self.position + np.arange(len(rows))) % self.capacity
        for name, column in kept.columns():
            column[index] = getattr(rows, name)
        self.size = min(self.size + len(rows), self.capacity)
        self.position = (self.position + len(rows)) % self.capacity

    def take(self, index: Ints) -> Transitions:
        """Return the rows at these places, in no order of age."""
        return self._held()[index]

    def transitions(self) -> Transitions:
        """Return a copy of all rows, oldest first."""
        oldest = self.position if self.size == self.capacity else 0
        return self.take((oldest + np.arange(self.size)) % self.capacity)

    def _held(self) -> Transitions:
        if self._rows is None:
            raise ValueError("the ring holds no rows yet; extend it first.")
        return self._rows

    def _room(self, rows: Transitions) -> Transitions:
        """Return the columns, long enough for ``rows`` more."""
        needed = min(self.capacity, self.size + len(rows))
        if self._rows is None or len(self._rows) < needed:
            like = self._rows or rows.replace(**dict.fromkeys(UNKEPT))
            grown = Transitions.empty_like(like, min(self.capacity, max(needed, 2 * self.size)))
            for name, column in grown.columns() if self._rows else ():
                column[: self.size] = getattr(self._rows, name)[: self.size]
            self._rows = grown
        return self._rows
