"""Augmenting a file of any size: real rows and counterfactuals, chunk by chunk, in bounded memory.

A file that fits into one chunk is augmented as a whole. A larger one is cut into equal chunks, and rows are paired
within their chunk; shuffle a file first if its order means something.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from counterpoint.core import windows
from counterpoint.core.arrays import Ints
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.funnel import Funnel
from counterpoint.core.kernels import scramble
from counterpoint.core.provenance import Provenance
from counterpoint.core.require import require_count
from counterpoint.core.static import static_nodes
from counterpoint.core.threads import ahead
from counterpoint.core.transitions import Transitions
from counterpoint.files.donors import Among, Donors
from counterpoint.files.fitting import fitting
from counterpoint.files.notes import carried
from counterpoint.files.recording import FileProblem, Head, Recording
from counterpoint.files.scanning import Scan
from counterpoint.files.writing import CHUNK_ROWS, Writer, behind

LOOK = 1024  # rows that are looked at before a job begins
Check = Callable[[Transitions, Ints], None]  # rows, and their numbers in the file
CHUNK_BYTES = 128 * 2**20  # of real rows that are held in memory


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
        among: where the file stands among the shards of a dataset, if it is one.
        unbroken: the rows of an episode must follow each other, so that all real rows come first.
    """

    source: Scan
    augmenter: Augmenter
    size: int
    seed: int = 0
    chunk_rows: int = 0
    unbroken: bool = False
    among: Among | None = None

    def __post_init__(self) -> None:
        require_count("size", self.size)
        rows = self.source.rows
        if not rows:
            raise FileProblem(f"{self.source.path}: it holds no transitions.")
        if self.size <= rows and self.among is None:
            raise ValueError(f"size: you asked for {self.size:,} rows, and the data alone has {rows:,}. Ask for more.")
        require_count("seed", self.seed, least=0)
        window = self.augmenter.window
        if self.size < rows + window and self.among is None:
            raise ValueError(
                f"size: a window alone has {window} rows, and you asked for {self.size - rows} more. Ask for more."
            )
        object.__setattr__(self, "size", self.size - (self.size - rows) % window)
        first = next(self.source.chunks(LOOK))
        self.augmenter.factors.require_widths(first.transitions.state.shape[1], first.transitions.action.shape[1])
        fitting(first.transitions, self.augmenter.factors, self.source.path)
        if not self.chunk_rows:
            width = max(1, sum(array.nbytes for array in first.columns().values()) // len(first))
            chunks = -(-(rows + self.donor_rows) * width // CHUNK_BYTES)
            object.__setattr__(self, "chunk_rows", -(-rows // chunks))
        self._require_possible()

    def _require_possible(self) -> None:
        """Raise at once if there are not enough pairs of rows for so many counterfactuals."""
        rows, nodes = min(self.chunk_rows, self.source.rows), len(self.augmenter.factors.names)
        unions = min(self.augmenter.samples_per_pair, 2 ** min(nodes, 63) - 2)
        donors = -(-self.donor_rows * rows // self.source.rows)
        most = rows * (rows + donors - 1) * max(0, unions)
        wanted = self.made_before(rows)
        if wanted > most:
            raise ValueError(
                f"size: at most {most:,} counterfactuals could be made of {rows:,} transitions, {wanted:,} were asked "
                "for. Ask for fewer, or raise samples_per_pair."
            )

    @property
    def donor_rows(self) -> int:
        """How many rows another shard gives."""
        return 0 if self.among is None or self.among.donors is None else self.among.donors.rows

    def made_before(self, row: int) -> int:
        """Return how many counterfactuals (rows or windows) come before a row of the source; chunks get their share."""
        return (self.size - self.source.rows) // self.augmenter.window * row // self.source.rows

    @cached_property
    def first_episode(self) -> int | None:
        """The episode number of the first counterfactual, beyond those of all real rows; None without episodes."""
        last = self.source.last_episode()
        return None if last is None else max(-1, last) + 1


def head_of(plan: Plan, source: str, rows: int, **notes: Any) -> Head:
    """Return what an augmented file says about all of its rows, whose parents are rows of a source with so many."""
    known = {**carried(plan.source.head), "seed": plan.seed, "keys": plan.source.observation_keys}
    notes = {**known, **notes}
    if plan.augmenter.window > 1:
        notes["window"] = plan.augmenter.window
    return Head(plan.augmenter.factors, source, notes=notes, source_rows=rows)


def written(
    runs: Iterable[tuple[Recording, Funnel]], file: Writer, progress: Callable[[int], object] | None = None
) -> Funnel:
    """Write what `augmented` yields, and return what became of all proposals."""
    funnel, static = Funnel(), list(file.factors.names) if file.factors is not None else []
    with behind(file.append) as put:
        for recording, new in runs:
            put(recording, wait=new.accepted > 0)  # real rows are in memory anyway
            funnel += new
            still = recording.head.notes.get("static", static)
            static = [name for name in static if name in still]
            if progress is not None:
                progress(file.rows)
    file.notes.update(funnel=asdict(funnel), static=static)
    return funnel


def augmented(
    plan: Plan, ledger: Ledger | None = None, check: Check | None = None
) -> Iterator[tuple[Recording, Funnel]]:
    """Yield the rows of the augmented file one run after another, with what became of the proposals behind each.

    Of each chunk (in an unbroken file, of all) the real rows come first: their own base and donor, with nothing
    swapped. They keep their episodes and steps. A counterfactual, row or window, is an episode of its own, with a
    number beyond those of the real ones.

    Args:
        plan: what to make.
        ledger: what is accepted is remembered there, and what it remembers is not searched for again.
        check: is given the real rows of each chunk, and their numbers, before anything is made of them; raises if they
            are not right.
    """
    factors, episode, among = plan.augmenter.factors, plan.first_episode, plan.among or Among()
    first = plan.unbroken and plan.chunk_rows < plan.source.rows
    if first:
        for recording, _ in _real(plan):
            yield recording, Funnel()
    donors = Donors(among, factors, -(-plan.source.rows // plan.chunk_rows), plan.source.path)
    start = donors_start = number = 0
    for recording, whole in _real(plan):
        if not first:
            yield recording, Funnel()
        if whole is None:
            continue
        own, steps, head = len(whole), whole.step is not None, recording.head
        if check is not None:
            check(whole, np.arange(among.first + start, among.first + start + own))
        # where rows stand in episodes belongs to no counterfactual
        data = donors.behind(whole if plan.augmenter.window > 1 else whole.replace(episode=None, step=None))
        del recording, whole  # so that memory has room for the next one
        still = static_nodes(data, factors)
        static = [name for name, same in zip(factors.names, still, strict=True) if same]
        head = replace(head, notes={**head.notes, "static": static})
        size = plan.made_before(start + own) - plan.made_before(start)
        for made in _made(plan, number, data, own, size, ledger or NoLedger()) if size else ():
            rows = made.transitions
            if episode is not None:
                numbered = windows.numbered(rows, made.window, episode)
                rows = numbered if made.window > 1 or steps else numbered.replace(step=None)
                episode += len(rows) // made.window
            parents = made.provenance.among(own, among.first + start, among.donors_first + donors_start)
            yield Recording(rows, head, parents), made.funnel
        start, donors_start, number = start + own, donors_start + len(data) - own, number + 1
        del data


def _real(plan: Plan) -> Iterator[tuple[Recording, Transitions | None]]:
    """Iterate over the real rows, each its own base and donor; with the last ones of a chunk comes all of it.

    They come as they are read, so that they are written while the rest of their chunk is read.
    """
    factors, first, sent = plan.augmenter.factors, 0 if plan.among is None else plan.among.first, 0
    for chunk, whole in plan.source.growing(plan.chunk_rows):
        if whole or len(chunk) - sent >= CHUNK_ROWS:
            new = fitting(chunk.transitions[sent:], factors, plan.source.path)
            real = Recording(new, chunk.head, Provenance.real(len(new), factors, first=first))
            sent, first = 0 if whole else sent + len(new), first + len(new)
            yield real, fitting(chunk.transitions, factors, plan.source.path) if whole else None
            ahead(scramble, np.uint64(0))  # Numba takes most of a second to load it; meanwhile these rows are written
            del new, real
        del chunk  # so that memory has room for the next one


def _made(plan: Plan, chunk: int, data: Transitions, own: int, size: int, ledger: Ledger) -> Iterator[Counterfactuals]:
    """Yield the counterfactuals of a chunk, whose own rows are the first: those in the ledger, then new ones."""
    augmenter, funnel = plan.augmenter, Funnel()
    for old in ledger.finished(chunk, len(data), augmenter.factors):
        funnel += old.funnel
        yield Counterfactuals(augmenter.rebuild(data, old.provenance), old.provenance, old.funnel, augmenter.window)
    if funnel.accepted < size:
        rng, bases = np.random.default_rng([plan.seed, chunk]), None if own == len(data) else own
        for made in augmenter.stream(data, size, rng=rng, after=funnel, bases=bases):
            ledger.add(chunk, Accepted(made.provenance, made.funnel))
            yield made
