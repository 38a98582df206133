"""Who could move a factor that no law explains: a block that tumbles on the floor is out of a hand's reach.

Where no law of a factor holds, nobody sees whether another moves it. But how far it is off can be compared: if that
is the same however another lies to it, and as little as where it is least, then the other is not what moves it. A
source that is with it more often than by chance, as a grip with what it holds, is not acquitted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.finer import scales
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.calibration.own_course import RARE, OwnCourses
from counterpoint.masks.pairs import FactorPairs, Kind, beside
from counterpoint.masks.regions import Regions

_FEWEST, _DEEPEST = 200, 4  # of the trees
_FEWEST_EACH = 100  # rows without a law in each half, or everybody is suspected
_FEWEST_REAL = 20  # rows of a region without which nobody is acquitted there
_QUIET = 0.3  # share of the rows by which it is told how far a factor is off if nobody moves it
_MORE = 0.4  # by how much more, as a logarithm, from which on a source may be the cause
_TOGETHER = 3.0  # times as often as by chance from which on two are together for a reason
_MANY, _FEW = 0.05, 0.03  # surprises beyond the usual where laws hold: a source acts, or does not
_PRIOR = 20.0  # glued pairs of a region that are taken to be like all
_MOST = 1e3  # times as far off as usual; more is as much


@dataclass(frozen=True, eq=False)
class Conduct:
    """What a factor did in some rows."""

    odd: Bools  # (R,) whether it was surprised
    off: Floats  # (R,) by how much more than usual for its own state it was off, a logarithm; NaN where its laws hold

    @classmethod
    def of(cls, left: Floats, ahead: Floats, lawless: Bools) -> "Conduct":
        """Look at a factor.

        Args:
            left: (R, W) its residuals in ordinary ones.
            ahead: (R, I + W) where it is, and where its law would take it.
            lawless: (R,) where its laws fail.
        """
        off = np.full(len(left), np.nan)
        if lawless.any():
            regions, scale = scales(left[lawless], ahead[lawless])
            size = np.minimum(np.maximum(np.abs(left[lawless]), 1.0) / scale[regions(ahead[lawless])], _MOST)
            off[lawless] = np.log(np.sqrt(np.square(size).mean(axis=1)))
        return cls(np.abs(left).max(axis=1) > RARE[-1], off)


@dataclass(frozen=True, eq=False)
class Suspects:
    """Regions of how the sources of a kind lie to their targets, in which they could move a target without a law."""

    kind: Kind
    regions: Regions
    could: Bools  # (K,)

    def where(self, pairs: FactorPairs, rows: Array) -> list[Ints]:
        """Return the region of each pair of the kind, (B,) each."""
        return [self.regions(each) for each in _lie(self.kind, pairs, rows, rows)]


def suspects(
    kinds: Sequence[Kind],
    alone: OwnCourses,
    halves: Sequence[Transitions],
    residuals: Sequence[list[Floats]],
    rng: np.random.Generator,
) -> tuple[Suspects, ...]:
    """Ask of each kind of pair where a source could move a target whose laws fail.

    Args:
        kinds: which pairs.
        alone: the laws of all factors.
        halves: of the episodes; regions are found in the first, and sources acquitted in the second.
        residuals: in ordinary ones, of each half and factor.
        rng: source of randomness.
    """
    seen = []
    for half, left in zip(halves, residuals, strict=True):
        both = zip(left, alone.courses, alone.fails(half).T, strict=True)
        seen.append([Conduct.of(each, course.ahead(half), fails) for each, course, fails in both])
    rows, pairs = [beside(half.state, half.action) for half in halves], FactorPairs(alone.factors)
    return tuple(_suspects(kind, pairs, rows, seen, rng) for kind in kinds)


def _suspects(
    kind: Kind, pairs: FactorPairs, halves: Sequence[Array], seen: Sequence[list[Conduct]], rng: np.random.Generator
) -> Suspects:
    given, values, real = zip(
        *(_gathered(kind, pairs, *both, rng) for both in zip(halves, seen, strict=True)), strict=True
    )
    if min(each.sum() for each in real) < _FEWEST_EACH:
        return Suspects(kind, Regions(np.array([-1]), np.zeros(1), np.zeros(1, np.int64)), np.ones(1, np.bool_))
    signed = np.where(real[0], values[0], -values[0])
    regions = Regions.grow(given[0], signed[:, None], fewest=_FEWEST, deepest=_DEEPEST, some=real[0], of=_FEWEST_REAL)
    where, size = regions(given[1]), len(regions)
    rows, sums = (
        np.stack([totals(where[some], each[some, None], size)[:, 0] for some in (real[1], ~real[1])])
        for each in (np.ones(len(where)), values[1])
    )
    usual = sums[1].sum() / max(1.0, rows[1].sum())
    more = sums[0] / np.maximum(rows[0], 1.0) - (sums[1] + _PRIOR * usual) / (rows[1] + _PRIOR)
    often = rows[0] > _TOGETHER * (rows[1] + 1.0) * rows[0].sum() / max(1.0, rows[1].sum())
    above, beyond = _surprises(kind, pairs, regions, halves, seen, rng)
    could = (rows[0] < _FEWEST_REAL) | (more > _least(more, rows[0], _FEWEST_REAL) + _MORE)
    return Suspects(kind, regions, could | (beyond > _MANY) | (often & ~(above < _FEW)))


def _least(values: Floats, rows: Floats, fewest: int) -> float:
    """Return what some share of the rows has at the most, of regions with so many rows."""
    order = np.argsort(np.where(rows >= fewest, values, np.inf))
    return float(values[order[int(np.searchsorted(np.cumsum(rows[order]), _QUIET * rows.sum()))]])


def _surprises(
    kind: Kind,
    pairs: FactorPairs,
    regions: Regions,
    halves: Sequence[Array],
    seen: Sequence[list[Conduct]],
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return how many more targets are surprised where their laws hold than where they are least, and than if glued.

    Both are shares of the rows of each region, (K,); NaN where these are few.
    """
    counted = np.zeros((2, len(regions), 2))
    for rows, every in zip(halves, seen, strict=True):
        for k, (_, j) in enumerate(kind.pairs):
            some = np.isnan(every[j].off)
            here = rows[some]
            both = np.stack([np.ones(len(here)), every[j].odd[some]], axis=1)
            for glued, source in enumerate((here, here[rng.permutation(len(here))])):
                counted[glued] += totals(regions(_lie(kind, pairs, source, here)[k]), both, len(regions))
    (rows, events), (glued_rows, glued_events) = np.moveaxis(counted, 2, 1)
    rate = np.where(rows >= _FEWEST_EACH, events / np.maximum(rows, 1.0), np.nan)
    usual = (glued_events + _PRIOR * glued_events.sum() / max(1.0, glued_rows.sum())) / (glued_rows + _PRIOR)
    return rate - _least(rate, rows, _FEWEST_EACH), rate - usual


