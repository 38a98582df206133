"""Which threshold, and whether to augment at all: told from data alone, without labels or simulator.

Three controls: (a) accepted proposals must be as plausible to an independent forward model as real
transitions; (b) factors glued together from different episodes, far apart, must have no edges; (c) a
factor that did what it would not do by itself must have an edge. The third carries the estimate of how
many counterfactuals are wrong: see ``reliability``.
"""

from typing import Any

import numpy as np
from tqdm import tqdm

from counterpoint.core.arrays import Floats
from counterpoint.core.coda import require_derived
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import DeriveFn
from counterpoint.core.require import require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.motion_alone import MotionAlone
from counterpoint.learn.calibration.plausibility import Forward, implausible
from counterpoint.learn.calibration.reliability import Swaps, first_curve
from counterpoint.learn.calibration.threshold_trial import Scorer, ThresholdTrial, glued_scores, hiding_scores
from counterpoint.learn.calibration.unexplained import Ordinary
from counterpoint.learn.calibration.verdict import LEAST_YIELD, Calibration, Point, weigh
from counterpoint.learn.estimators.estimator import Estimator
from counterpoint.learn.training.fitting import split
from counterpoint.learn.training.inputs import require_training_data
from counterpoint.metrics import Estimate

FEWEST_ROWS = 2000  # transitions; fewer hold too few interactions to count
_PAIRS = 6000  # pairs of transitions that each threshold is tried on
_MOST_ENTRIES = 20_000_000  # of the scores of all rows that are judged
_DENSITIES = (0.6, 0.45, 0.32, 0.22, 0.16, 0.11, 0.08, 0.05, 0.03, 0.01)  # shares of edges in the masks tried first
_BISECTIONS, _RESAMPLES, _LEVEL = 6, 40, 0.95
_TRAININGS = 3
_AIM = 0.5  # share of the target that is aimed at; the rest is for errors of the estimate, which cost little yield
_NOTHING = Estimate(float("nan"), float("nan"), float("nan"))


