"""What is in a file, in numbers, found in one pass and in bounded memory; NaN is counted, not refused."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.transitions import REQUIRED
from counterpoint.files.foreign import named
from counterpoint.files.recording import FileProblem
from counterpoint.files.scanning import ROWS, Scan

SUMMED = ("state", "action", "reward", "next_state", "noise")


@dataclass(frozen=True, eq=False)
class Span:
    """The values of an array's columns, those that are finite."""

    dtype: str
    low: Floats  # (W,) infinity where no value is finite
    high: Floats  # (W,)
    total: Floats  # (W,)
    bad: Ints  # (W,) how many are NaN or infinite

    def __add__(self, other: "Span") -> "Span":
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Span(self.dtype, low, high, self.total + other.total, self.bad + other.bad)

    @property
    def constant(self) -> Ints:
        """The columns that never vary."""
        return np.flatnonzero(self.low == self.high)


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds.

    Attributes:
        rows: how many transitions.
        spans: what the columns of states, actions, rewards, next states and noise hold.
        terminals: how many transitions are terminal.
        made: how many are counterfactuals.
        episodes: the length of each episode, or None if the file has none.
    """

    rows: int
    spans: dict[str, Span]
    terminals: int
    made: int
    episodes: Ints | None

    @property
    def bad(self) -> int:
        """How many values are NaN or infinite."""
        return sum(int(span.bad.sum()) for span in self.spans.values())


def contents(scan: Scan, progress: Callable[[int], object] | None = None) -> Contents:
    """Look at every row of a file.

    Args:
        scan: the file.
        progress: called with the number of rows seen so far, now and then.

    Raises:
        FileProblem: if it cannot be read, or columns are missing.
    """
    rows = terminals = made = 0
    spans: dict[str, Span] = {}
    runs = _Runs()
    with named(scan.path):
        for columns in scan.columns(ROWS):
            missing = [name for name in REQUIRED if name not in columns]
            if missing:
                raise FileProblem(f"the columns {', '.join(missing)} are missing; the file has {', '.join(columns)}.")
            for name in (name for name in SUMMED if name in columns):
                found = _span(columns[name])
                spans[name] = spans[name] + found if name in spans else found
            rows += len(columns["state"])
            terminals += int(columns["terminated"].sum())
            made += int(columns["swapped"].any(axis=1).sum()) if "swapped" in columns else 0
            runs.push(columns.get("episode"))
            if progress is not None:
                progress(rows)
    return Contents(rows, spans, terminals, made, runs.lengths())


def _span(values: Array) -> Span:
    """Summarise one array; columns are laid out one after another first, which makes the rest quick."""
    across = np.ascontiguousarray(values.reshape(len(values), -1).T)
    with np.errstate(over="ignore", invalid="ignore"):
        total = across.sum(axis=1, dtype=np.float64)
    if across.dtype.kind == "f" and not np.isfinite(total).all():
        good = np.isfinite(across)
        low, high = np.where(good, across, np.inf).min(axis=1), np.where(good, across, -np.inf).max(axis=1)
        sums = np.where(good, across, 0).sum(axis=1, dtype=np.float64)
        return Span(str(values.dtype), low.astype(np.float64), high.astype(np.float64), sums, (~good).sum(axis=1))
    low, high = across.min(axis=1).astype(np.float64), across.max(axis=1).astype(np.float64)
    return Span(str(values.dtype), low, high, total, np.zeros(len(across), np.int64))


class _Runs:
    """Counts the rows of each episode, which may go on in the next chunk."""

    def __init__(self) -> None:
        self._lengths: list[Ints] = []
        self._last: int | None = None

    def push(self, episode: Ints | None) -> None:
        if episode is None or not len(episode):
            return
        edges = np.flatnonzero(np.diff(episode)) + 1
        lengths = np.diff(edges, prepend=0, append=len(episode))
        if self._last == episode[0]:
            self._lengths[-1][-1] += lengths[0]
            lengths = lengths[1:]
        if len(lengths):
            self._lengths.append(lengths)
        self._last = int(episode[-1])

    def lengths(self) -> Ints | None:
        return np.concatenate(self._lengths) if self._lengths else None
