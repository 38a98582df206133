"""Algorithm 1 of the paper, spelled with Python sets: slow, literal, what the engine must equal and outrun."""

from collections.abc import Callable, Sequence
from itertools import chain, combinations

Mask = Sequence[Sequence[bool]]  # (N, n)
Nodes = frozenset[int]
Row = tuple[Sequence[float], Sequence[float], Sequence[float]]  # s, a, s'


def connected_components(mask: Mask) -> list[Nodes]:
    """Components of the graph whose adjacency is the (N, n) mask, with dummy columns for next actions."""
    nodes, n = len(mask), len(mask[0])
    neighbours = {i: {i} for i in range(nodes)}
    for i in range(nodes):
        for j in range(n):
            if mask[i][j]:
                neighbours[i].add(j)
                neighbours[j].add(i)
    left, found = set(range(nodes)), list[Nodes]()
    while left:
        component, frontier = set[int](), {min(left)}
        while frontier:
            component |= frontier
            frontier = set[int]().union(*(neighbours[i] for i in frontier)) - component
        found.append(frozenset(component))
        left -= component
    return found


def Components(mask: Mask) -> set[Nodes]:  # noqa: N802 (the paper's name)
    """D: all unions of connected components, the empty one and the full one included."""
    c = connected_components(mask)
    subsets = chain.from_iterable(combinations(c, size) for size in range(len(c) + 1))
    return {frozenset[int]().union(*subset) for subset in subsets}


def candidates(m1: Mask, m2: Mask) -> set[Nodes]:
    """What Algorithm 1 draws d from, without the two sets that change nothing or everything."""
    everything = frozenset(range(len(m1)))
    return (Components(m1) & Components(m2)) - {Nodes(), everything}


def coda(
    t1: Row, t2: Row, d: Nodes, mask: Callable[[list[float], list[float]], Mask], owner: tuple[list[int], list[int]]
) -> Row | None:
    """Swap d between two transitions (s, a, s') of plain lists; return the proposal, or None if invalid."""
    (s1, a1, n1), (s2, a2, n2) = t1, t2
    state_owner, action_owner = owner
    s = [y if state_owner[c] in d else x for c, (x, y) in enumerate(zip(s1, s2, strict=True))]
    a = [y if action_owner[c] in d else x for c, (x, y) in enumerate(zip(a1, a2, strict=True))]
    n = [y if state_owner[c] in d else x for c, (x, y) in enumerate(zip(n1, n2, strict=True))]
    return (s, a, n) if d in Components(mask(s, a)) else None
