"""Windows: a fixed number of consecutive rows of one episode, recombined together.

The engine treats a window like a single row: its graph is the overlay of its rows' graphs, and a swap between
two windows exchanges the same nodes at every step. Windows of length 1 are the rows themselves.
"""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Ints
from counterpoint.core.kernels import kernel, link
from counterpoint.core.threads import run
from counterpoint.core.transitions import Transitions


@dataclass(frozen=True, eq=False)
class Windows:
    """All windows of a length in some data, numbered from 0."""

    length: int
    order: Ints  # (T,) rows sorted by episode and step
    starts: Ints  # (W,) where in the order each window begins

    @classmethod
    def of(cls, data: Transitions, length: int) -> "Windows":
        """Find all windows. Overlapping ones all count, and none reaches across a gap in the steps."""
        rows = np.arange(len(data))
        if length == 1:
            return cls(1, rows, rows)
        if data.episode is None:
            raise ValueError(
                f"window: {length} rows that follow each other are asked for, and the data does not say which rows "
                "form episodes. Give Transitions(episode=..., step=...)."
            )
        order = np.argsort(data.episode, kind="stable") if data.step is None else np.lexsort((data.step, data.episode))
        episode = data.episode[order]
        broken = episode[1:] != episode[:-1]
        if data.step is not None:
            broken |= data.step[order][1:] != data.step[order][:-1] + 1
        run = np.concatenate([[0], np.cumsum(broken)])[: len(rows)].astype(np.int64)
        starts = rows[: max(0, len(rows) - length + 1)]
        starts = starts[run[starts] == run[starts + length - 1]]
        if not len(starts):
            longest = int(np.bincount(run).max(initial=0))
            raise ValueError(
                f"window: no episode has {length} rows that follow each other; the longest has {longest}. "
                "Choose a shorter window, or record longer episodes."
            )
        return cls(length, order, starts)

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, windows: Ints) -> Ints:
        """Return the rows of some windows, (len(windows), length)."""
        if self.length == 1:
            return windows[:, None]
        rows: Ints = self.order[self.starts[windows][:, None] + np.arange(self.length)]
        return rows

    def overlaid(self, windows: Ints, labels: Ints) -> Ints:
        """Return the component labels of the overlaid graphs of each window's rows, from those of all rows."""
        if self.length == 1:
            return np.take(labels, windows, axis=0)
        joint = np.empty((len(windows), labels.shape[1]), labels.dtype)
        run(_join, len(windows), self.starts[windows], self.order, self.length, labels, joint)
        return joint

    def groups(self, keys: Ints) -> Ints:
        """Number windows so that those whose rows have equal keys, step by step, get equal numbers, (W,)."""
        if self.length == 1:
            return keys
        if not keys.any():
            return keys[self.starts]
        found = np.zeros(len(self), np.int64)
        for step in range(self.length):
            joint = found * (keys.max() + 1) + keys[self.order[self.starts + step]]
            found = np.unique(joint, return_inverse=True)[1]
        return found


def numbered(made: Transitions, length: int, first: int) -> Transitions:
    """Give the rows of windows of a length episode numbers, counted from ``first``, and step numbers."""
    rows = np.arange(len(made))
    return made.replace(episode=first + rows // length, step=rows % length)


def beyond(episode: Array | None) -> int:
    """Return the smallest episode number that is larger than all that are taken."""
    return 0 if episode is None or not len(episode) else int(episode.max()) + 1


@kernel
def _join(start: int, stop: int, starts: Ints, order: Ints, length: int, labels: Ints, joint: Ints) -> None:
    """Overlay the graphs of the rows of each window, given by their labels."""
    for w in range(start, stop):
        parent = joint[w]
        parent[:] = labels[order[starts[w]]]
        for step in range(1, length):
            row = labels[order[starts[w] + step]]
            for i in range(len(parent)):
                if row[i] != i and parent[i] != parent[row[i]]:
                    link(parent, i, row[i])
        for i in range(len(parent)):
            parent[i] = parent[parent[i]]
