"""Flat Parquet, the native format: one row per transition, matrices as fixed-size lists.

States, actions and noise are fixed-size lists, the rest plain columns. ``swapped`` is packed, one bit per node with
the first node in the lowest bit, because four million lists of booleans take longer to write than all the numbers.
Nothing may be null. The head is JSON in the file's metadata, under ``counterpoint``.

Files from elsewhere are read too, if their columns have these names; lists of variable type must have one length.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.core import threads
from counterpoint.core.arrays import Array
from counterpoint.files.bits import packed, unpacked
from counterpoint.files.foreign import foreign, guarded
from counterpoint.files.header import KEY, head_from_json, head_to_json
from counterpoint.files.output import Output
from counterpoint.files.recording import NAMES, Columns, FileProblem, Head, Recording
from counterpoint.files.scanning import ROWS, Scan

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise ImportError("Parquet files need PyArrow: pip install counterpoint-rl[parquet]") from error

# Floats have no dictionary worth building; checksums cost 3% and find any damage to the values.
OPTIONS: dict[str, Any] = {
    "compression": "snappy",
    "use_dictionary": False,
    "write_statistics": False,
    "write_page_checksum": True,
    "write_batch_size": 65536,
}


def scan(path: Path, keys: Iterable[str] | None = None) -> Scan:
    """Look at a Parquet file."""
    if keys is not None:
        raise FileProblem("keys: its states are flat, without named parts to choose from.")
    with foreign(), pq.ParquetFile(path) as file:
        rows, schema, text = file.metadata.num_rows, file.schema_arrow, (file.metadata.metadata or {}).get(KEY.encode())
    unread = [name for name in schema.names if name not in NAMES]
    head, layout = (Head(notes={"not read": unread} if unread else {}), {}) if text is None else head_from_json(text)
    nodes = layout.get("nodes", 0)
    if not isinstance(nodes, int):
        raise FileProblem("its header is malformed; the file is damaged.")
    with foreign():
        empty = {name: np.dtype(dtype) for name, dtype in layout.get("empty", {}).items()}
    names = [name for name in NAMES if name in schema.names]

    def columns(rows: int) -> Iterator[Columns]:
        for batch in batches(path, rows, names):
            with foreign():
                found = {name: array_of(name, batch.column(name), nodes) for name in batch.schema.names}
            found.update({name: np.empty((len(batch), 0), dtype) for name, dtype in empty.items()})
            yield found

    def episodes() -> int | None:
        if "episode" not in names:
            return None
        return max((int(batch.column(0).to_numpy().max()) for batch in batches(path, ROWS, ["episode"])), default=None)

    return Scan(str(path), "parquet", rows, head, columns, episodes=episodes)


def batches(path: Path, rows: int, names: list[str]) -> Iterator[Any]:
    """Iterate over so many rows of some columns at a time."""
    with foreign():
        file = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
    with file:
        yield from guarded(lambda: file.iter_batches(rows, columns=names, use_threads=threads.THREADS > 1))


@contextmanager
def sink(file: Output, like: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Write each chunk as a row group."""
    columns = like.columns()
    layout: dict[str, Any] = {
        "nodes": columns["swapped"].shape[1] if "swapped" in columns else 0,
        "empty": {name: str(array.dtype) for name, array in columns.items() if not array[0].size},
    }
    fields = [pa.field(name, array.type, nullable=False) for name, array in _arrow(like)]
    schema = pa.schema(fields, metadata={KEY: head_to_json(like.head, **layout)})
    with pq.ParquetWriter(file, schema, **OPTIONS) as out:
        yield lambda chunk: out.write_table(pa.Table.from_arrays([a for _, a in _arrow(chunk)], schema=schema))
        out.add_key_value_metadata({KEY: head_to_json(head(), **layout)})


def require_sound(path: Path) -> None:
    """Read an Arrow file and check all of it: PyArrow ends the process when it meets a damaged array unchecked."""
    with foreign(), pa.ipc.open_file(path) as file:
        for index in range(file.num_record_batches):
            file.get_batch(index).validate(full=True)


def _arrow(recording: Recording) -> Iterator[tuple[str, pa.Array]]:
    """Wrap columns as Arrow arrays, without copying numbers."""
    for name, array in recording.columns().items():
        native = array.astype(array.dtype.newbyteorder("="), copy=False)
        if name == "swapped":
            bits = packed(native)
            kind = pa.binary(bits.shape[1])
            yield name, pa.FixedSizeBinaryArray.from_buffers(kind, len(bits), [None, pa.py_buffer(bits)])
        elif array.ndim == 1:
            yield name, pa.array(native)
        elif array.shape[1]:
            values = pa.array(native.reshape(-1))
            kind = pa.list_(pa.field("element", values.type, nullable=False), array.shape[1])
            yield name, pa.FixedSizeListArray.from_arrays(values, type=kind)


def array_of(name: str, column: pa.Array, nodes: int = 0) -> Array:
    """Return an Arrow array as NumPy, without copying numbers."""
    if column.null_count:
        raise FileProblem(f"{name}: {column.null_count:,} values are null; every row needs a value.")
    kind, rows = column.type, len(column)
    if name == "swapped" and pa.types.is_fixed_size_binary(kind):
        bits = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, kind.byte_width)
        return unpacked(bits[column.offset : column.offset + rows], nodes)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = np.unique(np.diff(column.offsets.to_numpy()))
        if len(lengths) > 1:
            raise FileProblem(
                f"{name}: its lists have between {lengths[0]} and {lengths[-1]} values, expected one length."
            )
        values = column.flatten()
    elif pa.types.is_fixed_size_list(kind):  # `flatten` would load all of pyarrow.compute
        values = column.values.slice(column.offset * kind.list_size, rows * kind.list_size)
    else:
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if values.null_count:
        raise FileProblem(f"{name}: {values.null_count:,} values are null; every row needs a value.")
    return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(rows, -1)
