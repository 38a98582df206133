"""A folder of files as one dataset: every file is a shard, and rows are counted through all of them, in order.

Shards are the data files right in the folder, sorted by name, in any format that is one file. Where `augment` wrote the
folder, its manifest says which files belong to it. Episodes keep their numbers where the shards count them on;
otherwise those of a shard are counted from the largest number before.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

from counterpoint.core.arrays import listed
from counterpoint.core.funnel import Funnel
from counterpoint.core.require import require_count
from counterpoint.files import formats
from counterpoint.files.foreign import named
from counterpoint.files.output import Folder
from counterpoint.files.recording import Columns, FileProblem, Head, Recording
from counterpoint.files.regular import require_regular
from counterpoint.files.scanning import Scan
from counterpoint.files.writing import Writer, writer

MANIFEST = "manifest.json"
SHARD_ROWS = 500_000  # of a shard that `sink` writes


@dataclass(frozen=True)
class Shards:
    """The files of a dataset, in order.

    Attributes:
        path: the folder, as it was named.
        files: the shards.
        rows: how many transitions each of them holds.
        keys: the observation keys that were chosen as the state, if any were.
        without: optional columns that are left out on purpose, such as ``noise``.
    """

    path: str
    files: tuple[str, ...]
    rows: tuple[int, ...]
    keys: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()

    def scan(self, number: int) -> Scan:
        """Look at one shard."""
        found = formats.look(self.files[number], self.keys)
        return found.without(*self.without) if self.without else found

    @cached_property
    def total(self) -> int:
        """How many transitions there are in all."""
        return sum(self.rows)

    def first(self, number: int) -> int:
        """Return the number of a shard's first row, counted through all shards."""
        return sum(self.rows[:number])

    def require_number(self, name: str, number: int) -> None:
        """Raise unless there is a shard of that number."""
        require_count(name, number, least=0)
        if number >= len(self):
            raise ValueError(f"{name}: the dataset has the shards 0 to {len(self) - 1}, got {number}.")

    def __len__(self) -> int:
        return len(self.files)


def shards_of(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Shards, keys: Iterable[str] | None = None
) -> Shards:
    """Return the shards of a folder, or of a list of files, in order.

    Raises:
        FileProblem: if there are none, or one cannot be read.
    """
    if isinstance(inputs, Shards):
        return inputs
    return _looked_at(inputs, None if keys is None else tuple(keys))[0]


def scan(path: Path, keys: Iterable[str] | None = None) -> Scan:
    """Look at a folder of files as one dataset."""
    shards, heads = _looked_at(path, None if keys is None else tuple(keys))
    head, shifts = _joint_head(shards, heads)
    return Scan(str(path), "shards", shards.total, head, lambda rows: _columns(shards, shifts, rows))


