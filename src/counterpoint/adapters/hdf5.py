"""HDF5 in two layouts, D4RL's and robomimic's, told apart by what is in the file.

Only what lies in the file itself is read: a file that refers to others (external or soft links, external or virtual
datasets) is refused. Text of variable length is not read in this process, because in a damaged file HDF5 looks for
it for ever; text of fixed length and numbers are safe.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array
from counterpoint.files import d4rl, robomimic
from counterpoint.files.cutting import require_memory
from counterpoint.files.episodes import Episodes
from counterpoint.files.foreign import foreign
from counterpoint.files.header import KEY, head_from_json, head_to_json
from counterpoint.files.output import Output
from counterpoint.files.recording import Columns, FileProblem, Head, Recording
from counterpoint.files.scanning import Scan

try:
    import h5py
except ImportError as error:
    raise ImportError("HDF5 files need h5py: pip install counterpoint-rl[hdf5]") from error

LIBVER = ("v110", "v110")  # the oldest layout in which HDF5 checks its own structures
CHUNK_BYTES = 2**18
TEXT_SECONDS = 30  # to wait for text of variable length
READ_TEXT = "import h5py, sys; print(h5py.File(sys.argv[1])['data'].attrs['env_args'])"


def scan(path: Path, keys: Iterable[str] | None = None) -> Scan:
    """Look at an HDF5 file and find out whose layout it has."""
    with opened(path) as tree:
        head, remembered = head_from_json(tree[KEY][:].tobytes()) if KEY in tree else (Head(), {})
        if robomimic.looks_like(tree):
            return _scan_robomimic(path, tree, keys, head, remembered)
        if not d4rl.looks_like(tree):
            raise FileProblem(
                "it has neither D4RL's arrays (observations, actions) nor robomimic's groups (data/demo_0)."
            )
        if keys is not None:
            raise FileProblem("keys: its states are flat, without named parts to choose from.")
        ours = bool(remembered)
        found = d4rl.layout(tree, ours=ours)
        about = {"dropped": found.dropped, "not read": [] if ours else d4rl.unread(tree)}
    head = replace(head, notes={**head.notes, **{name: what for name, what in about.items() if what}})

    def columns(rows: int) -> Iterator[Columns]:
        with opened(path) as tree:
            yield from d4rl.layout(tree, ours=ours).chunks(rows)

    return Scan(str(path), "d4rl", len(found.rows), head, columns)


def _scan_robomimic(
    path: Path, tree: dict[str, Any], keys: Iterable[str] | None, head: Head, remembered: dict[str, Any]
) -> Scan:
    keys = None if keys is None else list(keys)
    found, factors = robomimic.layout(tree, keys, remembered)
    notes = {**head.notes}
    text = _env_args(path)
    if text is not None:
        notes["env_args"] = text
    if not found.paired:
        notes["dropped"] = len(found.demos)
    if found.unread:
        notes["not read"] = found.unread
    head = replace(head, factors=factors or head.factors, filters=robomimic.filters(tree), notes=notes)

    def columns(_: int) -> Iterator[Columns]:
        with opened(path) as again:
            yield from robomimic.layout(again, keys, remembered)[0].chunks()

    return Scan(str(path), "robomimic", found.rows, head, columns)


@contextmanager
def d4rl_sink(file: Output, like: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Append chunks to flat arrays in D4RL's layout."""
    with h5py.File(file, "w", libver=LIBVER) as out:
        for name, array in d4rl.arrays(like).items():
            _put(out, name, array).resize(0, axis=0)
        last: list[Any] = [None]  # the episode that the rows so far end with

        def append(chunk: Recording) -> None:
            episode, start = chunk.transitions.episode, out["rewards"].shape[0]
            if episode is not None:
                if start and episode[0] == last[0]:
                    out["timeouts"][start - 1] = False  # it goes on
                last[0] = episode[-1]
            for name, array in d4rl.arrays(chunk).items():
                out[name].resize(start + len(array), axis=0)
                out[name][start:] = array

        yield append
        _put(out, KEY, np.frombuffer(head_to_json(head()).encode(), np.uint8))


