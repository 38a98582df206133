"""What calibration says: a threshold, its figures, and whether to augment, in words."""

from dataclasses import dataclass
from typing import TypeAlias

from counterpoint.metrics import Estimate

FEWEST_SURPRISES = 30  # that the estimate can rest on
LEAST_YIELD = 0.01  # accepted per pair, below which augmenting is not worth it
_SLACK = 0.02  # by how much a forward model's figure may exceed the estimate: it errs, too

Point: TypeAlias = tuple[float, float, float]  # tau, share of wrong counterfactuals, accepted per pair


@dataclass(frozen=True, eq=False)
class Calibration:
    """A threshold and what to expect of it; its ``str`` is the verdict with its figures.

    Intervals are 95% intervals. They say how much depends on which transitions and pairs were drawn, not how
    far off the reasoning behind a figure may be.
    """

    tau: float
    wrong: Estimate  # share of the accepted counterfactuals that are wrong
    accepted: float  # counterfactuals per pair of transitions: the yield
    target: float
    implausible: Estimate  # (a) share that a forward model finds less plausible than their parents
    false_edges: float | None  # (b) share of edges between glued factors, a bound; None without episodes
    missed: float  # (c) share of the surprised factors that have no incoming edge
    surprises: int  # number of surprised factors that (c) was counted on
    curve: tuple[Point, ...]  # what was found at all thresholds that were tried, tau rising
    fine: bool
    verdict: str

    def __str__(self) -> str:
        glued = "not known, the data has no episodes"
        if self.false_edges is not None:
            glued = f"at most {self.false_edges:.2%} of the pairs that nothing ties together"
        rows = {
            "tau": f"{self.tau:.6g}",
            "wrong": f"{_percent(self.wrong)} of the counterfactuals",
            "yield": f"{self.accepted:.1%} of the pairs of transitions",
            "implausible": f"{_percent(self.implausible)} to an independent forward model",
            "false edges": glued,
            "missed": f"{self.missed:.2%} of {self.surprises:,} surprised factors have no incoming edge",
        }
        return "\n".join([self.verdict, *(f"  {name:<12} {text}" for name, text in rows.items())])


def weigh(wrong: Estimate, accepted: float, target: float, far: Estimate, surprises: int) -> tuple[bool, str]:
    """Return whether to augment, and the reason in words.

    Args:
        wrong: share of wrong counterfactuals.
        accepted: counterfactuals per pair.
        target: largest share that is fine.
        far: share that a forward model finds implausible.
        surprises: how many surprised targets the first figure rests on.
    """
    about = f"about {wrong.value:.1%} of the counterfactuals would be wrong"
    if accepted < LEAST_YIELD:
        return False, (
            f"do not augment: {accepted:.2%} of the pairs give a counterfactual, at any threshold that misses few "
            "edges. The scores do not tell edges from others."
        )
    if wrong.value > target:
        return False, f"do not augment: {about}, whatever the threshold; the target is {target:.1%}."
    if surprises < FEWEST_SURPRISES:
        return False, (
            f"do not augment: only {surprises} factors did what they would not do by themselves, too few to tell "
            f"what the mask misses (expected {FEWEST_SURPRISES} or more). Bring more data, or data with interactions."
        )
    if far.low > max(wrong.high, target) + _SLACK:
        return False, (
            f"do not augment: {about} by their surprises, but {far.value:.1%} are implausible to an independent "
            "forward model. Either the mask misses an influence that is there all the time, or something else ties "
            "factors together in this data: a policy that looks at them, or a cause that was not recorded."
        )
    return True, f"{about}; yield {accepted:.0%}; fine"


def _percent(share: Estimate) -> str:
    return f"{share.value:.2%} ({share.low:.2%} to {share.high:.2%})"
