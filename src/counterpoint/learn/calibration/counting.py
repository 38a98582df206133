"""Counting surprises and shifts in regions, and what they say: where pairs influence each other, and what is missed."""

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.learn.calibration.laws import totals

_LOUD, _LOUD_SHIFT = 4.0, 4.5  # standard errors from which on a region has an influence
_SMALLEST_SHIFT = 0.8  # units
_FEWEST_VISITS = 8  # episodes that tell by themselves how alike their rows are; those of fewer count as one each
_FEWEST_EVENTS = 3  # episodes with a surprise
_FEWEST_ROWS = 5  # with an edge, that the direction of a push is told from
_LEAST_VARIANCE = 1e-4
_HALVINGS = 12  # of the interval in which a share is looked for
_LEAST_POWER = 0.3  # share of the influences that show as a surprise, at the least
_ANY = 0.5  # standard error of a share of which nothing is known
_AGAIN = 1 / 3  # of what is counted, that the other half of the data must have, too
_PRIOR = 10.0  # glued pairs of a region that are taken to be like those of all


@dataclass(frozen=True, eq=False)
class Counts:
    """What was counted in each region of a kind of pair.

    Rows of one episode are alike, so the errors are those of sums over episodes.
    """

    rows: Floats  # (K,)
    values: Floats  # (K, 1 + W) sums of surprises and of residuals
    signs: Floats  # (K, W) sums of the signs of residuals
    episodes: Floats  # (K,) in which there was a surprise
    errors: Floats  # (K, 1 + W) squared errors of the sums
    squares: Floats  # (K, 1 + W) sums of squares
    visits: Floats  # (K,) episodes
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
        signs, visits = totals(where, np.sign(values[:, 1:]), size), totals(home, 1.0, size)[:, 0]
        return cls(rows, sums, signs, odd, errors, totals(where, values * values, size), visits, alike)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.rows + other.rows,
            self.values + other.values,
            self.signs + other.signs,
            self.episodes + other.episodes,
            self.errors + other.errors,
            self.squares + other.squares,
            self.visits + other.visits,
            self.alike + other.alike,
        )

    @property
    def mean(self) -> Floats:
        """Share of surprises, and mean residuals, (K, 1 + W)."""
        return self.values / np.maximum(self.rows, 1.0)[:, None]

    @property
    def balance(self) -> Floats:
        """By how much more rows are off one way than the other, as a share of the rows, (K, W)."""
        return self.signs / np.maximum(self.rows, 1.0)[:, None]

    @property
    def variance(self) -> Floats:
        """Variance of a row, (K, 1 + W)."""
        return np.maximum(self.squares / np.maximum(self.rows, 1.0)[:, None] - self.mean**2, _LEAST_VARIANCE)


