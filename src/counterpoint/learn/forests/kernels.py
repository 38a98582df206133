"""The compiled loops that say how pairs lie to each other, and what forests think of it.

A loop takes what it needs as tuples of arrays. ``RowArrays`` are values (B, S + A), and where nodes are now and after
the step, (B, N, axes) each. ``NodeTable`` says which columns nodes have. ``Votes`` are the trees of a forest as one.
"""

from typing import TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.kernels import kernel
from counterpoint.masks.pairs import MOST_DIFFERENCES

RowArrays: TypeAlias = tuple[Array, Floats, Floats]
# Which nodes have a position; then for all nodes, one after another, their columns, those that are no position, and
# the others of the same type that have a position, each after the (N + 1,) places where those of a node begin.
NodeTable: TypeAlias = tuple[Bools, Ints, Ints, Ints, Ints, Ints, Ints]
# Of each node of all trees: the value up to which rows go to the first child (K,), the feature that is asked for with
# both children (K, 4), the last being nothing, and what is known (K, V). A region is its own child. Then the root of
# each tree, and how many questions lead to a region at the most.
Votes: TypeAlias = tuple[Floats, Ints, Floats, Ints, int]
Known: TypeAlias = tuple[NodeTable, Ints, int]  # with the pairs of nodes to measure, and the most features of a pair
Gaps: TypeAlias = tuple[Floats, Floats]  # squared, of source and rivals of the target, and of rivals of the source
Worth: TypeAlias = tuple[float, float, float]  # pushes from which on they count, how many units more, and what each is

SHORTEST = 1e-12  # squared way


@kernel
def measure(source: RowArrays, a: int, target: RowArrays, b: int, near: Ints, gaps: Floats) -> None:
    """Write the squared distances of some pairs of nodes, (G, 2), now and after the step, (2, N, N), either way."""
    _, now_i, then_i = source
    _, now_j, then_j = target
    for g in range(len(near)):
        i, j, now, then = near[g, 0], near[g, 1], 0.0, 0.0
        for d in range(now_i.shape[2]):
            now += (now_i[a, i, d] - now_j[b, j, d]) ** 2
            then += (then_i[a, i, d] - then_j[b, j, d]) ** 2
        gaps[0, i, j] = gaps[0, j, i] = now
        gaps[1, i, j] = gaps[1, j, i] = then


@kernel
def describe_nowhere(
    source: RowArrays, a: int, target: RowArrays, b: int, plan: NodeTable, i: int, j: int, out: Floats, r: int
) -> int:
    """Write the features of a pair of which one has no position."""
    given, there, own_at, own, at = source[0], target[0], plan[1], plan[2], 0
    for c in range(own_at[i], own_at[i + 1]):
        out[r, at] = given[a, own[c]]
        at += 1
    for c in range(own_at[j], own_at[j + 1]):
        out[r, at] = there[b, own[c]]
        at += 1
    if (own_at[i + 1] - own_at[i]) * (own_at[j + 1] - own_at[j]) <= MOST_DIFFERENCES:
        for c in range(own_at[i], own_at[i + 1]):
            for d in range(own_at[j], own_at[j + 1]):
                out[r, at] = given[a, own[c]] - there[b, own[d]]
                at += 1
    out[r, at], out[r, at + 1] = i, j
    return at + 2


@kernel
def describe_there(
    source: RowArrays, a: int, target: RowArrays, b: int, i: int, j: int, out: Floats, r: int
) -> tuple[int, float, float]:
    """Write the features of a pair with positions but for rivals; return their number, and the distances."""
    _, now_i, then_i = source
    _, now_j, then_j = target
    axes = now_i.shape[2]
    along, length, ends, begins, met, other = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for d in range(axes):
        here_i, here_j, there_i, there_j = now_i[a, i, d], now_j[b, j, d], then_i[a, i, d], then_j[b, j, d]
        now, then = here_i - here_j, there_i - there_j
        out[r, d], out[r, axes + 4 + d] = then, now
        way = then - now
        along += now * way
        length += way * way
        ends += then * then
        begins += now * now
        met += (here_i - there_j) ** 2
        other += (there_i - here_j) ** 2
    when, least = min(max(-along / max(length, SHORTEST), 0.0), 1.0), 0.0
    for d in range(axes):
        to = out[r, axes + 4 + d] + when * (out[r, d] - out[r, axes + 4 + d])
        least += to * to
    ends, begins = np.sqrt(ends), np.sqrt(begins)
    out[r, axes], out[r, axes + 1] = np.sqrt(least), ends
    out[r, axes + 2], out[r, axes + 3] = np.sqrt(met), np.sqrt(other)  # if only one of the two moves
    out[r, 2 * axes + 4] = begins
    return 2 * axes + 5, begins, ends