def _gathered(
    kind: Kind, pairs: FactorPairs, rows: Array, seen: list[Conduct], rng: np.random.Generator
) -> tuple[Floats, Floats, Bools]:
    """Return how real and glued pairs lie, how far the targets are off, and which are real.

    The sources of glued pairs are of other rows in which the laws of the target fail.
    """
    given, values, real = [], [], []
    for k, (_, j) in enumerate(kind.pairs):
        some = ~np.isnan(seen[j].off)
        here = rows[some]
        for source, is_real in ((here, True), (here[rng.permutation(len(here))], False)):
            given.append(_lie(kind, pairs, source, here)[k])
            values.append(seen[j].off[some])
            real.append(np.full(len(here), is_real))
    return np.concatenate(given), np.concatenate(values), np.concatenate(real)


def _lie(kind: Kind, pairs: FactorPairs, source: Array, target: Array) -> list[Floats]:
    """Return how sources lie to their targets, and their other columns; those of the targets explain nothing here."""
    own = f"{pairs.factors.names[kind.pairs[0][1]]}["
    placed = "distance" in kind.labels
    kept = [k for k, label in enumerate(kind.labels) if not (placed and label.startswith(own))]
    return [each[:, [*kept, -2, -1]] for each in pairs.features(kind, source, target)]
