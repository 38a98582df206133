"""How pairs lie to each other and what forests make of it, one plain array at a time: what the compiled loops equal."""

import numpy as np

from counterpoint.learn.forests.influences import _FAINT, _WORTH
from counterpoint.masks.pairs import beside


def length(to):
    """The length of each row."""
    return np.sqrt((to * to).sum(axis=1))


def alike(factors, node):
    """The others of the type of a node that have a position."""
    names, types = factors.names, factors.types
    return [
        k
        for k, other in enumerate(names)
        if k != node and other in factors.positions and types[other] == types[names[node]]
    ]


def pair(outlook, i, j, source, target):
    """The features of one pair of nodes."""
    plain = outlook.pairs.pair(source.values, target.values, i, j)
    which = np.broadcast_to(np.array([i, j], np.float64), (len(target), 2))
    if i not in source.now or j not in target.now:
        return np.concatenate([plain, which], axis=1)
    now, then = source.now[i] - target.now[j], source.ahead[i] - target.ahead[j]
    way = then - now
    when = np.clip(-(now * way).sum(axis=1) / np.maximum((way * way).sum(axis=1), 1e-12), 0.0, 1.0)
    met = source.now[i] - target.ahead[j], source.ahead[i] - target.now[j]
    apart = [length(to)[:, None] for to in (now + when[:, None] * way, then, *met)]
    return np.concatenate([then, *apart, plain, which, *before_rivals(outlook, i, j, source, target)], axis=1)


def before_rivals(outlook, i, j, source, target):
    """The distance of a pair less that to the nearest rival of the target, and of the source, now and after."""
    found = []
    for one, two in ((source.now, target.now), (source.ahead, target.ahead)):
        apart = length(one[i] - two[j])
        of_target = [length(one[i] - two[k]) for k in alike(outlook.factors, j) if k != i]
        of_source = [length(two[k] - two[j]) for k in alike(outlook.factors, i) if k != j]
        found += [np.maximum(apart - np.min(each, axis=0), 0.0)[:, None] for each in (of_target, of_source) if each]
    return found


def told(forest, features):
    """The mean of what the trees say of each row."""
    total = np.zeros((len(features), forest.values[0].shape[1]))
    for tree, values in zip(forest.trees, forest.values, strict=True):
        total += values[tree(features)]
    return total / len(forest.trees)


def scores(learned, state, action):
    """What influences say of all edges, every triple in every row."""
    outlook, (smallest, largest, each_unit) = learned.outlook, _WORTH
    rows = outlook.placed(beside(state, action))
    found = np.zeros((len(rows), *learned.always.shape))
    for pairs, forest in zip(outlook.kinds(learned.asked), learned.forests, strict=True):
        for i, j in pairs:
            said = told(forest, pair(outlook, i, j, rows, rows))
            push = np.clip(np.abs(said[:, 1:]).max(axis=1) - smallest, 0.0, largest)
            found[:, i, j] = np.maximum(np.minimum(said[:, 0], 1.0), each_unit * push)
    for each in learned.situations:
        for couple in each.pairs:
            chance = told(each.forest, pair(outlook, *couple, rows, rows))
            found[:, couple, each.target] = np.maximum(found[:, couple, each.target], chance)
    single = found.copy()
    for meddling in learned.changes:
        for i, j, k in meddling.triples:
            features = [pair(outlook, *couple, rows, rows) for couple in ((i, j), (k, j), (k, i))]
            matters = told(meddling.forest, np.concatenate(features, axis=1))[:, 0]
            raised = np.maximum(found[:, k, j], np.minimum(single[:, i, j], matters))
            found[:, k, j] = np.where(single[:, i, j] > _FAINT, raised, found[:, k, j])
    found[:, learned.always | np.eye(*learned.always.shape, dtype=bool)] = 1.0
    return found


def bins(features):
    """Cuts between bins that hold as many rows each, and the bin of each feature."""
    shares = np.linspace(0.0, 1.0, 65)[1:-1]
    cuts = np.sort(np.quantile(features, shares, axis=0), axis=0).T
    codes = [np.searchsorted(each, column, side="left") for each, column in zip(cuts, features.T, strict=True)]
    return cuts, np.stack(codes, axis=1)


def grow(features, targets, some, fewest, of, deepest):
    """A tree: feature, cut and left child of each node, row by row."""
    cuts, codes = bins(features)
    nodes, found = [(list(range(len(codes))), 0)], []
    while len(found) < len(nodes):
        rows, depth = nodes[len(found)]
        room = len(rows) >= 2 * fewest and depth < deepest and len(nodes) + 2 <= 2 * max(1, len(codes) // fewest) + 1
        split = best_split(codes, targets, some, rows, fewest, of) if room else None
        if split is None:
            found.append((-1, cuts[0, 0], 0))
            continue
        f, code = split
        middle = 0
        for r in range(len(rows)):
            if codes[rows[r], f] <= code:
                rows[r], rows[middle] = rows[middle], rows[r]
                middle += 1
        found.append((f, cuts[f, code], len(nodes)))
        nodes += [(rows[:middle], depth + 1), (rows[middle:], depth + 1)]
    return found


def best_split(codes, targets, some, rows, fewest, of):
    """The feature and the bin up to which rows go left; sums are taken row by row, which decides their last bits."""
    size, kinds = len(rows), targets.shape[1]
    total = [0.0] * kinds
    for row in rows:
        total = [one + two for one, two in zip(total, targets[row], strict=True)]
    whole = 0.0
    for each in total:
        whole += each * each / size
    best, split = whole + 1e-9 * (1.0 + abs(whole)), None
    among = sum(some[rows])
    for f in range(codes.shape[1]):
        sums, mine = np.zeros((64, kinds)), codes[rows, f]
        for row, b in zip(rows, mine, strict=True):
            sums[b] += targets[row]
        part = np.zeros(kinds)
        for b in range(63):
            part = part + sums[b]
            below, here = (mine <= b).sum(), some[rows][mine <= b].sum()
            if min(below, size - below) < fewest or min(here, among - here) < of or not (mine == b).any():
                continue
            square = 0.0
            for k in range(kinds):
                rest = total[k] - part[k]
                square += part[k] * part[k] / below + rest * rest / (size - below)
            if square > best:
                best, split = square, (f, b)
    return split
