"""How good a mask is: its scores against the true edges, and the counterfactuals that it lets through.

Scores and masks have shape (B, N, n), sources in rows. Every function takes the kind of edge to look at. The default
leaves out self-edges, which are always there and make any mask look good; the paper pools all, ``kind="all"``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from counterpoint.checks import audit
from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.coda import coda
from counterpoint.core.factors import Factorization
from counterpoint.core.pairs import drawn
from counterpoint.core.protocols import DeriveFn, Mask
from counterpoint.core.require import require_count, require_data, require_generator
from counterpoint.core.static import static_nodes, swaps_only_static
from counterpoint.core.transitions import Transitions

EdgeKind = Literal["off-diagonal", "object-object", "action-object", "all"]
EDGE_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)
Metric: TypeAlias = Callable[[Array, Array], float]


@dataclass(frozen=True, eq=False)
class Roc:
    """A receiver operating characteristic: one point for each different score, and the two corners."""

    false_positive_rate: Floats  # (K,) from 0 to 1
    true_positive_rate: Floats  # (K,) from 0 to 1
    tau: Floats  # (K,) falling; an edge is predicted where the score is at least this

    @property
    def area(self) -> float:
        """The area under the curve; NaN where one of the two kinds of entries is missing."""
        x, y = self.false_positive_rate, self.true_positive_rate
        return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2)) if len(x) > 1 else float("nan")


@dataclass(frozen=True)
class Estimate:
    """A figure with its bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class SwapQuality:
    """What becomes of the counterfactuals that a mask lets through."""

    confirmed: float  # share of the accepted ones that the simulator confirms; NaN if there are none
    accepted: float  # accepted proposals per pair
    relative_yield: float  # the same, relative to the exact mask

    def __str__(self) -> str:
        return (
            f"{self.confirmed:.2%} of the accepted counterfactuals confirmed; {self.accepted:.3f} accepted per pair, "
            f"{self.relative_yield:.0%} of what the exact mask gives"
        )


def edge_kind(kind: EdgeKind, nodes: int, n: int) -> Bools:
    """Return which entries of a mask are of a kind, (N, n).

    Example:
        >>> edge_kind("object-object", 3, 2).astype(int)
        array([[0, 1],
               [1, 0],
               [0, 0]])
    """
    if kind not in EDGE_KINDS:
        raise ValueError(f"kind: expected one of {', '.join(map(repr, EDGE_KINDS))}, got {kind!r}.")
    off, of_object = ~np.eye(nodes, n, dtype=np.bool_), np.zeros((nodes, n), np.bool_)
    of_object[:n] = True
    chosen = {"off-diagonal": off, "object-object": off & of_object, "action-object": ~of_object}
    return chosen.get(kind, np.ones((nodes, n), np.bool_))


def roc(scores: Floats, truth: Bools, kind: EdgeKind = "off-diagonal") -> Roc:
    """Return the pooled ROC: every entry of every transition counts once (paper, section 4 and appendix).

    Args:
        scores: (B, N, n), larger meaning more dependent.
        truth: (B, N, n) bool, the true edges.
        kind: the edges to look at; ``"all"`` is the paper's choice.

    Time O(E log E) for E entries.
    """
    found, missed, tau = _counts(scores, truth, kind)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = (np.concatenate([[0], count]) / (count[-1] if len(count) else 0) for count in (missed, found))
        x, y = rates
    return Roc(x, y, np.concatenate([[np.inf], tau]))


def auc(scores: Floats, truth: Bools, kind: EdgeKind = "off-diagonal") -> float:
    """Return the area under the pooled ROC: the chance that a true edge outscores another entry.

    Ties count half. NaN if there is no true edge of this kind, or nothing else.

    Example:
        >>> scores = np.array([[[0.0, 0.9], [0.1, 0.0], [0.4, 0.4]]])
        >>> truth = np.array([[[True, True], [False, True], [True, False]]])
        >>> auc(scores, truth), auc(scores, truth, "object-object")
        (0.875, 1.0)
    """
    return roc(scores, truth, kind).area