@dataclass(frozen=True, eq=False)
class Loudness:
    """In which regions real pairs differ from glued ones, and by how much."""

    odd: Bools  # (K,) more surprises
    pushed: Bools  # (K,) a steady shift
    seen: Floats  # (K,) chance of an influence that shows as a surprise
    chance: Floats  # (K,) of any influence
    doubt: Floats  # (K,) standard error of the share of surprises
    power: float  # share of the influences that show as a surprise

    @classmethod
    def of(cls, counts: Counts, glued: Counts, before: Floats, least_power: float = _LEAST_POWER) -> "Loudness":
        """Hold what was counted against the glued pairs.

        Not every influence is a surprise: some are within the noise. How many are is told by the regions in which
        it happens most often, and how many are pushed by how many are off that way. What the other half of the data
        does not have, too, is chance: there are many regions to be wrong about.

        Args:
            counts: of real pairs.
            glued: of glued pairs.
            before: (K, 1 + W) what the half of the data that the regions were found in has beyond its glued pairs.
            least_power: share of the influences that show as a surprise, at the least.
        """
        startled, toward = before[:, 0], before[:, 1:]
        usual, doubt = _by_itself(glued)
        known = ((counts.rows > 0) & (glued.rows > 0))[:, None]
        surplus = np.where(known, counts.mean - usual, 0.0)
        rows = np.maximum(counts.rows, 1.0)[:, None]
        alike = np.where(counts.visits < _FEWEST_VISITS, counts.alike, counts.rows)[:, None]
        spread = np.sqrt(np.maximum(counts.errors, alike * doubt) / rows**2 + doubt / (glued.rows + _PRIOR)[:, None])
        sure = surplus / np.maximum(spread, 1.0 / rows)
        odd = (sure[:, 0] > _LOUD) & (counts.episodes >= _FEWEST_EVENTS) & (startled > _AGAIN * surplus[:, 0])
        main = np.abs(toward).argmax(axis=1)[:, None]
        columns = surplus[:, 1:], sure[:, 1:], counts.balance - glued.balance
        shift, sure_shift, lean = (_one_of(each * np.sign(toward), main) for each in columns)
        pushed = (sure_shift > _LOUD_SHIFT) & (shift > _SMALLEST_SHIFT) & (counts.rows >= 10)
        pushed &= _one_of(np.abs(toward), main) > _AGAIN * shift
        seen = np.where(odd, np.clip(surplus[:, 0] / np.maximum(1.0 - usual[:, 0], 1e-6), 0.0, 1.0), 0.0)
        power = max(least_power, float(np.quantile(seen[odd], 0.9))) if odd.any() else 1.0
        noise = np.sqrt(_one_of(doubt[:, 1:], main))
        steady = np.where(pushed, how_many(shift, lean, noise), 0.0)
        return cls(odd, pushed, seen, np.maximum(np.minimum(seen / power, 1.0), steady), spread[:, 0], power)

    @property
    def loud(self) -> Bools:
        """Regions with an influence, (K,)."""
        return self.odd | self.pushed


def _by_itself(glued: Counts) -> tuple[Floats, Floats]:
    """Return mean and variance of the glued pairs in each region; a few more are taken to be like all, (K, 1 + W)."""
    every = np.maximum(glued.rows.sum(), 1.0)
    rows = (glued.rows + _PRIOR)[:, None]
    mean = (glued.values + _PRIOR * glued.values.sum(axis=0) / every) / rows
    square = (glued.squares + _PRIOR * glued.squares.sum(axis=0) / every) / rows
    return mean, np.maximum(square - mean**2, _LEAST_VARIANCE)


def _one_of(values: Floats, column: Ints) -> Floats:
    """Return one column of each row, (K,)."""
    return np.take_along_axis(values, column, axis=1)[:, 0]


def how_many(shift: Floats, lean: Floats, noise: Floats) -> Floats:
    """Return which share of the rows is pushed, (K,), given how far all are off in the mean.

    A mean shift may be a push of all or a strong push of some. The signs tell: of rows that noise alone moves, as many
    are off one way as the other; a push takes those that it acts on to its side, all of them if it is strong.

    Args:
        shift: (K,) mean shift.
        lean: (K,) by how much more rows are off that way than the other, as a share of the rows.
        noise: (K,) standard deviation of the noise.
    """
    low, high = np.zeros(len(shift)), np.ones(len(shift))
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        push = shift / np.maximum(share * noise, 1e-9)
        less = share * np.array([erf(each / sqrt(2.0)) for each in push]) < lean
        low, high = np.where(less, share, low), np.where(less, high, share)
    return high


@dataclass(frozen=True, eq=False)
class Finding:
    """What is known of the regions of one kind of pair, where a mask has no edge."""

    rows: Floats  # (K,) that it rests on
    chance: Floats  # (K,) of an influence, 0 where none was found
    power: Floats  # (K,) chance that an influence shows as a surprise
    usual: Floats  # (K,) chance of a surprise without an influence
    doubt: Floats  # (K,) standard error of the chance, each region by itself
    slope: Floats  # (K,) what an error of the share that the mask misses makes of the chance, in all regions at once
    error: float  # standard error of the share that the mask misses


