"""Straight laws that a majority of rows decides, small trees on top, and what a recording says of the step before."""

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.kernels import kernel
from counterpoint.core.transitions import Transitions
from counterpoint.masks.regions import Regions

FINEST = 5e-3  # smallest unit of a residual, in standard deviations of the change: no model is believed to be finer
_ROUNDS = 12  # of reweighted least squares
_TREES, _FEWEST, _DEEPEST, _RATE, _PRIOR = 12, 60, 4, 0.5, 20.0  # of the trees that correct the law
_FEWEST_RATES, _DEEPEST_RATES = 100, 4  # of those that say how often a factor's own state makes it surprised
_CLIP = 4.0  # residuals beyond so many units do not bend the trees


def last_change(data: Transitions, columns: tuple[int, ...]) -> Floats:
    """Return how columns changed in the step before, (B, W); 0 where no recording has that step."""
    state = data.state[:, list(columns)].astype(np.float64)
    change = np.zeros_like(state)
    follows = follow(data)
    change[1:][follows[1:]] = (state[1:] - state[:-1])[follows[1:]]
    return change


def follow(data: Transitions) -> Array:
    """Return which rows come right after the row before them, (B,)."""
    if data.episode is None or not len(data):
        return np.zeros(len(data), np.bool_)
    same = np.diff(data.episode, prepend=data.episode[0] - 1) == 0
    if data.step is not None:
        same[1:] &= np.diff(data.step) == 1
    return np.asarray(same)


def straight(design: Floats, target: Floats) -> Floats:
    """Return the linear map of least absolute deviations, by reweighted least squares."""
    ridge = 1e-8 * len(design) * np.eye(design.shape[1])
    smallest = 1e-3 * float(np.sqrt(np.square(target).mean())) + 1e-12
    weight = np.ones((len(design), 1))
    law = np.zeros((design.shape[1], target.shape[1]))
    for _ in range(_ROUNDS):
        law = np.linalg.solve(design.T @ (weight * design) + ridge * weight.mean(), design.T @ (weight * target))
        weight = 1.0 / np.maximum(np.linalg.norm(target - design @ law, axis=1, keepdims=True), smallest)
    return law


def corrections(given: Floats, residual: Floats) -> tuple[tuple[Regions, Floats], ...]:
    """Return trees that predict what a law leaves over, each what the former ones left."""
    unit = np.maximum(np.median(np.abs(residual), axis=0), FINEST)
    trees = []
    for _ in range(_TREES):
        odd = np.clip(residual / unit, -_CLIP, _CLIP)
        regions = Regions.grow(given, odd, fewest=_FEWEST, deepest=_DEEPEST)
        where = regions(given)
        value = _RATE * unit * totals(where, odd, len(regions)) / (totals(where, 1.0, len(regions)) + _PRIOR)
        residual = residual - value[where]
        trees.append((regions, value))
    return tuple(trees)


def totals(where: Ints, values: Floats | float, size: int) -> Floats:
    """Return the sums of the columns of ``values`` (R, W) within each region, (size, W)."""
    if np.ndim(values) == 0:
        return np.asarray(float(values) * np.bincount(where, minlength=size)[:, None])
    sums = np.zeros((size, np.shape(values)[1]))
    _add_up(where, np.asarray(values, np.float64), sums)
    return sums


@kernel
def _add_up(where: Ints, values: Floats, sums: Floats) -> None:
    for row in range(len(where)):
        for column in range(values.shape[1]):
            sums[where[row], column] += values[row, column]


def rates(given: Floats, odd: Array, others: Floats) -> tuple[Floats, Floats]:
    """Return how often there is a surprise for such a state of a factor, in the rows that tell it and in others.

    Args:
        given: (R, I) what tells it.
        odd: (R,) in which rows there is a surprise.
        others: (B, I) the same of other rows.
    """
    regions = Regions.grow(given, odd[:, None].astype(np.float64), fewest=_FEWEST_RATES, deepest=_DEEPEST_RATES)
    where = regions(given)
    rows, events = (totals(where, each, len(regions))[:, 0] for each in (1.0, 1.0 * odd[:, None]))
    rate = (events + odd.mean()) / (rows + 1.0)
    return rate[where], rate[regions(others)]


def standardised(given: Floats, centre: Floats, spread: Floats) -> Floats:
    """Return columns in standard deviations, and a column of ones for what does not depend on them, (B, I + 1)."""
    return np.concatenate([(given - centre) / spread, np.ones((len(given), 1))], axis=1)