def calibrate(
    estimator: Estimator | Any,
    data: Transitions,
    factors: Factorization,
    *,
    rng: np.random.Generator,
    target: float = 0.01,
    derive: DeriveFn | None = None,
    progress: bool = True,
) -> Calibration:
    """Choose the threshold with the largest yield at which well under ``target`` of the counterfactuals are wrong.

    It aims at half of the target if any threshold reaches that, because the estimate errs too. One half of the
    data trains the models that the mask is compared with, the other half judges. The estimator only has to
    give scores. Influences far below the noise of a factor cannot be seen in data.

    Args:
        estimator: anything with a method ``scores``, or a function; as for ``counterpoint.masks.Threshold``.
        data: transitions that the estimator was not fitted to: on those it was fitted to it misses less.
            With episode ids, halves are made of whole episodes, and the negative control is possible.
        factors: how columns split into factors.
        rng: source of randomness.
        target: largest share of wrong counterfactuals that is fine.
        derive: recomputes derived columns, if there are any.
        progress: whether to show a progress bar on the error stream.

    Raises:
        ValueError: if there is too little data, the scores do not vary, or ``derive`` does not reproduce the data.
    """
    require_generator(rng)
    if not 0 < target < 1:
        raise ValueError(f"target: expected a share between 0 and 1, got {target!r}.")
    require_training_data(data, factors, allow_constant=True)
    if len(data) < FEWEST_ROWS:
        raise ValueError(
            f"data: {len(data):,} transitions are too few to count what a mask misses, expected at least "
            f"{FEWEST_ROWS:,}. Collect more, or use a mask that needs no learning: counterpoint.masks."
        )
    require_derived(data, factors, derive)
    steps = _TRAININGS + len(_DENSITIES) + _BISECTIONS
    with tqdm(total=steps, disable=not progress) as bar:
        learn, judge = (data[rows] for rows in split(data, 0.5, rng))
        judge = judge[: max(FEWEST_ROWS // 2, _MOST_ENTRIES // (factors.n * (factors.n + factors.m)))]
        scorer = Scorer(estimator, factors, derive)
        baseline, trial = _prepare(scorer, learn, judge, bar, rng)
        curve = _search(trial, _AIM * target, bar)
        bar.set_description("forward model")
        forward = Forward.fit(baseline, learn, rng)
        bar.update(steps - bar.n)
    return _judged(trial, _best(curve, _AIM * target), target, curve, forward, rng)


def _prepare(
    scorer: Scorer, learn: Transitions, judge: Transitions, bar: "tqdm[Any]", rng: np.random.Generator
) -> tuple[MotionAlone, ThresholdTrial]:
    """Fit the baseline to one half of the data and look for surprises in the other."""
    scores = scorer(judge)
    if (scores == scores.flat[0]).all():
        raise ValueError(
            f"estimator: all scores are {scores.flat[0]:g}, so no threshold can tell edges from others. "
            "Was it trained long enough, and on data with interactions?"
        )
    bar.set_description("each factor by itself")
    baseline = MotionAlone.fit(learn, scorer.factors, rng)
    bar.update()
    bar.set_description("where that is in doubt")
    start = first_curve(scores, scorer.factors, baseline.always)
    seen = Ordinary.fit(baseline, learn, scorer(learn), start, rng).surprises(judge)
    bar.update()
    hiding = hiding_scores(scorer, judge, baseline, seen.surprised) if scorer.uses_next_state else scores
    return baseline, ThresholdTrial(scorer, judge, seen, start, scores, hiding, int(rng.integers(2**63)), _PAIRS)


def _search(trial: ThresholdTrial, target: float, bar: "tqdm[Any]") -> tuple[Point, ...]:
    """Try masks from dense to sparse, then close in on the sparsest one that keeps the target."""
    bar.set_description("thresholds")
    cuts, others = trial.start.cuts, trial.scores[:, trial.start.kinds >= 0]
    dense = np.quantile(others, 1.0 - np.array(_DENSITIES))
    tried: dict[int, Point] = {}

    def attempt(k: int) -> None:
        tried[k] = _point(trial, float(cuts[k]))
        bar.update()

    for k in sorted({int(np.abs(cuts - tau).argmin()) for tau in dense}):
        attempt(k)
    for _ in range(_BISECTIONS):
        above = min((k for k in tried if tried[k][1] > target), default=len(cuts))
        below = max((k for k in tried if k < above), default=-1)
        if above - below < 2:
            break
        attempt((above + below) // 2)
    return tuple(tried[k] for k in sorted(tried))


def _point(trial: ThresholdTrial, tau: float) -> Point:
    """Return what is found at a threshold; NaN for the wrong share where nothing is accepted."""
    swaps, _ = trial.swaps(tau)
    return tau, float(trial.wrong(swaps).mean()) if len(swaps) else float("nan"), len(swaps) / trial.pairs


def _best(curve: tuple[Point, ...], target: float) -> float:
    """Return the threshold of the largest yield that keeps the target, or else that with the fewest wrong."""
    useful = [point for point in curve if point[2] >= LEAST_YIELD]
    good = [point for point in useful if point[1] <= target]
    if good:
        return max(good, key=lambda point: point[2])[0]
    return min(useful or curve, key=lambda point: (np.isnan(point[1]), point[1]))[0]


def _judged(
    trial: ThresholdTrial,
    tau: float,
    target: float,
    curve: tuple[Point, ...],
    forward: Forward,
    rng: np.random.Generator,
) -> Calibration:
    """Gather all figures of one threshold."""
    swaps, proposal = trial.swaps(tau)
    wrong, accepted = _wrong(trial, swaps, rng), len(swaps) / trial.pairs
    far, false, episode = _likelihood(trial, swaps, proposal, forward), None, trial.data.episode
    if episode is not None and len(np.unique(episode)) > 1:
        false = float((glued_scores(trial.scorer, trial.data, rng) > tau).mean())
    missed, surprises = trial.missed(tau)
    fine, verdict = weigh(wrong, accepted, target, far, surprises)
    return Calibration(tau, wrong, accepted, target, far, false, missed, surprises, curve, fine, verdict)


def _wrong(trial: ThresholdTrial, swaps: Swaps, rng: np.random.Generator) -> Estimate:
    """Return the share of wrong proposals with a bootstrap interval over transitions and proposals."""
    if not len(swaps):
        return _NOTHING
    values = []
    for _ in range(_RESAMPLES):
        drawn = swaps[rng.integers(len(swaps), size=len(swaps))]
        values.append(float(trial.wrong(drawn, trial.resampled(rng)).mean()))
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Estimate(float(trial.wrong(swaps).mean()), float(low), float(high))


def _likelihood(trial: ThresholdTrial, swaps: Swaps, proposal: Transitions, forward: Forward) -> Estimate:
    """Return the share of proposals that the forward model finds less plausible than their parents."""
    if not len(swaps):
        return _NOTHING
    parents = np.take_along_axis(
        forward.log_prob(trial.data), swaps.provenance.origin[:, : trial.scorer.factors.n], axis=0
    )
    lost: Floats = implausible(parents.sum(axis=1), forward.log_prob(proposal).sum(axis=1))
    value, error = float(lost.mean()), float(lost.std() / np.sqrt(len(lost)))
    return Estimate(value, value - 2 * error, value + 2 * error)
