"""Thresholds on trial: what a mask would accept, and how likely that is wrong, on transitions held out."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, NodeSet
from counterpoint.core.coda import derived, mixed, propose
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import independent
from counterpoint.core.pairs import drawn
from counterpoint.core.protocols import DeriveFn, declared
from counterpoint.core.provenance import Provenance
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.motion_alone import MotionAlone
from counterpoint.learn.calibration.reliability import Curve, Surprises, Swaps, blame, fit_curve, wrong_chance
from counterpoint.masks.simple import ask_scores

_FAR = 0.75  # quantile of the distance between factors from which on they are far apart
_GLUED = 4000  # states that are glued together


@dataclass(frozen=True, eq=False)
class Scorer:
    """An estimator together with what it takes to ask it about transitions."""

    estimator: Any
    factors: Factorization
    derive: DeriveFn | None = None

    @property
    def uses_next_state(self) -> bool:
        """Whether the scores look at the next state."""
        return "next_state" in declared(self.estimator)

    @cached_property
    def context(self) -> NodeSet:
        """The nodes whose edges tie nothing together, (N,)."""
        return self.factors.nodes(*self.factors.context)

    def __call__(self, data: Transitions) -> Floats:
        """Return the scores of transitions, checked, (B, N, n)."""
        shape = (len(data), self.factors.n + self.factors.m, self.factors.n)
        if not len(data):
            return np.empty(shape)
        extra = [getattr(data, name) for name in declared(self.estimator)]
        scores = ask_scores(self.estimator, data.state, data.action, *extra)
        if scores.shape != shape:
            raise ValueError(f"estimator: expected scores, floats of shape {shape}, got {scores.dtype} {scores.shape}.")
        return scores

    def mixed(self, data: Transitions, parents: Provenance) -> Transitions:
        """Return rows that are swapped together from their parents, derived columns recomputed."""
        return derived(mixed(data, parents, self.factors), self.factors, self.derive)

    def edges(self, scores: Floats, tau: float) -> Bools:
        """Return the mask that ``Threshold`` makes of scores, without the edges out of context factors."""
        return (scores > tau) & ~self.context[:, None]


@dataclass(frozen=True, eq=False)
class ThresholdTrial:
    """Transitions to try thresholds on, always with the same pairs of them."""

    scorer: Scorer
    data: Transitions
    seen: Surprises
    start: Curve  # untrained
    scores: Floats  # (T, N, n)
    hiding: Floats  # (T, N, n) the scores if the next state hid all influences, as it does in a proposal
    seed: int
    pairs: int

    @cached_property
    def curves(self) -> tuple[Curve, Curve]:
        """The chance of an influence, for scores whose outcome shows it and for those whose outcome hides it."""
        return self._fitted(self.start, self.start)

    def resampled(self, rng: np.random.Generator) -> tuple[Curve, Curve]:
        """Return the curves that follow from transitions drawn with replacement."""
        weight = np.bincount(rng.integers(len(self.data), size=len(self.data)), minlength=len(self.data))
        return self._fitted(*self.curves, weight=weight.astype(np.float64), rounds=20)

    def _fitted(self, shown: Curve, hidden: Curve, **settings: Any) -> tuple[Curve, Curve]:
        found = fit_curve(self.scores, self.seen, shown, **settings)
        same = self.hiding is self.scores
        return found, found if same else fit_curve(self.hiding, self.seen, hidden, **settings)

    def swaps(self, tau: float) -> tuple[Swaps, Transitions]:
        """Make one proposal for each pair, and return those that the mask accepts."""
        scorer, rng = self.scorer, np.random.default_rng(self.seed)
        base, donor = drawn(self.data, scorer.factors, self.pairs, rng)
        mask = scorer.edges(self.scores, tau)
        proposal, nodes = propose(
            self.data[base], self.data[donor], mask[base] | mask[donor], scorer.factors, rng=rng, derive=scorer.derive
        )
        kept = nodes.any(axis=1) & (base != donor)
        parents, proposal = Provenance(base, donor, nodes)[kept], proposal[kept]
        scores = scorer(proposal)
        valid = independent(scorer.edges(scores, tau), parents.swapped)
        return Swaps(parents[valid], scores[valid]), proposal[valid]

    def wrong(self, swaps: Swaps, curves: tuple[Curve, Curve] | None = None) -> Floats:
        """Return the chance that each accepted proposal is wrong, (R,)."""
        curves = curves or self.curves
        real = curves[0](self.scores)
        blamed = blame(real, self.seen, self.start.always)
        return wrong_chance(swaps, real, blamed, curves, self.scorer.context)

    def missed(self, tau: float) -> tuple[float, int]:
        """Return the share of the surprised targets without an incoming edge, and their number."""
        some: Bools = np.any((self.scores > tau) & (self.start.kinds >= 0), axis=1)
        without = ~some[self.seen.surprised & self.seen.clear]
        return float(without.mean()) if len(without) else float("nan"), len(without)


def hiding_scores(scorer: Scorer, data: Transitions, baseline: MotionAlone, surprised: Bools) -> Floats:
    """Return the scores if the surprised factors had done what they do by themselves, (B, N, n)."""
    after, alone = data.next_state.copy(), baseline.next_state(data)
    for node, columns in enumerate(scorer.factors.state.values()):
        own = list(columns)
        after[:, own] = np.where(surprised[:, node, None], alone[:, own], after[:, own])
    return scorer(data.replace(next_state=after))


def glued_scores(scorer: Scorer, data: Transitions, rng: np.random.Generator) -> Floats:
    """Return the scores of edges out of factors that were glued into states of other episodes, far away, (E,).

    Far apart is what is farther than three quarters of all pairs of factors; without positions every
    pair counts, so that real influences by chance are among them.
    """
    factors, episode = scorer.factors, np.asarray(data.episode)
    base, donor = rng.integers(len(data), size=(2, _GLUED))
    other = episode[base] != episode[donor]
    base, donor = base[other], donor[other]
    node = rng.integers(factors.n, size=len(base))
    nodes = np.arange(factors.n + factors.m) == node[:, None]
    glued = scorer.mixed(data, Provenance(base, donor, nodes))
    scores = scorer(glued)[np.arange(len(base)), node]  # (R, n) of the edges out of the glued factor
    apart = _distances(glued.state, node, factors)
    others = ~nodes[:, : factors.n]
    known = others & np.isfinite(apart)
    if known.any():
        others &= ~known | (apart >= np.quantile(apart[known], _FAR))
    return np.asarray(scores[others])


def _distances(state: Floats, node: Array, factors: Factorization) -> Floats:
    """Return how far the given factor of each row is from all others, (R, n); NaN without positions."""
    axes = max((len(place.columns) for place in factors.positions.values()), default=1)
    points = np.full((len(state), factors.n, axes), np.nan)
    for index, name in enumerate(factors.state):
        if name in factors.positions:
            points[:, index] = factors.positions[name].of(state)
    return np.asarray(np.linalg.norm(points - points[np.arange(len(state)), node][:, None], axis=2))
