"""Which transitions meet: every allowed pair once, in an order that only the seed decides.

Rows fall into classes, and a list of blocks says which two classes may be paired. The pairs of all
blocks are numbered, and a keyed permutation of these numbers is drawn from one after another. So no
pair comes twice, nothing has to be remembered, and any part of the order can be computed by itself.
"""

from dataclasses import dataclass

import numpy as np

from counterpoint.core import kernels
from counterpoint.core.arrays import Array, Bools, Ints, NodeSet
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import overlay
from counterpoint.core.threads import run
from counterpoint.core.transitions import Transitions

MOST_GRAPHS = 1024  # different graphs that are compared each with each


@dataclass(frozen=True)
class Pairs:
    """A random order of unordered pairs of rows."""

    order: Ints  # (T,) rows, those of a class next to each other
    blocks: Ints  # (K, 4) start and length of two classes; equal starts mean pairs within one class
    before: Ints  # (K,) number of pairs in earlier blocks
    total: int
    distinct: bool  # whether pairs of a row with itself are left out
    key: np.uint64
    own: Bools | None = None  # (T,) rows that may be the base; others are donors only. All may, unless told

    def draw(self, first: int, count: int) -> tuple[Ints, Ints]:
        """Return rows (base, donor) of the pairs number ``first`` to ``first + count``."""
        count = min(count, self.total - first)
        base, donor = np.empty(count, np.int64), np.empty(count, np.int64)
        half = max(1, ((self.total - 1).bit_length() + 1) // 2)
        run(
            kernels.draw_pairs, count, first, self.total, half, self.key,
            self.before, self.blocks, self.order, int(self.distinct), base, donor,
        )  # fmt: skip
        if self.own is None:
            return base, donor
        right = self.own[base]
        return np.where(right, base, donor), np.where(right, donor, base)


def uniform(groups: Ints, key: np.uint64, own: Bools | None = None) -> Pairs:
    """Pair rows of the same group, each with each and with itself, as Algorithm 1 draws them.

    Args:
        groups: the group of each row, (T,).
        key: decides the order.
        own: which rows may be the base, (T,); two others are never paired. All may, by default.
    """
    order, blocks = _within(groups, own)
    return _numbered(order, blocks, False, key, own)


def sharing(groups: Ints, labels: Ints, aside: NodeSet, key: np.uint64, own: Bools | None = None) -> Pairs:
    """Pair only rows of the same group whose graphs, overlaid, still have two components to exchange.

    Rows are classed by graph, and each two graphs are compared once. With more than ``MOST_GRAPHS``
    different graphs, only the rows that no donor can help (one component) are left out. Components of nodes that
    stand ``aside`` (N,), of context or of what never changes, do not count. ``own`` as for `uniform`.
    """
    mine_too = np.ones(len(groups), np.bool_) if own is None else own
    keyed = np.column_stack([groups, ~mine_too, labels])
    graphs, graph = np.unique(_as_bytes(keyed), return_inverse=True)
    if len(graphs) > MOST_GRAPHS:
        free = labels[:, ~aside]
        useful = np.flatnonzero((free != free[:, :1]).any(axis=1))
        order, blocks = _within(groups[useful], None if own is None else own[useful])
        return _numbered(useful[order], blocks, True, key, own)
    order, starts, lengths = _classes(graph)
    first_row = order[starts]
    pairs: list[tuple[int, int]] = []
    for a, row in enumerate(first_row):
        others = first_row[a:]
        mine = np.repeat(labels[row][None], len(others), axis=0)
        _, sizes = overlay(mine, labels[others], np.broadcast_to(aside, mine.shape).copy())
        allowed = (sizes > 1) & (groups[others] == groups[row]) & (mine_too[others] | mine_too[row])
        pairs.extend((a, a + int(b)) for b in np.flatnonzero(allowed))
    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    blocks = np.stack([starts[one], lengths[one], starts[other], lengths[other]], axis=1)
    return _numbered(order, blocks, True, key, own)


def drawn(data: Transitions, factors: Factorization, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Draw rows (base, donor) of at most ``count`` pairs that agree on the context, no pair twice.

    Like Algorithm 1, this may pair a row with itself.
    """
    groups = same_rows(data.state[:, factors.context_columns])
    return uniform(groups, rng.integers(2**64, dtype=np.uint64)).draw(0, count)


def same_rows(values: Array) -> Ints:
    """Number rows so that equal rows get equal numbers, (T,)."""
    if values.shape[1] == 0:
        return np.zeros(len(values), np.int64)
    return np.unique(_as_bytes(values + values.dtype.type(0)), return_inverse=True)[1]  # + 0 makes -0.0 equal 0.0


def _classes(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Sort rows by class; return the order, and start and length of each class in it."""
    order = np.arange(len(keys))
    if (keys[1:] < keys[:-1]).any():  # in the usual case rows are sorted
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
    starts = np.flatnonzero(np.concatenate([np.ones(len(keys[:1]), np.bool_), keys[1:] != keys[:-1]]))
    return order, starts, np.diff(starts, append=len(keys))


def _within(groups: Ints, own: Bools | None) -> tuple[Ints, Ints]:
    """Return an order of the rows, and the blocks that pair rows of the same group, one of which is an own one."""
    if own is None:
        order, starts, lengths = _classes(groups)
        return order, np.stack([starts, lengths, starts, lengths], axis=1)
    keys = 2 * groups + ~own  # of each group the own rows, then the others
    order, starts, lengths = _classes(keys)
    kinds = keys[order[starts]]
    mine = np.flatnonzero(kinds % 2 == 0)
    both = mine[np.isin(kinds[mine] + 1, kinds)]  # an own class and the others of its group, which come next
    one, other = np.concatenate([mine, both]), np.concatenate([mine, both + 1])
    return order, np.stack([starts[one], lengths[one], starts[other], lengths[other]], axis=1)


def _numbered(order: Ints, blocks: Ints, distinct: bool, key: np.uint64, own: Bools | None) -> Pairs:
    starts, lengths, others, other_lengths = blocks.T
    within = lengths * (lengths - 1 if distinct else lengths + 1) // 2
    sizes = np.where(starts == others, within, lengths * other_lengths)
    before = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Pairs(order, np.ascontiguousarray(blocks), before[:-1], int(before[-1]), distinct, key, own)


def _as_bytes(rows: Array) -> Array:
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]
