"""Which threshold: one for all edges, or one for each kind of edge where that yields more."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.learn.calibration.judging import Trial

Tau: TypeAlias = float | Floats  # one for all edges, or one for each, (N, n), the same for edges of one kind

DENSITIES = (0.6, 0.45, 0.32, 0.22, 0.16, 0.11, 0.08, 0.05, 0.03, 0.01)  # shares of edges in the masks tried first
BISECTIONS = 6
_LEVELS = (0.5, 0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.035, 0.025, 0.017, 0.012, 0.008, 0.005, 0.002)
_FEWEST = 10  # influences of a kind that were seen, from which on it gets a threshold of its own
_NEARLY = 1.5  # times the lowest upper end: hardly less sure
_ENOUGH = 0.8  # of the largest yield that keeps the target: the rest is given up for edges that may be there


class Point(NamedTuple):
    """What is found at a threshold; shares are NaN where nothing is accepted."""

    tau: float
    wrong: float  # share of wrong counterfactuals
    accepted: float  # counterfactuals per pair
    high: float  # upper end of the interval around the wrong share


def search(trial: Trial, target: float, attempt: Callable[[Tau], Point]) -> tuple[Point, ...]:
    """Try masks from dense to sparse, with one tau for all edges, then close in on the sparsest that is good enough."""
    if trial.answer.dtype == np.bool_:
        return (attempt(float("nan")),)
    cuts = _cuts(trial.answer)
    always = trial.witness.alone.always
    steady = always | np.eye(*always.shape, dtype=np.bool_)
    dense = np.quantile(trial.answer[:, ~steady], 1.0 - np.array(DENSITIES))
    tried = {k: attempt(float(cuts[k])) for k in sorted({int(np.abs(cuts - tau).argmin()) for tau in dense})}
    for _ in range(BISECTIONS):
        above = min((k for k in tried if tried[k].wrong > target), default=len(cuts))
        below = max((k for k in tried if k < above), default=-1)
        if above - below < 2:
            break
        middle = (above + below) // 2
        tried[middle] = attempt(float(cuts[middle]))
    return tuple(tried[k] for k in sorted(tried))


def by_kind(trial: Trial) -> list[Floats]:
    """Return thresholds for each kind of edge, (N, n) each, from the sparsest masks to the densest.

    Scores of different kinds live on different scales. Each mask misses the same share of the influences that the
    witness saw, in every kind; kinds of which it saw few share the quantiles of all.
    """
    witness = trial.witness
    if trial.answer.dtype == np.bool_ or len(witness.testimonies) < 2:
        return []
    shown = witness.loud & witness.surprised[:, None] & (witness.loud.sum(axis=1, keepdims=True) == 1)
    every = [trial.hiding[:, i, j][shown[:, i, j]] for each in witness.testimonies for i, j in each.kind.pairs]
    together = np.concatenate(every)
    if len(together) < _FEWEST:
        return []
    taus = np.repeat(np.quantile(together, _LEVELS)[:, None, None], shown.shape[1], axis=1)
    taus = np.repeat(taus, shown.shape[2], axis=2)
    for each in witness.testimonies:
        mine = np.concatenate([trial.hiding[:, i, j][shown[:, i, j]] for i, j in each.kind.pairs])
        if len(mine) >= _FEWEST:
            for i, j in each.kind.pairs:
                taus[:, i, j] = np.quantile(mine, _LEVELS)
    return list(taus)


def best(points: Sequence[Point], target: float, least: float, bar: float) -> int:
    """Return the most careful point that keeps the target at nearly the largest yield, or else the fewest wrong.

    Where few rows tell, nothing may be found although much is wrong, so the upper end has a say: it should be below
    the bar, or else hardly above the lowest there is.

    Args:
        points: at least one.
        target: largest share of wrong ones.
        least: smallest yield.
        bar: where the upper end should be.
    """
    useful = [k for k, point in enumerate(points) if point.accepted >= least]
    good = [k for k in useful if points[k].wrong <= target]
    if good:
        limit = max(bar, _NEARLY * min(points[k].high for k in good))
        sure = [k for k in good if points[k].high <= limit]
        most = max(points[k].accepted for k in sure)
        return min((k for k in sure if points[k].accepted >= _ENOUGH * most), key=lambda k: points[k].accepted)
    return min(useful or range(len(points)), key=lambda k: (np.isnan(points[k].wrong), points[k].wrong))


def _cuts(scores: Array) -> Array:
    """Return scores to put a threshold at, closer and closer to each other towards the largest."""
    values = np.sort(scores, axis=None)[::-1]
    ranks = np.unique(np.geomspace(min(8, len(values)), len(values), 200).astype(int)) - 1
    return np.unique(values[ranks])
