"""Small trees, each grown on what the former ones left over: what some columns tell of others."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from counterpoint.core.arrays import Floats
from counterpoint.learn.calibration.laws import totals
from counterpoint.masks.regions import Binned, Regions

TREES = 12
_FEWEST, _DEEPEST, _RATE, _PRIOR = 30, 6, 0.4, 10.0


@dataclass(frozen=True, eq=False)
class Boosted:
    """Trees whose values add up to a prediction."""

    start: Floats  # (W,) what is said of every row, at first
    trees: tuple[tuple[Regions, Floats], ...]

    @classmethod
    def fit(cls, features: Floats, targets: Floats, trees: int = TREES) -> Self:
        """Learn to tell targets (R, W), bounded ones of like scales, from features (R, F)."""
        start, binned, grown = targets.mean(axis=0), Binned.of(features), []
        left = targets - start
        for _ in range(trees):
            regions = Regions.grow(binned, left, fewest=_FEWEST, deepest=_DEEPEST)
            where, size = regions(features), len(regions)
            values = _RATE * totals(where, left, size) / (totals(where, 1.0, size) + _PRIOR)
            left = left - values[where]
            grown.append((regions, values))
        return cls(start, tuple(grown))

    def __call__(self, features: Floats) -> Floats:
        """Return what is told of some rows, (B, W)."""
        told = np.tile(self.start, (len(features), 1))
        for regions, values in self.trees:
            told += values[regions(features)]
        return told
