"""A witness that is independent of any mask: where does it matter to know the source?

For every pair of a source and a target, trees look for regions of their joint configurations (relative position,
their other columns) in which the target does what it would not do by itself. Each region is counted on rows that
the tree has not seen, and held against glued pairs, whose source comes from another row: what a target does
because of its own state, at a wall say, it does with any source. What is left over is influence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.own_course import SURPRISING, OwnCourses, totals
from counterpoint.masks.pairs import FactorPairs, Kind, beside
from counterpoint.masks.regions import Regions

_CLIP = 4.0  # units; what is beyond counts as a surprise, not as more
_FEWEST, _DEEPEST = 40, 10  # of the trees
_GLUED = 3  # glued pairs for each real one
_LOUD, _LOUD_SHIFT = 4.0, 6.0  # standard errors from which on a region has an influence
_SMALLEST_SHIFT = 0.8  # units
_FEWEST_EVENTS = 3  # episodes with a surprise
_LEAST_VARIANCE = 1e-4
_LEAST_POWER = 0.3  # share of the influences that show as a surprise, at the least


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted in each region of a kind of pair.

    Rows of one episode are alike, so the errors are those of sums over episodes.
    """

    rows: Floats  # (K,)
    values: Floats  # (K, 1 + W) sums of surprises and of residuals
    episodes: Floats  # (K,) in which there was a surprise
    errors: Floats  # (K, 1 + W) squared errors of the sums
    squares: Floats  # (K, 1 + W) sums of squares
    alike: Floats  # (K,) sum of the squares of the numbers of rows that an episode has there

    @classmethod
    def of(cls, where: Ints, values: Floats, groups: Ints, size: int) -> "Counts":
        """Count rows by their regions.

        Args:
            where: (R,) their regions.
            values: (R, 1 + W) whether there was a surprise, and the residuals.
            groups: (R,) the episodes.
            size: number of regions.
        """
        rows, sums = totals(where, 1.0, size)[:, 0], totals(where, values, size)
        key = where * (int(groups.max(initial=0)) + 1) + groups
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1) != 0)
        home, length = where[order][starts], np.diff(np.append(starts, len(order)))
        each = np.add.reduceat(values[order], starts, axis=0) if len(starts) else values[:0]
        off = each - (sums / np.maximum(rows, 1.0)[:, None])[home] * length[:, None]
        errors = totals(home, off * off, size)
        alike = totals(home, np.square(length)[:, None].astype(np.float64), size)[:, 0]
        odd = totals(home, 1.0 * (each[:, :1] > 0), size)[:, 0]
        return cls(rows, sums, odd, errors, totals(where, values * values, size), alike)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.rows + other.rows,
            self.values + other.values,
            self.episodes + other.episodes,
            self.errors + other.errors,
            self.squares + other.squares,
            self.alike + other.alike,
        )

    @property
    def mean(self) -> Floats:
        """Share of surprises, and mean residuals, (K, 1 + W)."""
        return self.values / np.maximum(self.rows, 1.0)[:, None]


@dataclass(frozen=True, eq=False)
class Finding:
    """What is known of the regions of one kind of pair."""

    rows: Floats  # (K,) that it rests on
    chance: Floats  # (K,) of an influence, 0 where none was found
    surplus: Floats  # (K,) of surprises where no influence was found; its mean is 0 if there is none
    doubt: Floats  # (K,) standard error of the share of surprises
    seen: Floats  # (K,) the part of the chance that would show as a surprise


