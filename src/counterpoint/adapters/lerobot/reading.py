"""From frames to transitions."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from counterpoint.adapters.lerobot.layout import (
    ACTION,
    CAMERAS,
    DONE,
    FRAME,
    HEAD,
    INFO,
    NEXT,
    OURS,
    REWARD,
    SEEN,
    TRUNCATED,
    VERSION,
    WIDE,
)
from counterpoint.adapters.parquet import array_of, batches
from counterpoint.core.arrays import Array, listed
from counterpoint.core.factors import MOST_COLUMNS, Factorization
from counterpoint.files import trees
from counterpoint.files.foreign import foreign
from counterpoint.files.header import head_from_json
from counterpoint.files.recording import Columns, FileProblem, Head
from counterpoint.files.scanning import Scan

COUNTS = ("frame_index", "episode_index", "index")


def scan(place: Path, keys: Iterable[str] | None = None) -> Scan:
    """Look at a dataset; ``keys`` are the features to take as the state, all observations by default."""
    info = _info(place)
    features = info["features"]
    seen = _observations(features, keys)
    about = _episodes(place)
    written = place / HEAD
    ours, paired = written.is_file() and keys is None, NEXT in features
    if ours:
        head, layout = head_from_json(written.read_bytes())
        with foreign():
            empty = {str(name): np.dtype(dtype) for name, dtype in layout.get("empty", {}).items()}
    else:
        notes = _notes(info, features, seen, about, 0 if paired else len(about["length"]))
        head, empty = Head(_proposal(seen, features), None, _filters(about), notes), None
    rows = sum(about["length"]) - (0 if paired else len(about["length"]))

    def columns(rows: int) -> Iterator[Columns]:
        frames = _Frames(features, list(seen), empty)
        for file in sorted((place / "data").rglob("*.parquet")):
            for batch in batches(file, rows, frames.names):
                yield frames.transitions(batch)

    return Scan(str(place), "lerobot", rows, head, columns)


def _info(place: Path) -> dict[str, Any]:
    """Read what a dataset says about itself; refuse other versions and broken ones."""
    with foreign():
        info = json.loads((place / INFO).read_bytes())
        version, features = str(info["codebase_version"]), info["features"]
        shapes = [tuple(one["shape"]) for one in features.values() if isinstance(one["dtype"], str)]
    if version != VERSION:
        older = re.fullmatch(r"v?[12]\.\d+", version)
        raise FileProblem(
            f"it is a LeRobot dataset of version {version}, and only {VERSION} is read. "
            + (
                "LeRobot converts it: python -m lerobot.datasets.v30.convert_dataset_v21_to_v30 --repo-id=NAME"
                if older
                else "A newer counterpoint-rl may read it."
            )
        )
    whole = all(isinstance(length, int) and length > 0 for shape in shapes for length in shape)
    if not whole or len(shapes) != len(features) or not set(FRAME) <= set(features):
        raise FileProblem(
            f"its features are incomplete: each needs a dtype and a shape, and {listed(list(FRAME))} exist."
        )
    wide = [name for name, shape in zip(features, shapes, strict=True) if trees.width(shape) > MOST_COLUMNS]
    if wide and not {features[name]["dtype"] for name in wide} <= set(CAMERAS):
        raise FileProblem(f"{listed(wide)}: it claims more than {MOST_COLUMNS:,} columns. Is it damaged?")
    return dict(info)


def _observations(features: Mapping[str, Any], keys: Iterable[str] | None) -> dict[str, Any]:
    """Return the features that make up the state; raise if there are none, or pictures among them."""
    found = trees.chosen({name: one for name, one in features.items() if name.startswith(SEEN)}, keys)
    cameras = [name for name, one in found.items() if one["dtype"] in CAMERAS]
    if cameras:
        others = [name for name in found if name not in cameras]
        raise FileProblem(
            f"{listed(cameras)}: pictures of a camera cannot be swapped. A picture shows all factors at once, so after "
            "a swap it would contradict the state. "
            + (f"To read the states alone, name them: --keys {','.join(others)}." if others else "There are no states.")
        )
    wrong = [name for name, one in found.items() if not re.fullmatch(r"(u?int|float)\d+|bool", one["dtype"])]
    if wrong or not found:
        raise FileProblem(f"{listed(wrong) or SEEN + '*'}: expected features of numbers to take as the state.")
    return found


def _episodes(place: Path) -> dict[str, list[Any]]:
    """Read number, length and tasks of every episode."""
    found: dict[str, list[Any]] = {"episode_index": [], "length": [], "tasks": []}
    for file in sorted((place / "meta" / "episodes").rglob("*.parquet")):
        with foreign():
            table = pq.read_table(file, columns=list(found))
            for name, values in found.items():
                values.extend(table.column(name).to_pylist())
    if not found["length"]:
        raise FileProblem("it holds no episodes.")
    numbers = all(
        isinstance(value, int) and value >= 0 for name in ("episode_index", "length") for value in found[name]
    )
    if not numbers or not all(isinstance(names, list) and set(map(type, names)) <= {str} for names in found["tasks"]):
        raise FileProblem("what it says about its episodes is incomplete: each needs a number, a length and its tasks.")
    return found


def _notes(
    info: Mapping[str, Any],
    features: Mapping[str, Any],
    seen: Mapping[str, Any],
    about: Mapping[str, list[Any]],
    dropped: int,
) -> dict[str, Any]:
    """Gather what is not in the transitions: rate, robot, task, and the names of features that are not read."""
    known = {*FRAME, *seen, ACTION, REWARD, DONE, TRUNCATED, NEXT}
    tasks = {name for names in about["tasks"] for name in names}
    notes = {
        "fps": info.get("fps"),
        "robot_type": info.get("robot_type"),
        "task": tasks.pop() if len(tasks) == 1 else None,
        "not read": [name for name in features if name not in known],
        "dropped": dropped,
    }
    return {name: value for name, value in notes.items() if value}


def _filters(about: Mapping[str, list[Any]]) -> dict[str, tuple[int, ...]]:
    """Return the episodes of each task, if there is more than one."""
    tasks: dict[str, list[int]] = {}
    for episode, names in zip(about["episode_index"], about["tasks"], strict=True):
        for name in names:
            tasks.setdefault(name, []).append(episode)
    return {name: tuple(episodes) for name, episodes in tasks.items()} if len(tasks) > 1 else {}


def _proposal(seen: Mapping[str, Any], features: Mapping[str, Any]) -> Factorization:
    """Propose factors from the names that features give to their columns."""
    state = _factors({name.removeprefix(SEEN): one for name, one in seen.items()}, ())
    return Factorization(state, _factors({ACTION: features[ACTION]}, tuple(state)) if ACTION in features else {})


def _factors(features: Mapping[str, Any], taken: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Group the columns of all features; ``taken`` are names that are not free any more."""
    found: dict[str, tuple[int, ...]] = {}
    start = 0
    for name, feature in features.items():
        width = trees.width(tuple(feature["shape"]))
        for group, columns in _groups(feature.get("names"), width).items():
            label = group or name
            if label in taken or label in found:
                label = f"{name}/{label}"
            found[label] = tuple(start + column for column in columns)
        start += width
    return found


