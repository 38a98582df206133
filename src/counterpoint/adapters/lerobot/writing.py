"""From transitions to frames, with statistics of every episode and of all frames."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from counterpoint.adapters.lerobot.layout import (
    ACTION,
    DATA,
    DONE,
    EPISODES,
    FILE_BYTES,
    FILES,
    FPS,
    FRAME,
    HEAD,
    INFO,
    NEXT,
    OURS,
    REWARD,
    STATE,
    STATS,
    TASK,
    TASKS,
    TRUNCATED,
    VERSION,
)
from counterpoint.core.arrays import Ints
from counterpoint.core.transitions import OPTIONAL
from counterpoint.files.episodes import cut_off
from counterpoint.files.header import head_to_json
from counterpoint.files.output import Folder
from counterpoint.files.recording import PARENTS, Columns, Head, Recording, joined
from counterpoint.files.statistics import NAMES, Pooled, by_episode

COLUMNS = {STATE: "state", NEXT: "next_state", ACTION: "action", REWARD: "reward"}
COLUMNS.update({f"{OURS}{name}": name for name in (*OPTIONAL, *PARENTS)})


@contextmanager
def sink(target: Folder, like: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Fill a new dataset."""
    with ExitStack() as files:
        frames = _Frames(target.path, like, files)
        yield frames.append
        frames.finish()
    found = head()
    sizes = {"total_episodes": frames.episodes, "total_frames": frames.count, "total_tasks": 1}
    info = {
        "codebase_version": VERSION,
        "robot_type": found.notes.get("robot_type"),
        **sizes,
        "chunks_size": FILES,
        "data_files_size_in_mb": FILE_BYTES >> 20,
        "video_files_size_in_mb": 200,
        "fps": frames.fps,
        "splits": {"train": f"0:{frames.episodes}"},
        "data_path": DATA,
        "video_path": None,
        "features": frames.features,
    }
    stats = {name: pooled.result() for name, pooled in frames.pooled.items()}
    empty = {name: str(array.dtype) for name, array in like.columns().items() if not array[0].size}
    (target.path / INFO).write_text(json.dumps(info, indent=4))
    (target.path / STATS).write_text(json.dumps(stats, indent=4))
    (target.path / HEAD).write_text(head_to_json(found, empty=empty))
    pq.write_table(_tasks(frames.task), target.path / TASKS)


class _Frames:
    """Writes frames and episodes file by file. An episode is written when it is complete."""

    def __init__(self, folder: Path, like: Recording, files: ExitStack) -> None:
        notes = like.head.notes
        fps, task = notes.get("fps"), notes.get("task")
        self.fps = fps if isinstance(fps, int) and fps > 0 else FPS
        self.task = task if isinstance(task, str) and task else TASK
        self.features = _features(like)
        self.pooled = {name: Pooled() for name in self.features}
        self.count = self.episodes = 0
        self._folder, self._files, self._number = folder, files, 0
        self._waiting: list[Recording] = []
        self._open: dict[Path, pq.ParquetWriter] = {}

    def append(self, chunk: Recording) -> None:
        """Take more rows, and write the episodes that are now complete."""
        rows = joined([*self._waiting, chunk])
        lengths = _lengths(rows)
        last = 0 if rows.transitions.episode is None else int(lengths[-1])  # it may go on in the next chunk
        self._waiting = [rows[len(rows) - last :].copy()] if last else []
        self._write(rows[: len(rows) - last], lengths[: len(lengths) - bool(last)])

    def finish(self) -> None:
        """Write the last episode."""
        for rows in self._waiting:
            self._write(rows, _lengths(rows))

    def _write(self, rows: Recording, lengths: Ints) -> None:
        if not len(rows):
            return
        columns = self._columns(rows, lengths)
        matrices = {name: array.reshape(len(rows), -1) for name, array in columns.items()}
        for name, pooled in self.pooled.items():
            pooled.add(matrices[name])
        chunk, file = divmod(self._number, FILES)
        place = {"chunk_index": chunk, "file_index": file}
        about = self._about(lengths, place)
        for name in self.features:
            found = by_episode(matrices[name], lengths)
            about.update({f"stats/{name}/{stat}": found[stat] for stat in NAMES})
        data = self._folder / DATA.format(**place)
        single = {name for name, one in self.features.items() if one["shape"] == [1]}
        self._put(data, {name: array.reshape(-1) if name in single else array for name, array in columns.items()})
        self._put(self._folder / EPISODES.format(**place), about)
        self.count, self.episodes = self.count + len(rows), self.episodes + len(lengths)
        if data.stat().st_size > FILE_BYTES:
            self._number += 1
            self._files.close()
            self._open.clear()

    def _columns(self, rows: Recording, lengths: Ints) -> Columns:
        """Return the columns of whole episodes, in the order of the features."""
        own, data = rows.columns(), rows.transitions
        starts = np.cumsum(lengths) - lengths
        frame = np.arange(len(rows)) - np.repeat(starts, lengths)
        truncated = cut_off(data)
        found = {name: own[key] for name, key in COLUMNS.items() if name in self.features}
        found.update({DONE: data.terminated | truncated, TRUNCATED: truncated})
        found.update(
            timestamp=(frame / self.fps).astype(np.float32),
            frame_index=frame,
            episode_index=self.episodes + np.repeat(np.arange(len(lengths)), lengths),
            index=self.count + np.arange(len(rows)),
            task_index=np.zeros(len(rows), np.int64),
        )
        return {name: found[name] for name in self.features}

    def _about(self, lengths: Ints, place: Mapping[str, int]) -> dict[str, Any]:
        """Return what is said about each episode, apart from its statistics."""
        count, ends = len(lengths), self.count + np.cumsum(lengths)
        where = {
            f"{kind}/{key}": np.full(count, value) for kind in ("data", "meta/episodes") for key, value in place.items()
        }
        return {
            "episode_index": self.episodes + np.arange(count),
            "tasks": pa.array([[self.task]] * count, pa.list_(pa.string())),
            "length": lengths,
            **where,
            "dataset_from_index": ends - lengths,
            "dataset_to_index": ends,
        }

    def _put(self, path: Path, columns: Mapping[str, Any]) -> None:
        """Write columns as a row group; the first one opens the file."""
        table = pa.table({name: _arrow(values) for name, values in columns.items()})
        if path not in self._open:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open[path] = self._files.enter_context(pq.ParquetWriter(path, table.schema, compression="snappy"))
        self._open[path].write_table(table)


