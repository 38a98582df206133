"""Writing block by block, whatever the format."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from counterpoint.core.augment import Counterfactuals
from counterpoint.core.transitions import Transitions
from counterpoint.files.formats import FORMATS, chosen_format, function
from counterpoint.files.output import Output, output
from counterpoint.files.recording import Blocks, FileProblem, Head, Recording

BLOCK_ROWS = 131072  # in a block at the most
BLOCK_BYTES = 64 * 2**20


class Writer:
    """Takes recordings of any length and hands them on in blocks; made by `writer`."""

    def __init__(self, file: Output, sink: Callable[..., Any], head: Head, stack: ExitStack) -> None:
        self._file, self._sink, self._head, self._stack = file, sink, head, stack
        self._blocks: Blocks | None = None
        self._layout: dict[str, tuple[Any, ...]] = {}
        self._put: Callable[[Recording], object] | None = None
        self.rows = 0  # appended so far

    def append(self, data: Transitions | Counterfactuals | Recording) -> None:
        """Write more rows; they must have the columns, widths and dtypes of the first ones."""
        recording = Recording.of(data, self._head)
        if not len(recording):
            return
        layout = {name: (array.dtype, *array.shape[1:]) for name, array in recording.columns().items()}
        blocks = self._blocks or self._start(recording, layout)
        if layout != self._layout:
            wrong = sorted({name for name, _ in set(layout.items()) ^ set(self._layout.items())})
            raise ValueError(
                f"append: the columns {', '.join(wrong)} differ in presence, width or dtype from the first rows."
            )
        for block in blocks.push(recording):
            self._write(block)
        self.rows += len(recording)

    def finish(self) -> None:
        """Write what is left."""
        if self._blocks is None:
            raise FileProblem("nothing to write: no transitions were appended.")
        for block in self._blocks.rest():
            self._write(block)

    def _start(self, recording: Recording, layout: dict[str, tuple[Any, ...]]) -> Blocks:
        if self._head.factors is not None:
            data = recording.transitions
            self._head.factors.require_widths(data.state.shape[1], data.action.shape[1])
        width = sum(array.nbytes for array in recording.columns().values()) // len(recording)
        self._layout, self._blocks = layout, Blocks(max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(1, width))))
        return self._blocks

    def _write(self, block: Recording) -> None:
        if self._put is None:
            self._put = self._stack.enter_context(self._sink(self._file, block))
        self._put(block)
        self._file.require_written()


@contextmanager
def writer(
    path: str | os.PathLike[str],
    head: Head | None = None,
    *,
    format: str | None = None,  # noqa: A002
    force: bool = False,
) -> Iterator[Writer]:
    """Open a file to be written piece by piece; it appears, complete, at the end of the block.

    Args:
        path: the output; its suffix chooses the format.
        head: what the file shall say about all of its rows.
        format: as for `write`.
        force: replace a file that exists.

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
    sink = function(FORMATS[chosen_format(path, format)].sink)
    with output(Path(path), force=force) as file, ExitStack() as stack:
        out = Writer(file, sink, head or Head(), stack)
        yield out
        out.finish()
