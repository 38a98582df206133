"""Minari datasets: any local one is read, whole episodes are written.

An episode of T steps has T+1 observations, so T transitions. Observations and actions may be arrays or nested dicts
and tuples of them; each named part becomes a factor. Lengths are checked, because some published datasets have them
wrong, and because Minari's Arrow reader silently pairs a long episode's parts with other episodes.

Single transitions are not written: a Minari episode of one step costs 34 kB, and those who read it take it for a
trajectory. They belong into Parquet. Datasets are never replaced either: Minari's ids carry a version for that.
"""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.core.transitions import OPTIONAL
from counterpoint.files import trees
from counterpoint.files.episodes import cut_off, require_unbroken, runs
from counterpoint.files.header import KEY, head_from_json, head_to_json
from counterpoint.files.output import problem
from counterpoint.files.recording import PARENTS, Columns, FileProblem, Head, Recording
from counterpoint.files.scanning import Scan

try:
    import minari
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.dataset.minari_storage import MinariStorage
    from minari.namespace import create_namespace, list_local_namespaces
    from minari.serialization import deserialize_space
    from minari.storage.datasets_root_dir import get_dataset_path
except ImportError as error:
    raise ImportError("Minari datasets need Minari: pip install counterpoint-rl[minari]") from error

EXTRA = (*OPTIONAL, *PARENTS)  # kept in the infos of datasets of ours


def scan(name: str, keys: Iterable[str] | None = None) -> Scan:
    """Look at a local dataset.

    Args:
        name: its id, or its folder.
        keys: the parts of the observations to take as the state; all by default.
    """
    folder = folder_of(name)
    metadata = _metadata(folder)
    head, ours = (Head(), False) if KEY not in metadata else (head_from_json(metadata[KEY])[0], True)
    dataset = minari.MinariDataset(folder)
    if not len(dataset):
        raise FileProblem("it holds no episodes.")
    keys = None if keys is None else list(keys)
    if not ours or keys is not None:
        first = dataset[0]
        state = trees.shapes_of(trees.chosen(dict(trees.parts(first.observations)), keys))
        head = Head(trees.proposal(state, trees.shapes_of(dict(trees.parts(first.actions)))))

    def parts(_: int) -> Iterator[Columns]:
        for number, episode in enumerate(dataset.iterate_episodes()):
            yield _columns(number, episode, keys, ours)

    return Scan(name, "minari", int(dataset.total_steps), head, parts)


