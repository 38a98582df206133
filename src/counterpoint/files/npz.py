"""``.npz`` without pickles, for small things: one array per column, the head as text.

An ``.npz`` with the names of D4RL is read as such.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from counterpoint.core.arrays import Array
from counterpoint.files import d4rl
from counterpoint.files.cutting import require_memory
from counterpoint.files.foreign import foreign
from counterpoint.files.header import KEY, head_from_json, head_to_json
from counterpoint.files.output import Output
from counterpoint.files.recording import NAMES, Columns, FileProblem, Head, Recording, joined
from counterpoint.files.regular import require_regular
from counterpoint.files.scanning import Scan


def scan(path: Path, keys: Iterable[str] | None = None) -> Scan:
    """Look at an ``.npz`` file. It is read whole, whatever the size of the chunks."""
    if keys is not None:
        raise FileProblem("keys: its states are flat, without named parts to choose from.")
    arrays = read_arrays(path)
    head = head_from_json(_text(arrays.pop(KEY)))[0] if KEY in arrays else Head()
    if d4rl.looks_like(arrays):
        found = d4rl.layout(arrays)
        head = replace(head, notes={**head.notes, "dropped": found.dropped, "not read": d4rl.unread(arrays)})
        return Scan(str(path), "npz", len(found.rows), head, found.chunks)
    unread = [name for name in arrays if name not in NAMES]
    head = replace(head, notes={**head.notes, "not read": unread}) if unread else head
    whole = {name: arrays[name] for name in NAMES if name in arrays}
    return Scan(str(path), "npz", _rows(whole), head, lambda _: iter([whole]))


@contextmanager
def sink(file: Output, _: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Collect chunks, and write them at the end."""
    chunks: list[Recording] = []
    yield lambda chunk: chunks.append(chunk.copy())
    header = {KEY: np.array(head_to_json(head()))}
    np.savez(file, allow_pickle=False, **header, **joined(chunks).columns())


def read_arrays(path: Path) -> Columns:
    """Read every array of an ``.npz`` file, none of which may be larger than what the file holds."""
    require_regular(path)
    with foreign(), zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        require_memory(sum(member.file_size for member in members))
        found = {}
        for member in members:
            with archive.open(member) as stream:
                found[member.filename.removesuffix(".npy")] = _array(stream, member)
    return found


def _array(stream: IO[bytes], member: zipfile.ZipInfo) -> Array:
    """Read one array; its header is believed only if it agrees with the number of bytes."""
    version = npy.read_magic(stream)
    header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if header is None:
        raise FileProblem(f"{member.filename} has the unknown .npy version {version}.")
    shape, fortran, dtype = header(stream)
    if dtype.hasobject:
        raise FileProblem(f"{member.filename} holds pickled Python objects, which may run code; they are never loaded.")
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if size != member.file_size - stream.tell():
        raise FileProblem(
            f"{member.filename} claims to hold {size:,} bytes, but has {member.file_size - stream.tell():,}."
        )
    values = np.frombuffer(stream.read(), dtype)
    return values.reshape(shape, order="F" if fortran else "C")


def _rows(columns: Columns) -> int:
    """Return how many rows there are, if the first column is right."""
    return next((len(array) for array in columns.values() if array.ndim), 0)


def _text(array: Array) -> Any:
    if array.dtype.kind != "U" or array.ndim:
        raise FileProblem(f"its header {KEY!r} is not text.")
    return array.item()
