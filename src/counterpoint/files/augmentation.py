"""Augmenting a file of any size: real rows and counterfactuals, block by block, in bounded memory.

A file that fits into one block is augmented as a whole. A larger one is cut into equal blocks, and rows are paired
within their block; a file whose order means something is best shuffled before.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.engine import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.core.require import require_count
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem, Recording
from counterpoint.files.scanning import Scan

BLOCK_BYTES = 256 * 2**20  # of real rows that are held in memory


@dataclass(frozen=True, eq=False)
class Accepted:
    """Counterfactuals of one block without their columns: what it takes to make them again without the mask."""

    provenance: Provenance  # rows of the block
    funnel: Funnel


class Ledger(Protocol):
    """Remembers what was accepted, so that an interrupted job can go on."""

    def finished(self, block: int) -> Iterator[Accepted]:
        """Iterate over what was accepted before, in order."""
        ...

    def add(self, block: int, made: Accepted) -> None:
        """Remember what was accepted now."""
        ...


class NoLedger:
    """Remembers nothing."""

    def finished(self, _: int) -> Iterator[Accepted]:
        """Nothing was accepted before."""
        return iter(())

    def add(self, block: int, made: Accepted) -> None:
        """Forget it."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What an augmented file is made of, and so every bit of it.

    Attributes:
        source: the file with the real transitions.
        augmenter: makes the counterfactuals.
        size: rows of the result, the real ones included.
        seed: of all randomness.
        block_rows: how many real rows to hold in memory; by default as many as ``BLOCK_BYTES`` have room for.
    """

    source: Scan
    augmenter: Augmenter
    size: int
    seed: int = 0
    block_rows: int = 0

    def __post_init__(self) -> None:
        require_count("size", self.size)
        rows = self.source.rows
        if not rows:
            raise FileProblem(f"{self.source.path}: it holds no transitions.")
        if self.size <= rows:
            raise ValueError(f"size: {self.size:,} rows were asked for, and the data alone has {rows:,}. Ask for more.")
        if not self.block_rows:
            first = next(self.source.pieces(1))
            width = max(1, sum(array.nbytes for array in first.columns().values()))
            blocks = -(-rows * width // BLOCK_BYTES)
            object.__setattr__(self, "block_rows", -(-rows // blocks))

    def made_before(self, row: int) -> int:
        """Return how many counterfactuals come before this row of the source: blocks get their share."""
        return (self.size - self.source.rows) * row // self.source.rows


def augmented(plan: Plan, ledger: Ledger | None = None) -> Iterator[tuple[Recording, Funnel]]:
    """Yield the rows of the augmented file in parts, each with what became of the proposals behind it.

    Of each block the real rows come first: their own base and donor, with nothing swapped. Episodes and steps are
    left out, because counterfactuals have none; ``base`` leads back to them.

    Args:
        plan: what to make.
        ledger: what is accepted is remembered there, and what it remembers is not searched for again.
    """
    factors, start = plan.augmenter.factors, 0
    for number, block in enumerate(plan.source.pieces(plan.block_rows)):
        data = block.transitions.replace(episode=None, step=None)
        if data.noise is not None and data.noise.shape[1] != factors.noise_width:
            data = data.replace(noise=None)
        factors.require_widths(data.state.shape[1], data.action.shape[1])
        yield Recording(data, block.head, Provenance.real(len(data), factors, first=start)), Funnel()
        size = plan.made_before(start + len(data)) - plan.made_before(start)
        for made in _made(plan, number, data, size, ledger or NoLedger()) if size else ():
            yield Recording(made.transitions, block.head, made.provenance.shifted(start)), made.funnel
        start += len(data)


def _made(plan: Plan, block: int, data: Transitions, size: int, ledger: Ledger) -> Iterator[Counterfactuals]:
    """Yield the counterfactuals of a block: those in the ledger, then new ones."""
    augmenter, funnel = plan.augmenter, Funnel()
    for old in ledger.finished(block):
        funnel += old.funnel
        yield Counterfactuals(augmenter.rebuild(data, old.provenance), old.provenance, old.funnel)
    if funnel.accepted < size:
        for made in augmenter.stream(data, size, rng=np.random.default_rng([plan.seed, block]), after=funnel):
            ledger.add(block, Accepted(made.provenance, made.funnel))
            yield made
