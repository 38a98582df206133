"""Several trees over the same features, whose mean is smoother than each of them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.masks.regions import Regions

_PARTS = ("feature", "cut", "left", "values", "sizes")


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees, and what is known of the regions of each."""

    trees: tuple[Regions, ...]
    values: tuple[Floats, ...]  # (K, V) each

    def __call__(self, features: Floats) -> Floats:
        """Return the mean of what the trees say of each row, (R, V)."""
        features = np.ascontiguousarray(features)
        total = np.zeros((len(features), self.values[0].shape[1]))
        for tree, values in zip(self.trees, self.values, strict=True):
            total += values[tree(features)]
        return total / len(self.trees)

    def arrays(self) -> dict[str, Array]:
        """Return what it takes to build it again, as arrays by names."""
        whole = [np.concatenate([getattr(tree, part) for tree in self.trees]) for part in ("feature", "cut", "left")]
        sizes = np.array([len(tree) for tree in self.trees])
        return dict(zip(_PARTS, [*whole, np.concatenate(self.values), sizes], strict=True))

    @classmethod
    def of(cls, arrays: Mapping[str, Array], width: int) -> "Forest":
        """Build it from arrays that nobody has checked yet.

        Args:
            arrays: what ``arrays`` returned.
            width: number of features.
        """
        feature, cut, left, values, sizes = (np.asarray(arrays[part]) for part in _PARTS)
        if not (len(sizes) and (sizes > 0).all() and sizes.sum() == len(feature)):
            raise ValueError("the trees of a forest have other sizes than it says")
        if not len(feature) == len(cut) == len(left) == len(values) or values.ndim != 2 or not values.shape[1]:
            raise ValueError("the parts of a forest have different lengths")
        bounds = np.cumsum(sizes)[:-1]
        parts = zip(*(np.split(each, bounds) for each in (feature, cut, left)), strict=True)
        trees = tuple(Regions(*(np.ascontiguousarray(each) for each in tree)) for tree in parts)
        if not all(_leads_down(tree, width) for tree in trees) or not np.isfinite(values).all():
            raise ValueError("a tree leads nowhere, or its values are no numbers")
        return cls(trees, tuple(np.split(values, bounds)))


def _leads_down(tree: Regions, width: int) -> bool:
    """Return whether each question of a tree is about a feature, and leads to later nodes of it."""
    asking = tree.feature >= 0
    below = tree.left[asking]
    number = np.flatnonzero(asking)
    return bool((tree.feature < width).all() and (below > number).all() and (below + 1 < len(tree)).all())
