"""Regions of a feature space, found by a tree: boxes within which what is counted is much the same.

A tree splits rows by one feature at a time, wherever the two sides differ most in some targets. It finds
sharp conditions, such as "closer than a radius while a level is high", from few rows and in seconds.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.kernels import kernel
from counterpoint.core.threads import FEWEST, run, side_by_side

_BINS = 64  # values of a feature between which a split is looked for
_FEW = 512  # rows that are counted at once


@dataclass(frozen=True, eq=False)
class Binned:
    """Features, each by the number of the bin that it falls into; several trees may share them."""

    cuts: Floats  # (F, _BINS - 1) between bins
    codes: Array  # (R, F)

    @classmethod
    def of(cls, features: Floats) -> Self:
        """Sort features (R, F) into bins that hold as many rows each."""
        features = np.ascontiguousarray(features, np.float64)
        cuts = np.zeros((0, 0))
        if len(features):
            share = side_by_side if len(features) >= FEWEST else map
            found = share(lambda f: _quantiles(features[:, f]), range(features.shape[1]))
            cuts = np.array(list(found)).reshape(-1, _BINS - 1)
        codes = np.empty(features.shape, np.uint8)
        run(_sort_in, len(features), features, cuts, codes)
        return cls(cuts, codes)

    def __getitem__(self, rows: Ints | Bools) -> "Binned":
        return Binned(self.cuts, self.codes[rows])

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class Regions:
    """A tree. Node 0 is its root; a node without a feature is a region."""

    feature: Ints  # (K,) the feature that a node asks for, -1 for a region
    cut: Floats  # (K,) its rows go left up to this value
    left: Ints  # (K,) the node for these; the next number is the node for the others

    @classmethod
    def grow(
        cls,
        features: Floats | Binned,
        targets: Floats,
        *,
        fewest: int,
        deepest: int = 12,
        some: Bools | None = None,
        of: int = 0,
    ) -> Self:
        """Split rows where targets differ.

        Args:
            features: (R, F); binned ones save time where several trees are grown on the same.
            targets: (R, T); sums of squares of all of them are reduced together, so give them like scales.
            fewest: rows of a region, at the least.
            deepest: splits on the way to a region, at the most.
            some: (R,) rows of which a region must have some.
            of: how many of these, at the least.

        Time O(R · F · deepest).
        """
        targets = np.ascontiguousarray(targets, np.float64)
        binned = features if isinstance(features, Binned) else Binned.of(features)
        cuts, codes = binned.cuts, binned.codes
        most = 2 * max(1, len(codes) // fewest) + 1
        feature, left = np.full(most, -1), np.zeros(most, np.int64)
        code = np.zeros(most, np.int64)
        some = np.ones(len(codes), np.bool_) if some is None else np.asarray(some, np.bool_)
        used = _grow(codes, targets, some, (fewest, of), deepest, (feature, code, left))
        asked = np.maximum(feature[:used], 0)
        cut = cuts[asked, np.minimum(code[:used], _BINS - 2)] if len(cuts) else np.zeros(used)
        return cls(feature[:used], cut, left[:used])

    def __call__(self, features: Floats) -> Ints:
        """Return the region of each row, (R,): a node number."""
        where = np.empty(len(features), np.int64)
        run(_descend, len(features), np.ascontiguousarray(features), self.feature, self.cut, self.left, where)
        return where

    def __len__(self) -> int:
        return len(self.feature)

    def merged(self, rows: Floats, fewest: int) -> "Regions":
        """Return regions of which none has fewer rows than ``fewest``: where a side has, its question is not asked.

        Args:
            rows: (K,) rows of each node that is a region.
            fewest: rows of a region, at the least; all together have as many.
        """
        feature, cut, left, count = self.feature.copy(), self.cut.copy(), self.left.copy(), rows.astype(np.float64)
        for node in np.flatnonzero(self.feature >= 0)[::-1].tolist():  # children come after their parents
            sides = int(left[node]), int(left[node]) + 1
            count[node] = count[list(sides)].sum()
            few = [side for side in (0, 1) if count[sides[side]] < fewest]
            if few:
                other = sides[1 - few[0]]
                feature[node], cut[node], left[node] = feature[other], cut[other], left[other]
        return Regions(feature, cut, left)

    def box(self, node: int, width: int) -> Floats:
        """Return the lower and upper bound of each feature in a region, (F, 2); infinite where there is none."""
        bounds: Array = np.tile([-np.inf, np.inf], (width, 1))
        asking = np.flatnonzero(self.feature >= 0).tolist()
        parent = {int(self.left[k]) + side: (k, side) for k in asking for side in (0, 1)}
        while node in parent:
            node, side = parent[node]
            f, cut = int(self.feature[node]), float(self.cut[node])
            bounds[f, 1 - side] = min(bounds[f, 1], cut) if side == 0 else max(bounds[f, 0], cut)
        return bounds


@kernel
def _descend(start: int, stop: int, features: Floats, feature: Ints, cut: Floats, left: Ints, where: Ints) -> None:
    for row in range(start, stop):
        node = 0
        while feature[node] >= 0:
            node = left[node] + (0 if features[row, feature[node]] <= cut[node] else 1)
        where[row] = node


def _quantiles(values: Floats) -> Floats:
    """Return values between which as many rows fall into each bin, (_BINS - 1,), as ``np.quantile`` has them."""
    ordered, place = np.sort(values), (len(values) - 1) * np.linspace(0.0, 1.0, _BINS + 1)[1:-1]
    below = np.floor(place).astype(np.int64)
    one, two, share = ordered[below], ordered[np.minimum(below + 1, len(values) - 1)], place - below
    step = two - one
    return np.sort(np.where(share >= 0.5, two - step * (1.0 - share), one + step * share))


@kernel
def _sort_in(start: int, stop: int, features: Floats, cuts: Floats, codes: Array) -> None:
    """Write the number of cuts that each feature is beyond."""
    for row in range(start, stop):
        for f in range(features.shape[1]):
            low, size, value = 0, _BINS // 2, features[row, f]
            while size > 0:  # no branch depends on the value, which nobody could foresee
                low += size * int(not value <= cuts[f, low + size - 1])
                size //= 2
            codes[row, f] = low


@kernel
def _count(
    some_rows: Ints, codes: Array, targets: Floats, some: Bools, room: tuple[Array, Floats], sums: Floats, total: Floats
) -> None:
    """Write sums of all rows by the bins of each feature, (F, _BINS, T + 2): of targets, rows of some, and rows.

    Sums are taken in the order of the rows, which decides their last bits. Rows come a few at a time, so that those
    and the bins of a feature stay near.
    """
    few, values = room
    width, kinds = codes.shape[1], targets.shape[1]
    sums[:], total[:] = 0.0, 0.0
    for start in range(0, len(some_rows), _FEW):
        stop = min(start + _FEW, len(some_rows))
        for r in range(start, stop):
            row = some_rows[r]
            for k in range(kinds):
                values[r - start, k] = targets[row, k]
                total[k] += targets[row, k]
            values[r - start, kinds], values[r - start, kinds + 1] = some[row], 1.0
            total[kinds] += some[row]
            for f in range(width):
                few[f, r - start] = codes[row, f]
        for f in range(width):
            for r in range(stop - start):
                b = few[f, r]
                for k in range(kinds + 2):
                    sums[f, b, k] += values[r, k]


@kernel
def _best(sums: Floats, total: Floats, size: int, least: tuple[int, int]) -> tuple[int, int]:
    """Return the feature, and the bin up to which rows go left, that split best, or -1."""
    fewest, of = least
    kinds = len(total) - 1
    whole, part = 0.0, np.zeros(kinds)
    for k in range(kinds):
        whole += total[k] * total[k] / size
    best, best_feature, best_code = whole + 1e-9 * (1.0 + abs(whole)), -1, 0
    for f in range(len(sums)):
        below, here = 0, 0
        part[:] = 0.0
        for b in range(_BINS - 1):
            count = int(sums[f, b, kinds + 1])
            if count == 0:
                continue
            below += count
            here += int(sums[f, b, kinds])
            for k in range(kinds):
                part[k] += sums[f, b, k]
            if min(below, size - below) < fewest or min(here, int(total[kinds]) - here) < of:
                continue
            square = 0.0
            for k in range(kinds):
                rest = total[k] - part[k]
                square += part[k] * part[k] / below + rest * rest / (size - below)
            if square > best:
                best, best_feature, best_code = square, f, b
    return best_feature, best_code


@kernel
def _grow(
    codes: Array,
    targets: Floats,
    some: Bools,
    least: tuple[int, int],
    deepest: int,
    tree: tuple[Ints, Ints, Ints],
) -> int:
    """Grow a tree, best split of each node first come first served; return its number of nodes."""
    feature, code, left = tree
    rows, width = codes.shape
    kinds = targets.shape[1]
    order = np.arange(rows)
    first, last, depth = np.zeros_like(feature), np.zeros_like(feature), np.zeros_like(feature)
    last[0] = rows
    used = 1
    room = np.empty((width, _FEW), np.uint8), np.empty((_FEW, kinds + 2))
    sums, total = np.empty((width, _BINS, kinds + 2)), np.empty(kinds + 1)
    node = 0
    while node < used:
        begin, end = first[node], last[node]
        if end - begin >= 2 * least[0] and depth[node] < deepest and used + 2 <= len(feature):
            _count(order[begin:end], codes, targets, some, room, sums, total)
            f, most = _best(sums, total, end - begin, least)
            if f >= 0:
                middle = begin
                for r in range(begin, end):
                    if codes[order[r], f] <= most:
                        order[r], order[middle] = order[middle], order[r]
                        middle += 1
                feature[node], code[node], left[node] = f, most, used
                first[used], last[used], depth[used] = begin, middle, depth[node] + 1
                first[used + 1], last[used + 1], depth[used + 1] = middle, end, depth[node] + 1
                used += 2
        node += 1
    return used
