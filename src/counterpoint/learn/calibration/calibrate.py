"""Whether to augment with a mask, and at which threshold: told from data alone, without labels or simulator.

A witness that knows nothing of the mask says, for every pair of factors and every region of their joint
configurations, how often a target does what it would not do by itself: see ``witness``. Its regions are
counted where the mask has no edge, and weighed by how often the accepted counterfactuals fall there.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.coda import require_derived
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import DeriveFn
from counterpoint.core.require import require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.judging import Asked, Hearing, Trial
from counterpoint.learn.calibration.thresholds import BISECTIONS, DENSITIES, Point, Tau, best, by_kind, search
from counterpoint.learn.calibration.verdict import LEAST_YIELD, TIMES, TIMES_CHOSEN, Calibration, gaps_in_words, weigh
from counterpoint.learn.calibration.witness import Witness
from counterpoint.learn.estimators.estimator import Estimator
from counterpoint.learn.training.fitting import split
from counterpoint.learn.training.inputs import require_training_data
from counterpoint.masks import Constant, Supported
from counterpoint.masks.pairs import kinds_of_tau
from counterpoint.metrics import Estimate
from counterpoint.progress import ProgressBar

FEWEST_ROWS = 2000  # transitions; fewer hold too few interactions to count
_PAIRS = 4000  # pairs of transitions that each threshold is tried on
_MOST_ENTRIES = 20_000_000  # of the scores of all rows that are judged
_AIM = 0.5  # share of the target that is aimed at; the rest is for errors of the estimate, which cost little yield
_MORE = 1.1  # times the yield that thresholds for each kind of edge must have to be worth it
# How far the estimate was off on development worlds, and more: see docs/results/trust.md.
_SURE = 2.0  # standard errors of an interval
_LOW, _HIGH = 0.5, 2.0  # times what was found
_EVEN = 0.03  # what may be found where nothing is missed
_UNSEEN, _MANY = 0.005, 10_000  # what may be missed where nothing is found, and from how many judged rows on
_USUAL_SIGHT = 0.7  # what the witness sees of all influences, where nothing tells
_FAIR_SIGHT = 0.6  # the least that the estimate believes it to see; the interval allows for less
_UNTRIED = 0.1  # what the interval allows it to see, at the least, where nothing tells
_MOSTLY_ALONE = 0.8  # of the edges to a target; where fewer come alone, the witness sees less of what is missed
_LEAST_SIGHT = 0.03  # the same where it was tried, and saw less
_HIGH_TOLD = 1.5  # times what all others tell
_DEAF = 0.06  # of the influences that the witness does not hear, those that the mask may miss
_BLIND = 0.2  # influences for each surprise that is unusual and that nobody explains
_THIN = 0.15  # of the counterfactuals that few rows tell about, those that may be wrong
_LAWLESS = 0.5  # of those with a factor whose law fails, those that may be wrong
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
    """Choose a threshold with a large yield at which well under ``target`` of the counterfactuals are wrong.

    It aims at half of the target, if any threshold reaches that: the estimate errs, too. For the same reason it
    gives up a fifth of the largest yield. A mask is judged as it is. Half of the data is for a witness to learn from,
    the other half is counted. There are three answers: fine, do not augment, and cannot tell.

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
    return witness, Supported(Constant.identity(factors), data, factors)


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
    with ProgressBar("calibrate", 1 + len(DENSITIES) + BISECTIONS, "thresholds at most", shown=progress) as bar:
        trial = _prepare(asked, witness, support, rng)
        bar.advance()

        def attempt(tau: Tau) -> Point:
            bar.advance()
            return _point(trial, tau)

        curve = search(trial, _AIM * target, attempt)
        times = _times(trial)
        chosen = curve[best(curve, _AIM * target, LEAST_YIELD, times * target)]
        taus = _of_kinds(trial, chosen, _AIM * target, times * target)
    found = _judged(trial, chosen.tau, target, curve)
    return found if taus is None else replace(found, by_kind=_judged(trial, taus, target, ()))


def _times(trial: Trial) -> float:
    """Return how many times the target the upper end may be; less where the witness itself chose the threshold."""
    return TIMES if trial.answer.dtype == np.bool_ else TIMES_CHOSEN


def _of_kinds(trial: Trial, chosen: Point, aim: float, bar: float) -> Floats | None:
    """Return a threshold for each kind of edge, if these yield clearly more than one for all, or alone keep the aim."""
    kept = chosen.wrong <= aim
    many = [(taus, _point(trial, taus)) for taus in by_kind(trial)]
    points = [point for _, point in many if point.wrong <= aim and point.accepted >= LEAST_YIELD]
    if not points:
        return None
    found = points[best(points, aim, LEAST_YIELD, max(bar, chosen.high) if kept else bar)]
    if kept and found.accepted < _MORE * chosen.accepted:
        return None
    return next(taus for taus, point in many if point is found)


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