@contextmanager
def robomimic_sink(file: Output, like: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Write each episode as a demonstration in robomimic's layout, once it is complete."""
    keys = robomimic.observation_keys(like.head, like.transitions.state.shape[1])
    with h5py.File(file, "w", libver=LIBVER) as out:
        episodes = Episodes()

        def append(chunk: Recording) -> None:
            for episode in episodes.push(chunk):
                _put_demo(out, episode, keys)

        yield append
        for last in episodes.rest():
            _put_demo(out, last, keys)
        data = out["data"]
        data.attrs["total"] = sum(int(demo.attrs["num_samples"]) for demo in data.values())
        about = head()
        if "env_args" in about.notes:
            data.attrs["env_args"] = np.bytes_(str(about.notes["env_args"]).encode())
        for name, members in about.filters.items():
            there = [f"demo_{episode}" for episode in members if f"demo_{episode}" in data]
            out.create_dataset(f"mask/{name}", data=np.array(there, "S"))
        header = head_to_json(about, keys={key: list(columns) for key, columns in keys.items()})
        _put(out, KEY, np.frombuffer(header.encode(), np.uint8))


@contextmanager
def opened(path: Path) -> Iterator[dict[str, Any]]:
    """Open a file and give its arrays of numbers and of fixed-length text, by path."""
    with foreign():
        file = h5py.File(path, "r")
    try:
        tree: dict[str, Any] = {}
        with foreign():
            _walk(file, "", tree, set())
        yield {place: Stored(dataset) for place, dataset in tree.items()}
    finally:
        with suppress(Exception):  # closing a damaged file
            file.close()


class Stored:
    """An array in a file, read by slices; what the library stumbles over becomes words."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.shape: tuple[int, ...] = tuple(dataset.shape)
        self.dtype = dataset.dtype

    def __getitem__(self, rows: Any) -> Array:
        with foreign():
            return np.asarray(self._dataset[rows])


def _walk(group: Any, prefix: str, tree: dict[str, Any], seen: set[int]) -> None:
    """Collect the datasets below a group, refusing all that leads out of the file or in circles."""
    address = h5py.h5o.get_info(group.id).addr
    if address in seen:
        raise FileProblem(f"the group {prefix or '/'} contains itself; the file is damaged.")
    seen.add(address)
    for name in group:
        place = f"{prefix}{name}"
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise FileProblem(
                f"{place} is a link to somewhere else, and links are never followed. Copy the data instead."
            )
        item = group[name]
        if isinstance(item, h5py.Group):
            _walk(item, f"{place}/", tree, seen)
        elif isinstance(item, h5py.Dataset):
            if item.is_virtual or item.external:
                raise FileProblem(
                    f"{place} keeps its values in another file, which is never opened. Copy the data instead."
                )
            if item.dtype.kind in "fiubS" and item.shape is not None:
                require_memory(max(item.nbytes, int(np.prod(item.chunks or (0,), dtype=object)) * item.dtype.itemsize))
                tree[place] = item


def _env_args(path: Path) -> str | None:
    """Return robomimic's description of the environment, if there is one."""
    with foreign(), h5py.File(path, "r") as file:
        attributes = file["data"].attrs
        if "env_args" not in attributes:
            return None
        if attributes.get_id("env_args").dtype.kind == "S":
            return bytes(attributes["env_args"]).decode()
    try:  # of variable length: see the top of this file
        command = [sys.executable, "-P", "-c", READ_TEXT, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TEXT_SECONDS, check=True)  # noqa: S603
    except subprocess.SubprocessError as error:
        raise FileProblem("its attribute env_args cannot be read; the file is damaged.") from error
    return done.stdout.removesuffix("\n")


def _put_demo(out: Any, episode: Recording, keys: dict[str, tuple[int, ...]]) -> None:
    assert episode.transitions.episode is not None  # noqa: S101
    number = int(episode.transitions.episode[0])
    if number < 0 or f"data/demo_{number}" in out:
        raise FileProblem(
            f"episode {number} is negative or in two places. Number episodes from 0, and sort rows by them."
        )
    group = out.create_group(f"data/demo_{number}")
    group.attrs["num_samples"] = len(episode)
    for name, array in robomimic.demonstration(episode, keys).items():
        _put(group, name, array)


def _put(group: Any, name: str, array: Array) -> Any:
    """Create a dataset that may grow, with checksums."""
    width = tuple(max(1, size) for size in array.shape[1:])
    size = int(np.prod(width)) * array.dtype.itemsize
    rows = max(1, min(len(array), CHUNK_BYTES // size))
    limits = tuple(size or None for size in array.shape[1:])
    return group.create_dataset(name, data=array, chunks=(rows, *width), maxshape=(None, *limits), fletcher32=True)
