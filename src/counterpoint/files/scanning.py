"""A file that has been looked at but not yet read, and the one place where readers' failures become words."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np

from counterpoint.core.factors import Factorization
from counterpoint.files.recording import Blocks, FileProblem, Head, Recording, joined, trusted

ROWS = 65536  # in a piece, unless told otherwise


@dataclass(frozen=True, eq=False)
class Scan:
    """What a file says about itself, and the way through its rows.

    Attributes:
        path: the file, as it was named.
        format: ``parquet``, ``npz``, ``d4rl``, ``robomimic`` or ``minari``.
        rows: how many transitions it holds.
        head: what it says about all of them.
        parts: iterates over its rows, about so many at a time; `pieces` and `read` call it.
    """

    path: str
    format: str
    rows: int
    head: Head
    parts: Callable[[int], Iterator[Recording]]

    @property
    def factors(self) -> Factorization | None:
        """How columns split into factors, or None if the file does not say."""
        return self.head.factors

    def pieces(self, rows: int = ROWS) -> Iterator[Recording]:
        """Iterate over the file, ``rows`` rows at a time (the last piece may be shorter).

        Memory does not grow with the file, except for ``.npz``, which is read whole.
        """
        if rows < 1:
            raise ValueError(f"rows: expected at least 1, got {rows}.")
        blocks, count = Blocks(rows), 0
        with reading(self.path):
            for part in self.parts(rows):
                count += len(part)
                yield from blocks.push(part)
            yield from blocks.rest()
            if count != self.rows:
                raise FileProblem(f"it promises {self.rows:,} rows and holds {count:,}; it is damaged or incomplete.")

    def read(self) -> Recording:
        """Read the whole file."""
        pieces = self.pieces()
        first = next(pieces, None)
        if first is None:
            raise FileProblem(f"{self.path}: it holds no transitions.")
        if len(first) == self.rows:
            return joined([first, *pieces])
        like = first.columns()
        with reading(self.path):
            require_memory(self.rows * sum(array.nbytes for array in like.values()) // len(first))
            room = {name: np.empty((self.rows, *array.shape[1:]), array.dtype) for name, array in like.items()}
        start = 0
        for piece in chain([first], pieces):
            stop = start + len(piece)
            for name, array in piece.columns().items():
                room[name][start:stop] = array
            start = stop
        return trusted(room, self.head)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn whatever a reader stumbles over into a ``FileProblem`` that names the file.

    Damaged files make the libraries that read them fail in many ways (Minari by assertions, HDF5 by
    ``KeyError``, ``RuntimeError`` or ``OSError``), so everything is caught, except for a missing library.
    """
    try:
        yield
    except ImportError:
        raise
    except FileProblem as error:
        raise FileProblem(str(error) if str(error).startswith(path) else f"{path}: {error}") from error
    except MemoryError as error:
        raise FileProblem(f"{path}: it does not fit into memory. Read it in pieces.") from error
    except Exception as error:
        words = str(error).strip() or type(error).__name__
        raise FileProblem(f"{path}: it is damaged, incomplete, or not what its name says: {words}") from error


def require_memory(size: int) -> None:
    """Raise unless so many bytes could fit into this machine's memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return
    if size > memory:
        raise FileProblem(
            f"it claims to hold {size / 1e9:,.1f} GB, more than the {memory / 1e9:,.1f} GB of this machine's memory. "
            "Read it in pieces, if it really is that large."
        )
