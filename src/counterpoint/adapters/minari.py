"""Minari datasets: any local one is read, whole episodes are written.

An episode of T steps has T+1 observations, so T transitions. Observations and actions may be arrays or nested dicts
and tuples of them; each named part becomes a factor. Lengths are checked, because some published datasets have them
wrong, and because Minari's Arrow reader silently pairs a long episode's parts with other episodes.

Single transitions are not written: a Minari episode of one step costs 34 kB, and those who read it take it for a
trajectory. They belong into Parquet. Datasets are never replaced either: Minari's ids carry a version for that.
"""

import errno
import resource
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.core.transitions import OPTIONAL
from counterpoint.files import trees
from counterpoint.files.episodes import Episodes, cut_off, require_unbroken, runs
from counterpoint.files.foreign import foreign, guarded
from counterpoint.files.header import KEY, head_from_json, head_to_json
from counterpoint.files.output import Folder, output, problem
from counterpoint.files.recording import PARENTS, Columns, FileProblem, Head, Recording
from counterpoint.files.scanning import Scan

try:
    import minari
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.dataset.minari_storage import MinariStorage
    from minari.namespace import NAMESPACE_METADATA_FILENAME, namespace_hierarchy
    from minari.serialization import deserialize_space
    from minari.storage.datasets_root_dir import get_dataset_path
except ImportError as error:
    raise ImportError("Minari datasets need Minari: pip install counterpoint-rl[minari]") from error

EXTRA = (*OPTIONAL, *PARENTS)  # kept in the infos of datasets of ours


def scan(place: Path, keys: Iterable[str] | None = None) -> Scan:
    """Look at a local dataset in its folder; ``keys`` are the parts of the observations to take as the state."""
    folder = _folder(place)
    metadata = _metadata(folder)
    head, ours = (Head(), False) if KEY not in metadata else (head_from_json(metadata[KEY])[0], True)
    with foreign():
        dataset = minari.MinariDataset(folder)
        rows, episodes = int(dataset.total_steps), len(dataset)
    if not episodes:
        raise FileProblem("it holds no episodes.")
    keys = None if keys is None else list(keys)
    if not ours or keys is not None:
        with foreign():
            first = dataset[0]
        state = trees.shapes_of(trees.chosen(dict(trees.leaves(first.observations)), keys))
        unread = [f"infos/{name}" for name, _ in trees.leaves(first.infos or {})]
        notes = {"not read": unread} if unread else {}
        head = Head(trees.proposal(state, trees.shapes_of(dict(trees.leaves(first.actions)))), notes=notes)

    def columns(_: int) -> Iterator[Columns]:
        for number, episode in enumerate(guarded(dataset.iterate_episodes)):
            yield _columns(number, episode, keys, ours)

    return Scan(str(place), "minari", rows, head, columns)


def locate(dataset_id: str) -> Path:
    """Return the folder of the dataset with an id such as ``robot/pushes-v0``, whether it is there or not."""
    try:
        parse_dataset_id(dataset_id)
    except (TypeError, ValueError) as error:
        raise FileProblem("a Minari id looks like robot/pushes-v0, with a version at the end.") from error
    try:
        return Path(get_dataset_path(dataset_id))
    except OSError as error:  # it makes its folder of all datasets if there is none
        raise problem(Path(error.filename or dataset_id), error) from error


@contextmanager
def sink(target: Folder, like: Recording, head: Callable[[], Head]) -> Iterator[Callable[[Recording], object]]:
    """Fill a new dataset with whole episodes and flat observations, in Minari's HDF5 format.

    Each next state must be the following row's state.
    """
    root = Path(get_dataset_path()).absolute()
    dataset_id = target.final.absolute().relative_to(root).as_posix()
    data = like.transitions
    if not data.action.shape[1]:
        raise FileProblem("Minari needs actions of at least one column.")
    folder, episodes, seen = target.path / "data", Episodes(), 0
    runs(data)
    folder.mkdir()
    storage = MinariStorage.new(
        folder,
        observation_space=_box(data.state),
        action_space=_box(data.action),
        data_format="hdf5",
        jpeg_encoding=False,
    )

    def put(episode: Recording) -> None:
        nonlocal seen
        require_unbroken(episode.transitions, slice(0, len(episode)), first=seen)
        require_room(target, sum(array.nbytes for array in episode.columns().values()) + 65536)
        storage.update_episodes([_buffer(episode)])
        seen += len(episode)

    def append(chunk: Recording) -> None:
        for episode in episodes.push(chunk):
            put(episode)

    yield append
    for last in episodes.rest():
        put(last)
    about = {"dataset_id": dataset_id, "minari_version": minari.__version__, KEY: head_to_json(head())}
    storage.update_metadata({**about, "algorithm_name": "counterpoint"})
    _add_namespaces(dataset_id)


def _add_namespaces(dataset_id: str) -> None:
    """Write down the namespaces of a dataset as Minari does, each completely or not at all."""
    for namespace in namespace_hierarchy(parse_dataset_id(dataset_id)[0]):
        about = Path(get_dataset_path(namespace)) / NAMESPACE_METADATA_FILENAME
        about.parent.mkdir(parents=True, exist_ok=True)
        if not about.exists():
            with output(about, force=True) as file:
                file.write(b"{}")


def require_room(target: Folder, size: int) -> None:
    """Raise unless the disk has room for so many bytes more: HDF5 ends the process when it cannot flush."""
    try:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        used = sum(file.stat().st_size for file in target.path.rglob("*.hdf5"))
        if limit != resource.RLIM_INFINITY and used + size > limit:
            raise problem(target.final, OSError(errno.EFBIG, "File too large"))
        if shutil.disk_usage(target.path).free < size:
            raise FileProblem(f"not written, the disk is full: about {size:,} bytes more are needed.")
    except OSError as error:
        raise problem(target.final, error) from error


def _folder(place: Path) -> Path:
    """Find the folder in which a dataset keeps its metadata."""
    for folder in (place, place / "data"):
        if (folder / "metadata.json").is_file():
            return folder
    raise FileProblem(f"there is no Minari dataset in {place}. `minari list local` shows the ones that are there.")


def _metadata(folder: Path) -> dict[str, Any]:
    """Read a dataset's metadata, and refuse those that would make Minari run or open something else."""
    with foreign():
        metadata: dict[str, Any] = dict(MinariStorage.read_raw_metadata(folder))
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
    with foreign():
        steps, ends = len(episode.rewards), len(episode.terminations)
    state = trees.flat(trees.chosen(dict(trees.leaves(episode.observations)), keys))
    action = trees.flat(dict(trees.leaves(episode.actions)))
    lengths = {"observations": len(state) - 1, "actions": len(action), "terminations": ends}
    if set(lengths.values()) != {steps}:
        raise FileProblem(
            f"episode {number} has {steps} rewards, so it needs {steps + 1} observations and {steps} of the rest, "
            f"but it has {len(state)} observations, {len(action)} actions and {ends} terminations."
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
