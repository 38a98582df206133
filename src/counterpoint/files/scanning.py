"""A file that has been looked at but not yet read, and the one place where readers' failures become words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_count
from counterpoint.files.blocks import Blocks
from counterpoint.files.recording import Columns, FileProblem, Head, Recording, assembled, joined

ROWS = 65536  # in a piece, unless told otherwise


@dataclass(frozen=True, eq=False)
class Scan:
    """What a file says about itself, and the way through its rows.

    Attributes:
        path: the file, as it was named.
        format: ``parquet``, ``npz``, ``d4rl``, ``robomimic`` or ``minari``.
        rows: how many transitions it holds.
        head: what it says about all of them.
        columns: iterates over its columns as they are in the file, unchecked, about so many rows at a time.
    """

    path: str
    format: str
    rows: int
    head: Head
    columns: Callable[[int], Iterator[Columns]]

    @property
    def factors(self) -> Factorization | None:
        """How columns split into factors, or None if the file does not say."""
        return self.head.factors

    def pieces(self, rows: int = ROWS) -> Iterator[Recording]:
        """Iterate over the file, ``rows`` rows at a time (the last piece may be shorter).

        Memory does not grow with the file, except for ``.npz``, which is read whole.
        """
        require_count("rows", rows)
        rows, count = min(rows, max(1, self.rows)), 0
        blocks = Blocks(rows)
        with reading(self.path):
            for columns in self.columns(min(rows, ROWS)):
                part = assembled(columns, self.head)
                count += len(part)
                yield from blocks.push(part)
            yield from blocks.rest()
            if count != self.rows:
                raise FileProblem(f"it promises {self.rows:,} rows and holds {count:,}; it is damaged or incomplete.")

    def read(self) -> Recording:
        """Read the whole file."""
        pieces = list(self.pieces(max(1, self.rows)))
        if not pieces:
            raise FileProblem(f"{self.path}: it holds no transitions.")
        return joined(pieces)


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
