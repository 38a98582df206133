"""Cutting rows that come in any lengths into chunks of one length."""

import os
from collections.abc import Iterator

import numpy as np

from counterpoint.files.recording import FileProblem, Recording, trusted


class Cutter:
    """Cuts the recordings that are pushed into chunks of so many rows; whole chunks pass without a copy."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._room: Recording | None = None
        self._filled = 0

    def push(self, recording: Recording) -> Iterator[Recording]:
        """Take a recording of any length; yield the chunks that are now full."""
        start = 0
        while start < len(recording):
            chunk = recording[start : start + self.rows - self._filled]
            start += len(chunk)
            if len(chunk) == self.rows:
                yield chunk
                continue
            self._keep(chunk)
            if self._filled == self.rows:
                yield from self.rest()

    @property
    def waiting(self) -> Recording | None:
        """The rows that wait for a full chunk, where they stand in it; None if there are none."""
        return None if self._room is None else self._room[: self._filled]

    def _keep(self, chunk: Recording) -> None:
        """Copy rows behind those that wait for a full chunk."""
        columns = chunk.columns()
        if self._room is None:
            require_memory(self.rows * sum(array.nbytes for array in columns.values()) // len(chunk))
            room = {name: np.empty((self.rows, *array.shape[1:]), array.dtype) for name, array in columns.items()}
            self._room = trusted(room, chunk.head)
        stop = self._filled + len(chunk)
        for name, array in self._room.columns().items():
            array[self._filled : stop] = columns[name]
        self._filled = stop

    def rest(self) -> Iterator[Recording]:
        """Yield the rows that wait for a full chunk, if there are any."""
        if self._room is not None:
            chunk, self._room, self._filled = self._room[: self._filled], None, 0
            yield chunk


def require_memory(size: int) -> None:
    """Raise unless so many bytes could fit into this machine's memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system says
        return
    if size > memory:
        raise FileProblem(
            f"it claims to hold {size / 1e9:,.1f} GB, more than the {memory / 1e9:,.1f} GB of this machine's memory. "
            "Read it in chunks, if it really is that large."
        )
