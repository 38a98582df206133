"""From pairs to accepted proposals, chunk by chunk: Algorithm 1 at speed.

The masks of source transitions are asked for once and kept as component labels. All else happens per
chunk, so memory does not grow with the number of proposals.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterpoint.core import kernels
from counterpoint.core.arrays import Array, Bools, Ints, NodeSet, words
from counterpoint.core.coda import derived, mixed
from counterpoint.core.factors import Factorization
from counterpoint.core.funnel import Funnel
from counterpoint.core.graphs import NOTHING, UnionPolicy, independent, label_dtype, overlay, unions
from counterpoint.core.pairs import Pairs
from counterpoint.core.protocols import DeriveFn, Mask, TerminalFn, call_mask, call_terminal
from counterpoint.core.provenance import Provenance
from counterpoint.core.static import StaticShare
from counterpoint.core.threads import run
from counterpoint.core.transitions import Transitions
from counterpoint.core.windows import Windows

__all__ = ["Chunk", "Funnel", "Recipe", "Sources", "chunks"]

CHUNK_BYTES = 16 * 2**20  # of proposals and their masks


@dataclass(frozen=True)
class Chunk:
    """Some proposals, R rows in all, and which rows to keep."""

    proposal: Transitions
    provenance: Provenance
    keep: Ints  # rows of the accepted ones
    funnel: Funnel
    static_nodes: NodeSet | None = None  # (N,) what never changes, if there is such a factor

    def accepted(self) -> "Chunk":
        """Return the accepted proposals alone."""
        columns = {name: _taken(array, self.keep) for name, array in self.proposal.columns()}
        parents = Provenance(*(_taken(array, self.keep) for array in self.provenance.arrays()))
        rows = np.arange(len(self.keep))
        return Chunk(Transitions.trusted(**columns), parents, rows, self.funnel, self.static_nodes)


@dataclass(frozen=True)
class Recipe:
    """What the engine is told: the parts of an ``Augmenter`` that decide which rows are made."""

    factors: Factorization
    mask_fn: Mask
    policy: UnionPolicy
    samples_per_pair: int
    derive: DeriveFn | None
    window: int = 1
    static: StaticShare | None = None
    terminal_fn: TerminalFn | None = None

    def chunk_rows(self, data: Transitions) -> int:
        """How many proposals to hold at a time."""
        row = sum(array.nbytes // max(1, len(data)) for _, array in data.columns())
        mask = self.factors.n * (self.factors.n + self.factors.m)
        most = getattr(self.mask_fn, "rows_at_once", 65536)  # a mask that simulates says how many
        return int(np.clip(CHUNK_BYTES // (row + mask + 1), min(1024, most), most))


class Sources:
    """The component labels of the source transitions, computed when first needed."""

    def __init__(self, data: Transitions, recipe: Recipe) -> None:
        self.data, self.recipe, self.windows = data, recipe, Windows.of(data, recipe.window)
        nodes = recipe.factors.n + recipe.factors.m
        self.labels = np.zeros((len(data), nodes), label_dtype(nodes))  # (T, N)
        self.known = np.zeros(len(data), np.bool_)  # (T,)
        self._missing = len(data)

    def need(self, rows: Ints | None = None) -> Ints:
        """Make sure that the labels of these rows (of all rows) are known, and return them all."""
        if self._missing:
            unknown = np.flatnonzero(~self.known) if rows is None else np.unique(rows[~self.known[rows]])
            size = self.recipe.chunk_rows(self.data)
            for start in range(0, len(unknown), size):
                self._label(unknown[start : start + size])
        return self.labels

    def _label(self, rows: Ints) -> None:
        contiguous = len(rows) == rows[-1] - rows[0] + 1
        asked = self.data[rows[0] : rows[-1] + 1] if contiguous else self.data[rows]
        mask = call_mask(self.recipe.mask_fn, asked, self.recipe.factors)
        labels = np.empty((len(rows), self.labels.shape[1]), self.labels.dtype)
        run(kernels.label, len(rows), mask, labels)
        self.labels[rows] = labels
        self.known[rows] = True
        self._missing -= len(rows)

    def overlaid(self, windows: Ints) -> Ints:
        """Return the component labels of windows, whose rows are known, (len(windows), N)."""
        return self.windows.overlaid(windows, self.labels)

    @property
    def entangled(self) -> bool:
        """Whether every mask seen so far is one single component."""
        return not self.labels[self.known].any()


def chunks(
    sources: Sources, pairs: Pairs, key: np.uint64, funnel: Funnel, *, most_pairs: int, most_rows: int
) -> Iterator[Chunk]:
    """Yield chunks of proposals until so many pairs are used up or so many rows are accepted.

    The rows depend on the key alone. The chunks adapt to the yield so far: the last one is not made
    larger than needed. What ``funnel`` counts has been made before, and is not made again.
    """
    recipe = sources.recipe
    full = max(1, recipe.chunk_rows(sources.data) // (recipe.samples_per_pair * recipe.window))
    while funnel.pairs < min(most_pairs, pairs.total) and funnel.accepted < most_rows:
        wanted = full
        if funnel.accepted:
            wanted = int(1.1 * (most_rows - funnel.accepted) * funnel.pairs / funnel.accepted) + 16
        count = min(full, wanted, most_pairs - funnel.pairs)
        chunk = _chunk(sources, pairs.draw(funnel.pairs, count), key, funnel, most_rows - funnel.accepted)
        funnel += chunk.funnel
        yield chunk


def _chunk(sources: Sources, pairs: tuple[Ints, Ints], key: np.uint64, before: Funnel, room: int) -> Chunk:
    """Make and validate the proposals of some pairs of windows; stop counting where ``room`` are accepted."""
    recipe, length = sources.recipe, sources.recipe.window
    base, donor = (sources.windows.rows(windows) for windows in pairs)  # (pairs, length)
    sources.need(np.concatenate([base, donor], axis=None))
    nodes, of_pair, static, tried = _unions(sources, pairs, (base, donor), (before.pairs, key))
    swapped = nodes if length == 1 else nodes.repeat(length, axis=0)
    parents = Provenance(_taken(base, of_pair).ravel(), _taken(donor, of_pair).ravel(), swapped)
    proposal = derived(mixed(sources.data, parents, recipe.factors), recipe.factors, recipe.derive)
    valid = _valid(proposal, parents, recipe)
    keep = unended = _unended(proposal, valid, recipe)
    if recipe.static is not None:
        keep = recipe.static.kept(unended, static, before.accepted, before.static)
    used, made = len(tried), len(nodes)
    if len(keep) >= room:  # what comes after the last one that is needed does not count
        keep = keep[:room]
        made = int(keep[-1]) + 1
        used = int(of_pair[made - 1]) + 1
    found = (int(np.searchsorted(valid, made)), int(np.searchsorted(unended, made)))
    funnel = _counted((of_pair, tried), found, (used, made), keep, static)
    funnel += Funnel(no_evidence=_without_evidence(proposal[: made * length], parents, valid, recipe))
    still = None if recipe.static is None else recipe.static.nodes
    return Chunk(proposal, parents, keep if length == 1 else _rows(keep, length), funnel, still)


def _counted(
    drawn: tuple[Ints, Ints], found: tuple[int, int], end: tuple[int, int], keep: Ints, static: Bools
) -> Funnel:
    """Count what became of the proposals of the first pairs."""
    (of_pair, tried), (valid, unended), (used, made) = drawn, found, end
    trivial = int((tried[:used] == 0).sum())
    duplicate = int(tried[:used].sum()) - int(np.searchsorted(of_pair, used))
    return Funnel(
        pairs=used,
        proposals=trivial + duplicate + made,
        trivial=trivial,
        duplicate=duplicate,
        rejected=made - valid,
        accepted=len(keep),
        static=int(static[keep].sum()) if len(static) else 0,
        surplus=unended - len(keep),
        ended=valid - unended,
    )


def _unions(
    sources: Sources, pairs: tuple[Ints, Ints], rows: tuple[Ints, Ints], seed: tuple[int, np.uint64]
) -> tuple[NodeSet, Ints, Bools, Ints]:
    """Draw the unions to swap: their nodes, their pairs, which are static, and how many were tried for each pair."""
    recipe = sources.recipe
    number, sizes, same, tried = _overlaid(sources, pairs, rows)
    if recipe.static is None:
        counts = sizes_to_counts(sizes, recipe)
        nodes = _drawn(recipe, seed, number, sizes, counts)
        return nodes, np.repeat(np.arange(len(sizes)), counts), np.zeros(0, np.bool_), tried
    draws = recipe.static.draws((number, sizes, same), recipe.samples_per_pair, recipe.policy, seed)
    still = _drawn(recipe, seed, draws.merged, draws.sizes, draws.static)
    others = _drawn(recipe, seed, number, sizes, draws.mixed, draws.dynamic)
    every = np.arange(len(sizes))
    of_pair = np.concatenate([every.repeat(draws.static), every.repeat(draws.mixed)])
    order = np.argsort(of_pair, kind="stable")
    tried = np.where(draws.limited, draws.static + draws.mixed, tried)
    return np.concatenate([still, others])[order], of_pair[order], order < len(still), tried


def _drawn(
    recipe: Recipe, seed: tuple[int, np.uint64], number: Ints, sizes: Ints, counts: Ints, dynamic: Bools = NOTHING
) -> NodeSet:
    """Draw so many different unions for each pair."""
    offset = np.concatenate([[0], np.cumsum(counts)])
    nodes = np.empty((offset[-1], number.shape[1]), np.bool_)
    most = recipe.policy.most(number.shape[1])
    run(kernels.draw_unions, len(number), *seed, most, number, sizes, offset, dynamic, nodes)
    return nodes


def _valid(proposal: Transitions, parents: Provenance, recipe: Recipe, mask_fn: Mask | None = None) -> Ints:
    """Return which proposals are valid: no edge crosses the swapped set, in any of their rows."""
    if not len(parents):
        return np.zeros(0, np.int64)
    clear = independent(call_mask(mask_fn or recipe.mask_fn, proposal, recipe.factors), parents.swapped)
    return np.flatnonzero(clear if recipe.window == 1 else clear.reshape(-1, recipe.window).all(axis=1))


def _unended(proposal: Transitions, valid: Ints, recipe: Recipe) -> Ints:
    """Leave out the windows that are terminal before their last row: no episode goes on after its end."""
    length, terminal_fn = recipe.window, recipe.terminal_fn
    if length == 1 or terminal_fn is None or not len(valid):
        return valid
    inner = (valid[:, None] * length + np.arange(length - 1)).ravel()
    over = call_terminal(terminal_fn, proposal[inner]).reshape(-1, length - 1).any(axis=1)
    return valid[~over]


def _without_evidence(proposal: Transitions, parents: Provenance, keep: Ints, recipe: Recipe) -> int:
    """Count the rejected proposals that only lack evidence: a mask that asks for it has its other part in ``mask``."""
    inner = getattr(recipe.mask_fn, "mask", None)
    if inner is None or not hasattr(recipe.mask_fn, "unknown"):
        return 0
    rows = _rows(np.setdiff1d(np.arange(len(proposal) // recipe.window), keep), recipe.window)
    return len(_valid(proposal[rows], parents[rows], recipe, inner))


def _rows(windows: Ints, length: int) -> Ints:
    """Return the rows of windows that lie one behind the other."""
    rows: Ints = (windows[:, None] * length + np.arange(length)).ravel()
    return rows


def _overlaid(sources: Sources, pairs: tuple[Ints, Ints], rows: tuple[Ints, Ints]) -> tuple[Ints, Ints, Bools, Ints]:
    """Number the components of each pair's overlaid graph that a swap would change.

    Also returns their count, on which nodes the parents agree (if static factors have a share), and how many
    unions would be tried if they agreed nowhere (zero for a pair with nothing to exchange).
    """
    data, factors, recipe = sources.data, sources.recipe.factors, sources.recipe
    same = np.ones((len(pairs[0]), factors.n + factors.m), np.bool_)
    for base, donor in zip(*(np.ascontiguousarray(each.T) for each in rows), strict=True):  # step by step
        for values, owner in (
            (data.state, factors.state_owner),
            (data.next_state, factors.state_owner),
            (data.action, factors.action_owner),
        ):
            run(kernels.agree, len(same), base, donor, words(values), owner, same)
    context = factors.nodes(*factors.context)
    first, second = (sources.overlaid(windows) for windows in pairs)
    number, sizes = overlay(first, second, same | context)
    tried = sizes_to_counts(sizes, recipe)
    agreeing = np.flatnonzero(same.any(axis=1) & (pairs[0] != pairs[1]))
    if len(agreeing):
        fixed = np.broadcast_to(context, (len(agreeing), len(context))).copy()
        tried[agreeing] = sizes_to_counts(overlay(first[agreeing], second[agreeing], fixed)[1], recipe)
    return number, sizes, same if recipe.static is not None else NOTHING, tried


def _taken(array: Array, rows: Ints) -> Array:
    """Select rows; several times as fast as an index."""
    return np.take(array, rows, axis=0)


def sizes_to_counts(sizes: Ints, recipe: Recipe) -> Ints:
    """How many unions are drawn from so many components: ``samples_per_pair``, or all there are."""
    most = int(sizes.max(initial=0))
    table = np.array([min(recipe.samples_per_pair, unions(k, recipe.policy)) for k in range(most + 1)])
    return table[sizes]
