"""A file that has been looked at but not yet read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_count
from counterpoint.files.cutting import Cutter
from counterpoint.files.foreign import named
from counterpoint.files.recording import Columns, FileProblem, Head, Recording, assembled, joined

ROWS = 65536  # in a chunk, unless told otherwise


@dataclass(frozen=True, eq=False)
class Scan:
    """What a file says about itself, and the way through its rows.

    Attributes:
        path: the file, as it was named.
        format: the name of its format, such as ``parquet``.
        rows: how many transitions it holds.
        head: what it says about all of them.
        columns: iterates over its columns as they are in the file, unchecked, about so many rows at a time.
        keys: the observation keys that were chosen as the state, if any were.
        episodes: returns the largest episode number, where a format knows it without reading every column.
    """

    path: str
    format: str
    rows: int
    head: Head
    columns: Callable[[int], Iterator[Columns]]
    keys: tuple[str, ...] | None = None
    episodes: Callable[[], int | None] | None = None

    @property
    def factors(self) -> Factorization | None:
        """How columns split into factors, or None if the file does not say."""
        return self.head.factors

    @property
    def unread(self) -> list[str]:
        """What else the file holds, which is not read and would be left behind."""
        noted = self.head.notes.get("not read")
        return [str(name) for name in noted] if isinstance(noted, list) else []

    @property
    def observation_keys(self) -> dict[str, Sequence[int]]:
        """The state columns of each observation key of the file, or of the file that it was made from."""
        remembered = self.head.notes.get("keys")
        if isinstance(remembered, dict) and remembered:
            return remembered
        if self.factors is None:
            return {}
        goal = {"achieved_goal": self.factors.derived} if self.factors.derived else {}
        return {**self.factors.state, **goal}

    def without(self, *names: str) -> "Scan":
        """Return this file without some optional columns, such as ``noise``."""
        given = self.columns

        def columns(rows: int) -> Iterator[Columns]:
            for found in given(rows):
                yield {name: array for name, array in found.items() if name not in names}

        return replace(self, columns=columns)

    def chunks(self, rows: int = ROWS) -> Iterator[Recording]:
        """Iterate over the file, ``rows`` rows at a time (the last chunk may be shorter).

        Memory does not grow with the file, except for ``.npz``, which is read whole.
        """
        for chunk, whole in self.growing(rows):
            if whole:
                yield chunk
            del chunk  # so that memory has room for the next one

    def growing(self, rows: int) -> Iterator[tuple[Recording, bool]]:
        """Iterate over the chunks as they are read: each as far as it is there, and at last, with True, whole."""
        require_count("rows", rows)
        rows, count = min(rows, max(1, self.rows)), 0
        cutter, layout = Cutter(rows), None
        with named(self.path):
            for columns in self.columns(min(rows, ROWS)):
                found = assembled(columns, self.head, first=count)
                layout = layout or _layout(found)
                if _layout(found) != layout:
                    other = sorted({name for name, _ in _layout(found) ^ layout})
                    raise FileProblem(f"from row {count:,} on, {listed(other)} is not what it is in the rows before.")
                count += len(found)
                for chunk in cutter.push(found):
                    yield chunk, True
                    del chunk  # so that memory has room for the next one
                if (waiting := cutter.waiting) is not None:
                    yield waiting, False
                    del waiting
            for chunk in cutter.rest():
                yield chunk, True
            if count != self.rows:
                raise FileProblem(f"it promises {self.rows:,} rows and holds {count:,}; it is damaged or incomplete.")

    def read(self) -> Recording:
        """Read the whole file."""
        chunks = list(self.chunks(max(1, self.rows)))
        if not chunks:
            raise FileProblem(f"{self.path}: it holds no transitions.")
        return joined(chunks)

    def last_episode(self) -> int | None:
        """Return the largest episode number, or None if the file has no episodes."""
        with named(self.path):
            if self.episodes is not None:
                return self.episodes()
            largest: int | None = None
            for columns in self.columns(ROWS):
                if "episode" not in columns:
                    return None
                found = int(columns["episode"].max(initial=-1))
                largest = found if largest is None else max(largest, found)
            return largest


def _layout(found: Recording) -> set[tuple[str, tuple[int, ...]]]:
    """Return the columns that rows have, and the shape of each."""
    return {(name, array.shape[1:]) for name, array in found.columns().items()}