def _point(trial: Trial, tau: Tau) -> Point:
    """Return what is found at a threshold; NaN for the wrong share where nothing is accepted."""
    swaps, heard = trial.at(tau)
    wrong = _NOTHING if heard is None else _wrong(heard)
    return Point(float(np.mean(tau)), wrong.value, len(swaps) / trial.pairs, wrong.high)


def _judged(trial: Trial, tau: Tau, target: float, curve: tuple[Point, ...]) -> Calibration:
    """Gather all figures of one threshold."""
    (swaps, heard), times = trial.at(tau), _times(trial)
    yielded = len(swaps) / trial.pairs
    static = swaps.static / max(1, swaps.static + len(swaps))
    wrong = unknown = contradicted = _NOTHING
    collect: tuple[str, ...] = ()
    supported = False
    if heard is not None:
        wrong = _wrong(heard)
        unknown, contradicted = (_share(rows) for rows in (heard.unknown, heard.wrong > 0.5))
        collect = gaps_in_words(trial, swaps, heard)
        supported = _if_supported(heard, yielded, target, times)
    fine, verdict = weigh(wrong, unknown, yielded, target, collect, times=times)
    if supported and not fine:
        verdict += " The same mask with masks.Supported, which rejects these, is fine."
    single = np.ndim(tau) == 0
    return Calibration(
        tau=float(tau) if single else float("nan"),
        wrong=wrong,
        unknown=unknown,
        contradicted=contradicted,
        accepted=yielded,
        static=static,
        target=target,
        collect=collect,
        curve=curve,
        fine=fine,
        verdict=verdict,
        fine_if_supported=fine or supported,
        thresholds=None if single else np.asarray(tau),
        taus={} if single else kinds_of_tau(trial.asked.factors, np.asarray(tau)),
    )


def _if_supported(heard: Hearing, yielded: float, target: float, times: float) -> bool:
    """Return whether the mask would be fine if masks.Supported rejected what it rejects."""
    left = ~heard.rejected
    if not left.any():
        return False
    parts = {name: getattr(heard, name)[left] for name in ("paired", "told", "unknown", "rejected", "lawless")}
    rest = replace(heard, **parts)
    return weigh(_wrong(rest), _share(rest.unknown), yielded * float(left.mean()), target, times=times)[0]


def _wrong(heard: Hearing) -> Estimate:
    """Return the share of wrong counterfactuals, with an interval.

    It covers what was counted (finite numbers, episodes as a whole), what the method was off by on the worlds it was
    developed on, surprises that neither witness nor mask explains, and what nobody can know or judge.
    """
    found, told = float(heard.paired.mean()), float(heard.told.mean())
    error = _SURE * float(np.hypot(heard.error, heard.wrong.std() / np.sqrt(len(heard.wrong))))
    unsure = _SURE * heard.unsure
    low = max(0.0, _LOW * float(heard.wrong.mean()) - error - unsure - _EVEN)
    apart = min(1.0, heard.alone / _MOSTLY_ALONE) ** 3
    least = _UNTRIED if heard.sight is None else max(apart * heard.sight, _LEAST_SIGHT)
    unseen = _UNSEEN * max(1.0, float(np.sqrt(_MANY / heard.judged)))
    by_pairs, by_others = (_HIGH * found + error) / least, _HIGH_TOLD * told + heard.faint + unsure
    seen = max(by_pairs, by_others) + unseen / least
    blind = _BLIND * max(0.0, heard.unexplained - heard.usual) + _DEAF * heard.deaf
    risks = (heard.rejected, 1.0), (heard.lawless, _LAWLESS), (heard.unknown, _THIN)
    high = seen + blind + float(np.max([risk * rows for rows, risk in risks], axis=0).mean())
    sight = _USUAL_SIGHT if heard.sight is None else max(heard.sight, _FAIR_SIGHT)
    corrected = heard.believed(np.asarray(1.0 - (1.0 - found) ** (1.0 / sight)))  # pairs do not tell all
    likely = float(corrected.mean())
    return Estimate(likely, low, min(1.0, max(high, likely)))


def _share(rows: Array) -> Estimate:
    """Return a share with its Wilson interval."""
    size, value = len(rows), float(rows.mean())
    middle = (value + _SURE**2 / (2 * size)) / (1 + _SURE**2 / size)
    half = _SURE * np.sqrt(value * (1 - value) / size + _SURE**2 / (4 * size**2)) / (1 + _SURE**2 / size)
    return Estimate(value, max(0.0, float(middle - half)), min(1.0, float(middle + half)))
