"""What calibration says: a threshold, its figures, and whether to augment, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from counterpoint.core.arrays import Floats
from counterpoint.learn.calibration.judging import Hearing, Swaps, Trial
from counterpoint.learn.calibration.thresholds import Point
from counterpoint.metrics import Estimate

LEAST_YIELD = 0.01  # accepted per pair, below which augmenting is not worth it
MOST_UNKNOWN = 0.1  # share of the counterfactuals that may be unknown
TIMES = 5.0  # the upper end of the interval may be so many times the target
TIMES_CHOSEN = 4.0  # the same of a threshold that was chosen for what the witness did not see
_MOST_WORDS = 3  # pairs that are named
_MOST_BOUNDS = 3  # bounds of a region that are named


@dataclass(frozen=True, eq=False)
class Calibration:
    """A threshold and what to expect of it; its ``str`` is the verdict with its figures.

    All shares are of the counterfactuals that would be made, swaps of what never changes (a goal) left out.
    """

    tau: float  # NaN for a mask, which has no threshold, and for one for each kind of edge
    wrong: Estimate  # share that is wrong; the interval is meant to cover the truth in 95 of 100 cases
    unknown: Estimate  # share that puts factors into a situation that the recordings do not have
    contradicted: Estimate  # share that is more likely wrong than right
    accepted: float  # counterfactuals per pair of transitions: the yield
    static: float  # share of the accepted swaps that only exchange what never changes, and are trivially right
    target: float
    collect: tuple[str, ...]  # rows that would tell more: which pairs of factors, and where
    curve: tuple[Point, ...]  # what was found at single thresholds, tau rising
    fine: bool
    verdict: str
    fine_if_supported: bool  # whether the mask is fine at least with masks.Supported, which rejects what is unknown
    thresholds: Floats | None = None  # (N, n) if there is one for each kind of edge; masks.Threshold takes them as tau
    taus: Mapping[str, float] = field(default_factory=dict)  # the same by name, as a description takes them
    by_kind: "Calibration | None" = None  # what one threshold for each kind of edge gives, if it yields clearly more

    def __str__(self) -> str:
        rows = {
            "tau": self._threshold,
            "wrong": f"{_percent(self.wrong)} of the counterfactuals",
            "unknown": f"{_percent(self.unknown)}: no recording is like them",
            "contradicted": f"{_percent(self.contradicted)}: more likely wrong than right",
            "yield": f"{self.accepted:.1%} of the pairs of transitions",
            "static": f"{self.static:.1%} of all accepted swaps, left out: they only exchange what never changes",
        }
        lines = [self.verdict, *(f"  {name:<12} {text}" for name, text in rows.items())]
        lines += [f"  collect      {text}" for text in self.collect]
        if self.by_kind is not None:
            lines += ["", "With one threshold for each kind of edge:", str(self.by_kind)]
        return "\n".join(lines)

    @property
    def _threshold(self) -> str:
        if self.taus:
            return "{ " + ", ".join(f'"{kind}" = {tau:.6g}' for kind, tau in self.taus.items()) + " }"
        return "none, it is a mask" if np.isnan(self.tau) else f"{self.tau:.6g}"


def weigh(
    wrong: Estimate,
    unknown: Estimate,
    accepted: float,
    target: float,
    collect: tuple[str, ...] = (),
    times: float = TIMES,
) -> tuple[bool, str]:
    """Return whether to augment, and the reason in words.

    Args:
        wrong: share of wrong counterfactuals.
        unknown: share of those that nobody can judge.
        accepted: counterfactuals per pair.
        target: largest share that is fine.
        collect: rows that would tell more.
        times: how many times the target the upper end of the interval may be.
    """
    about = f"about {wrong.value:.1%} of the counterfactuals would be wrong ({wrong.low:.1%} to {wrong.high:.1%})"
    if accepted < LEAST_YIELD:
        return False, (
            f"do not augment: {accepted:.2%} of the pairs give a counterfactual, at any threshold that misses few "
            "edges. The scores do not tell edges from others."
        )
    if wrong.low > target:
        return False, f"do not augment: {about}; the target is {target:.1%}."
    more = f" Collect rows like these: {'; '.join(collect)}." if collect else " Bring more data."
    if unknown.value > MOST_UNKNOWN:
        return False, (
            f"cannot tell: too few interactions. {unknown.value:.0%} of the counterfactuals put factors into a "
            f"situation that no recording has.{more} Or reject them: masks.Supported."
        )
    if wrong.value > target or wrong.high > times * target:
        return False, f"cannot tell: {about}, which is not sure to be below the target of {target:.1%}.{more}"
    return True, f"{about}; yield {accepted:.0%}; fine"


def gaps_in_words(trial: Trial, swaps: Swaps, heard: Hearing) -> tuple[str, ...]:
    """Name the pairs of factors that nobody knows in most counterfactuals, and where they are then."""
    factors, support = trial.asked.factors, trial.support
    found: list[tuple[float, str]] = []
    rows = np.concatenate([swaps.proposal.state, swaps.proposal.action], axis=1)
    for each in support.evidence:
        for (i, j), features in zip(each.kind.pairs, support.pairs.features(each.kind, rows, rows), strict=True):
            missing = heard.gaps[:, i, j] | (heard.gaps[:, j, i] if i < factors.n else False)
            share = float(missing.mean())
            if share > 0:
                regions = each.regions(features[missing])
                most = int(np.bincount(regions).argmax())
                box = each.regions.box(most, features.shape[1])
                found.append((share, f"{factors.names[i]} and {factors.names[j]}{_bounds(each.kind.labels, box)}"))
    found.sort(key=lambda pair: -pair[0])
    return tuple(f"{text} ({share:.1%} of the counterfactuals)" for share, text in found[:_MOST_WORDS])


def _bounds(labels: tuple[str, ...], box: Floats) -> str:
    """Write the bounds of a region, the distance first."""
    words = []
    for k in sorted(range(len(labels)), key=lambda k: labels[k] != "distance"):
        low, high = box[k]
        if np.isfinite(low) and np.isfinite(high):
            words.append(f"{labels[k]} {low:.3g} to {high:.3g}")
        elif np.isfinite(high):
            words.append(f"{labels[k]} below {high:.3g}")
        elif np.isfinite(low):
            words.append(f"{labels[k]} above {low:.3g}")
    return f" with {', '.join(words[:_MOST_BOUNDS])}" if words else ""


def _percent(share: Estimate) -> str:
    return f"{share.value:.2%} ({share.low:.2%} to {share.high:.2%})"
