"""Augmenting a file of any size: real rows and counterfactuals, chunk by chunk, in bounded memory.

A file that fits into one chunk is augmented as a whole. A larger one is cut into equal chunks, and rows are paired
within their chunk; shuffle a file first if its order means something.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from counterpoint.core import windows
from counterpoint.core.arrays import Ints, NodeSet
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.funnel import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.core.require import require_count
from counterpoint.core.static import static_nodes
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem, Head, Recording, joined
from counterpoint.files.scanning import Scan

LOOK = 1024  # rows that are looked at before a job begins
CHUNK_BYTES = 256 * 2**20  # of real rows that are held in memory


@dataclass(frozen=True, eq=False)
class Accepted:
    """Counterfactuals of one chunk without their columns: what it takes to make them again without the mask."""

    provenance: Provenance  # rows of the chunk
    funnel: Funnel


class Ledger(Protocol):
    """Remembers what was accepted, so that an interrupted job can go on."""

    def finished(self, chunk: int, rows: int, factors: Factorization) -> Iterator[Accepted]:
        """Iterate over what was accepted before of a chunk with so many rows, in order."""
        ...

    def add(self, chunk: int, made: Accepted) -> None:
        """Remember what was accepted now."""
        ...


class NoLedger:
    """Remembers nothing."""

    def finished(self, _: int, __: int, ___: Factorization) -> Iterator[Accepted]:
        """Nothing was accepted before."""
        return iter(())

    def add(self, chunk: int, made: Accepted) -> None:
        """Forget it."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What an augmented file is made of, and so every bit of it.

    Attributes:
        source: the file with the real transitions.
        augmenter: makes the counterfactuals.
        size: rows of the result, the real ones included; counterfactual windows are made as a whole, so what does
            not fill one is left out.
        seed: of all randomness.
        chunk_rows: how many real rows to hold in memory; by default as many as ``CHUNK_BYTES`` have room for.
        unbroken: the rows of an episode must follow each other, so that all real rows come first.
    """

    source: Scan
    augmenter: Augmenter
    size: int
    seed: int = 0
    chunk_rows: int = 0
    unbroken: bool = False

    def __post_init__(self) -> None:
        require_count("size", self.size)
        rows = self.source.rows
        if not rows:
            raise FileProblem(f"{self.source.path}: it holds no transitions.")
        if self.size <= rows:
            raise ValueError(f"size: you asked for {self.size:,} rows, and the data alone has {rows:,}. Ask for more.")
        require_count("seed", self.seed, least=0)
        window = self.augmenter.window
        if self.size < rows + window:
            raise ValueError(
                f"size: a window alone has {window} rows, and you asked for {self.size - rows} more. Ask for more."
            )
        object.__setattr__(self, "size", self.size - (self.size - rows) % window)
        first = next(self.source.chunks(LOOK))
        self.augmenter.factors.require_widths(first.transitions.state.shape[1], first.transitions.action.shape[1])
        _fitting(first.transitions, self.augmenter.factors, self.source.path)
        if not self.chunk_rows:
            width = max(1, sum(array.nbytes for array in first.columns().values()) // len(first))
            chunks = -(-rows * width // CHUNK_BYTES)
            object.__setattr__(self, "chunk_rows", -(-rows // chunks))
        self._require_possible()

    def _require_possible(self) -> None:
        """Raise at once if there are not enough pairs of rows for so many counterfactuals."""
        rows, nodes = min(self.chunk_rows, self.source.rows), len(self.augmenter.factors.names)
        unions = min(self.augmenter.samples_per_pair, 2 ** min(nodes, 63) - 2)
        most = rows * (rows - 1) * max(0, unions)
        wanted = self.made_before(rows)
        if wanted > most:
            raise ValueError(
                f"size: at most {most:,} counterfactuals could be made of {rows:,} transitions, {wanted:,} were asked "
                "for. Ask for fewer, or raise samples_per_pair."
            )

    def made_before(self, row: int) -> int:
        """Return how many counterfactuals (rows or windows) come before a row of the source; chunks get their share."""
        return (self.size - self.source.rows) // self.augmenter.window * row // self.source.rows

    @cached_property
    def first_episode(self) -> int | None:
        """The episode number of the first counterfactual, beyond those of all real rows; None without episodes."""
        last = self.source.last_episode()
        return None if last is None else max(-1, last) + 1


def augmented(plan: Plan, ledger: Ledger | None = None) -> Iterator[tuple[Recording, Funnel]]:
    """Yield the rows of the augmented file one run after another, with what became of the proposals behind each.

    Of each chunk (in an unbroken file, of all) the real rows come first: their own base and donor, with nothing
    swapped. They keep their episodes and steps. A counterfactual, row or window, is an episode of its own, with a
    number beyond those of the real ones.

    Args:
        plan: what to make.
        ledger: what is accepted is remembered there, and what it remembers is not searched for again.
    """
    factors, start, episode = plan.augmenter.factors, 0, plan.first_episode
    first = plan.unbroken and plan.chunk_rows < plan.source.rows
    if first:
        for chunk in _real(plan):
            yield chunk, Funnel()
    for number, chunk in enumerate(_real(plan)):
        if not first:
            yield chunk, Funnel()
        real = chunk.transitions
        data = real if plan.augmenter.window > 1 else real.replace(episode=None, step=None)
        still = static_nodes(data, factors)
        static = [name for name, same in zip(factors.names, still, strict=True) if same]
        head = replace(chunk.head, notes={**chunk.head.notes, "static": static})
        size = plan.made_before(start + len(data)) - plan.made_before(start)
        for made in _made(plan, number, data, size, ledger or NoLedger()) if size else ():
            rows = made.transitions
            if episode is not None:
                numbered = windows.numbered(rows, made.window, episode)
                rows = numbered if made.window > 1 or real.step is not None else numbered.replace(step=None)
                episode += len(rows) // made.window
            yield Recording(rows, head, made.provenance.shifted(start)), made.funnel
        start += len(data)


def _real(plan: Plan) -> Iterator[Recording]:
    """Iterate over the real rows in chunks, each row its own base and donor."""
    factors, start = plan.augmenter.factors, 0
    for chunk in plan.source.chunks(plan.chunk_rows):
        real = _fitting(chunk.transitions, factors, plan.source.path)
        yield Recording(real, chunk.head, Provenance.real(len(real), factors, first=start))
        start += len(real)


def _fitting(data: Transitions, factors: Factorization, path: str) -> Transitions:
    """Return real rows that fit the factors, with whole numbers for episodes and steps.

    Raises:
        ValueError: if they hold noise, or hidden state, that no factor owns: a swap would lose it. Noise that never
            varies is no loss.
    """
    came, owned = 0 if data.noise is None else data.noise.shape[1], factors.noise_width
    if data.noise is not None and came != owned:
        if owned or (data.noise != data.noise[:1]).any():
            raise ValueError(
                f"noise: {path} holds {came} columns of noise or hidden state, and the factors own {owned}. Say "
                "who owns each: a section [noise] in a description, Factorization(noise=...) in Python. To leave them "
                "out, write noise = false in a description, or give scan(...).without('noise')."
            )
        data = data.replace(noise=None)
    numbers = {"episode": data.episode, "step": data.step}
    return data.replace(**{name: None if array is None else array.astype(np.int64) for name, array in numbers.items()})


def _made(plan: Plan, chunk: int, data: Transitions, size: int, ledger: Ledger) -> Iterator[Counterfactuals]:
    """Yield the counterfactuals of a chunk: those in the ledger, then new ones."""
    augmenter, funnel = plan.augmenter, Funnel()
    for old in ledger.finished(chunk, len(data), augmenter.factors):
        funnel += old.funnel
        yield Counterfactuals(augmenter.rebuild(data, old.provenance), old.provenance, old.funnel, augmenter.window)
    if funnel.accepted < size:
        for made in augmenter.stream(data, size, rng=np.random.default_rng([plan.seed, chunk]), after=funnel):
            ledger.add(chunk, Accepted(made.provenance, made.funnel))
            yield made


def carried(head: Head) -> dict[str, Any]:
    """Return what formats note about a source and want to know of what is made from it: the robot, not the rows."""
    return {name: head.notes[name] for name in ("env_args", "fps", "task", "robot_type") if name in head.notes}


def noted_window(head: Head) -> int:
    """Return how many rows the counterfactual windows of a file have, as its header says; 1 without windows."""
    noted = head.notes.get("window", 1)
    return noted if type(noted) is int and noted > 1 else 1


def noted_static(head: Head) -> NodeSet | None:
    """Return which nodes never change, as a file's header says; None if it does not say."""
    noted, factors = head.notes.get("static"), head.factors
    if factors is None or not isinstance(noted, list) or not set(map(str, noted)) <= set(factors.names):
        return None
    return factors.nodes(*map(str, noted))


def numbers(rows: Recording, first: int, window: int) -> Ints:
    """Number rows from ``first`` on, so that the rows of a counterfactual window have the same number."""
    episode = rows.transitions.episode
    return first + np.arange(len(rows)) if window == 1 or episode is None else episode


def whole_windows(chunks: Iterable[Recording], window: int) -> Iterator[Recording]:
    """Yield rows that come in chunks anew, so that no window is cut."""
    waiting: list[Recording] = []
    for chunk in chunks:
        rows = joined([*waiting, chunk])
        whole = len(rows) - len(rows) % window
        waiting = [rows[whole:].copy()] if whole < len(rows) else []
        if whole:
            yield rows[:whole]
    if waiting:
        raise FileProblem(f"a window of {window} rows is not whole; the file is damaged.")
