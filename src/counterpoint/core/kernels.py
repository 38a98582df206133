"""The compiled loops of the engine, each over rows ``start`` to ``stop`` of its arrays.

Randomness is counter based: what happens to pair ``p`` depends on the key and on ``p`` alone, so
results are the same bits for any number of threads and any size of chunk.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from counterpoint.core.arrays import Array, Bools, Ints, NodeSet

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first use, keep the result on disk, and let go of the interpreter lock."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


# --- random numbers ------------------------------------------------------------------------------

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def scramble(x: np.uint64) -> np.uint64:
    """Mix 64 bits into 64 random-looking bits (the finaliser of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    return x ^ (x >> np.uint64(31))


@kernel
def permuted(index: int, total: int, half: int, key: np.uint64) -> int:
    """Return the image of ``index`` under a keyed permutation of ``range(total)``.

    A Feistel network permutes numbers of ``2 * half`` bits; images outside the range are permuted
    again until one falls inside. At least a quarter of the numbers are inside, so that is soon.
    """
    low = (np.uint64(1) << np.uint64(half)) - np.uint64(1)
    x = np.uint64(index)
    while True:
        left, right = x >> np.uint64(half), x & low
        for turn in range(6):
            left, right = right, left ^ (scramble(right + key + np.uint64(turn) * _GOLDEN) & low)
        x = (left << np.uint64(half)) | right
        if x < np.uint64(total):
            return np.int64(x)  # type: ignore[return-value]


@kernel
def triangle(index: int) -> tuple[int, int]:
    """Unrank a pair ``row >= column``: 0, 1, 2, 3 give (0, 0), (1, 0), (1, 1), (2, 0).

    The root is exact where a row begins, and just before that it may be rounded up to the next row.
    """
    row = int((np.sqrt(8.0 * index + 1.0) - 1.0) / 2.0)
    if row * (row + 1) // 2 > index:
        row -= 1
    return row, index - row * (row + 1) // 2


@kernel
def draw_pairs(
    start: int,
    stop: int,
    first: int,
    total: int,
    half: int,
    key: np.uint64,
    before: Ints,
    blocks: Ints,
    order: Ints,
    distinct: int,
    base: Ints,
    donor: Ints,
) -> None:
    """Write the pairs number ``first + start`` to ``first + stop`` of the keyed permutation of all pairs.

    For each two classes that may be paired, ``before`` holds the number of pairs before theirs, and
    ``blocks`` the start and length of both within ``order``.
    """
    for p in range(start, stop):
        index = permuted(first + p, total, half, key)
        block = np.searchsorted(before, index, side="right") - 1
        one, _, other, length = blocks[block]
        rest = index - before[block]
        if one == other:
            i, j = triangle(rest)
            i += distinct
        else:
            i, j = rest // length, rest % length
        i, j = order[one + i], order[other + j]
        if scramble(key ^ np.uint64(index)) & np.uint64(1):
            i, j = j, i
        base[p], donor[p] = i, j


# --- graphs --------------------------------------------------------------------------------------


@kernel
def link(parent: Ints, i: int, j: int) -> None:
    """Join the trees of nodes ``i`` and ``j``; the smaller root stays the root."""
    while parent[i] != i:
        i = parent[i]
    while parent[j] != j:
        j = parent[j]
    if i < j:
        parent[j] = i
    else:
        parent[i] = j


@kernel
def label(start: int, stop: int, mask: Bools, labels: Ints) -> None:
    """Label each node by the smallest node of its component."""
    for b in range(start, stop):
        parent = labels[b]
        for i in range(len(parent)):
            parent[i] = i
        for i in range(mask.shape[1]):
            targets = 0
            for j in range(mask.shape[2]):
                targets += mask[b, i, j]
            if targets == 0 or (targets == 1 and i < mask.shape[2] and mask[b, i, i]):
                continue  # most nodes have no edge but their own
            for j in range(mask.shape[2]):
                if mask[b, i, j] and parent[i] != parent[j]:
                    link(parent, i, j)
        for i in range(len(parent)):
            parent[i] = parent[parent[i]]


@kernel
def uncrossed(start: int, stop: int, mask: Bools, nodes: NodeSet, clear: Bools) -> None:
    """Tell for each row whether no edge of the mask has one end inside the node set and one outside."""
    for b in range(start, stop):
        crossing = False
        for i in range(mask.shape[1]):
            inside = nodes[b, i]
            for j in range(mask.shape[2]):
                crossing |= mask[b, i, j] & (nodes[b, j] ^ inside)
            if crossing:
                break
        clear[b] = not crossing


@kernel
def overlay(start: int, stop: int, first: Ints, second: Ints, fixed: Bools, number: Ints, sizes: Ints) -> None:
    """Number the components of two overlaid graphs, given by their labels.

    ``fixed`` marks nodes that a swap would not change (context, or equal in both parents). A component
    of fixed nodes only gets the number -1. ``sizes`` receives how many components are numbered.
    """
    nodes = number.shape[1]
    free = np.empty(nodes, np.bool_)
    for p in range(start, stop):
        parent = number[p]
        for i in range(nodes):
            parent[i] = first[p, i]
        for i in range(nodes):
            if parent[i] != parent[second[p, i]]:
                link(parent, i, second[p, i])
        for i in range(nodes):
            parent[i] = parent[parent[i]]
        free[:] = False
        for i in range(nodes):
            free[parent[i]] |= not fixed[p, i]
        count = 0
        for i in range(nodes):  # a root comes before its members, so it is renumbered first
            root = parent[i]
            if root == i:
                parent[i] = count if free[i] else -1
                count += free[i]
            else:
                parent[i] = parent[root]
        sizes[p] = count


@kernel
def agree(start: int, stop: int, base: Ints, donor: Ints, values: Array, owner: Ints, same: Bools) -> None:
    """Clear ``same[p, node]`` where the two parents differ in a column that the node owns."""
    for p in range(start, stop):
        i, j = base[p], donor[p]
        for c in range(len(owner)):
            if owner[c] >= 0 and values[i, c] != values[j, c]:
                same[p, owner[c]] = False


# --- unions --------------------------------------------------------------------------------------


@kernel
def draw_union(number: Ints, count: int, most: int, state: np.uint64, coins: Bools, nodes: NodeSet) -> np.uint64:
    """Draw a proper union of at most ``most`` of ``count`` numbered components, all equally likely.

    Writes the node set and returns the advanced state of the random stream. ``coins`` is scratch room.
    """
    chosen = 0
    if most >= count - 1:  # a fair coin for each component, again if all fall alike
        while chosen in (0, count):
            chosen = 0
            bits = np.uint64(0)
            for c in range(count):
                if c % 64 == 0:
                    state += _GOLDEN
                    bits = scramble(state)
                coins[c] = bits & np.uint64(1)
                chosen += coins[c]
                bits >>= np.uint64(1)
    else:
        total, ways = 0.0, 1.0
        for size in range(1, most + 1):
            ways *= (count - size + 1) / size
            total += ways
        state += _GOLDEN
        left = (scramble(state) >> np.uint64(11)) * 2.0**-53 * total
        size, ways = 1, np.float64(count)
        while left >= ways and size < most:
            left -= ways
            size += 1
            ways *= (count - size + 1) / size
        coins[:count] = False
        for last in range(count - size, count):  # Floyd's way to draw a subset of that size
            state += _GOLDEN
            pick = np.int64((scramble(state) >> np.uint64(11)) * 2.0**-53 * (last + 1))
            coins[last if coins[pick] else pick] = True
    for i in range(len(nodes)):
        nodes[i] = number[i] >= 0 and coins[number[i]]
    return state


@kernel
def draw_unions(
    start: int,
    stop: int,
    first: int,
    key: np.uint64,
    most: int,
    number: Ints,
    sizes: Ints,
    offset: Ints,
    dynamic: Bools,
    nodes: NodeSet,
) -> None:
    """Draw ``offset[p + 1] - offset[p]`` different unions for each pair, without replacement.

    If ``dynamic`` is not empty, it tells which components move something, and both sides of a union need one.
    """
    coins = np.empty(nodes.shape[1], np.bool_)
    for p in range(start, stop):
        state = scramble(key + np.uint64(first + p) * FIRST)
        row = offset[p]
        while row < offset[p + 1]:
            state = draw_union(number[p], sizes[p], most, state, coins, nodes[row])
            if len(dynamic):
                inside, outside = False, False
                for c in range(sizes[p]):
                    inside |= dynamic[p, c] & coins[c]
                    outside |= dynamic[p, c] & (not coins[c])
                if not (inside and outside):
                    continue
            fresh = True
            for earlier in range(offset[p], row):
                equal = True
                for i in range(nodes.shape[1]):
                    if nodes[earlier, i] != nodes[row, i]:
                        equal = False
                        break
                if equal:
                    fresh = False
                    break
            row += fresh


@kernel
def mix(
    start: int, stop: int, base: Ints, donor: Ints, nodes: NodeSet, values: Array, owner: Ints, mixed: Array
) -> None:
    """Copy each column from the donor's row if its owner is in the node set, else from the base's row."""
    for r in range(start, stop):
        kept, given, inside, row = values[base[r]], values[donor[r]], nodes[r], mixed[r]
        for c in range(len(owner)):
            row[c] = given[c] if inside[np.uint64(owner[c])] else kept[c]
