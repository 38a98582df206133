"""Local causal graphs: components, independent node sets, and random unions of components.

A node set ``d`` is a union of connected components exactly when no edge has one end inside ``d`` and
one outside. Hence the sets in ``D1 ∩ D2`` of Algorithm 1 are the unions of components of the overlaid
graph ``m1 | m2``, and ``d ∈ D̃`` means that no edge of the proposal's mask crosses ``d``. No power set
is ever formed.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from counterpoint.core import kernels
from counterpoint.core.arrays import Array, Bools, Ints, NodeSet
from counterpoint.core.require import require_counts
from counterpoint.core.threads import run


@dataclass(frozen=True)
class Uniform:
    """Swap any proper union of components, all equally likely: the paper's choice.

    On average it moves half of all factors, so with many factors few proposals survive.
    """

    def most(self, components: int) -> int:
        """How many components a union may have at the most."""
        return components


@dataclass(frozen=True)
class Sparse:
    """Swap at most ``components`` components, all such unions equally likely: for worlds of many factors."""

    components: int = 1

    def __post_init__(self) -> None:
        require_counts(self, "components")

    def most(self, components: int) -> int:
        """How many components a union may have at the most."""
        return min(self.components, components)


UnionPolicy = Uniform | Sparse
NOTHING: Bools = np.empty((0, 0), np.bool_)


def unions(components: int, policy: UnionPolicy) -> int:
    """Count the proper unions of so many components that a policy may choose.

    >>> unions(4, Uniform()), unions(4, Sparse()), unions(1, Uniform())
    (14, 4, 0)
    """
    most = policy.most(components)
    if components < 2 or most >= components - 1:
        return max(0, int(2**components) - 2)
    return sum(comb(components, size) for size in range(1, most + 1))


def label_dtype(nodes: int) -> type[np.uint8 | np.uint16]:
    """The smallest dtype that can name every node."""
    return np.uint8 if nodes <= 2**8 else np.uint16


def components(mask: Bools) -> Ints:
    """Label each node by the smallest node of its connected component (weak connectivity).

    Args:
        mask: bool (B, N, n); an edge from source i to target j ties nodes i and j together, node j
            standing for factor j at t and at t+1.

    Returns:
        int (B, N).

    Example:
        >>> import numpy as np
        >>> mask = np.eye(4, 3, dtype=bool)[None].copy()  # three state factors and an action
        >>> mask[0, 3, 1] = True  # the action moves factor 1
        >>> components(mask)
        array([[0, 1, 2, 1]])

    Time O(B · N · n).
    """
    mask = _mask(mask)
    labels = np.empty(mask.shape[:2], label_dtype(mask.shape[1]))
    run(kernels.label, len(mask), mask, labels)
    return labels.astype(np.int64)


def independent(mask: Bools, nodes: NodeSet) -> Bools:
    """Tell for each row whether no edge of its mask crosses its node set.

    Args:
        mask: bool (B, N, n).
        nodes: bool (B, N).

    Returns:
        bool (B,): whether the set is a union of components of the mask's graph.

    Example:
        >>> import numpy as np
        >>> mask = np.ones((1, 2, 2), bool)
        >>> independent(mask, np.array([[True, False]])), independent(mask, np.array([[True, True]]))
        (array([False]), array([ True]))

    Time O(B · N · n).
    """
    mask, nodes = _mask(mask), _nodes(nodes, mask.shape[:2])
    clear = np.empty(len(mask), np.bool_)
    run(kernels.uncrossed, len(mask), mask, nodes, clear)
    return clear


def random_union(
    labels: Ints, rng: np.random.Generator, policy: UnionPolicy | None = None, *, fixed: NodeSet | None = None
) -> NodeSet:
    """Draw for each row a proper union of its components, uniformly (or by another policy).

    A union is proper if it is neither empty nor everything. Where there is one component only there
    is no proper union, and the empty set is returned.

    Args:
        labels: int (B, N), as ``components`` returns them.
        rng: source of randomness.
        policy: which unions may be drawn; ``Uniform()`` unless told otherwise.
        fixed: bool (N,), nodes that a swap leaves as they are, such as context factors. A component of
            such nodes alone does not count.

    Returns:
        bool (B, N).

    Example:
        >>> import numpy as np
        >>> nodes = random_union(np.array([[0, 1, 0]]), np.random.default_rng(0))
        >>> bool(nodes[0, 0] == nodes[0, 2] != nodes[0, 1])
        True
    """
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise ValueError(f"labels: expected integers of shape (B, N), got {labels.dtype} {labels.shape}.")
    rows, nodes = labels.shape
    policy = policy or Uniform()
    still = np.zeros(nodes, np.bool_) if fixed is None else fixed
    number, sizes = overlay(labels, labels, np.ascontiguousarray(np.broadcast_to(still, labels.shape)))
    offset = np.concatenate([[0], np.cumsum(sizes > 1)])
    drawn = np.empty((offset[-1], nodes), np.bool_)
    key = rng.integers(2**64, dtype=np.uint64)
    run(kernels.draw_unions, rows, 0, key, policy.most(nodes), number, sizes, offset, NOTHING, drawn)
    out = np.zeros((rows, nodes), np.bool_)
    out[sizes > 1] = drawn
    return out


def overlay(first: Ints, second: Ints, fixed: Bools) -> tuple[Ints, Ints]:
    """Number the components of overlaid graphs given by their labels.

    Args:
        first: labels (B, N) of one graph.
        second: labels (B, N) of the other.
        fixed: bool (B, N), nodes that a swap would leave as they are.

    Returns:
        The number of each node's component (B, N), -1 where all of its nodes are fixed, and the
        count of numbered components (B,).
    """
    rows, nodes = first.shape
    number, sizes = np.empty((rows, nodes), np.int32), np.empty(rows, np.int64)
    run(kernels.overlay, rows, first, second, fixed, number, sizes)
    return number, sizes


def _mask(mask: Array) -> Bools:
    mask = np.asarray(mask)
    if mask.ndim != 3 or mask.dtype != np.bool_ or mask.shape[1] < mask.shape[2]:
        raise ValueError(
            f"mask: expected booleans of shape (B, N, n) with N >= n, got {mask.dtype} {mask.shape}. "
            "Rows are sources (state factors, then action factors), columns are next-state factors."
        )
    return np.ascontiguousarray(mask)


def _nodes(nodes: Array, shape: tuple[int, ...]) -> NodeSet:
    nodes = np.asarray(nodes)
    if nodes.dtype != np.bool_ or nodes.shape != shape:
        raise ValueError(f"nodes: expected booleans of shape {shape}, got {nodes.dtype} {nodes.shape}.")
    return np.ascontiguousarray(nodes)
