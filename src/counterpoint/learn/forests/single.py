"""Which single source explains what a target did: shares of every surprise, found by taking turns.

Trees say how often a target is surprised for such a configuration of it and a source. A surprise is then shared out
among all sources, and the target's own state, by how likely each makes it, and trees are grown again to the shares.
A source that only happens to be there loses its share in a few rounds. Beside surprises, trees look for steady
pushes, which may be as small as the noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.core.threads import side_by_side
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.forests.case import CLIP, Case
from counterpoint.learn.forests.forest import Forest
from counterpoint.masks.regions import Binned, Regions

Pairs = Sequence[tuple[int, int]]

TURNS = 3
_FEWEST, _DEEPEST, _FEWEST_REAL = 30, 10, 7  # of the trees
_SOME = 60_000  # pairs that a tree is grown on, and as many with a surprise
_SHARE = 0.05  # of a surprise, from which on a pair is among these
_PRIOR, _PRIOR_PUSH = 2.0, 20.0  # rows of a region that are taken to be like all
_SURE = 1.5  # standard errors of a push that may be chance


@dataclass(frozen=True, eq=False)
class Blame:
    """What explains the surprises of each row, told by what was learned from other episodes."""

    itself: Floats  # (T, n) chance that a factor's own state surprises it
    chance: Floats  # (T, N, n) chance that a source does
    push: dict[tuple[int, int], Floats]  # by how much a source moves a target, in units of its noise, (T, W) each

    @property
    def total(self) -> Floats:
        """Chance of a surprise, (T, n)."""
        return np.asarray(self.itself + self.chance.sum(axis=1))

    def left(self, case: Case) -> list[Floats]:
        """Return what no push explains of what each target did, (T, W) each."""
        left = [off.copy() for off in case.off]
        for (_, j), push in self.push.items():
            left[j] -= push
        return left


def blame(case: Case, rng: np.random.Generator, done: Callable[[], object]) -> tuple[Blame, list[Forest]]:
    """Explain surprises and pushes by single sources; return what explains them, and the forests of all kinds.

    Args:
        case: what there is to explain.
        rng: source of randomness.
        done: called after each turn.
    """
    nobody = np.zeros((len(case), *case.asked.shape))
    found = Blame(case.by_itself(case.odd.astype(np.float64)), nobody, {})
    forests: list[Forest] = []
    for turn in range(TURNS):
        if turn:
            found = Blame(case.by_itself(case.odd * found.itself / found.total), found.chance, found.push)
            share = case.odd[:, None] * found.chance / found.total[:, None]
        else:
            share = np.broadcast_to((case.odd - found.itself)[:, None], nobody.shape)
        left, chance, push, forests = found.left(case), nobody.copy(), {}, []
        for pairs in case.outlook.kinds(case.asked):
            mine = np.concatenate([share[:, i, j] for i, j in pairs])
            rest = np.concatenate([left[j] for _, j in pairs])
            moved = np.concatenate([left[j] + found.push.get((i, j), 0.0) for i, j in pairs])
            lesson = _lesson(case, pairs, (mine, moved, rest), rng)
            forest, told = _grown(lesson, np.tile(case.halves, len(pairs)))
            forests.append(forest)
            for (i, j), each in zip(pairs, np.split(told, len(pairs)), strict=True):
                chance[:, i, j], push[i, j] = np.clip(each[:, 0], 0.0, 1.0), each[:, 1:]
        found = Blame(found.itself, chance, push)
        done()
    return found, forests


@dataclass(frozen=True, eq=False)
class _Lesson:
    """All pairs of a kind, pair by pair, and some of them again with sources of other episodes."""

    features: Floats  # (R, F)
    ready: Bools  # (R,) whether the target can be judged
    share: Floats  # (R,) of a surprise
    moved: Floats  # (R, W) residuals without what other sources explain
    rest: Floats  # (R, W) and without what this one explains
    rows: Ints  # (G,) those that trees are grown on
    glued: Floats  # (G, F) with sources of other episodes
    even: Bools  # (G,) those that were chosen whatever happened

    @cached_property
    def binned(self) -> Binned:
        """What trees are grown on, real pairs before glued ones, (2 · G, F)."""
        return Binned.of(np.concatenate([self.features[self.rows], self.glued]))

    def tree(self, half: Bools) -> Regions:
        """Grow a tree on half of the pairs, (R,), where real ones differ from glued ones."""
        some = half[self.rows]
        real = self.rows[some]
        odd = 2.0 * self.share[real, None]
        there, elsewhere = (np.concatenate([odd, each[real] / CLIP], axis=1) for each in (self.moved, self.rest))
        return Regions.grow(
            self.binned[np.tile(some, 2)],
            np.concatenate([there, -elsewhere]),
            fewest=_FEWEST,
            deepest=_DEEPEST,
            some=np.arange(2 * len(real)) < len(real),
            of=_FEWEST_REAL,
        )

    def known(self, where: Ints, apart: Ints, counted: Bools, size: int) -> Floats:
        """Return the share of surprises in each region, and the push beyond that of glued pairs, (K, 1 + W).

        Who does what its own law says is not pushed, even if it would be with sources of other episodes.

        Args:
            where: (R,) regions.
            apart: (G,) those of glued pairs.
            counted: (R,) pairs that count.
            size: number of regions.
        """
        some, mine = counted & self.ready, counted[self.rows] & self.even
        there, elsewhere = where[some], apart[mine]
        count, alone = totals(there, 1.0, size), totals(elsewhere, 1.0, size)
        usual = _PRIOR * float(self.share[some].mean()) if some.any() else 0.0
        chance = (totals(there, self.share[some, None], size) + usual) / (count + _PRIOR)
        moved = totals(there, self.moved[some], size) / (count + _PRIOR_PUSH)
        beyond = moved - totals(elsewhere, self.rest[self.rows[mine]], size) / (alone + _PRIOR_PUSH)
        square = totals(there, np.square(self.moved[some]), size) / np.maximum(count, 1.0)
        chance_alone = _SURE * np.sqrt(square / (count + _PRIOR_PUSH))
        push = np.sign(moved) * np.clip(np.sign(moved) * beyond, 0.0, np.maximum(np.abs(moved) - chance_alone, 0.0))
        return np.concatenate([np.maximum(chance, 0.0), push], axis=1)


def _lesson(case: Case, pairs: Pairs, wanted: tuple[Floats, Floats, Floats], rng: np.random.Generator) -> _Lesson:
    """Gather the pairs of a kind: trees grow on those with a surprise, and on some others."""
    share, ready, size = wanted[0], np.concatenate([case.ready[:, j] for _, j in pairs]), len(case)
    even, often = _some(ready, rng), _some(ready & (share > _SHARE), rng)
    rows = np.flatnonzero(even | often)
    glued = [_glued(case, pair, rows[rows // size == k] % size) for k, pair in enumerate(pairs)]
    features = case.outlook.features(pairs, case.rows, case.rows)
    return _Lesson(np.concatenate(features), ready, *wanted, rows, np.concatenate(glued), even[rows])


def _some(rows: Bools, rng: np.random.Generator) -> Bools:
    """Return some of the chosen rows, not too many."""
    return np.asarray(rows & (rng.random(len(rows)) < _SOME / max(1, rows.sum())))


def _glued(case: Case, pair: tuple[int, int], rows: Ints) -> Floats:
    """Return the features of a pair whose source comes from other rows, (R, F)."""
    return case.outlook.pair(*pair, case.rows[case.partners[0][rows]], case.rows[rows])


def _grown(lesson: _Lesson, halves: Bools) -> tuple[Forest, Floats]:
    """Grow the forest of a kind of pair; return it, and what halves say of the pairs that they leave out, (R, 1 + W).

    Args:
        lesson: the pairs.
        halves: (H, R).
    """
    told, every = np.zeros((len(lesson.share), 1 + lesson.moved.shape[1])), np.ones_like(lesson.ready)

    def grow(half: Bools) -> tuple[Regions, Floats, Floats]:
        regions = lesson.tree(half)
        where, apart = regions(lesson.features), regions(lesson.glued)
        told_here = lesson.known(where, apart, half, len(regions))[where[~half]]
        return regions, lesson.known(where, apart, every, len(regions)), told_here / (len(halves) // 2)

    _ = lesson.binned  # all trees need it, so that it is made before they are grown beside each other
    grown = side_by_side(grow, halves)
    for half, (*_, each_told) in zip(halves, grown, strict=True):
        told[~half] += each_told
    return Forest(tuple(tree for tree, *_ in grown), tuple(values for _, values, _ in grown)), told
