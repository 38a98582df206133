"""What all others together tell of a target, where a mask says that none of them acts on it.

Pairs are not all there is: a reading depends on a mast and on who stands before it, and a weak push may hide in what a
target does by itself. So trees learn, from one half of the data, what a target does beyond its own law, given all that
can be seen of it and of the others. In the rows of the other half in which the mask has no edge to it, its own state
should tell as much as all together. What others tell beyond that is influence that the mask misses; and what they
would tell differently after a swap is what the swap would make wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, NodeSet
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.boosting import Boosted
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.learn.calibration.surroundings import Surroundings

_MOST_ROWS, _MOST_ENTRIES = 20_000, 3_000_000  # that models are learned from; rows, and numbers for each target
_NORMAL = 1.48  # ordinary residuals in a standard deviation of normal noise
_CLIP = 4.0  # standard deviations; what is further off counts as much
_LEAST_NOISE = 0.1  # of what is ordinary
_OFF = 1.5  # standard deviations of noise, from which on a target is off
_TREES_ALONE = 36  # trees that tell what its own state does; more than others get, so that these tell news alone
_FEWEST = 200  # rows without an edge, in both halves
_UNSURE, _SURE = 2.0, 4.0  # standard errors, from which on something is believed, and from which on wholly
_ANY = 0.5  # standard error of a share of which nothing is known
_STEEPEST = 1.5  # the trees say too little rather than too much, so what they say may be stretched
_BLOCK = 50  # rows of an episode that are taken for alike
_FINEST = 1e-3  # no share is known better
_CLEAR = 0.2  # what others tell, from which on an influence is seen
_SLIGHT = 0.1  # changes of what is told that are taken for nothing


@dataclass(frozen=True, eq=False)
class Model:
    """What is told of one target."""

    target: int
    told: Boosted  # given all, beyond what its own state tells
    learnt: Floats  # (L, W) what it says of the rows that it was learned from
    judged: Floats  # (T, W) what it says of the others
    left: Floats  # (L, W) what there is to tell of the rows that it was learned from
    seen: Floats  # (T, W) the same of the others


@dataclass(frozen=True, eq=False)
class Telling:
    """What others tell of every target."""

    learn: Transitions
    surroundings: Surroundings
    ready: Bools  # (L, n) where a factor can be judged
    known: Bools  # (T, n)
    blocks: Ints  # (T,) rows that are alike
    models: tuple[Model, ...]
    own: tuple[tuple[Floats, Floats], ...]  # what is known of each factor itself, in both halves

    @classmethod
    def of(
        cls, alone: OwnCourses, halves: tuple[Transitions, Transitions], limits: tuple[Floats, ...], known: Bools
    ) -> "Telling":
        """Learn from one half what all tell of each target in the other.

        Args:
            alone: the laws of all factors.
            halves: what is learned from, and what is judged.
            limits: residuals beyond these are surprises, (W,) each.
            known: (T, n) where a factor can be judged.
        """
        around = Surroundings(alone)
        learn = _some(halves[0], min(_MOST_ROWS, _MOST_ENTRIES // around.widest))
        judged = halves[1]
        ready = alone.judged(learn)
        rows, residuals = around.placed(learn.state, learn.action), (alone.residuals(learn), alone.residuals(judged))
        own = tuple((course.known(learn), course.known(judged)) for course in alone.courses)
        models = []
        for j in around.targets:
            here, mine = around.of(j, rows, own[j][0]), ready[:, j]
            if mine.sum() >= _FEWEST:
                noise = _noise(here[mine], residuals[0][j][mine])
                left, seen = (_outcome(each[j], limits[j], noise) for each in residuals)
                by_itself = Boosted.fit(own[j][0][mine], left[mine], _TREES_ALONE)
                told = Boosted.fit(here[mine], left[mine] - by_itself(own[j][0][mine]))
                there = np.concatenate([told(each) for each in around.in_parts(j, judged, own[j][1])])
                models.append(Model(j, told, told(here), there, left, seen))
        return cls(learn, around, ready, known, _blocks(judged), tuple(models), own)

    @property
    def surprised(self) -> Bools:
        """Which factors did what noise hardly ever does, in the rows that are learned from, (L, n)."""
        odd = np.zeros(self.ready.shape, np.bool_)
        for model in self.models:
            odd[:, model.target] = model.left[:, -1] > 0
        return odd

    @cached_property
    def sights(self) -> Bools:
        """The rows in which others tell clearly what a target does, (T, n); no mask is asked."""
        seen = np.zeros(self.known.shape, np.bool_)
        for model, more, slope in self._everywhere:
            seen[:, model.target] = ((np.abs(more) > _CLEAR) & slope.clear).any(axis=1)
        return seen

    def hear(self, free: tuple[Bools, Bools], origin: Ints, proposal: Transitions, nodes: NodeSet) -> "Told":
        """Return what others would tell differently of proposals, because a mask misses something.

        Args:
            free: (L, n) and (T, n) rows in which the mask has no edge to a target.
            origin: (R, N) the judged rows that each node of a proposal comes from.
            proposal: what the mask accepts.
            nodes: (R, N) what was swapped.
        """
        right, faint, doubt = np.ones(len(nodes)), 0.0, 0.0
        rows, asked = self.surroundings.placed(proposal.state, proposal.action), self.surroundings.asked
        tells = self._tells
        for model, _, slope in self._missed(*free, tells):
            j = model.target
            apart = np.flatnonzero(((nodes != nodes[:, [j]]) & asked[:, j]).any(axis=1))
            if not len(apart):
                continue
            parents = origin[apart, j]  # where its own state comes from, and what is known of the step before
            told = model.told(self.surroundings.of(j, rows[apart], self.own[j][1][parents]))
            change = np.abs(told - model.judged[parents]) * tells[j]
            share = np.minimum((slope.surely * change).max(axis=1), 1.0)
            right[apart] *= 1.0 - np.where(share > _SLIGHT, share, 0.0)
            most = float(change.max(axis=1).sum()) / max(1, len(nodes))
            faint += slope.faintly * most
            doubt += (slope.error * most) ** 2
        return Told(1.0 - right, faint, float(np.sqrt(doubt)))

    @cached_property
    def _everywhere(self) -> "list[tuple[Model, Floats, Slope]]":
        """The same in all rows, whatever the mask."""
        every = {model.target: np.ones(model.seen.shape[1], np.bool_) for model in self.models}
        return list(self._missed(np.ones(self.ready.shape, np.bool_), np.ones(self.known.shape, np.bool_), every))

    @cached_property
    def _tells(self) -> dict[int, Bools]:
        """For each target the columns of which others tell anything at all, (W,)."""
        return {model.target: slope.clear for model, _, slope in self._everywhere}

    def _missed(self, learnt: Bools, judged: Bools, tells: dict[int, Bools]) -> "Iterator[tuple[Model, Floats, Slope]]":
        """Yield what others tell of each target, if anything, beyond its own state (T, W), and how much is true.

        That is told from rows in which the mask has no edge to it. There its own state is asked anew: that it does
        something else where it is influenced is no news there.
        """
        for model in self.models:
            j = model.target
            if not tells[j].any():
                continue
            mine, free = self.ready[:, j] & learnt[:, j], self.known[:, j] & judged[:, j]
            if min(mine.sum(), free.sum()) < _FEWEST:
                yield model, model.judged * 0.0, Slope.unknown(model.seen.shape[1])
                continue
            here, there = self.own[j]
            both = np.concatenate([model.left, model.learnt], axis=1)
            alone = Boosted.fit(here[mine], both[mine], _TREES_ALONE)(there)
            width = model.seen.shape[1]
            more = model.judged - alone[:, width:]
            yield model, more, Slope.of((model.seen - alone[:, :width])[free], more[free], self.blocks[free], tells[j])


@dataclass(frozen=True, eq=False)
class Told:
    """What others would tell differently of proposals."""

    wrong: Floats  # (R,) chance of each
    faint: float  # share that may be wrong as well, for all that is surely known
    error: float  # standard error of the share that is wrong


@dataclass(frozen=True, eq=False)
class Slope:
    """How much of what is told is true."""

    surely: Floats  # (W,) by column, 0 where that is most likely chance
    clear: Bools  # (W,) whether it cannot be chance
    faintly: float  # in all columns together, 0 where it is sure in any
    error: float  # standard error of that

    @classmethod
    def unknown(cls, width: int) -> Self:
        """Return what is known where there are no rows to tell it."""
        return cls(np.zeros(width), np.zeros(width, np.bool_), 0.0, _ANY)

    @classmethod
    def of(cls, seen: Floats, told: Floats, blocks: Ints, tells: Bools) -> Self:
        """Compare what is told with what is seen.

        Args:
            seen: (R, W).
            told: (R, W).
            blocks: (R,) rows of a block are alike.
            tells: (W,) columns of which anything is told at all.
        """
        both, size = seen * told, np.maximum(np.square(told).sum(axis=0), 1e-9)
        spread = np.sqrt(np.square(totals(blocks, both, int(blocks.max()) + 1)).sum(axis=0))
        total = both.sum(axis=0)
        slope: Floats = total / size
        errors: Floats = total / np.maximum(spread, 1e-12)
        sure = tells * np.clip((errors - _UNSURE) / (_SURE - _UNSURE), 0.0, 1.0)
        weight = tells / np.maximum(spread / size, _FINEST) ** 2
        shared = float((weight * slope).sum() / max(weight.sum(), 1e-9))
        error = float(1.0 / np.sqrt(max(weight.sum(), 1.0)))
        faintly = (1.0 - float(sure.max())) * max(0.0, shared)
        return cls(sure * np.minimum(slope, _STEEPEST), np.asarray(sure >= 1.0), faintly, error)


def _noise(features: Floats, residual: Floats) -> Floats:
    """Return standard deviations of the noise, (W,): what is left of ordinary residuals where all are known.

    What others do often is part of what is ordinary, and no noise.
    """
    off = np.clip(residual / _NORMAL, -_CLIP, _CLIP)
    left = np.median(np.abs(off - Boosted.fit(features, off)(features)), axis=0)
    return np.asarray(_NORMAL * np.clip(_NORMAL * left, _LEAST_NOISE, 1.0))


def _outcome(residual: Floats, limit: Floats, noise: Floats) -> Floats:
    """Return what there is to tell: which way a target is off, and whether that is a surprise, (R, W + 1)."""
    odd = np.asarray((np.abs(residual) > limit).any(axis=1))
    off = residual / noise
    return np.concatenate([1.0 * (off > _OFF) - (off < -_OFF), odd[:, None]], axis=1)


def _blocks(data: Transitions) -> Ints:
    """Number the rows that are alike, because they follow each other, (T,)."""
    if data.episode is None:
        return np.arange(len(data))
    start = np.flatnonzero(np.diff(data.episode, prepend=data.episode[0] - 1) != 0)
    within = np.arange(len(data)) - np.repeat(start, np.diff(np.append(start, len(data))))
    return np.asarray(np.cumsum(within % _BLOCK == 0) - 1)


def _some(data: Transitions, most: int) -> Transitions:
    """Return so many rows, whole episodes from all over the data if there are any."""
    if len(data) <= most:
        return data
    groups = np.arange(len(data)) if data.episode is None else np.asarray(_episodes(data.episode))
    if groups[-1] == 0:
        return data[:most]
    size = int(groups[-1]) + 1
    chosen = np.zeros(size, np.bool_)
    chosen[np.linspace(0, size - 1, max(1, size * most // len(data))).astype(int)] = True
    return data[np.flatnonzero(chosen[groups])]


def _episodes(episode: Array) -> Array:
    return np.cumsum(np.diff(episode, prepend=episode[0]) != 0)
