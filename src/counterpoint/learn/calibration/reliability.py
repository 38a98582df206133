"""From scores to chances, without labels: how likely an edge is, and how likely a swap is wrong.

A factor that does what it would not do by itself was moved by something. So P(surprise of j) =
1 − (1 − leak) · Π over sources i of (1 − p(i, j)), a noisy-or, where p is a rising function of the score of
i → j, one for each kind of edge (types of source and target), and the leak is for errors of the model of
what a factor does by itself. Expectation-maximisation finds these functions: the chance of an edge given its
score, whatever the score means.
"""

from dataclasses import dataclass, replace

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, NodeSet
from counterpoint.core.factors import Factorization
from counterpoint.core.provenance import Provenance

POINTS = 96  # thresholds between scores for each kind of edge, closer and closer towards the largest scores
_START, _CLOSE = 0.05, 1e-6  # of the expectation-maximisation
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Surprises:
    """What the baseline says about each target of some transitions."""

    surprised: Bools  # (B, n) did something that it would not do by itself
    clear: Bools  # (B, n) whether the baseline can be trusted here
    leak: Floats  # (B, n) chance of a surprise without a cause, where it is small enough to be believed


@dataclass(frozen=True, eq=False)
class Curve:
    """The chance of an influence as a function of the score, for each kind of edge."""

    cuts: Floats  # (K,) rising
    chance: Floats  # (kinds, K + 1), rising along the second axis
    kinds: Ints  # (N, n) kind of each edge; -1 for self-edges and edges that are always there
    always: Bools  # (N, n)

    def __call__(self, scores: Floats) -> Floats:
        """Return the chance of each edge, (B, N, n); 0 for self-edges."""
        table = np.vstack([self.chance, np.zeros(self.chance.shape[1])])  # the last row answers for kind -1
        found = table[self.kinds, np.searchsorted(self.cuts, scores, side="left")]
        return np.where(self.always, 1.0, found)


@dataclass(frozen=True, eq=False)
class Swaps:
    """Accepted proposals."""

    provenance: Provenance  # rows of the real transitions
    scores: Floats  # (R, N, n) of the proposals

    def __len__(self) -> int:
        return len(self.provenance)

    def __getitem__(self, rows: Array) -> "Swaps":
        return Swaps(self.provenance[rows], self.scores[rows])


def edge_kinds(factors: Factorization, always: Bools) -> Ints:
    """Number the kinds of edges by the types of source and target, (N, n)."""
    types = [factors.types[name] for name in factors.names]
    numbers: dict[tuple[str, str], int] = {}
    kinds = np.full((len(types), factors.n), -1)
    for i, j in np.argwhere(~always & ~np.eye(*always.shape, dtype=np.bool_)):
        kinds[i, j] = numbers.setdefault((types[i], types[j]), len(numbers))
    return kinds


def cut_points(scores: Floats, kinds: Ints) -> Floats:
    """Return scores between which chances are told apart, rising: close to each other where scores are large."""
    found = []
    for kind in range(kinds.max() + 1):
        values = np.sort(scores[:, kinds == kind], axis=None)[::-1]
        ranks = np.unique(np.geomspace(min(8, len(values)), len(values), POINTS).astype(int)) - 1
        found.append(values[ranks])
    return np.unique(np.concatenate(found))


def fit_curve(
    scores: Floats, seen: Surprises, start: Curve, *, weight: Floats | None = None, rounds: int = 200
) -> Curve:
    """Find the chances that explain the surprises best.

    Args:
        scores: (B, N, n) of real transitions.
        seen: their surprises; those that are not clear are left out.
        start: cuts, kinds and chances to begin with.
        weight: (B,) how often to count each transition, if not once.
        rounds: of expectation-maximisation, at the most.

    Time O(rounds · surprised targets · N).
    """
    size = start.chance.size
    bins = np.searchsorted(start.cuts, scores, side="left") + start.kinds * start.chance.shape[1]
    bins = np.where(start.kinds < 0, size, bins)  # what cannot be a cause has a place of its own
    bins = bins.transpose(0, 2, 1)[seen.clear]  # (R, N)
    count = np.ones(len(bins)) if weight is None else weight[np.nonzero(seen.clear)[0]]
    total = np.bincount(bins.ravel(), np.repeat(count, bins.shape[1]), size + 1)[:size]
    moved = seen.surprised[seen.clear]
    bins, count, tight = bins[moved], count[moved, None], 1.0 - seen.leak[seen.clear][moved, None]
    chance = np.append(start.chance.ravel(), 0.0)
    for _ in range(rounds):
        each = chance[bins]
        some = 1.0 - tight * np.prod(1.0 - each, axis=1, keepdims=True)
        blamed = np.bincount(bins.ravel(), (count * each / np.maximum(some, _TINY)).ravel(), size + 1)[:size]
        share = (blamed / np.maximum(total, _TINY)).reshape(start.chance.shape)
        found = np.array([rising(*row) for row in zip(share, total.reshape(share.shape), strict=True)]).ravel()
        change = np.abs(found - chance[:size]).max(initial=0.0)
        chance[:size] = np.minimum(found, 1.0)
        if change < _CLOSE:
            break
    return replace(start, chance=chance[:size].reshape(start.chance.shape))


