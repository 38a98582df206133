"""What each factor does by itself, and by what moves it always: a straight law and small trees on top.

The law is fitted by least absolute deviations, so that rows with an interaction, if they are the minority, do not
bend it; trees then learn what is not straight, such as a wall. It takes seconds, and needs no tuning.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.finer import Finer, finer
from counterpoint.learn.calibration.laws import FINEST, corrections, follow, last_change, standardised, straight, totals
from counterpoint.learn.calibration.parents import parents_of
from counterpoint.masks.pairs import beside, columns_of
from counterpoint.masks.regions import Regions

SURPRISING = 5.0  # a residual so many times the ordinary one is a surprise
_SHAPES = (1.6, 1.9, 2.32)  # 80% quantile of noise by its median, for uniform, normal and Laplace noise
RARE = (SURPRISING, 5.8, 13.3)  # what one in 10,000 exceeds of these, in medians
_FAILS = 0.6  # share of surprises in a region of a factor's own state from which on its law fails there
_HALF = 0.5  # another factor must explain so much of what is left there
_FEWEST_DOUBTS = 10  # rows of such a region
_FEWEST_EACH = 3  # and for each number of a law that holds there alone
_SOME = 4000  # rows that parents are looked for in


@dataclass(frozen=True, eq=False)
class Exceptions:
    """Where the law of a factor nearly always fails because of its own state, as at a wall, and what holds there."""

    regions: Regions  # of where the factor is, and where its law would take it
    own: Bools  # (K,) which have a law of their own
    laws: Floats  # (K, I + 1, W)
    fails: Bools  # (K,) which have none that holds


@dataclass(frozen=True, eq=False)
class Course:
    """The law of one factor."""

    own: tuple[int, ...]  # its columns of the state
    inputs: tuple[int, ...]  # columns of [state, action] that it follows from
    parents: tuple[int, ...]  # nodes that move it always
    lagged: bool  # whether its last change is needed as well, because its velocity is hidden
    scale: Floats  # (W,) standard deviation of its change
    centre: Floats  # (I,)
    spread: Floats  # (I,)
    law: Floats  # (I + 1, W)
    trees: tuple[tuple[Regions, Floats], ...]
    exceptions: Exceptions | None = None

    @property
    def still(self) -> bool:
        """Whether the factor never changes."""
        return not self.scale.any()

    def residual(self, data: Transitions) -> Floats:
        """Return how far the change is off, in standard deviations of the change, (B, W)."""
        design, given, change = self.design(data), self.given(data), self.change(data)
        left = change - design @ self.law
        for regions, value in self.trees:
            left = left - value[regions(given)]
        if self.exceptions is not None:
            where = self.exceptions.regions(self.ahead(data))
            for k in np.unique(where[self.exceptions.own[where]]):
                rows = where == k
                left[rows] = change[rows] - design[rows] @ self.exceptions.laws[k]
        return left

    def judged(self, data: Transitions) -> Bools:
        """Return the rows in which its law has all that it needs, and does not fail nearly always, (B,)."""
        return np.asarray(~self.fails(data) & follow(data) if self.lagged else ~self.fails(data))

    def fails(self, data: Transitions) -> Bools:
        """Return the rows in which its law nearly always fails for such a state of the factor itself, (B,)."""
        if self.exceptions is None:
            return np.zeros(len(data), np.bool_)
        return self.exceptions.fails[self.exceptions.regions(self.ahead(data))]

    def design(self, data: Transitions) -> Floats:
        """Return what a straight law is a map of, (B, I + 1)."""
        given = self.given(data)
        whole = np.concatenate([given, last_change(data, self.own)], axis=1) if self.lagged else given
        return standardised(whole, self.centre, self.spread)

    def ahead(self, data: Transitions) -> Floats:
        """Return where the factor is, and where its straight law would take it, (B, I + W)."""
        reached = data.state[:, list(self.own)] + self.scale * (self.design(data) @ self.law)
        return np.concatenate([self.given(data), reached], axis=1)

    def known(self, data: Transitions) -> Floats:
        """Return the same, and how it changed in the step before if that is needed, (B, I + W) or (B, I + 2W)."""
        ahead = self.ahead(data)
        return np.concatenate([ahead, last_change(data, self.own)], axis=1) if self.lagged else ahead

    def given(self, data: Transitions) -> Floats:
        """Return the columns that its law follows from, (B, I)."""
        return beside(data.state, data.action)[:, list(self.inputs)].astype(np.float64)

    def change(self, data: Transitions) -> Floats:
        """Return the change in standard deviations, (B, W)."""
        own = list(self.own)
        change = data.next_state[:, own].astype(np.float64) - data.state[:, own]
        return np.asarray(change / np.where(self.scale > 0, self.scale, 1.0))


@dataclass(frozen=True, eq=False)
class OwnCourses:
    """The laws of all factors."""

    factors: Factorization
    courses: tuple[Course, ...]
    units: tuple[Floats, ...]  # for each factor the ordinary residual of its columns, (W,)
    finer: tuple[Finer | None, ...] = ()  # what more is known of their laws, if it was asked

    @classmethod
    def fit(cls, data: Transitions, factors: Factorization, rng: np.random.Generator) -> "OwnCourses":
        """Fit a law for each state factor."""
        some = rng.permutation(len(data))[:_SOME]
        courses = tuple(_fitted(data, some, factors, node) for node in range(factors.n))
        units = tuple(np.maximum(np.median(np.abs(course.residual(data)), axis=0), FINEST) for course in courses)
        both = zip(courses, units, strict=True)
        return cls(
            factors,
            tuple(course if course.still else _with_exceptions(course, unit, data, factors) for course, unit in both),
            units,
        )

    @cached_property
    def always(self) -> Array:
        """The edges that are there in every transition, self-edges aside, (N, n)."""
        edges = np.zeros((self.factors.n + self.factors.m, self.factors.n), np.bool_)
        for node, course in enumerate(self.courses):
            edges[list(course.parents), node] = True
        return edges

    def hidden(self, data: Transitions, moved: Bools) -> Transitions:
        """Return transitions in which some factors (B, n) did what they would do by themselves."""
        after = data.next_state.copy()
        for node, course in enumerate(self.courses):
            odd = course.residual(data) * course.scale
            after[:, list(course.own)] -= np.where(moved[:, [node]], odd, 0.0).astype(after.dtype)
        return data.replace(next_state=after)

    def judged(self, data: Transitions) -> Array:
        """Return which factors can be judged in which rows, (B, n)."""
        return np.stack([course.judged(data) for course in self.courses], axis=1)

    def fails(self, data: Transitions) -> Bools:
        """Return where the law of a factor nearly always fails for such a state of its own, (B, n)."""
        return np.stack([course.fails(data) for course in self.courses], axis=1)

    @cached_property
    def still(self) -> Array:
        """Which factors never change, (n,)."""
        return np.array([course.still for course in self.courses])

    def residuals(self, data: Transitions) -> list[Floats]:
        """Return the residuals of each factor in ordinary ones, (B, W) each."""
        return [self._residual(node, data) / unit for node, unit in enumerate(self.units)]

    def _residual(self, node: int, data: Transitions) -> Floats:
        """Return the residuals of a factor in standard deviations of its change, (B, W)."""
        course, found = self.courses[node], self.finer[node] if self.finer else None
        left = course.residual(data)
        return left if found is None else left - found(course.ahead(data))

    def refined(self, data: Transitions, rng: np.random.Generator) -> "OwnCourses":
        """Look at each law more closely, in the transitions that it was fitted to.

        What is ordinary stays what it was: where trees still help, what they leave is no noise, but more of the same.
        """
        groups = np.arange(len(data)) if data.episode is None else np.unique(data.episode, return_inverse=True)[1]
        half = (rng.permutation(int(groups.max()) + 1) % 2 == 0)[groups]
        return replace(self, finer=tuple(self._finer(node, data, half) for node in range(self.factors.n)))

    def _finer(self, node: int, data: Transitions, half: Bools) -> Finer | None:
        course, unit = self.courses[node], self.units[node]
        if course.still:
            return None
        ready = follow(data) if course.lagged else np.ones(len(data), np.bool_)
        some = data[ready]
        found = finer(course.residual(some) / unit, course.ahead(some), half[ready])
        return None if found is None else replace(found, scale=found.scale * unit)


def limits(residual: Array) -> Floats:
    """Return what noise hardly ever exceeds, told from its shape, (W,), given ordinary residuals (R, W)."""
    middle, large = np.quantile(np.abs(residual), (0.5, 0.8), axis=0)
    shape = np.interp(large / np.maximum(middle, 1e-9), _SHAPES, RARE)
    return np.asarray(np.maximum(SURPRISING, np.maximum(middle, 1.0) * shape))


def _with_exceptions(course: Course, unit: Floats, data: Transitions, factors: Factorization) -> Course:
    """Find regions of a factor's own state in which its law fails nearly always, and straight laws that hold there.

    Where another factor explains what happens, as for what is held by a grip, that is no exception but an influence.
    """
    ready = follow(data) if course.lagged else np.ones(len(data), np.bool_)
    every = course.residual(data), course.ahead(data), course.design(data), course.change(data)
    left, ahead, design, change = (each[ready] for each in every)
    odd = np.abs(left / unit).max(axis=1) > SURPRISING
    often = odd | (np.arange(len(odd)) % max(1, int((~odd).sum() / max(1, odd.sum()))) == 0)  # for finer cuts there
    regions = Regions.grow(ahead[often], odd[often, None].astype(np.float64), fewest=_FEWEST_DOUBTS, deepest=8)
    where, size = regions(ahead), len(regions)
    rows, events = totals(where, 1.0, size)[:, 0], totals(where, odd[:, None], size)[:, 0]
    fails = events > _FAILS * rows + np.sqrt(_FAILS * (1.0 - _FAILS) * rows)  # surely so
    laws = np.zeros((size, *course.law.shape))
    own = fails & (rows >= _FEWEST_EACH * design.shape[1])
    for k in np.flatnonzero(own):
        mine = where == k
        laws[k] = straight(design[mine], change[mine])
        there = np.abs(change[mine] - design[mine] @ laws[k])
        own[k] = ((there / unit).max(axis=1) > SURPRISING).mean() <= _FAILS
        if not own[k]:
            part = _Part(data[ready][mine], design[mine], change[mine], np.median(there, axis=0))
            fails[k] = not _explained(course, unit, part, factors)
    return replace(course, exceptions=Exceptions(regions, own, laws, fails & ~own))


class _Part(NamedTuple):
    """Rows of a region, what a factor's law is a map of there, its change, and how far its own law there is off."""

    rows: Transitions
    design: Floats
    change: Floats
    alone: Floats