@contextmanager
def sink(target: Folder, _: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Write files of about half a million rows each."""
    out: Writer | None = None
    count = 0
    with ExitStack() as stack:

        def put(chunk: Recording) -> None:
            nonlocal out, count
            if out is None or out.rows >= SHARD_ROWS:
                stack.close()
                out = stack.enter_context(writer(target.path / f"part-{count:05d}.parquet", head()))
                count += 1
            out.append(chunk)

        yield put


def _looked_at(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], keys: tuple[str, ...] | None
) -> tuple[Shards, list[Head]]:
    """Look at every shard."""
    if isinstance(inputs, str | os.PathLike):
        path = os.path.normpath(os.fspath(inputs))
        files = [os.path.join(path, name) for name in _names(path)]
    else:
        files = [os.fspath(file) for file in inputs]
        path = os.path.dirname(files[0]) if files else ""
    if not files:
        raise FileProblem(f"{path}: there are no files of transitions in it.")
    rows, heads = [], []
    for file in files:
        found = formats.look(file, keys)
        if not found.rows:
            raise FileProblem(f"{file}: it holds no transitions. Remove it from the dataset.")
        rows.append(found.rows)
        heads.append(replace(found.head, notes={**found.head.notes, "keys": found.observation_keys}))
    return Shards(path, tuple(files), tuple(rows), keys), heads


def _names(path: str) -> list[str]:
    """Return the names of a folder's data files: those of its manifest, or all that a format knows."""
    suffixes = {suffix for kind in formats.FORMATS.values() for suffix in kind.suffixes}
    try:
        there = sorted(
            entry.name
            for entry in os.scandir(path)
            if entry.is_file() and Path(entry.name).suffix.lower() in suffixes and entry.name[0] not in "._"
        )
    except OSError as error:
        raise FileProblem(f"{path}: {error.strerror or error}.") from error
    listed_there = manifest_names(Path(path))
    if listed_there is None:
        return there
    odd = sorted({*there} ^ {*listed_there})
    if odd:
        raise FileProblem(
            f"{path}: its {MANIFEST} and its files do not agree on {listed(odd)}. Run `augment` again with --resume, "
            f"or remove the {MANIFEST} to read the files as they are."
        )
    return listed_there


def manifest_text(folder: Path) -> str:
    """Return the text of a manifest; raise unless it is that of a regular file."""
    path = folder / MANIFEST
    if path.exists():
        require_regular(path)
    return path.read_text(encoding="utf-8")


def manifest_names(folder: Path) -> list[str] | None:
    """Return the files that a folder's manifest names, or None if there is no manifest of ours."""
    try:
        found = json.loads(manifest_text(folder))
        names = [str(shard["file"]) for shard in found["shards"]]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileProblem(f"{folder}: its {MANIFEST} is damaged, or not ours ({error}).") from error
    if any(os.path.basename(name) != name for name in names) or len({*names}) < len(names):
        raise FileProblem(f"{folder}: its {MANIFEST} names files outside of the folder, or one twice; it is damaged.")
    return names


def _joint_head(shards: Shards, heads: list[Head]) -> tuple[Head, list[int]]:
    """Return what holds for all shards, and by how much to shift the parents in each.

    Shards that were made of one dataset count its rows. Those made of a file each count the rows of their own.
    """
    first = heads[0]
    for file, head in zip(shards.files, heads, strict=True):
        if head.factors != first.factors:
            raise FileProblem(f"{file}: its factors are not those of {shards.files[0]}. All shards need the same.")
    notes = {name: value for name, value in first.notes.items() if all(head.notes.get(name) == value for head in heads)}
    for name, total in (("funnel", _funnels), ("dropped", sum), ("static", _common)):
        if all(name in head.notes for head in heads):
            with named(shards.path):
                notes[name] = _added([head.notes[name] for head in heads], total)
    whole = {(head.source, head.source_rows) for head in heads}
    if len(whole) == 1:
        return replace(first, notes=notes, filters={}), [0] * len(heads)
    counts = [head.source_rows or 0 for head in heads]
    head = Head(first.factors, None, {}, notes, sum(counts) if all(counts) else None)
    return head, [sum(counts[:number]) for number in range(len(counts))]


def _funnels(noted: Iterable[dict[str, int]]) -> dict[str, int]:
    return asdict(reduce(Funnel.__add__, (Funnel(**found) for found in noted)))


def _common(noted: Iterable[list[str]]) -> list[str]:
    first, *others = noted
    return [name for name in first if all(name in other for other in others)]


def _added(noted: list[Any], total: Callable[[Any], Any]) -> Any:
    try:
        return total(noted)
    except (TypeError, ValueError) as error:
        raise FileProblem(f"the notes in the headers of its files are malformed: {error}.") from error


def _columns(shards: Shards, shifts: list[int], rows: int) -> Iterator[Columns]:
    """Iterate over the columns of all shards."""
    last, layout = -1, None
    for number, file in enumerate(shards.files):
        offset: int | None = None
        with named(file):
            for columns in shards.scan(number).columns(rows):
                came = {name: (array.dtype, *array.shape[1:]) for name, array in columns.items()}
                layout = layout or came
                if came != layout:
                    wrong = sorted(name for name in {*came, *layout} if came.get(name) != layout.get(name))
                    raise FileProblem(f"{listed(wrong)} differ in presence, width or dtype from {shards.files[0]}.")
                episode = columns.get("episode")
                if episode is not None and len(episode):
                    if offset is None:
                        offset = 0 if int(episode.min()) > last else last + 1 - min(0, int(episode.min()))
                    columns["episode"] = episode + offset
                if shifts[number]:
                    columns |= {name: columns[name] + shifts[number] for name in ("base", "donor") if name in columns}
                yield columns
                if episode is not None and len(episode):
                    last = max(last, int(columns["episode"].max()))