@kernel
def describe(
    source: RowArrays,
    a: int,
    target: RowArrays,
    b: int,
    plan: NodeTable,
    gaps: Gaps,
    i: int,
    j: int,
    out: Floats,
    r: int,
) -> int:
    """Write the features of node i in row a and node j in row b to ``out[r]``; return how many there are."""
    somewhere, _, _, rest_at, rest, _, _ = plan
    if not (somewhere[i] and somewhere[j]):
        return describe_nowhere(source, a, target, b, plan, i, j, out, r)
    at, begins, ends = describe_there(source, a, target, b, i, j, out, r)
    for c in range(rest_at[i], rest_at[i + 1]):
        out[r, at] = source[0][a, rest[c]]
        at += 1
    for c in range(rest_at[j], rest_at[j + 1]):
        out[r, at] = target[0][b, rest[c]]
        at += 1
    out[r, at], out[r, at + 1] = i, j
    at += 2
    for then, apart in enumerate((begins, ends)):
        for square in (nearest(gaps[0], then, i, j, plan), nearest(gaps[1], then, j, i, plan)):
            if square >= 0.0:
                out[r, at] = max(apart - np.sqrt(square), 0.0)
                at += 1
    return at


@kernel
def nearest(gaps: Floats, then: int, i: int, j: int, plan: NodeTable) -> float:
    """Return the squared distance of node i to the nearest rival of node j, -1 if there is none."""
    alike_at, alike, found = plan[5], plan[6], -1.0
    for c in range(alike_at[j], alike_at[j + 1]):
        if alike[c] != i and (found < 0.0 or gaps[then, i, alike[c]] < found):
            found = gaps[then, i, alike[c]]
    return found


@kernel
def describe_rows(
    start: int,
    stop: int,
    source: RowArrays,
    target: RowArrays,
    plan: NodeTable,
    near: tuple[Ints, Ints],
    i: int,
    j: int,
    out: Floats,
) -> None:
    """Write the features of a pair in each row."""
    nodes = source[1].shape[1]
    gaps = np.empty((2, nodes, nodes)), np.empty((2, nodes, nodes))
    for b in range(start, stop):
        measure(source, b, target, b, near[0], gaps[0])
        measure(target, b, target, b, near[1], gaps[1])
        describe(source, b, target, b, plan, gaps, i, j, out, b)


@kernel
def vote(features: Floats, r: int, votes: Votes, told: Floats) -> None:
    """Write the mean of what all trees say of a row; four go down together, so that none waits for its memory."""
    cut, ways, values, roots, deepest = votes
    told[:], trees = 0.0, len(roots)
    for t in range(0, trees, 4):
        more = min(4, trees - t)
        one, two, three, four = (
            roots[t],
            roots[min(t + 1, trees - 1)],
            roots[min(t + 2, trees - 1)],
            roots[min(t + 3, trees - 1)],
        )
        for _ in range(deepest):
            one = ways[one, 1 if features[r, ways[one, 0]] <= cut[one] else 2]
            two = ways[two, 1 if features[r, ways[two, 0]] <= cut[two] else 2]
            three = ways[three, 1 if features[r, ways[three, 0]] <= cut[three] else 2]
            four = ways[four, 1 if features[r, ways[four, 0]] <= cut[four] else 2]
        for v in range(len(told)):
            told[v] += values[one, v]
            if more > 1:
                told[v] += values[two, v]
            if more > 2:
                told[v] += values[three, v]
            if more > 3:
                told[v] += values[four, v]
    for v in range(len(told)):
        told[v] /= trees


@kernel
def vote_rows(start: int, stop: int, features: Floats, votes: Votes, out: Floats) -> None:
    """Write the mean of what all trees say of each row."""
    for b in range(start, stop):
        vote(features, b, votes, out[b])