def _explained(course: Course, unit: Floats, part: _Part, factors: Factorization) -> bool:
    """Return whether another factor tells much of what happens, in some column, where the factor's own law fails."""
    rows = beside(part.rows.state, part.rows.action).astype(np.float64)

    def left(node: int) -> Floats:
        more = rows[:, [c for c in columns_of(factors, node) if c not in course.inputs]]
        design = np.concatenate([part.design, (more - more.mean(axis=0)) / (more.std(axis=0) + 1e-9)], axis=1)
        if len(design) < _FEWEST_EACH * design.shape[1]:
            return np.full(len(unit), np.inf)
        return np.asarray(np.median(np.abs(part.change - design @ straight(design, part.change)), axis=0))

    failing = part.alone > 2 * unit
    return any((left(node) < _HALF * part.alone)[failing].any() for node in range(factors.n + factors.m))


def _fitted(data: Transitions, some: Ints, factors: Factorization, node: int) -> Course:
    own = list(factors.state.values())[node]
    change = data.next_state[:, list(own)].astype(np.float64) - data.state[:, list(own)]
    scale = change.std(axis=0)
    scale = np.where(scale > 1e-9 * (1.0 + np.abs(data.state[:, list(own)]).max(axis=0)), scale, 0.0)
    rows, target = beside(data.state, data.action).astype(np.float64), change / np.where(scale > 0, scale, 1.0)
    context = np.flatnonzero(factors.nodes(*factors.context)).tolist()
    last = last_change(data, own)
    parents: tuple[int, ...] = ()
    lagged = False
    if scale.any():
        parents, lagged = parents_of(rows[some], target[some], last[some], factors, node)
    nodes = [node, *parents, *(c for c in context if c != node and c not in parents)]
    inputs = tuple(c for each in nodes for c in columns_of(factors, each))
    given = rows[:, list(inputs)]
    whole = np.concatenate([given, last], axis=1) if lagged else given
    centre, spread = whole.mean(axis=0), whole.std(axis=0) + 1e-9
    known = follow(data) if lagged else np.ones(len(data), np.bool_)
    law = straight(standardised(whole[known], centre, spread), target[known])
    rest = target - standardised(whole, centre, spread) @ law
    trees = corrections(given[known], rest[known]) if scale.any() else ()
    return Course(own, inputs, parents, lagged, scale, centre, spread, law, trees)
