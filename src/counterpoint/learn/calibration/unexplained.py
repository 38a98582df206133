"""Which factors did something that they would not do by themselves: the positive control."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.motion_alone import MotionAlone, OwnNetwork, nodes_of_types, scaled_batches, train
from counterpoint.learn.calibration.reliability import Curve, Surprises, fit_curve
from counterpoint.learn.training.fitting import seeded
from counterpoint.learn.training.scaling import Labelled

SURPRISING = 8.0  # a residual so many times the ordinary one is a surprise
_DOUBTFUL = 0.005  # chance of a surprise without a cause, above which the baseline is not trusted
_FEWEST_CLEAR = 0.25  # share of the targets for which it is trusted in any case
_FINEST = 5e-3  # smallest unit of a residual, in standard deviations of the change: no model is believed to be finer
_TINY = 1e-12
_EFFORT = 0.7  # share of the usual training


@dataclass(frozen=True, eq=False)
class Ordinary:
    """What is ordinary of the residuals of a baseline: their units, and where the baseline is in doubt."""

    baseline: MotionAlone
    unit: Floats  # (S,)
    doubt: OwnNetwork

    @classmethod
    def fit(
        cls, baseline: MotionAlone, data: Transitions, scores: Floats, start: Curve, rng: np.random.Generator
    ) -> "Ordinary":
        """Learn it from the targets that, by their scores, others have most likely not moved.

        The scores need not be good for that. If they are useless, half of all targets are drawn blindly,
        the unit is hardly another one, and there is more doubt than need be.

        Args:
            baseline: the model.
            data: the rows that it was fitted to.
            scores: (B, N, n) of the estimator.
            start: an untrained curve, for its kinds of edges.
            rng: source of randomness.
        """
        factors, residual = baseline.factors, baseline.residual(data)
        every = np.ones((len(data), factors.n), np.bool_)
        rough = _sizes(residual, _units(residual, every, factors), factors)
        quiet = _quiet(scores, rough > SURPRISING, start)
        unit = _units(residual, quiet, factors)
        surprised = _sizes(residual, unit, factors) > SURPRISING
        return cls(baseline, unit, _doubts(baseline, data, np.where(quiet, surprised, np.nan), rng))

    def surprises(self, data: Transitions) -> Surprises:
        """Return what is surprising in transitions, and where that can be told."""
        size = _sizes(self.baseline.residual(data), self.unit, self.baseline.factors)
        batches = scaled_batches(self.baseline.scaling, data)
        doubt = torch.cat([torch.sigmoid(self.doubt(batch).squeeze(-1)) for batch in batches]).numpy()
        surprised = size > SURPRISING
        lively = doubt[:, surprised.any(axis=0)]  # what never does anything odd says nothing about the others
        clear = doubt <= max(_DOUBTFUL, float(np.quantile(lively, _FEWEST_CLEAR)) if lively.size else 0.0)
        return Surprises(surprised, clear, np.where(doubt <= _DOUBTFUL, doubt, 0.0))


def _units(residual: Floats, quiet: Bools, factors: Factorization) -> Floats:
    """Return the ordinary residual of each column, (S,): the worst column of a quiet factor has median 1, at most.

    Args:
        residual: (B, S).
        quiet: (B, n) the factors to look at; those of one type are pooled.
        factors: how columns split into factors.
    """
    unit = np.ones(residual.shape[1])
    owned = list(factors.state.values())
    for nodes in nodes_of_types(factors):
        columns = np.array([owned[node] for node in nodes])
        calm = residual[:, columns][quiet[:, nodes]]  # (quiet ones, W)
        each = np.median(calm, axis=0) + _TINY
        unit[columns] = np.maximum(each * np.median((calm / each).max(axis=1)), _FINEST)
    return unit


def _sizes(residual: Floats, unit: Floats, factors: Factorization) -> Floats:
    """Return the residual of the worst column of each factor, in ordinary ones, (B, n)."""
    return np.stack([(residual / unit)[:, list(own)].max(axis=1) for own in factors.state.values()], axis=1)


def _quiet(scores: Floats, surprised: Bools, start: Curve) -> Bools:
    """Return the targets that were least likely moved by others, by their scores, (B, n): half of each or more.

    Scores of different kinds of edges may have different scales, so they are made chances first.
    """
    everywhere, nowhere = np.ones_like(surprised), np.zeros(surprised.shape)
    chance = fit_curve(scores, Surprises(surprised, everywhere, nowhere), start)(scores)
    moved = 1.0 - np.prod(1.0 - np.where(start.always, 0.0, chance), axis=1)
    return np.asarray(moved <= np.median(moved, axis=0))


def _doubts(baseline: MotionAlone, data: Transitions, surprised: Floats, rng: np.random.Generator) -> OwnNetwork:
    """Learn where the baseline cannot be trusted: at a wall, say, where a bounce is hard to predict.

    Such a place is known by surprises of factors that nothing touches. So the log odds of a surprise are
    learned as a function of what the baseline sees.

    Args:
        baseline: the model.
        data: the rows that it was fitted to.
        surprised: (B, n) 1 where it was wrong, 0 where it was right, NaN where something may have interfered.
        rng: source of randomness.
    """
    with seeded(rng):
        doubt = OwnNetwork(baseline.factors, baseline.always, outputs=1)
    rows = Labelled(baseline.scaling.batch(data.state, data.action), torch.from_numpy(surprised.astype(np.float32)))

    def loss(rows: Labelled, generator: torch.Generator) -> Tensor:  # noqa: ARG001
        odds, known = doubt(rows.batch).squeeze(-1), ~rows.label.isnan()
        total = nn.functional.binary_cross_entropy_with_logits(odds[known], rows.label[known], reduction="sum")
        return total / known.sum().clamp(min=1)  # a small batch may have none

    train(doubt, loss, rows, rng, _EFFORT)
    return doubt
