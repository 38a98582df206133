"""Whether to augment with a mask, and at which threshold: told from data alone, without labels or simulator.

A witness that knows nothing of the mask says, for every pair of factors and every region of their joint
configurations, how often a target does what it would not do by itself: see ``witness``. Its regions are
counted where the mask has no edge, and weighed by how often the accepted counterfactuals fall there.
"""

from typing import Any

import numpy as np

from counterpoint.core.arrays import Array
from counterpoint.core.coda import require_derived
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import DeriveFn
from counterpoint.core.require import require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.judging import Asked, Hearing, Trial
from counterpoint.learn.calibration.verdict import LEAST_YIELD, Calibration, Point, gaps_in_words, weigh
from counterpoint.learn.calibration.witness import Witness
from counterpoint.learn.estimators.estimator import Estimator
from counterpoint.learn.training.fitting import split
from counterpoint.learn.training.inputs import require_training_data
from counterpoint.masks import Constant, Supported
from counterpoint.metrics import Estimate
from counterpoint.progress import ProgressBar

FEWEST_ROWS = 2000  # transitions; fewer hold too few interactions to count
_PAIRS = 4000  # pairs of transitions that each threshold is tried on
_MOST_ENTRIES = 20_000_000  # of the scores of all rows that are judged
_DENSITIES = (0.6, 0.45, 0.32, 0.22, 0.16, 0.11, 0.08, 0.05, 0.03, 0.01)  # shares of edges in the masks tried first
_BISECTIONS = 6
_AIM = 0.5  # share of the target that is aimed at; the rest is for errors of the estimate, which cost little yield
_SURE = 2.0  # standard errors of an interval
_OFF = 0.5  # share of itself by which the estimate may be off; set by hand on development worlds, some were off by more
_BLIND = 0.5  # share of the surprises without a known cause that may be influences across a cut
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

    It aims at half of the target, if any threshold reaches that: the estimate errs, too. A mask is judged as it
    is. Half of the data is for a witness to learn from, the other half is counted. There are three answers:
    fine, do not augment, and cannot tell.

    Args:
        estimator: anything with a method ``scores``, or a function that returns scores, as for
            ``counterpoint.masks.Threshold``; or a mask, such as ``Proximity``.
        data: transitions that the estimator was not fitted to: on those it was fitted to it misses less.
            With episode ids, halves are made of whole episodes, and hidden velocities are made up for.
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
    witness, support = gather(data, factors, rng=rng)
    return judge(Asked(estimator, factors, derive), witness, support, rng=rng, target=target, progress=progress)


