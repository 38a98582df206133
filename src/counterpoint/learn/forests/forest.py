"""Several trees over the same features, whose mean is smoother than each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.threads import run
from counterpoint.learn.forests.kernels import Votes, vote_rows
from counterpoint.masks.regions import Regions

_PARTS = ("feature", "cut", "left", "values", "sizes")


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees, and what is known of the regions of each."""

    trees: tuple[Regions, ...]
    values: tuple[Floats, ...]  # (K, V) each

    def __call__(self, features: Floats) -> Floats:
        """Return the mean of what the trees say of each row, (R, V)."""
        total = np.empty((len(features), self.values[0].shape[1]))
        run(vote_rows, len(features), np.ascontiguousarray(features, np.float64), self.votes, total)
        return total

    @cached_property
    def votes(self) -> Votes:
        """The same for compiled loops: all trees as one, in which a region is its own child."""
        sizes = [len(tree) for tree in self.trees]
        roots = np.cumsum([0, *sizes[:-1]]).astype(np.uint32)
        feature = np.concatenate([tree.feature for tree in self.trees])
        left = np.concatenate([tree.left for tree in self.trees]) + np.repeat(roots, sizes)
        asks, number = feature >= 0, np.arange(len(feature))
        ways = np.zeros((len(feature), 4), np.uint32)
        ways[:, 0] = np.maximum(feature, 0)
        ways[:, 1], ways[:, 2] = np.where(asks, left, number), np.where(asks, left + 1, number)
        values = np.ascontiguousarray(np.concatenate(self.values), np.float64)
        return np.concatenate([tree.cut for tree in self.trees]), ways, values, roots, _deepest(ways[:, 1:3], roots)

    @property
    def most(self) -> float:
        """The most that it can say of the first that it knows, summed in the order in which a row's is."""
        total = 0.0
        for tree, values in zip(self.trees, self.values, strict=True):
            total += float(values[tree.feature < 0, 0].max())
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


def _deepest(child: Ints, roots: Ints) -> int:
    """Return how many questions lead to a region at the most."""
    here, depth = roots, 0
    while (here := here[child[here, 0] != here]).size:
        here, depth = child[here].ravel(), depth + 1
    return depth


def _leads_down(tree: Regions, width: int) -> bool:
    """Return whether each question of a tree is about a feature, and leads to later nodes of it."""
    asking = tree.feature >= 0
    below = tree.left[asking]
    number = np.flatnonzero(asking)
    return bool((tree.feature < width).all() and (below > number).all() and (below + 1 < len(tree)).all())
