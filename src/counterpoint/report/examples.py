"""Concrete swaps to look at: some that were accepted, and some that an edge rejected."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Ints, NodeSet
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.coda import propose
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import independent
from counterpoint.core.pairs import drawn
from counterpoint.core.protocols import Mask, call_mask
from counterpoint.core.transitions import Transitions

PAIRS = 2048  # tried, to find some that are rejected; fewer if their masks take more than this:
MASK_BYTES = 16 * 2**20
SHOWN = 4  # of each kind


@dataclass(frozen=True, eq=False)
class Example:
    """One swap: base, donor and result, batches of one row each, and their graphs."""

    rows: tuple[int, int]  # of base and donor in the data
    base: Transitions
    donor: Transitions
    result: Transitions
    masks: Bools  # (3, N, n) of base, donor and result
    swapped: NodeSet  # (N,) what came from the donor
    edge: tuple[int, int] | None = None  # source and target of the edge that rejected it


@dataclass(frozen=True, eq=False)
class Rejections:
    """What became of a small round of swaps that was made for the gallery."""

    tried: int
    rejected: int
    examples: list[Example]


def accepted(
    data: Transitions, made: Counterfactuals, mask: Mask, factors: Factorization, rng: np.random.Generator
) -> list[Example]:
    """Pick some counterfactuals, with different swapped sets where possible."""
    rows = rng.permutation(len(made))[: 64 * SHOWN]
    chosen = rows[_varied(np.packbits(made.swapped[rows], axis=1))]
    base, donor, result = data[made.base[chosen]], data[made.donor[chosen]], made.transitions[chosen]
    if not len(chosen):
        return []
    masks = np.stack([call_mask(mask, part, factors) for part in (base, donor, result)], axis=1)
    return [
        Example(
            rows=(int(made.base[row]), int(made.donor[row])),
            base=base[k],
            donor=donor[k],
            result=result[k],
            masks=masks[k],
            swapped=made.swapped[row],
        )
        for k, row in enumerate(chosen)
    ]


def rejected(
    data: Transitions,
    rows: Ints,
    augmenter: Augmenter,
    *,
    rng: np.random.Generator,
) -> Rejections:
    """Run one small round of Algorithm 1 and pick some proposals that were rejected, by different edges if possible.

    Bases and donors agree on the context, and context factors stay where they are.

    Args:
        data: where to take pairs from.
        rows: (B,) the numbers of its rows in the whole data.
        augmenter: what the counterfactuals were made with.
        rng: source of randomness.
    """
    mask, factors = augmenter.mask_fn, augmenter.factors
    most = min(PAIRS, max(16, MASK_BYTES // (factors.n * (factors.n + factors.m))))
    base_rows, donor_rows = drawn(data, factors, most, rng)
    base, donor = data[base_rows], data[donor_rows]
    m1, m2 = call_mask(mask, base, factors), call_mask(mask, donor, factors)
    overlaid, policy, derive = m1 | m2, augmenter.policy, augmenter.derive
    proposal, d = propose(base, donor, overlaid, factors, rng=rng, policy=policy, derive=derive)
    m = call_mask(mask, proposal, factors)
    tried = d.any(axis=1) & (base_rows != donor_rows)
    refused = np.flatnonzero(tried & ~independent(m, d))
    edges = first_crossing(m[refused], d[refused])
    chosen = _varied(edges)
    examples = [
        Example(
            rows=(int(rows[base_rows[row]]), int(rows[donor_rows[row]])),
            base=base[row],
            donor=donor[row],
            result=proposal[row],
            masks=np.stack([m1[row], m2[row], m[row]]),
            swapped=d[row],
            edge=(int(edge[0]), int(edge[1])),
        )
        for row, edge in zip(refused[chosen], edges[chosen], strict=True)
    ]
    return Rejections(int(tried.sum()), len(refused), examples)


def first_crossing(mask: Bools, nodes: NodeSet) -> Ints:
    """Return source and target of the first edge of each mask that crosses its node set, (B, 2).

    Args:
        mask: (B, N, n).
        nodes: (B, N), each crossed by some edge.
    """
    n = mask.shape[2]
    crossing = mask & (nodes[:, :, None] != nodes[:, None, :n])
    first = crossing.reshape(len(mask), mask.shape[1] * n).argmax(axis=1)
    return np.stack([first // n, first % n], axis=1)


def _varied(keys: Array) -> Ints:
    """Return up to ``SHOWN`` rows, in order: the first row of each different key, then others."""
    if not len(keys):
        return np.zeros(0, np.int64)
    fresh = np.sort(np.unique(keys, axis=0, return_index=True)[1])
    others = np.setdiff1d(np.arange(len(keys)), fresh)
    return np.concatenate([fresh, others])[:SHOWN]