def first_curve(scores: Floats, factors: Factorization, always: Bools) -> Curve:
    """Return a curve that knows nothing yet: every edge has the same small chance."""
    kinds = edge_kinds(factors, always)
    cuts = cut_points(scores, kinds)
    return Curve(cuts, np.full((kinds.max() + 1, len(cuts) + 1), _START), kinds, always)


def rising(values: Floats, weights: Floats) -> Floats:
    """Return the weighted least-squares fit that never falls (pool adjacent violators), (K,).

    >>> rising(np.array([0.1, 0.4, 0.2]), np.array([1.0, 1.0, 1.0])).round(2)
    array([0.1, 0.3, 0.3])
    """
    pools: list[list[float]] = []  # mean, weight, length
    for value, weight in zip(values.tolist(), (weights + _TINY).tolist(), strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, mass, length = pools.pop()
            last = pools[-1]
            last[0] = (last[0] * last[1] + mean * mass) / (last[1] + mass)
            last[1] += mass
            last[2] += length
    return np.repeat([pool[0] for pool in pools], [int(pool[2]) for pool in pools])


def blame(chance: Floats, seen: Surprises, always: Bools) -> Floats:
    """Return the chance of each edge in transitions whose outcome is known, (B, N, n).

    A target that did what it would do anyway was not moved. One that did not was moved by one of its
    sources, in proportion to their chances, or nothing moved it and it is a leak. Where the baseline is
    in doubt, the chances stay.
    """
    free = np.where(always, 0.0, chance)
    some = 1.0 - (1.0 - seen.leak[:, None]) * np.prod(1.0 - free, axis=1, keepdims=True)
    known = np.where(seen.surprised[:, None], free / np.maximum(some, _TINY), 0.0)
    return np.where(always, 1.0, np.where(seen.clear[:, None], known, free))


def wrong_chance(swaps: Swaps, real: Floats, blamed: Floats, curves: tuple[Curve, Curve], context: NodeSet) -> Floats:
    """Return the chance that each accepted proposal is wrong, (R,).

    It is wrong if something moved a target across the cut: in the transition that the target comes
    from, so that its next state shows it; or in the proposal, so that it does not. And if a source that
    moved a target across the cut, before, finds another one on its own side now: a click that loses
    the nearest sprite goes to the next.

    Args:
        swaps: the accepted proposals.
        real: (B, N, n) chances of the edges of the real transitions, outcome unknown.
        blamed: (B, N, n) the same with the outcome known.
        curves: for scores whose outcome shows the influence, and for scores whose outcome hides it.
        context: (N,) nodes that are the same in base and donor.
    """
    n = real.shape[2]
    origin, nodes = swaps.provenance.origin, np.arange(real.shape[1])
    swapped = swaps.provenance.swapped
    cross = (swapped[:, :, None] != swapped[:, None, :n]) & ~context[:, None]
    before = blamed[origin[:, None, :n], nodes[:, None], nodes[:n]]  # (R, N, n) of the row each target comes from
    shown = np.minimum(np.where(cross, before, 0.0).sum(axis=1), 1.0)
    hidden = 1.0 - np.prod(np.where(cross, 1.0 - curves[1](swaps.scores), 1.0), axis=1)
    from_source = blamed[origin, nodes]  # (R, N, n) of the row each source comes from
    lost = np.minimum(np.where(cross, from_source, 0.0).sum(axis=2), 1.0)
    gained = curves[0](swaps.scores) - real[origin[:, None, :n], nodes[:, None], nodes[:n]]
    turned = np.where(cross, 0.0, np.minimum(lost[:, :, None], np.maximum(gained, 0.0))).max(axis=1)
    right: Floats = np.prod((1.0 - shown) * (1.0 - hidden) * (1.0 - turned), axis=1)
    return 1.0 - right