@dataclass(frozen=True, eq=False)
class Testimony:
    """One kind of pair: its regions, and what was counted there with glued sources."""

    kind: Kind
    regions: Regions
    where: tuple[Ints, ...]  # for each pair the regions of the judged rows, (T,)
    glued: tuple[Ints, ...]  # the same with other sources, (_GLUED, T)

    def finding(self, counts: Counts, glued: Counts) -> Finding:
        """Hold what was counted against the glued pairs.

        Not every influence is a surprise: some are within the noise. How many are is told by the regions in which
        it happens most often, and a steady push by how far it moves what is in them.
        """
        known = ((counts.rows > 0) & (glued.rows > 0))[:, None]
        surplus = np.where(known, counts.mean - glued.mean, 0.0)
        rows = np.maximum(counts.rows, 1.0)[:, None]
        variance = np.maximum(glued.squares / np.maximum(glued.rows, 1.0)[:, None] - glued.mean**2, _LEAST_VARIANCE)
        spread = np.maximum(np.sqrt(counts.errors), np.sqrt(counts.alike[:, None] * variance)) / rows
        error = np.maximum(spread, 1.0 / rows)
        sure = surplus / error
        odd = (sure[:, 0] > _LOUD) & (counts.episodes >= _FEWEST_EVENTS)
        shift = np.abs(surplus[:, 1:]).max(axis=1)
        pushed = (np.abs(sure[:, 1:]).max(axis=1) > _LOUD_SHIFT) & (shift > _SMALLEST_SHIFT) & (counts.rows >= 10)
        seen = np.where(odd, np.clip(surplus[:, 0] / np.maximum(1.0 - glued.mean[:, 0], 1e-6), 0.0, 1.0), 0.0)
        power = max(_LEAST_POWER, float(np.quantile(seen[odd], 0.9))) if odd.any() else 1.0
        seen = np.minimum(seen / power, 1.0)
        full = np.quantile(shift[pushed], 0.9) if pushed.any() else 1.0
        steady = np.where(pushed, np.clip(shift / full, 0.0, 1.0), 0.0)
        loud = odd | pushed
        quiet = np.where(loud, 0.0, surplus[:, 0])
        return Finding(counts.rows, np.maximum(seen, steady), quiet, spread[:, 0], seen)


@dataclass(frozen=True, eq=False)
class Witness:
    """What the witness has seen of some transitions."""

    alone: OwnCourses
    pairs: FactorPairs
    judged: Transitions
    known: Bools  # (T, n) where a factor can be judged
    groups: Ints  # (T,) the episodes
    values: tuple[Floats, ...]  # for each factor whether it was surprised, and its residuals, (T, 1 + W)
    surprised: Bools  # (T, n)
    testimonies: tuple[Testimony, ...]
    loud: Bools  # (T, N, n) pairs in a region with an influence

    @classmethod
    def fit(cls, learn: Transitions, judge: Transitions, factors: Factorization, rng: np.random.Generator) -> "Witness":
        """Find regions in one half of the data, and count in the other.

        Args:
            learn: what laws and regions are found in.
            judge: what is counted.
            factors: how columns split into factors.
            rng: source of randomness.
        """
        alone, pairs = OwnCourses.fit(learn, factors, rng), FactorPairs(factors)
        before, after = alone.residuals(learn), alone.residuals(judge)
        kinds = [_judgeable(kind, alone) for kind in pairs.kinds]
        ready = alone.judged(learn)
        before = [np.where(ready[:, [j]], each, 0.0) for j, each in enumerate(before)]
        found = [_testimony(kind, pairs, (learn, judge), before, rng) for kind in kinds if kind.pairs]
        surprised = np.stack([np.abs(each).max(axis=1) > SURPRISING for each in after], axis=1)
        surprised &= alone.judged(judge)
        nothing = np.zeros((len(judge), factors.n + factors.m, factors.n), np.bool_)
        both = zip(surprised.T, after, strict=True)
        values = [np.concatenate([odd[:, None], np.clip(z, -_CLIP, _CLIP)], axis=1) for odd, z in both]
        groups = np.arange(len(judge)) if judge.episode is None else np.unique(judge.episode, return_inverse=True)[1]
        first = cls(alone, pairs, judge, alone.judged(judge), groups, tuple(values), surprised, tuple(found), nothing)
        second = replace(first, loud=first._loud())
        return replace(second, loud=second._loud())

    def findings(self, edges: Bools) -> list[Finding]:
        """Return what is found in the regions of each kind of pair, where a mask has no edge.

        Args:
            edges: (T, N, n) the mask's edges on the judged rows. They tell more of a row than its region.
        """
        return [each.finding(self._counted(each, edges), self._glued(each)) for each in self.testimonies]

    def where(self, data: Transitions) -> list[list[Ints]]:
        """Return the region of each pair of each kind, (B,) each."""
        rows = beside(data.state, data.action)
        return [list(map(each.regions, self.pairs.features(each.kind, rows, rows))) for each in self.testimonies]

    def spread(self, values: list[Floats], where: Sequence[Sequence[Ints]]) -> Floats:
        """Return one value of each pair's region, (B, N, n), given those of all regions by kind."""
        factors = self.alone.factors
        rows = next((len(pair) for kind in where for pair in kind), 0)
        out = np.zeros((rows, factors.n + factors.m, factors.n))
        for each, value, regions in zip(self.testimonies, values, where, strict=True):
            for (i, j), region in zip(each.kind.pairs, regions, strict=True):
                out[:, i, j] = value[region]
        return out

    def own(self, values: list[Floats]) -> Floats:
        """Return the same for the judged rows, (T, N, n)."""
        return self.spread(values, [each.where for each in self.testimonies])

    def _loud(self) -> Bools:
        nowhere = np.zeros(self.loud.shape, np.bool_)
        return np.asarray(self.own([finding.chance for finding in self.findings(nowhere)]) > 0)

    def _counted(self, each: Testimony, edges: Bools) -> Counts:
        """Count the rows of a kind of pair without an edge, and without another source that is loud."""
        n, louder = self.alone.factors.n, self.loud.sum(axis=1)  # (T, n)
        parts = []
        for (i, j), where in zip(each.kind.pairs, each.where, strict=True):
            free = self.known[:, j] & ~edges[:, i, j] & (louder[:, j] - self.loud[:, i, j] == 0)
            if i < n:
                free &= ~edges[:, j, i]
            parts.append(self._count(each, where[free], j, free))
        return reduce(add, parts)

    def _glued(self, each: Testimony) -> Counts:
        """Count the glued pairs whose target no source has moved loudly."""
        calm = self.known & ~self.loud.any(axis=1)  # (T, n)
        return reduce(
            add,
            (
                self._count(each, where[calm[:, j]], j, calm[:, j])
                for (_, j), several in zip(each.kind.pairs, each.glued, strict=True)
                for where in several
            ),
        )

    def _count(self, each: Testimony, where: Ints, target: int, rows: Bools) -> Counts:
        values = self.values[target]
        return Counts.of(where, values[rows], self.groups[rows], len(each.regions))


