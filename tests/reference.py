"""Algorithm 1 of the paper, spelled with Python sets: slow, literal, and what the engine must equal."""

from itertools import chain, combinations


def connected_components(mask):
    """Components of the graph whose adjacency is the (N, n) mask, with dummy columns for next actions."""
    nodes, n = len(mask), len(mask[0])
    neighbours = {i: {i} for i in range(nodes)}
    for i in range(nodes):
        for j in range(n):
            if mask[i][j]:
                neighbours[i].add(j)
                neighbours[j].add(i)
    left, found = set(range(nodes)), []
    while left:
        component, frontier = set(), {min(left)}
        while frontier:
            component |= frontier
            frontier = set().union(*(neighbours[i] for i in frontier)) - component
        found.append(frozenset(component))
        left -= component
    return found


def Components(mask):
    """D: all unions of connected components, the empty one and the full one included."""
    c = connected_components(mask)
    subsets = chain.from_iterable(combinations(c, size) for size in range(len(c) + 1))
    return {frozenset().union(*subset) for subset in subsets}


def candidates(m1, m2):
    """What Algorithm 1 draws d from, without the two sets that change nothing or everything."""
    everything = frozenset(range(len(m1)))
    return (Components(m1) & Components(m2)) - {frozenset(), everything}


def coda(t1, t2, d, mask, owner):
    """Swap d between two transitions (s, a, s') of plain lists; return the proposal, or None if invalid."""
    (s1, a1, n1), (s2, a2, n2) = t1, t2
    state_owner, action_owner = owner
    s = [y if state_owner[c] in d else x for c, (x, y) in enumerate(zip(s1, s2, strict=True))]
    a = [y if action_owner[c] in d else x for c, (x, y) in enumerate(zip(a1, a2, strict=True))]
    n = [y if state_owner[c] in d else x for c, (x, y) in enumerate(zip(n1, n2, strict=True))]
    return (s, a, n) if d in Components(mask(s, a)) else None