def _features(like: Recording) -> dict[str, Any]:
    """Describe every column: its dtype, its shape, and the names of its parts."""
    columns, factors = like.columns(), like.factors
    names: dict[str, list[str] | None] = {}
    if factors is not None:
        names[STATE] = names[NEXT] = _names(factors.state, factors.state_width)
        names[ACTION] = _names(factors.action, factors.action_width)
    found = {}
    for name, key in COLUMNS.items():
        array = columns.get(key)
        if array is not None and (array.ndim == 1 or array.shape[1]):
            shape = list(array.shape[1:]) or [1]
            found[name] = {"dtype": str(array.dtype), "shape": shape, "names": names.get(name)}
    fixed = {DONE: "bool", TRUNCATED: "bool", **FRAME}
    return {**found, **{name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in fixed.items()}}


def _names(factors: Mapping[str, tuple[int, ...]], width: int) -> list[str]:
    """Name columns after their factors, ``hand.0`` and ``hand.1``; those of no factor are ``derived.5``."""
    names = [f"derived.{column}" for column in range(width)]
    for name, columns in factors.items():
        for place, column in enumerate(columns):
            names[column] = f"{name}.{place}"
    return names


def _lengths(rows: Recording) -> Ints:
    """Return the length of each run of one episode, (E,); without episodes every row is one."""
    episode = rows.transitions.episode
    if episode is None:
        return np.ones(len(rows), np.int64)
    starts = np.flatnonzero(np.append(True, episode[1:] != episode[:-1]))
    return np.diff(np.append(starts, len(rows)))


def _arrow(values: Any) -> Any:
    """Wrap an array: (B,) as scalars, (B, width) as lists of fixed size."""
    if not isinstance(values, np.ndarray):
        return values
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    if native.ndim == 1:
        return pa.array(native)
    return pa.FixedSizeListArray.from_arrays(pa.array(native.reshape(-1)), native.shape[1])


def _tasks(task: str) -> Any:
    """Return the table of tasks, which pandas reads with the tasks as its index."""
    kinds = {"task_index": ("int64", "int64"), "task": ("unicode", "object")}
    about = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": held, "metadata": None}
            for name, (kind, held) in kinds.items()
        ],
        "creator": {"library": "counterpoint", "version": "1"},
        "pandas_version": "2.0.0",
    }
    table = pa.table({"task_index": pa.array([0], pa.int64()), "task": [task]})
    return table.replace_schema_metadata({"pandas": json.dumps(about)})