@kernel
def score_single(
    start: int, stop: int, rows: RowArrays, known: Known, pairs: Ints, votes: Votes, worth: Worth, scores: Floats
) -> None:
    """Write how likely each source influences each target, for the pairs of a kind."""
    (plan, near, width), (smallest, largest, each) = known, worth
    features, told = np.empty((1, width)), np.empty(votes[2].shape[1])
    gaps = np.empty((2, rows[1].shape[1], rows[1].shape[1]))
    for b in range(start, stop):
        measure(rows, b, rows, b, near, gaps)
        for p in range(len(pairs)):
            i, j = pairs[p, 0], pairs[p, 1]
            describe(rows, b, rows, b, plan, (gaps, gaps), i, j, features, 0)
            vote(features, 0, votes, told)
            push = 0.0
            for v in range(1, len(told)):
                push = max(push, abs(told[v]))
            push = min(max(push - smallest, 0.0), largest)
            scores[b, i, j] = max(min(told[0], 1.0), each * push)


@kernel
def score_together(
    start: int,
    stop: int,
    rows: RowArrays,
    known: Known,
    pairs: Ints,
    target: int,
    votes: Votes,
    top: float,
    scores: Floats,
) -> None:
    """Raise scores where two sources act on a target together; ``top`` is the most that the trees can say."""
    plan, near, width = known
    features, told = np.empty((1, width)), np.empty(votes[2].shape[1])
    gaps = np.empty((2, rows[1].shape[1], rows[1].shape[1]))
    for b in range(start, stop):
        measure(rows, b, rows, b, near, gaps)
        for p in range(len(pairs)):
            i, j = pairs[p, 0], pairs[p, 1]
            if top <= scores[b, i, target] and top <= scores[b, j, target]:
                continue
            describe(rows, b, rows, b, plan, (gaps, gaps), i, j, features, 0)
            vote(features, 0, votes, told)
            scores[b, i, target] = max(scores[b, i, target], told[0])
            scores[b, j, target] = max(scores[b, j, target], told[0])


@kernel
def score_changes(
    start: int,
    stop: int,
    rows: RowArrays,
    known: Known,
    groups: tuple[Ints, Ints, Ints],
    votes: Votes,
    bounds: tuple[float, float],
    single: Floats,
    scores: Floats,
) -> None:
    """Raise scores where a third node changes what a source does to a target.

    Triples come in groups of the same third node and target, (G, 2), each with its sources, after (G + 1,) places
    where these begin. A score is no higher than that of the source, so the likeliest source comes first, and those
    that cannot raise it any more are left out. ``bounds`` are the score of a source that nobody changes, and the most
    that the trees can say.
    """
    (plan, near, width), (ends, begins, sources), (faint, top) = known, groups, bounds
    count = rows[1].shape[1]
    ready, stamp = np.empty((count * count, width)), np.full(count * count, -1)
    size = np.zeros(count * count, np.int64)
    features, told = np.empty((1, 3 * width)), np.empty(votes[2].shape[1])
    used = np.full(len(sources), -1)
    gaps = np.empty((2, rows[1].shape[1], rows[1].shape[1]))
    for b in range(start, stop):
        measure(rows, b, rows, b, near, gaps)
        for g in range(len(ends)):
            k, j = ends[g, 0], ends[g, 1]
            best = scores[b, k, j]
            while best < top:
                likeliest, acts = -1, max(best, faint)
                for s in range(begins[g], begins[g + 1]):
                    if used[s] != b and single[b, sources[s], j] > acts:
                        likeliest, acts = s, single[b, sources[s], j]
                if likeliest < 0:
                    break
                used[likeliest] = b
                i, at = sources[likeliest], 0
                for one, two in ((i, j), (k, j), (k, i)):
                    pair = one * count + two
                    if stamp[pair] != b:
                        stamp[pair] = b
                        size[pair] = describe(rows, b, rows, b, plan, (gaps, gaps), one, two, ready, pair)
                    for f in range(size[pair]):
                        features[0, at + f] = ready[pair, f]
                    at += size[pair]
                vote(features, 0, votes, told)
                best = max(best, min(acts, told[0]))
            scores[b, k, j] = best
