"""Donors from another shard: rows that stand behind a shard's own, in the same memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.core.windows import beyond
from counterpoint.files.fitting import fitting
from counterpoint.files.recording import FileProblem, Recording
from counterpoint.files.scanning import Scan


@dataclass(frozen=True, eq=False)
class Among:
    """Where a file stands among the shards of a dataset, whose rows are counted through all of them.

    Attributes:
        first: the number of its first row.
        donors: another shard, whose rows are donors too.
        donors_first: the number of that one's first row.
    """

    first: int = 0
    donors: Scan | None = None
    donors_first: int = 0


class Donors:
    """Reads the rows of another shard in so many equal parts, right to where they are needed."""

    def __init__(self, among: Among, factors: Factorization, parts: int, path: str) -> None:
        self._scan, self._factors, self._path = among.donors, factors, path
        self._left = 0 if among.donors is None else among.donors.rows
        self._part = -(-self._left // parts)
        self._pieces: Iterator[Recording] = iter(()) if among.donors is None else among.donors.chunks()
        self._piece: Transitions | None = None

    def behind(self, data: Transitions) -> Transitions:
        """Return some rows with the next part of the donors behind them; episodes of the two stay apart."""
        count = min(self._part, self._left)
        if not count:
            return data
        self._left -= count
        place, both = len(data), Transitions.empty_like(data, len(data) + count)
        _copy(data, both, 0)
        while place < len(both):
            piece = self._piece or self._next(data)
            rows = piece[: len(both) - place]
            self._piece = piece[len(rows) :] if len(rows) < len(piece) else None
            _copy(rows, both, place)
            place += len(rows)
        if both.episode is not None:  # no window reaches from one shard into the other
            others = both.episode[len(data) :]
            others += beyond(data.episode) - others.min()
        return both

    def _next(self, data: Transitions) -> Transitions:
        """Read the next rows, which must have the columns of those they stand behind."""
        rows = fitting(next(self._pieces).transitions, self._factors, self._path)
        rows = rows if data.episode is not None else rows.replace(episode=None, step=None)
        mine, theirs = ({name: (a.dtype, *a.shape[1:]) for name, a in each.columns()} for each in (data, rows))
        if mine != theirs:
            wrong = listed(sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)))
            where = "" if self._scan is None else self._scan.path
            raise FileProblem(f"{where}: {wrong} differ in presence, width or dtype from those of {self._path}.")
        return rows


def _copy(rows: Transitions, room: Transitions, start: int) -> None:
    for name, array in room.columns():
        np.copyto(array[start : start + len(rows)], getattr(rows, name))