def _groups(names: Any, width: int) -> dict[str, list[int]]:
    """Group columns by the first word of their names: ``left_waist`` and ``left_elbow`` make the factor ``left``.

    One group without a name, if the names do not tell.
    """
    if isinstance(names, Mapping):
        parts = {str(key): len(value) for key, value in names.items() if isinstance(value, list)}
        if len(parts) > 1 and sum(parts.values()) == width:
            ends = np.cumsum(list(parts.values())).tolist()
            return {key: list(range(end - parts[key], end)) for key, end in zip(parts, ends, strict=True)}
        names = next((value for value in names.values() if isinstance(value, list)), None)
    words = [re.split(r"[._/ ]", str(name)) for name in names] if isinstance(names, list) else []
    groups: dict[str, list[int]] = {}
    for column, word in enumerate(words):
        groups.setdefault(word[0], []).append(column)
    tells = len(words) == width and len(groups) > 1 and all(len(word) > 1 for word in words)
    return groups if tells else {"": list(range(width))}


class _Frames:
    """Turns batches of frames into transitions; the last frame of a batch waits for the one that follows it."""

    def __init__(self, features: Mapping[str, Any], seen: list[str], ours: Mapping[str, np.dtype[Any]] | None) -> None:
        self.features, self.seen, self.ours = features, seen, ours
        wanted = {*seen, ACTION, REWARD, DONE, TRUNCATED, NEXT, *FRAME}
        self.names = [name for name in features if name in wanted or (ours is not None and name.startswith(OURS))]
        self._last: Columns | None = None
        self._count = 0

    def transitions(self, batch: Any) -> Columns:
        """Return the transitions that are complete with this batch."""
        with foreign():
            frames = {name: self._column(name, batch.column(name)) for name in self.names}
        count = len(frames["index"])
        if not np.array_equal(frames["index"], np.arange(self._count, self._count + count)):
            raise FileProblem(
                f"index: it does not count the frames on from {self._count:,}; some are missing or moved."
            )
        self._count += count
        if NEXT in frames:
            return self._paired(frames)
        if self._last is not None:
            frames = {name: np.concatenate([self._last[name], array]) for name, array in frames.items()}
        self._last = {name: array[-1:].copy() for name, array in frames.items()}
        found = self._common(frames)
        follows = np.flatnonzero(np.diff(frames["episode_index"]) == 0)
        if (np.diff(frames["frame_index"])[follows] != 1).any():
            raise FileProblem("frame_index: it does not count the frames of an episode; some are missing.")
        next_state = found["state"][follows + 1]
        return {**{name: array[follows] for name, array in found.items()}, "next_state": next_state}

    def _paired(self, frames: Columns) -> Columns:
        """Return transitions of a dataset that has next states."""
        found = {**self._common(frames), "next_state": trees.flat({NEXT: frames[NEXT]})}
        if self.ours is None:
            return found
        extra = {name.removeprefix(OURS): array for name, array in frames.items() if name.startswith(OURS)}
        empty = {name: np.empty((len(found["state"]), 0), dtype) for name, dtype in self.ours.items()}
        kept = {name: array for name, array in found.items() if name not in ("episode", "step")}
        return {**kept, **extra, **empty}

    def _common(self, frames: Columns) -> Columns:
        count = len(frames["index"])
        no = np.zeros(count, np.bool_)
        return {
            "state": trees.flat({name: frames[name] for name in self.seen}),
            "action": trees.flat({ACTION: frames[ACTION]}) if ACTION in frames else np.zeros((count, 0), np.float32),
            "reward": frames.get(REWARD, np.zeros(count, np.float32)),
            "terminated": frames.get(DONE, no) & ~frames.get(TRUNCATED, no),
            "episode": frames["episode_index"],
            "step": frames["frame_index"],
        }

    def _column(self, name: str, column: Any) -> Array:
        array, shape = array_of(name, column), tuple(self.features[name]["shape"])
        flag = name in (DONE, TRUNCATED)
        if array.dtype.kind not in ("biu" if flag else "iu" if name in COUNTS else "biuf"):
            raise FileProblem(f"{name}: expected {'flags' if flag else 'numbers'}, got {array.dtype}.")
        array = array.astype(np.bool_) if flag else array
        if array.size != len(array) * trees.width(shape):
            raise FileProblem(f"{name}: expected {trees.width(shape)} values in each row, as its shape {shape} says.")
        wide = name.startswith(SEEN) or name in (NEXT, ACTION, *WIDE)
        return array.reshape(len(array), -1) if wide or shape != (1,) else array.reshape(-1)