def average_precision(scores: Floats, truth: Bools, kind: EdgeKind = "off-diagonal") -> float:
    """Return the mean precision over the true edges, ranked by score; NaN if there are none.

    Equal scores are one step: all of their entries are taken or none. Unlike the AUC it falls when
    true edges are rare, so give their share (the value of a useless score) beside it.
    """
    found, others, _ = _counts(scores, truth, kind)
    if not len(found) or not found[-1]:
        return float("nan")
    gained = np.diff(found, prepend=0)
    return float(np.sum(gained * found / (found + others)) / found[-1])


def missed_edge_rate(mask: Bools, truth: Bools, kind: EdgeKind = "off-diagonal") -> float:
    """Return the share of the true edges that a mask (B, N, n) does not have; NaN if there are none."""
    mask, truth = _entries(mask, truth, kind)
    if mask.dtype != np.bool_:
        raise TypeError(f"mask: expected booleans, got dtype {mask.dtype}. Compare scores with a threshold first.")
    return float(np.mean(~mask[truth])) if truth.any() else float("nan")


def threshold_for_miss_rate(scores: Floats, truth: Bools, rate: float, kind: EdgeKind = "off-diagonal") -> float:
    """Return the largest tau whose mask, ``scores > tau``, misses at most this share of the true edges.

    It is exact in the dtype of the scores, which is that in which ``Threshold`` compares.

    Args:
        scores: (B, N, n).
        truth: (B, N, n) bool.
        rate: share of the true edges that may be missed, at least 0 and below 1.
        kind: the edges to look at.

    Raises:
        ValueError: if there is no true edge to set the threshold by.
    """
    if not 0 <= rate < 1:
        raise ValueError(f"rate: expected a share of the true edges, at least 0 and below 1, got {rate!r}.")
    flat, truth = _entries(scores, truth, kind)
    edges = flat[truth]
    if not len(edges):
        raise ValueError(f"truth: it has no {kind} edges among {len(flat):,} entries, so no threshold follows from it.")
    allowed = min(int(rate * len(edges) + 1e-9), len(edges) - 1)
    first_kept = np.partition(edges, allowed)[allowed]
    return float(np.nextafter(first_kept, np.asarray(-np.inf, edges.dtype)))


def bootstrap(
    metric: Metric,
    scores: Array,
    truth: Bools,
    *,
    rng: np.random.Generator,
    resamples: int = 200,
    level: float = 0.95,
) -> Estimate:
    """Return a metric of scores (or of a mask) with a percentile interval over resampled transitions.

    Transitions are drawn, not entries, because those of one transition belong together.

    Args:
        metric: ``(scores, truth) -> float``, such as ``auc``; choose a kind of edge with a lambda.
        scores: (B, N, n), or whatever else the metric takes, with transitions along the first axis.
        truth: (B, N, n) bool.
        rng: source of randomness.
        resamples: how many times to draw B transitions with replacement.
        level: how much of the resampled values the interval holds.

    Time: ``resamples`` calls of the metric; memory: one resample at a time.
    """
    require_generator(rng)
    require_count("resamples", resamples)
    if not 0 < level < 1:
        raise ValueError(f"level: expected a share between 0 and 1, got {level!r}.")
    scores, truth = np.asarray(scores), np.asarray(truth)
    if len(scores) != len(truth) or not len(scores):
        raise ValueError(f"scores and truth: expected equal lengths, 1 or more, got {len(scores)} and {len(truth)}.")
    value, values = metric(scores, truth), np.empty(resamples)
    for k in range(resamples):
        rows = rng.integers(len(scores), size=len(scores))
        values[k] = metric(scores[rows], truth[rows])
    values = values[~np.isnan(values)]  # resamples without a single true edge say nothing
    if not len(values):
        return Estimate(value, float("nan"), float("nan"))
    return Estimate(float(value), *map(float, np.quantile(values, [(1 - level) / 2, (1 + level) / 2])))


def relative_yield(
    mask_fn: Mask,
    exact_fn: Mask,
    data: Transitions,
    factors: Factorization,
    *,
    rng: np.random.Generator,
    pairs: int = 10_000,
    derive: DeriveFn | None = None,
) -> float:
    """Return how many counterfactuals a mask accepts per pair, relative to the exact mask, on the same pairs."""
    base, donor = _pairs(data, factors, pairs, rng)
    mine, best = (_accepted(base, donor, fn, factors, rng=rng, derive=derive)[1].mean() for fn in (mask_fn, exact_fn))
    return float(mine / best) if best else float("nan")


