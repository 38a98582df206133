"""A witness that is independent of any mask: where does it matter to know the source?

For every pair of a source and a target, trees look for regions of their joint configurations (relative position,
their other columns) in which the target does what it would not do by itself. Each region is counted on rows that
the tree has not seen, and held against glued pairs, whose source comes from another row: what a target does
because of its own state, at a wall say, it does with any source. What is left over is influence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.counting import Counts, Finding, Loudness, found
from counterpoint.learn.calibration.laws import follow, rates, totals
from counterpoint.learn.calibration.own_course import RARE, SURPRISING, OwnCourses, limits
from counterpoint.learn.calibration.suspects import Suspects, suspects
from counterpoint.learn.calibration.telling import Telling
from counterpoint.learn.calibration.testimony import CLIP, Testimony, judgeable, others, testimony
from counterpoint.learn.calibration.together import Situations, situations
from counterpoint.masks.pairs import FactorPairs, beside

_FEWEST_CALM = 50  # rows that the shape of noise is told from, if there are so many
_UNRULY = 0.15  # share of a factor's rows without a law from which on that is not about a wall or two
_CALMEST = 0.3  # share of the rows that the usual rate of surprises is told from


@dataclass(frozen=True, eq=False)
class Witness:
    """What the witness has seen of some transitions."""

    alone: OwnCourses
    pairs: FactorPairs
    learnt: Transitions
    judged: Transitions
    known: Bools  # (T, n) where a factor can be judged
    groups: Ints  # (T,) the episodes
    residuals: tuple[Floats, ...]  # of each factor, in ordinary ones, (T, W)
    limits: tuple[Floats, ...]  # beyond which a residual is a surprise, (W,)
    testimonies: tuple[Testimony, ...]
    loud: Bools  # (T, N, n) pairs in a region with an influence
    calmest: Bools  # (T, n) where a target is in regions of a source in which it was least surprised in the other half
    puzzling: Floats  # (T, n) how often a factor's own state puzzles, by the other half
    expected: Floats  # (T, n) how often a factor's own state makes it surprised
    together: tuple[Situations, ...]  # of two factors, in which a third is surprised
    suspects: tuple[Suspects, ...]  # where sources could move a target that no law explains

    @classmethod
    def fit(cls, learn: Transitions, judge: Transitions, factors: Factorization, rng: np.random.Generator) -> "Witness":
        """Find regions in one half of the data, and count in the other.

        Args:
            learn: what laws and regions are found in.
            judge: what is counted.
            factors: how columns split into factors.
            rng: source of randomness.
        """
        alone, pairs = OwnCourses.fit(learn, factors, rng).refined(learn, rng), FactorPairs(factors)
        before, after = alone.residuals(learn), alone.residuals(judge)
        kinds = [judgeable(kind, alone) for kind in pairs.kinds]
        suspected = suspects([kind for kind in kinds if kind.pairs], alone, (learn, judge), (before, after), rng)
        ready = alone.judged(learn)
        before = [np.where(ready[:, [j]], each, 0.0) for j, each in enumerate(before)]
        told = [testimony(kind, pairs, (learn, judge), before, rng) for kind in kinds if kind.pairs]
        groups = np.arange(len(judge)) if judge.episode is None else np.unique(judge.episode, return_inverse=True)[1]
        known = alone.judged(judge)
        nothing = np.zeros((len(judge), factors.n + factors.m, factors.n), np.bool_)
        ordinary = tuple(np.full(each.shape[1], SURPRISING) for each in after)
        counted = pairs, learn, judge, known, groups, tuple(after), ordinary, tuple(told)
        first = cls(alone, *counted, nothing, known, known * 0.0, known * 0.0, (), suspected)
        second = replace(first, loud=first._loud())
        third = replace(second, limits=second._limits())
        fourth = replace(third, loud=third._loud())
        fifth = fourth._with_calmest(learn, before, ready)
        return fifth._with_situations(learn, before, ready, rng)

    @cached_property
    def surprised(self) -> Bools:
        """Which factors did what noise hardly ever does, (T, n)."""
        return self.known & _beyond(self.residuals, self.limits)

    @cached_property
    def lawless(self) -> Bools:
        """Rows of factors that no law explains often, so that nobody sees whether another moves them, (T, n)."""
        fails = self.alone.fails(self.judged)
        return np.asarray(fails & (fails.mean(axis=0) > _UNRULY))

    def could_move(self, data: Transitions) -> Bools:
        """Return where a source could move a target if none of the target's laws holds, (B, N, n)."""
        rows = beside(data.state, data.action)
        where = [each.where(self.pairs, rows) for each in self.suspects]
        return self.spread([1.0 * each.could for each in self.suspects], where) > 0

    @cached_property
    def puzzled(self) -> Bools:
        """Which factors did what normal noise hardly ever does, (T, n)."""
        return self.known & _beyond(self.residuals, self._narrow)

    @property
    def _narrow(self) -> tuple[Floats, ...]:
        return tuple(np.minimum(each, RARE[1]) for each in self.limits)

    @cached_property
    def strain(self) -> Floats:
        """How far factors are off, squared, in the column in which that is most; bounded, (T, n)."""
        return np.stack([np.square(np.clip(z, -CLIP, CLIP)).max(axis=1) for z in self.residuals], axis=1)

    @cached_property
    def values(self) -> tuple[Floats, ...]:
        """For each factor whether it was surprised, and its residuals, (T, 1 + W)."""
        both = zip(self.surprised.T, self.residuals, strict=True)
        return tuple(np.concatenate([odd[:, None], np.clip(z, -CLIP, CLIP)], axis=1) for odd, z in both)

    def _limits(self) -> tuple[Floats, ...]:
        """Return what noise hardly ever exceeds, from its shape where no influence is known, (W,) each."""
        calm = self.known & ~self.loud.any(axis=1)
        both = zip(calm.T, self.residuals, strict=True)
        return tuple(limits(each[rows] if rows.sum() >= _FEWEST_CALM else each) for rows, each in both)

    def _with_calmest(self, learn: Transitions, before: list[Floats], ready: Bools) -> "Witness":
        """Find rows in which targets are calm by what the other half says, each by the source that tells most.

        That is where they are less surprised than their own state says: at a wall a factor may always be.
        """
        odd = ready & _beyond(before, self._narrow)
        both = [
            rates(course.given(learn), odd[:, j], course.given(self.judged))
            for j, course in enumerate(self.alone.courses)
        ]
        usual, puzzling = (np.stack(each, axis=1) for each in zip(*both, strict=True))
        calmest, least = np.zeros(self.known.shape, np.bool_), np.full(self.known.shape[1], np.inf)
        for each in self.testimonies:
            for (_, j), learnt, where in zip(each.kind.pairs, each.learnt, each.where, strict=True):
                counted = np.stack([ready[:, j], odd[:, j], ready[:, j] * usual[:, j]], axis=1)
                rows, events, expected = totals(learnt, counted, len(each.regions)).T
                order = np.argsort((events + 0.1) / (expected + 10.0 * odd[:, j].mean() + 1e-9))
                chosen = order[: 1 + int(np.searchsorted(np.cumsum(rows[order]), _CALMEST * rows.sum()))]
                share = events[chosen].sum() / max(1e-9, expected[chosen].sum())
                if share < least[j]:
                    least[j], calmest[:, j] = share, np.isin(where, chosen)
        return replace(self, calmest=calmest, puzzling=puzzling)

    def _with_situations(
        self, learn: Transitions, before: list[Floats], ready: Bools, rng: np.random.Generator
    ) -> "Witness":
        """Look for sources that act only together, where no single one explains what a target does."""
        odd = ready & _beyond(before, self.limits)
        loud = self.spread(self._loud_regions, [each.learnt for each in self.testimonies]) > 0
        both = [
            rates(course.given(learn), odd[:, j], course.given(self.judged))
            for j, course in enumerate(self.alone.courses)
        ]
        usual, expected = (np.stack(each, axis=1) for each in zip(*both, strict=True))
        halves = beside(learn.state, learn.action), beside(self.judged.state, self.judged.action)
        found = situations(self.pairs, halves, odd, usual, ready & ~loud.any(axis=1), others(self.judged, rng))
        return replace(self, expected=expected, together=found)

    @cached_property
    def joint(self) -> Bools:
        """Rows of a target in situations of two other factors in which it is surprised, (T, n)."""
        calm, joint = self.known & ~self.loud.any(axis=1), np.zeros(self.known.shape, np.bool_)
        for each in self.together:
            chance = each.chance(self.surprised[:, each.target], self.expected[:, each.target], calm[:, each.target])
            joint[:, each.target] |= np.any([chance[where] > 0 for where in each.where], axis=0)
        return joint

    def usual(self, edges: Bools) -> Floats:
        """Return how often each factor is puzzling where nothing influences it, (T, n).

        That is as often as its own state says, or less, by as much as where the mask has no edge to it, and where, for
        some source, it was least surprised in the other half of the data. If surprises are noise, they are as frequent
        there as anywhere else.

        Args:
            edges: (T, N, n) the mask's edges on the judged rows.
        """
        calm = self.known & ~self.loud.any(axis=1) & ~self.moved(edges).any(axis=1) & self.calmest
        (odd, every), (found, expected) = (
            ((each * rows).sum(axis=0) for each in (self.puzzled, self.puzzling)) for rows in (self.known, calm)
        )
        return np.asarray(self.puzzling * np.minimum(found / np.maximum(expected, 1e-9), odd / np.maximum(every, 1e-9)))

    @cached_property
    def telling(self) -> Telling:
        """What all others together tell of each factor."""
        return Telling.of(self.alone, (self.learnt, self.judged), self.limits, self.known)

    def moved(self, edges: Bools, rows: Transitions | None = None) -> Bools:
        """Return the edges from others that are not there in every transition, (T, N, n).

        A factor whose velocity is hidden shows a push in its next change only, so its edges last one row longer.

        Args:
            edges: (T, N, n) of a mask.
            rows: what they are about; None for the judged rows.
        """
        nodes, n = edges.shape[1:]
        moved = edges & ~self.alone.always & ~np.eye(nodes, n, dtype=np.bool_)
        follows = follow(self.judged if rows is None else rows)
        late = [course.lagged for course in self.alone.courses] & follows[1:, None]  # (T - 1, n)
        after = moved.copy()
        after[1:] |= moved[:-1] & late[:, None]
        return np.asarray(after)

    def findings(self, edges: Bools) -> list[Finding]:
        """Return what is found in the regions of each kind of pair, where a mask has no edge.

        A target that another source moves is surprised by that one, and what is missed would drown in it. So surprises
        are counted where the mask has no edge to the target at all, for glued pairs as well.

        Args:
            edges: (T, N, n) the mask's edges on the judged rows. They tell more of a row than its region.
        """
        moved: Bools = np.asarray(self.moved(edges).any(axis=1))  # (T, n)
        findings = []
        for each, world in zip(self.testimonies, self._every, strict=True):
            free = self._free(each, edges)
            clean = [rows & ~moved[:, j] for (_, j), rows in zip(each.kind.pairs, free, strict=True)]
            all_free = np.concatenate([where[rows] for where, rows in zip(each.where, free, strict=True)])
            rows = totals(all_free, 1.0, len(each.regions))[:, 0]
            findings.append(found(self._counted(each, clean), self._glued(each, moved), rows, *world, each.before))
        return findings

    @cached_property
    def _every(self) -> list[tuple[Counts, Counts]]:
        """What is counted whatever the mask: all real pairs, and the glued ones."""
        nowhere = np.zeros(self.loud.shape, np.bool_)
        return [(self._counted(each, self._free(each, nowhere)), self._glued(each)) for each in self.testimonies]

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

    @property
    def _loud_regions(self) -> list[Floats]:
        both = zip(self.testimonies, self._every, strict=True)
        return [1.0 * Loudness.of(*counts, each.before).loud for each, counts in both]

    def _loud(self) -> Bools:
        return np.asarray(self.own(self._loud_regions) > 0)

    def thin(self, edges: Bools, fewest: int) -> list[Floats]:
        """Return 1.0 for the regions of each kind with few rows without an edge; those without a law are such rows."""
        told, thin = self.known | self.lawless, []
        for each in self.testimonies:
            free = self._free(each, edges, told)
            every = np.concatenate([where[some] for where, some in zip(each.where, free, strict=True)])
            thin.append(1.0 * (np.bincount(every, minlength=len(each.regions)) < fewest))
        return thin

    def _free(self, each: Testimony, edges: Bools, known: Bools | None = None) -> list[Bools]:
        """Return for each pair of a kind its rows without an edge, and without another source that is loud, (T,)."""
        n, louder = self.alone.factors.n, self.loud.sum(axis=1)  # (T, n)
        known, rows = self.known if known is None else known, []
        for i, j in each.kind.pairs:
            free = known[:, j] & ~edges[:, i, j] & (louder[:, j] - self.loud[:, i, j] == 0)
            rows.append(free & ~edges[:, j, i] if i < n else free)
        return rows

    def _counted(self, each: Testimony, rows: list[Bools]) -> Counts:
        """Count some rows of each pair of a kind."""
        pairs = zip(each.kind.pairs, each.where, rows, strict=True)
        return reduce(add, (self._count(each, where[some], j, some) for (_, j), where, some in pairs))

    def _glued(self, each: Testimony, moved: Bools | None = None) -> Counts:
        """Count the glued pairs whose target no source has moved loudly, or by an edge."""
        calm = self.known & ~self.loud.any(axis=1)  # (T, n)
        if moved is not None:
            calm &= ~moved
        every = ((where, j) for (_, j), several in zip(each.kind.pairs, each.glued, strict=True) for where in several)
        return reduce(add, (self._count(each, where[calm[:, j]], j, calm[:, j]) for where, j in every))

    def _count(self, each: Testimony, where: Ints, target: int, rows: Bools) -> Counts:
        values = self.values[target]
        return Counts.of(where, values[rows], self.groups[rows], len(each.regions))


def _beyond(residuals: Sequence[Floats], limits: tuple[Floats, ...]) -> Bools:
    """Return which factors have a residual beyond its limit, (T, n)."""
    return np.stack([(np.abs(each) > limit).any(axis=1) for each, limit in zip(residuals, limits, strict=True)], axis=1)