def found(counts: Counts, glued: Counts, free: Floats, every: Counts, usual: Counts, before: Floats) -> Finding:
    """Tell what is left where a mask has no edge.

    A region that is loud by itself speaks for itself. Of the others, those that are loud over all rows are
    taken together: the mask misses the same share of the influences in each of them.

    Args:
        counts: of the rows in which the mask has no edge to the target.
        glued: of the glued pairs of such rows.
        free: (K,) rows in which it has no edge between the two.
        every: of all rows.
        usual: of all glued pairs.
        before: (K, 1 + W) what the other half of the data has beyond its glued pairs.
    """
    world = Loudness.of(every, usual, before)
    own = Loudness.of(counts, glued, before, world.power)
    shared = world.loud & ~own.loud
    left, whole = Surplus.of(counts, glued), Surplus.of(every, usual)
    reach = np.minimum(counts.rows / np.maximum(free, 1.0), 1.0)
    pushed = shared & ~world.odd & (every.rows - free >= _FEWEST_ROWS)
    missed, error = _missed(left, whole.times(reach), shared & world.odd, pushed)
    slope = np.where(shared, world.chance * every.rows / np.maximum(free, 1.0), 0.0)
    chance = np.where(own.loud, own.chance, np.minimum(slope * missed, 1.0))
    power = np.clip(world.seen / np.maximum(world.chance, 1e-6), 0.05, 0.98)
    doubt = np.where(own.loud, own.doubt, 0.0)
    slope = np.minimum(slope, 1.0 / max(error, 1e-6))
    return Finding(free, chance, power, np.clip(glued.mean[:, 0], 1e-4, 1.0), doubt, slope, error)


@dataclass(frozen=True, eq=False)
class Surplus:
    """Surprises and residuals beyond those of glued pairs."""

    values: Floats  # (K, 1 + W)
    events: Floats  # (K,) squared error of the surprises
    noise: Floats  # (K, W) squared errors of the residuals

    @classmethod
    def of(cls, counts: Counts, glued: Counts) -> "Surplus":
        """Return what some counts say."""
        values = counts.values - glued.mean * counts.rows[:, None]
        events = np.maximum(counts.errors[:, 0], glued.mean[:, 0] * counts.rows)
        return cls(values, events, counts.rows[:, None] * glued.variance[:, 1:])

    def times(self, share: Floats) -> "Surplus":
        """Return what a share (K,) of the rows would say."""
        return Surplus(self.values * share[:, None], self.events * share, self.noise * share[:, None])


def _missed(left: Surplus, whole: Surplus, odd: Bools, pushed: Bools) -> tuple[float, float]:
    """Return the share of the influences in some regions that has no edge, and its standard error.

    Surprises are counted; shifts are measured along the direction that the rows with an edge have. Where hardly any
    rows can be counted, because other sources nearly always have an edge to the target, it may be any share.

    Args:
        left: what rows without an edge have.
        whole: what as many rows would have if all influences were missed.
        odd: (K,) regions with surprises.
        pushed: (K,) regions with a shift alone.
    """
    parts = [(left.values[odd, 0].sum(), whole.values[odd, 0].sum(), left.events[odd].sum() + 1.0)]
    rest = (whole.values - left.values)[:, 1:]
    along = np.where(pushed[:, None], rest, 0.0) / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    noise = (along**2 * left.noise).sum() + 1.0
    parts.append(((left.values[:, 1:] * along).sum(), (whole.values[:, 1:] * along).sum(), noise))
    good = [(x / y, np.sqrt(v) / y) for x, y, v in parts if y > _FEWEST_EVENTS]
    if not good:
        return 0.0, _ANY
    weights = np.array([1.0 / error**2 for _, error in good])
    share = float(np.clip((weights * [value for value, _ in good]).sum() / weights.sum(), 0.0, 1.0))
    return share, float(1.0 / np.sqrt(weights.sum()))
