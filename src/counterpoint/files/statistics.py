"""Statistics of columns, episode by episode and over all rows, while the rows go by."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
NAMES = ("min", "max", "mean", "std", "count", *QUANTILES)
MOST_ROWS = 100_000  # that the quantiles over all rows are taken from


def by_episode(values: Array, lengths: Ints) -> dict[str, Array]:
    """Return the statistics of each episode: (E, width) for each name, and (E, 1) counts.

    Args:
        values: (B, width), the episodes one after another.
        lengths: (E,) how many rows each has.
    """
    rows = values.astype(np.float64)
    starts = np.cumsum(lengths) - lengths
    found: dict[str, Array] = {name: np.empty((len(lengths), rows.shape[1])) for name in NAMES}
    found["count"] = lengths[:, None].astype(np.int64)
    for length in np.unique(lengths):
        these = np.flatnonzero(lengths == length)
        block = rows[starts[these, None] + np.arange(length)]  # (episodes, length, width)
        for name, value in _described(block, axis=1):
            found[name][these] = value
    return found


class Pooled:
    """The statistics of all rows; quantiles are those of at most ``MOST_ROWS`` rows, evenly spaced."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, np.zeros(0), np.zeros(0)
        self._low, self._high = np.zeros(0), np.zeros(0)
        self._kept: list[Floats] = []
        self._stride = 1

    def add(self, values: Array) -> None:
        """Take more rows, (B, width)."""
        rows = values.astype(np.float64)
        mean, count = rows.mean(axis=0), self._count + len(rows)
        squares = np.square(rows - mean).sum(axis=0)
        if not self._count:
            self._mean, self._squares, self._low, self._high = mean, squares, rows.min(axis=0), rows.max(axis=0)
        else:
            apart = mean - self._mean
            self._mean = self._mean + apart * len(rows) / count
            self._squares = self._squares + squares + np.square(apart) * (self._count * len(rows) / count)
            self._low, self._high = np.minimum(self._low, rows.min(axis=0)), np.maximum(self._high, rows.max(axis=0))
        self._kept.append(rows[-self._count % self._stride :: self._stride])
        self._count = count
        if sum(map(len, self._kept)) > MOST_ROWS:
            self._kept, self._stride = [np.concatenate(self._kept)[::2]], 2 * self._stride

    def result(self) -> dict[str, Any]:
        """Return the statistics as plain lists."""
        found: dict[str, Array] = {
            "min": self._low,
            "max": self._high,
            "mean": self._mean,
            "std": np.sqrt(self._squares / self._count),
            "count": np.array([self._count]),
        }
        kept = np.concatenate(self._kept)
        found.update({name: np.quantile(kept, share, axis=0) for name, share in QUANTILES.items()})
        return {name: value.tolist() for name, value in found.items()}


def _described(block: Floats, axis: int) -> Iterator[tuple[str, Array]]:
    for name in ("min", "max", "mean", "std"):
        yield name, getattr(block, name)(axis=axis)
    yield from zip(QUANTILES, np.quantile(block, list(QUANTILES.values()), axis=axis), strict=True)
