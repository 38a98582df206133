"""Concrete swaps to look at: some that were accepted, and some that an edge rejected."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, NodeSet
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.coda import propose
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import components, independent
from counterpoint.core.pairs import same_rows, sharing, uniform
from counterpoint.core.protocols import Mask, call_mask
from counterpoint.core.static import static_nodes, swaps_only_static
from counterpoint.core.transitions import Transitions
from counterpoint.core.windows import Windows

PAIRS = 2048  # tried, to find some that are rejected; fewer if their masks take more than this:
MASK_BYTES = 16 * 2**20
MOST_ROWS = 20_000  # in windows that are paired
SHOWN = 4  # of each kind


@dataclass(frozen=True, eq=False)
class Example:
    """One swap of H rows each: base, donor and result, and their graphs. H is 1 without windows."""

    rows: tuple[int, int]  # of base and donor in the data; of windows, the first
    base: Transitions
    donor: Transitions
    result: Transitions
    masks: Bools  # (H, 3, N, n) of base, donor and result
    swapped: NodeSet  # (N,) what came from the donor
    edge: tuple[int, int] | None = None  # source and target of the edge that rejected it
    step: int = 0  # where that edge is


@dataclass(frozen=True, eq=False)
class Rejections:
    """What became of a small round of swaps that was made for this page; those of what never changes are left out."""

    tried: int
    rejected: int
    examples: list[Example]
    uncrossed: Floats  # (H,) share of the swaps that no edge has crossed up to each step


def accepted(
    data: Transitions, made: Counterfactuals, mask: Mask, factors: Factorization, rng: np.random.Generator
) -> list[Example]:
    """Pick some counterfactuals, with different swapped sets where possible."""
    parents = made.windows
    some = rng.permutation(len(parents))[: 64 * SHOWN]
    chosen = some[_varied(np.packbits(parents.swapped[some], axis=1))]
    if not len(chosen):
        return []
    rows = (chosen[:, None] * made.window + np.arange(made.window)).ravel()
    parts = data[made.base[rows]], data[made.donor[rows]], made.transitions[rows]
    masks = np.stack([call_mask(mask, part, factors) for part in parts], axis=1)
    return [
        _example(parts, masks, slice(k * made.window, (k + 1) * made.window), parents.swapped[row],
                 (int(parents.base[row]), int(parents.donor[row])))
        for k, row in enumerate(chosen)
    ]  # fmt: skip


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
    mask, factors, length = augmenter.mask_fn, augmenter.factors, augmenter.window
    first, second = _pairs(data, augmenter, rng)  # (P, H) rows of base and donor windows
    base, donor = data[first.ravel()], data[second.ravel()]
    m1, m2 = call_mask(mask, base, factors), call_mask(mask, donor, factors)
    overlaid, policy, derive = _overlaid(m1 | m2, length), augmenter.policy, augmenter.derive
    proposal, d = propose(base, donor, overlaid, factors, rng=rng, policy=policy, derive=derive)
    m = call_mask(mask, proposal, factors)
    clear, d = independent(m, d).reshape(-1, length), d[::length]
    tried = d.any(axis=1) & (first[:, 0] != second[:, 0]) & ~swaps_only_static(d, static_nodes(data, factors))
    refused = np.flatnonzero(tried & ~clear.all(axis=1))
    step = clear[refused].argmin(axis=1)
    edges = first_crossing(m[refused * length + step], d[refused])
    parts, masks = (base, donor, proposal), np.stack([m1, m2, m], axis=1)
    numbers = rows[np.stack([first[:, 0], second[:, 0]], axis=1)]
    examples = []
    for row in _varied(edges):
        k, (source, target) = int(refused[row]), edges[row].tolist()
        place = slice(k * length, (k + 1) * length)
        origin = (int(numbers[k, 0]), int(numbers[k, 1]))
        examples.append(_example(parts, masks, place, d[k], origin, (source, target), int(step[row])))
    uncrossed = np.logical_and.accumulate(clear[tried], axis=1).mean(axis=0) if tried.any() else np.zeros(length)
    return Rejections(int(tried.sum()), len(refused), examples, uncrossed)


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


def _pairs(data: Transitions, augmenter: Augmenter, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw the rows of some pairs of windows, (P, H) each, as the augmenter pairs them."""
    factors, length = augmenter.factors, augmenter.window
    most = min(PAIRS, max(16, MASK_BYTES // (factors.n * (factors.n + factors.m)) // length))
    found = Windows.of(data, length)
    groups = found.groups(same_rows(data.state[:, factors.context_columns]))
    some = np.arange(len(found))
    if augmenter.pairing == "sharing":
        some = rng.permutation(some)[: max(2, MOST_ROWS // length)]
        masks = call_mask(augmenter.mask_fn, data[found.rows(some).ravel()], factors)
        labels = components(_overlaid(masks, length))
        aside = factors.nodes(*factors.context) | static_nodes(data, factors)
        pairs = sharing(groups[some], labels, aside, rng.integers(2**64, dtype=np.uint64))
    else:
        pairs = uniform(groups, rng.integers(2**64, dtype=np.uint64))
    first, second = pairs.draw(0, most)
    return found.rows(some[first]), found.rows(some[second])


def _overlaid(masks: Bools, length: int) -> Bools:
    """Lay the masks of each window's rows over each other, (P, N, n)."""
    return np.asarray(masks.reshape(-1, length, *masks.shape[1:]).any(axis=1))


def _example(
    parts: tuple[Transitions, Transitions, Transitions],
    masks: Bools,
    place: slice,
    swapped: NodeSet,
    rows: tuple[int, int],
    edge: tuple[int, int] | None = None,
    step: int = 0,
) -> Example:
    base, donor, result = (part[place] for part in parts)
    return Example(rows, base, donor, result, masks[place], swapped, edge, step)


def _varied(keys: Array) -> Ints:
    """Return up to ``SHOWN`` rows, in order: the first row of each different key, then others."""
    if not len(keys):
        return np.zeros(0, np.int64)
    fresh = np.sort(np.unique(keys, axis=0, return_index=True)[1])
    others = np.setdiff1d(np.arange(len(keys)), fresh)
    return np.concatenate([fresh, others])[:SHOWN]
