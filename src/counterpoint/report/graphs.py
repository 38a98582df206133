"""How the local causal graphs of transitions look: edges, components, and how many transitions interact."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints, NodeSet
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import components
from counterpoint.core.protocols import Mask, call_mask
from counterpoint.core.transitions import Transitions

CHUNK_BYTES = 16 * 2**20  # of masks


@dataclass(frozen=True, eq=False)
class Graphs:
    """The graphs of some transitions, counted."""

    rows: int  # B
    edges: Floats  # (N, n) share of the transitions that have each edge
    components: Ints  # (N + 1,) number of transitions with 0, 1, 2 ... independent components
    interacting: int  # number of transitions in which one state factor acts on another

    @property
    def factored(self) -> float:
        """Share of the transitions that fall into two components or more."""
        return float(self.components[2:].sum() / max(1, self.rows))

    @property
    def interactions(self) -> float:
        """Share of the transitions in which one state factor acts on another."""
        return self.interacting / max(1, self.rows)

    @property
    def mean_components(self) -> float:
        """Mean number of components."""
        return float(self.components @ np.arange(len(self.components)) / max(1, self.rows))


def rows_of(total: int, most: int, rng: np.random.Generator) -> Ints:
    """Return all rows, or ``most`` of them drawn without replacement, in order."""
    return np.arange(total) if total <= most else np.sort(rng.choice(total, most, replace=False))


def graphs(data: Transitions, mask_fn: Mask, factors: Factorization) -> Graphs:
    """Ask for the masks of transitions, chunk by chunk, and count what they hold. Time O(B · N · n)."""
    n, nodes = factors.n, factors.n + factors.m
    free, off = ~factors.nodes(*factors.context), ~np.eye(n, dtype=np.bool_)
    edges, counts, interacting = np.zeros((nodes, n)), np.zeros(nodes + 1, np.int64), 0
    size = max(1, CHUNK_BYTES // (nodes * n))
    for start in range(0, len(data), size):
        mask = call_mask(mask_fn, data[start : start + size], factors)
        edges += mask.sum(axis=0)
        counts += np.bincount(component_counts(components(mask), free), minlength=nodes + 1)
        interacting += int((mask[:, :n] & off).any(axis=(1, 2)).sum())
    return Graphs(len(data), edges / max(1, len(data)), counts, interacting)


def component_counts(labels: Ints, free: NodeSet) -> Ints:
    """Count the components of each row that hold a node which may be swapped.

    Args:
        labels: (B, N), as ``components`` returns them.
        free: (N,) nodes that count; a context factor does not.

    Returns:
        (B,).
    """
    seen: Array = np.zeros(labels.shape, np.bool_)
    np.put_along_axis(seen, labels[:, free], True, axis=1)
    return np.asarray(seen.sum(axis=1))
