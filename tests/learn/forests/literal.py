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