def swap_quality(  # noqa: PLR0913
    mask_fn: Mask,
    exact_fn: Mask,
    data: Transitions,
    factors: Factorization,
    *,
    step: Callable[..., Array],
    rng: np.random.Generator,
    pairs: int = 10_000,
    derive: DeriveFn | None = None,
) -> SwapQuality:
    """Audit a mask: make one proposal per pair, put the accepted ones into the simulator, compare the yield.

    Pairs agree on the context. What would repeat a real row, or exchanges only what never changes, does not count.

    Args:
        mask_fn: the mask to judge.
        exact_fn: the exact mask, for the yield.
        data: real transitions, with their noise if the simulator is noisy.
        factors: how columns split into factors.
        step: ``(state, action) -> next_state`` or ``(state, action, noise) -> next_state``, batched.
        rng: source of randomness.
        pairs: how many pairs of transitions to look at, at most.
        derive: recomputes derived columns, if the factorisation has any.
    """
    base, donor = _pairs(data, factors, pairs, rng)
    proposal, valid = _accepted(base, donor, mask_fn, factors, rng=rng, derive=derive)
    best = _accepted(base, donor, exact_fn, factors, rng=rng, derive=derive)[1].mean()
    share = audit(proposal[valid], step).confirmed if valid.any() else float("nan")
    return SwapQuality(share, float(valid.mean()), float(valid.mean() / best) if best else float("nan"))


def _entries(values: Array, truth: Array, kind: EdgeKind) -> tuple[Array, Bools]:
    """Return values and truth of the chosen entries, checked, each (E,)."""
    values, truth = np.asarray(values), np.asarray(truth)
    if values.ndim != 3 or values.shape[1] < values.shape[2]:
        raise ValueError(f"scores: expected shape (B, N, n), sources in rows, got {values.shape}.")
    if truth.dtype != np.bool_ or truth.shape != values.shape:
        raise ValueError(f"truth: expected booleans of shape {values.shape}, got {truth.dtype} {truth.shape}.")
    if np.isnan(values).any():
        raise ValueError("scores: some are NaN, which is neither an edge nor the lack of one.")
    chosen = edge_kind(kind, *values.shape[1:])
    return values[:, chosen].ravel(), truth[:, chosen].ravel()


def _counts(scores: Array, truth: Array, kind: EdgeKind) -> tuple[Array, Array, Array]:
    """Count true edges and other entries with at least each different score, (K,), scores falling."""
    flat, truth = _entries(scores, truth, kind)
    order = np.argsort(flat)[::-1]
    flat = flat[order]
    last = np.flatnonzero(np.append(flat[1:] != flat[:-1], True)) if len(flat) else np.empty(0, np.int64)
    found = np.cumsum(truth[order])[last]
    return found, last + 1 - found, flat[last]


def _pairs(
    data: Transitions, factors: Factorization, pairs: int, rng: np.random.Generator
) -> tuple[Transitions, Transitions]:
    """Draw pairs of different rows that agree on the context."""
    require_data(data, factors)
    require_generator(rng)
    require_count("pairs", pairs)
    if len(data) < 2:
        raise ValueError("data: a swap needs two transitions, and the data holds one.")
    base, donor = drawn(data, factors, pairs, rng)
    different = base != donor
    if not different.any():
        raise ValueError(f"data: no two transitions agree on the context {', '.join(factors.context)}.")
    return data[base[different]], data[donor[different]]


def _accepted(
    base: Transitions, donor: Transitions, mask_fn: Mask, factors: Factorization, **others: Any
) -> tuple[Transitions, Bools]:
    """Return one proposal per pair, and which are valid, new, and exchange more than what never changes."""
    proposal, nodes, valid = coda(base, donor, mask_fn, factors, **others)
    valid &= ~swaps_only_static(nodes, static_nodes(base, factors))
    for parent in (base, donor):
        same = [getattr(parent, name) == getattr(proposal, name) for name in ("state", "action", "next_state")]
        valid &= ~np.hstack(same).all(axis=1)
    return proposal, valid