def write(dataset_id: str, recording: Recording) -> None:
    """Write whole episodes as a new local dataset with flat observations, in Minari's HDF5 format.

    Args:
        dataset_id: such as ``robot/pushes-v0``; a dataset that exists is never replaced.
        recording: transitions with episodes, in which each next state is the following row's state.

    Raises:
        FileProblem: if they are not whole episodes, or the dataset exists or cannot be written.
    """
    namespace, target = _new_dataset(dataset_id)
    data = recording.transitions
    episodes = runs(data)
    for rows in episodes:
        require_unbroken(data, rows)
    if not data.action.shape[1]:
        raise FileProblem(f"{dataset_id}: Minari needs actions of at least one column.")
    need = sum(array.nbytes for array in recording.columns().values()) + 65536 * len(episodes)
    if shutil.disk_usage(get_dataset_path()).free < need:
        raise FileProblem(f"{dataset_id}: not written, the disk is full: about {need:,} bytes are needed.")
    partial = get_dataset_path() / f".{secrets.token_hex(8)}.partial"
    try:
        (partial / "data").mkdir(parents=True)
        _store(partial / "data", dataset_id, recording, episodes)
        if namespace is not None and namespace not in list_local_namespaces():
            create_namespace(namespace)
        os.rename(partial, target)
    except OSError as error:
        raise problem(target, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def folder_of(name: str) -> Path:
    """Find the folder in which a dataset keeps its metadata."""
    if os.path.isdir(name):
        places = [Path(name), Path(name) / "data"]
    else:
        parse_dataset_id(name)
        places = [get_dataset_path(name) / "data"]
    for place in places:
        if (place / "metadata.json").is_file():
            return place
    raise FileProblem(f"there is no Minari dataset in {places[0]}. `minari list local` shows those that are there.")


def _metadata(folder: Path) -> dict[str, Any]:
    """Read a dataset's metadata, and refuse those that would make Minari run or open something else."""
    metadata: dict[str, Any] = MinariStorage.read_raw_metadata(folder)
    if not {"observation_space", "action_space"} <= set(metadata):
        raise FileProblem(
            "its metadata has no observation_space and action_space; to find out, Minari would have to run the "
            "environment that the file names. Add both to its metadata.json."
        )
    if metadata.get("data_format") == "hdf5":
        from counterpoint.adapters.hdf5 import opened  # noqa: PLC0415  (only these datasets need h5py)

        with opened(folder / "main_data.hdf5"):
            pass
    elif metadata.get("data_format") == "arrow":
        from counterpoint.adapters.parquet import require_sound  # noqa: PLC0415

        for file in sorted(folder.glob("*/*.arrow")):
            require_sound(file)
    return metadata


def _columns(number: int, episode: Any, keys: list[str] | None, ours: bool) -> Columns:
    """Turn an episode into columns of transitions."""
    steps = len(episode.rewards)
    state = trees.flat(trees.chosen(dict(trees.parts(episode.observations)), keys))
    action = trees.flat(dict(trees.parts(episode.actions)))
    lengths = {"observations": len(state) - 1, "actions": len(action), "terminations": len(episode.terminations)}
    if set(lengths.values()) != {steps}:
        raise FileProblem(
            f"episode {number} has {steps} rewards, so it needs {steps + 1} observations and {steps} of the rest, "
            f"but it has {len(state)} observations, {len(action)} actions and {len(episode.terminations)} terminations."
        )
    found = {
        "state": state[:-1],
        "action": action,
        "reward": np.asarray(episode.rewards),
        "next_state": state[1:],
        "terminated": np.asarray(episode.terminations),
    }
    if not ours:
        return {**found, "episode": np.full(steps, number), "step": np.arange(steps)}
    extra = (episode.infos or {}).get(KEY, {})
    return {**found, **{name: np.asarray(extra[name]) for name in EXTRA if name in extra}}


def _new_dataset(dataset_id: str) -> tuple[str | None, Path]:
    """Return the namespace and the folder of a dataset that is not there yet."""
    try:
        namespace = parse_dataset_id(dataset_id)[0]
    except (TypeError, ValueError) as error:
        raise FileProblem(
            f"{dataset_id}: a Minari id looks like robot/pushes-v0, with a version at the end."
        ) from error
    target = get_dataset_path(dataset_id)
    if os.path.lexists(target):
        raise FileProblem(f"{dataset_id}: it exists, and Minari datasets are never replaced. Raise its version, -v1.")
    return namespace, target


def _store(folder: Path, dataset_id: str, recording: Recording, episodes: list[slice]) -> None:
    """Fill a new folder with episodes, and make sure that all of it is on the disk."""
    data = recording.transitions
    storage = MinariStorage.new(
        folder,
        observation_space=_box(data.state),
        action_space=_box(data.action),
        data_format="hdf5",
        jpeg_encoding=False,
    )
    about = {"dataset_id": dataset_id, "minari_version": minari.__version__, KEY: head_to_json(recording.head)}
    storage.update_metadata({**about, "algorithm_name": "counterpoint"})
    storage.update_episodes(_buffer(recording[rows]) for rows in episodes)
    for file in folder.iterdir():
        with open(file, "rb") as handle:
            os.fsync(handle.fileno())


def _buffer(episode: Recording) -> EpisodeBuffer:
    data, columns = episode.transitions, episode.columns()
    return EpisodeBuffer(
        observations=np.concatenate([data.state, data.next_state[-1:]]),
        actions=data.action,
        rewards=data.reward,
        terminations=data.terminated,
        truncations=cut_off(data),
        infos={KEY: {name: columns[name] for name in EXTRA if name in columns}},
    )


def _box(array: Any) -> Any:
    """Return the space of arrays of this width and dtype, without bounds."""
    kind, size = array.dtype.kind, array.shape[1]
    low, high = (
        (-np.inf, np.inf)
        if kind == "f"
        else (0, 1)
        if kind == "b"
        else (np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)
    )
    space: Mapping[str, Any] = {
        "type": "Box",
        "dtype": str(array.dtype),
        "shape": [size],
        "low": [low] * size,
        "high": [high] * size,
    }
    return deserialize_space(space)