def _judgeable(kind: Kind, alone: OwnCourses) -> Kind:
    """Return the pairs of a kind whose target moves, and not always because of the source."""
    pairs = tuple((i, j) for i, j in kind.pairs if not alone.still[j] and not alone.always[i, j])
    return replace(kind, pairs=pairs)


def _testimony(
    kind: Kind,
    pairs: FactorPairs,
    halves: tuple[Transitions, Transitions],
    residuals: list[Floats],
    rng: np.random.Generator,
) -> Testimony:
    """Grow a tree on one half, where real pairs differ from glued ones, and find its regions in the other."""
    learn, judge = (beside(half.state, half.action) for half in halves)
    targets = np.concatenate([_targets(residuals[j]) for _, j in kind.pairs])
    real = np.concatenate(list(pairs.features(kind, learn, learn)))
    glued = np.concatenate(list(pairs.features(kind, learn[rng.permutation(len(learn))], learn)))
    regions = Regions.grow(
        np.concatenate([real, glued]), np.concatenate([targets, -targets]), fewest=2 * _FEWEST, deepest=_DEEPEST
    )
    where = tuple(regions(each) for each in pairs.features(kind, judge, judge))
    others = [judge[rng.permutation(len(judge))] for _ in range(_GLUED)]
    apart = [[regions(each) for each in pairs.features(kind, other, judge)] for other in others]
    return Testimony(kind, regions, where, tuple(np.stack(each) for each in zip(*apart, strict=True)))


def _targets(residual: Floats) -> Array:
    """Return what a tree looks at: whether there is a surprise, and which way."""
    odd = np.abs(residual).max(axis=1, keepdims=True) > SURPRISING
    return np.concatenate([2.0 * odd, np.clip(residual, -6.0, 6.0) / 6.0], axis=1)
