"""Algorithm 1 of the paper, spelled with Python sets: what the engine must equal. The benchmarks time it, too."""

from benchmarks.literal import Components, candidates, coda, connected_components

__all__ = [
    "Components", "candidates", "coda", "connected_components", "window_candidates", "window_coda", "windows",
]  # fmt: skip


def windows(episode, step, length):
    """All lists of so many rows of one episode whose steps follow each other."""
    rows = sorted(range(len(episode)), key=lambda row: (episode[row], step[row]))
    found = [rows[k : k + length] for k in range(len(rows) - length + 1)]
    return [
        w for w in found if all((episode[w[k]], step[w[k]]) == (episode[w[0]], step[w[0]] + k) for k in range(length))
    ]


def window_candidates(first, second):
    """What is exchanged between two windows, given the masks of their rows: a union of components of all of them."""
    sets = [Components(mask) for mask in (*first, *second)]
    return set.intersection(*sets) - {frozenset(), frozenset(range(len(first[0])))}


def window_coda(w1, w2, d, mask, owner):
    """Swap d between two windows at every step; return the proposals, or None if one of them is invalid."""
    proposals = [coda(t1, t2, d, mask, owner) for t1, t2 in zip(w1, w2, strict=True)]
    return None if None in proposals else proposals
