"""Finer laws: more small trees on top of a factor's law, as long as they help in episodes that they have not seen.

A robot's hand follows its action through joints that no straight law knows. What is left of that looks like an
influence of whatever the policy looks at.
"""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.learn.calibration.laws import totals
from counterpoint.masks.regions import Regions

_FEWEST_SCALE, _DEEPEST_SCALE = 80, 6  # of the tree that says how far off a law is
_FEWEST, _DEEPEST, _RATE, _PRIOR = 40, 6, 0.4, 20.0  # of the trees that correct it
_AT_ONCE, _MOST = 6, 24  # trees
_HELPS = 0.97  # share of the residuals that is left, at the most, for such trees to be kept
_CLIP = 4.0  # what is further off does not bend them
_LARGEST = 1e3  # more is as much


@dataclass(frozen=True, eq=False)
class Finer:
    """What a law leaves over and trees foretell."""

    regions: Regions
    scale: Floats  # (K, W) how far off the law is in each
    trees: tuple[tuple[Regions, Floats], ...]

    def __call__(self, ahead: Floats) -> Floats:
        """Return what is to be taken from the residuals, (B, W), given where a factor is and would go."""
        total = np.zeros((len(ahead), self.scale.shape[1]))
        for regions, value in self.trees:
            total += value[regions(ahead)]
        return np.asarray(total * self.scale[self.regions(ahead)])


def finer(left: Floats, ahead: Floats, halves: Bools) -> Finer | None:
    """Grow trees, if they help.

    Args:
        left: (R, W) residuals of a factor, in ordinary ones.
        ahead: (R, I + W) where it is, and where its law would take it.
        halves: (R,) which half of the episodes a row is of.
    """
    regions, scale = scales(left, ahead)
    off: Array = left / scale[regions(ahead)]
    if halves.all() or not halves.any():
        return None
    rounds, error, seen = 0, _error(off[~halves]), (off[halves], off[~halves])
    while rounds < _MOST:
        trees, learnt = _boosted(seen[0], ahead[halves])
        unseen = seen[1] - _told(trees, ahead[~halves])
        if _error(unseen) > _HELPS * error:
            break
        rounds, error, seen = rounds + len(trees), _error(unseen), (learnt, unseen)
    grown: tuple[tuple[Regions, Floats], ...] = ()
    while len(grown) < rounds:
        trees, off = _boosted(off, ahead)
        grown += trees
    return Finer(regions, scale, grown) if grown else None


def scales(left: Floats, ahead: Floats) -> tuple[Regions, Floats]:
    """Return regions by how far off a factor is there, and the medians of that, (K, W), at least 1."""
    size = np.clip(np.abs(left), 1.0, _LARGEST)
    regions = Regions.grow(ahead, np.log(size), fewest=_FEWEST_SCALE, deepest=_DEEPEST_SCALE)
    where, scale = regions(ahead), np.ones((len(regions), left.shape[1]))
    for k in np.unique(where):
        scale[k] = np.median(size[where == k], axis=0)
    return regions, scale


def _boosted(off: Array, ahead: Floats) -> tuple[tuple[tuple[Regions, Floats], ...], Array]:
    """Grow some trees, each on what the former ones leave, and return what all leave, (R, W)."""
    trees = []
    for _ in range(_AT_ONCE):
        unit = np.maximum(np.median(np.abs(off), axis=0), 1e-3)
        odd = np.clip(off / unit, -_CLIP, _CLIP)
        regions = Regions.grow(ahead, odd, fewest=_FEWEST, deepest=_DEEPEST)
        where = regions(ahead)
        value = _RATE * unit * totals(where, odd, len(regions)) / (totals(where, 1.0, len(regions)) + _PRIOR)
        off = off - value[where]
        trees.append((regions, value))
    return tuple(trees), off


def _told(trees: tuple[tuple[Regions, Floats], ...], ahead: Floats) -> Floats:
    return np.asarray(sum(value[regions(ahead)] for regions, value in trees))


def _error(off: Floats) -> float:
    return float(np.median(np.abs(off), axis=0).sum())
