"""The result: accepted counterfactuals with the provenance of every row, and room to collect them in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Ints, NodeSet
from counterpoint.core.engine import Chunk
from counterpoint.core.factors import Factorization
from counterpoint.core.funnel import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.core.static import swaps_only_static
from counterpoint.core.transitions import Transitions
from counterpoint.core.windows import beyond, numbered


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """Accepted counterfactual transitions with the provenance of every row.

    Of windows, the rows stay together: each ``window`` rows are an episode of their own, in order.
    """

    transitions: Transitions
    provenance: Provenance
    funnel: Funnel
    window: int = 1  # rows that were swapped together; what the funnel counts are windows
    static_nodes: NodeSet | None = None  # (N,) what never changes, as far as the augmenter knew

    @property
    def base(self) -> Ints:
        """Row of the data that each counterfactual started from, (B,)."""
        return self.provenance.base

    @property
    def donor(self) -> Ints:
        """Row of the data that gave the swapped factors, (B,)."""
        return self.provenance.donor

    @property
    def swapped(self) -> NodeSet:
        """Which nodes came from the donor, (B, N)."""
        return self.provenance.swapped

    @property
    def windows(self) -> Provenance:
        """The provenance of each window: where it begins in base and donor, and what was swapped throughout."""
        return self.provenance[:: self.window]

    @property
    def static(self) -> Bools:
        """Which rows, or windows, exchange nothing but what never changes, such as a goal."""
        if self.static_nodes is None or not self.static_nodes.any():
            return np.zeros(len(self.windows), np.bool_)
        return swaps_only_static(self.windows.swapped, self.static_nodes)

    def __len__(self) -> int:
        return len(self.transitions)


class AcceptedRows:
    """Room for so many accepted counterfactuals, filled chunk by chunk."""

    def __init__(self, data: Transitions, factors: Factorization, size: int, window: int) -> None:
        rows = size * window
        try:
            like = data.replace(episode=None, step=None)
            if not factors.noise or data.noise is None:
                like = like.replace(noise=None)
            self.transitions = Transitions.empty_like(like, rows)
            self.provenance = Provenance.empty(rows, factors.n + factors.m)
        except MemoryError as error:
            raise MemoryError(
                f"size: {rows:,} rows do not fit into memory. Make them chunk by chunk, with stream."
            ) from error
        self.transitions.terminated[:] = False
        self.funnel, self.window, self.first = Funnel(), window, beyond(data.episode)
        self.static_nodes: NodeSet | None = None

    def append(self, chunk: Chunk) -> None:
        """Copy the accepted rows of a chunk behind those that are there."""
        start = self.funnel.accepted * self.window
        rows = slice(start, start + len(chunk.keep))
        for name, column in self.transitions.columns():
            if name not in ("reward", "terminated"):
                _take(getattr(chunk.proposal, name), chunk.keep, column[rows])
        for source, column in zip(chunk.provenance.arrays(), self.provenance.arrays(), strict=True):
            _take(source, chunk.keep, column[rows])
        self.funnel += chunk.funnel
        self.static_nodes = chunk.static_nodes

    def counterfactuals(self, relabelled: Callable[[Transitions], Transitions]) -> Counterfactuals:
        """Return all rows, relabelled."""
        made = relabelled(self.transitions)
        if self.window > 1:
            made = numbered(made, self.window, self.first)
        return Counterfactuals(made, self.provenance, self.funnel, self.window, self.static_nodes)


def _take(source: Array, rows: Ints, out: Array) -> None:
    np.take(source, rows, axis=0, out=out, mode="clip")  # "clip" writes straight into out