def gather(data: Transitions, factors: Factorization, *, rng: np.random.Generator) -> tuple[Witness, Supported]:
    """Let a witness learn from one half of the data and count in the other; whatever the mask, it is the same."""
    learn, held = (data[rows] for rows in split(data, 0.5, rng))
    held = held[: max(FEWEST_ROWS // 2, _MOST_ENTRIES // (factors.n * (factors.n + factors.m)))]
    witness = Witness.fit(learn, held, factors, rng)
    return witness, Supported(Constant.identity(factors), learn, factors, seed=int(rng.integers(2**31)))


def judge(
    asked: Asked,
    witness: Witness,
    support: Supported,
    *,
    rng: np.random.Generator,
    target: float = 0.01,
    progress: bool = False,
) -> Calibration:
    """Judge a mask, or an estimator at its best threshold, by what a witness has seen."""
    with ProgressBar("calibrate", 1 + len(_DENSITIES) + _BISECTIONS, "thresholds at most", shown=progress) as bar:
        trial = _prepare(asked, witness, support, rng)
        bar.advance()
        curve = _search(trial, _AIM * target, bar)
    return _judged(trial, _best(curve, _AIM * target), target, curve)


def _prepare(asked: Asked, witness: Witness, support: Supported, rng: np.random.Generator) -> Trial:
    """Ask the mask about the judged rows."""
    answer = asked(witness.judged)
    if answer.dtype.kind == "f" and (answer == answer.flat[0]).all():
        raise ValueError(
            f"estimator: all scores are {answer.flat[0]:g}, so no threshold can tell edges from others. "
            "Was it trained long enough, and on data with interactions?"
        )
    hiding = answer
    if asked.uses_next_state:
        hiding = asked(witness.alone.hidden(witness.judged, witness.surprised))
    return Trial(asked, witness, support, answer, hiding, int(rng.integers(2**63)), _PAIRS)


def _search(trial: Trial, target: float, bar: ProgressBar) -> tuple[Point, ...]:
    """Try masks from dense to sparse, then close in on the sparsest one that keeps the target."""
    if trial.answer.dtype == np.bool_:
        return (_point(trial, float("nan")),)
    cuts = _cuts(trial.answer)
    dense = np.quantile(trial.answer[:, ~_always(trial)], 1.0 - np.array(_DENSITIES))
    tried: dict[int, Point] = {}

    def attempt(k: int) -> None:
        tried[k] = _point(trial, float(cuts[k]))
        bar.advance()

    for k in sorted({int(np.abs(cuts - tau).argmin()) for tau in dense}):
        attempt(k)
    for _ in range(_BISECTIONS):
        above = min((k for k in tried if tried[k][1] > target), default=len(cuts))
        below = max((k for k in tried if k < above), default=-1)
        if above - below < 2:
            break
        attempt((above + below) // 2)
    return tuple(tried[k] for k in sorted(tried))


def _always(trial: Trial) -> Array:
    """The edges that any mask should have, (N, n)."""
    always = trial.witness.alone.always
    return np.asarray(always | np.eye(*always.shape, dtype=np.bool_))


def _cuts(scores: Array) -> Array:
    """Return scores to put a threshold at, closer and closer to each other towards the largest."""
    values = np.sort(scores, axis=None)[::-1]
    ranks = np.unique(np.geomspace(min(8, len(values)), len(values), 200).astype(int)) - 1
    return np.unique(values[ranks])


def _point(trial: Trial, tau: float) -> Point:
    """Return what is found at a threshold; NaN for the wrong share where nothing is accepted."""
    swaps = trial.swaps(tau)
    wrong = _wrong(trial.hear(swaps, tau)).value if len(swaps) else float("nan")
    return tau, wrong, len(swaps) / trial.pairs


def _best(curve: tuple[Point, ...], target: float) -> float:
    """Return the threshold of the largest yield that keeps the target, or else that with the fewest wrong."""
    useful = [point for point in curve if point[2] >= LEAST_YIELD]
    good = [point for point in useful if point[1] <= target]
    if good:
        return max(good, key=lambda point: point[2])[0]
    return min(useful or curve, key=lambda point: (np.isnan(point[1]), point[1]))[0]


def _judged(trial: Trial, tau: float, target: float, curve: tuple[Point, ...]) -> Calibration:
    """Gather all figures of one threshold."""
    swaps = trial.swaps(tau)
    yielded = len(swaps) / trial.pairs
    static = swaps.static / max(1, swaps.static + len(swaps))
    wrong = unknown = contradicted = _NOTHING
    collect: tuple[str, ...] = ()
    if len(swaps):
        heard = trial.hear(swaps, tau)
        wrong = _wrong(heard)
        unknown, contradicted = (_share(rows) for rows in (heard.unknown, heard.wrong > 0.5))
        collect = gaps_in_words(trial, swaps, heard)
    fine, verdict = weigh(wrong, unknown, yielded, target, collect)
    return Calibration(tau, wrong, unknown, contradicted, yielded, static, target, collect, curve, fine, verdict)


def _wrong(heard: Hearing) -> Estimate:
    """Return the share of wrong counterfactuals, with an interval.

    It covers what was counted (finite numbers, episodes as a whole), surprises that no region explains, and
    what the method was off by on the worlds it was developed on.
    """
    value = float(heard.wrong.mean())
    drawn = float(heard.wrong.std() / np.sqrt(len(heard.wrong)))
    error = _SURE * float(np.hypot(heard.error, drawn))
    low = max(0.0, (1.0 - _OFF) * value - error)
    blind = max(0.0, heard.surplus) + _BLIND * heard.unexplained
    high = min(1.0, (1.0 + _OFF) * value + error + blind)
    return Estimate(value, low, high)


def _share(rows: Array) -> Estimate:
    """Return a share with its Wilson interval."""
    size, value = len(rows), float(rows.mean())
    middle = (value + _SURE**2 / (2 * size)) / (1 + _SURE**2 / size)
    half = _SURE * np.sqrt(value * (1 - value) / size + _SURE**2 / (4 * size**2)) / (1 + _SURE**2 / size)
    return Estimate(value, max(0.0, float(middle - half)), min(1.0, float(middle + half)))
