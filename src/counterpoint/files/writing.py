"""Writing chunk by chunk, whatever the format."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.core import threads
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.files.cutting import Cutter
from counterpoint.files.foreign import named
from counterpoint.files.formats import chosen
from counterpoint.files.output import Folder, Output
from counterpoint.files.recording import FileProblem, Head, Recording

CHUNK_ROWS = 131072  # in a chunk at most
CHUNK_BYTES = 64 * 2**20


class Writer:
    """Takes recordings of any length and hands them on in chunks; made by `writer`."""

    def __init__(
        self, name: str, target: Output | Folder, stack: ExitStack, sink: Callable[..., Any], head: Head
    ) -> None:
        self._name, self._target, self._stack, self._sink, self._head = name, target, stack, sink, head
        self._cutter: Cutter | None = None
        self._layout: dict[str, tuple[Any, ...]] = {}
        self._put: Callable[[Recording], object] | None = None
        self.notes: dict[str, Any] = {}  # to be added to those of the head, at any time until the end
        self.rows = 0  # appended so far

    @property
    def factors(self) -> Factorization | None:
        """How columns split into factors, if the head says so."""
        return self._head.factors

    def append(self, data: Transitions | Counterfactuals | Recording) -> None:
        """Write more rows; they must have the columns, widths and dtypes of the first ones."""
        recording = Recording.of(data, self._head)
        if not len(recording):
            return
        layout = {name: (array.dtype, *array.shape[1:]) for name, array in recording.columns().items()}
        cutter = self._cutter or self._start(recording, layout)
        if layout != self._layout:
            wrong = sorted({name for name, _ in set(layout.items()) ^ set(self._layout.items())})
            raise ValueError(
                f"append: the columns {', '.join(wrong)} differ in presence, width or dtype from the first rows."
            )
        for chunk in cutter.push(recording):
            self._write(chunk)
        self.rows += len(recording)

    def finish(self) -> None:
        """Write what is left."""
        if self._cutter is None:
            raise FileProblem("nothing to write: no transitions were appended.")
        for chunk in self._cutter.rest():
            self._write(chunk)

    def _final_head(self) -> Head:
        return replace(self._head, notes={**self._head.notes, **self.notes})

    def _start(self, recording: Recording, layout: dict[str, tuple[Any, ...]]) -> Cutter:
        if self._head.factors is not None:
            data = recording.transitions
            self._head.factors.require_widths(data.state.shape[1], data.action.shape[1])
        width = sum(array.nbytes for array in recording.columns().values()) // len(recording)
        self._layout, self._cutter = layout, Cutter(max(1, min(CHUNK_ROWS, CHUNK_BYTES // max(1, width))))
        return self._cutter

    def _write(self, chunk: Recording) -> None:
        with named(self._name):
            if self._put is None:
                like = chunk.copy()  # a sink keeps it, and would keep all that it is a part of
                self._put = self._stack.enter_context(self._sink(self._target, like, self._final_head))
            self._put(chunk)
        if isinstance(self._target, Output):
            self._target.require_written()


@contextmanager
def behind(append: Callable[[Recording], object], most: int = 4) -> Iterator[Callable[..., object]]:
    """Give a function that appends in a thread of its own, so that encoding and the next rows share the time.

    Where only one thread is allowed (``NUMBA_NUM_THREADS=1``), it appends at once.

    Args:
        append: takes recordings, one after another.
        most: how many may wait for it, which bounds memory. One that is given with ``wait=False`` finds room anyway.
    """
    waiting: deque[Future[object]] = deque()

    def put(recording: Recording, *, wait: bool = True) -> None:
        while wait and len(waiting) >= most:
            waiting.popleft().result()
        waiting.append(pool.submit(beside, recording))

    def beside(recording: Recording) -> None:
        with threads.taken():
            append(recording)

    def at_once(recording: Recording, *, wait: bool = True) -> None:  # noqa: ARG001
        append(recording)

    if threads.THREADS == 1:
        yield at_once
        return
    with ThreadPoolExecutor(1, "counterpoint-writer") as pool:
        yield put
        for late in waiting:
            late.result()


@contextmanager
def writer(
    path: str | os.PathLike[str],
    head: Head | None = None,
    *,
    format: str | None = None,  # noqa: A002
    force: bool = False,
    folder: Path | None = None,
) -> Iterator[Writer]:
    """Open a file to be written chunk by chunk; it appears when it is complete, at the end of the `with` block.

    Args:
        path: the output; its suffix or prefix chooses the format.
        head: what the file shall say about all of its rows.
        format: as for `write`.
        force: replace a file that exists.
        folder: where it is until it is complete, on the same disk; beside the output by default.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from counterpoint.files import read
        >>> data = Transitions(np.zeros((5, 4)), np.zeros((5, 1)), np.zeros(5), np.zeros((5, 4)), np.zeros(5, bool))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with writer(f"{folder}/data.npz") as out:
        ...         for _ in range(3):
        ...             out.append(data)
        ...     len(read(f"{folder}/data.npz"))
        15
    """
    kind = chosen(path, format)
    sink = kind.function(kind.sink)
    name = os.fspath(path)
    with kind.output(name, force=force, folder=folder) as target, ExitStack() as stack:
        out = Writer(name, target, stack, sink, head or Head())
        yield out
        with named(name):
            out.finish()
            stack.close()
