"""The layout of robomimic: one group per demonstration, one array per observation key, filter keys under ``mask``.

Each observation key becomes a state factor, ``demo_7`` becomes episode 7, and the filter keys become ``filters``.
We read ``dones`` as terminations; in files made with robomimic's ``done_mode`` 1 or 2 they also mark the end of every
demonstration. If ``next_obs`` is missing, the next state comes from the following row, and we leave out the last row of
each demonstration. We do not read simulator states.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import OPTIONAL
from counterpoint.files import trees
from counterpoint.files.recording import PARENTS, Columns, FileProblem, Head, Recording

DEMO = "data/demo_"
FLAT = "flat"  # the only key of states without names, as for Gym environments in robomimic
EXTRA = tuple(name for name in (*OPTIONAL, *PARENTS) if name != "episode")


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """The demonstrations of a file, all with the same observation keys."""

    tree: Mapping[str, Any]  # arrays by path, or what can be sliced like arrays
    demos: tuple[int, ...]
    keys: Mapping[str, tuple[int, ...]]  # observation key -> its columns of the state
    extra: tuple[str, ...]

    @property
    def paired(self) -> bool:
        """Say whether the file has next observations."""
        return all(f"{DEMO}{self.demos[0]}/next_obs/{key}" in self.tree for key in self.keys)

    @property
    def unread(self) -> list[str]:
        """Return what else the first demonstration holds, such as simulator states; unchosen keys do not count."""
        first = f"{DEMO}{self.demos[0]}/"
        there = [name.removeprefix(first) for name in self.tree if name.startswith(first)]
        read = {"actions", "rewards", "dones", *(f"counterpoint/{name}" for name in self.extra)}
        return sorted(name for name in there if name not in read and not name.startswith(("obs/", "next_obs/")))

    @property
    def rows(self) -> int:
        """Return the number of transitions."""
        return sum(max(0, self._length(demo) - (not self.paired)) for demo in self.demos)

    def chunks(self) -> Iterator[Columns]:
        """Iterate over the columns of each demonstration."""
        for demo in self.demos:
            length = self._length(demo) - (not self.paired)
            if length > 0:
                yield self._columns(demo, length)

    def _length(self, demo: int) -> int:
        return int(self._get(demo, "actions").shape[0])

    def _get(self, demo: int, name: str) -> Any:
        found = self.tree.get(f"{DEMO}{demo}/{name}")
        if found is None or not found.shape:
            raise FileProblem(f"demo_{demo} has no array {name}.")
        return found

    def _columns(self, demo: int, length: int) -> Columns:
        action = np.asarray(self._get(demo, "actions")[:length])
        dones = np.asarray(self._get(demo, "dones")[:length])
        if not np.isin(dones, (0, 1)).all():
            raise FileProblem(f"dones of demo_{demo}: expected only 0 and 1.")
        state = self._state(demo, "obs")
        found = {
            "state": state[:length],
            "action": action.reshape(length, -1) if action.size else np.zeros((length, 0), action.dtype),
            "reward": np.asarray(self._get(demo, "rewards")[:length]),
            "next_state": self._state(demo, "next_obs") if self.paired else state[1:],
            "terminated": dones.astype(np.bool_),
            "episode": np.full(length, demo, np.int64),
            "step": np.arange(length, dtype=np.int64),
        }
        found.update({name: np.asarray(self._get(demo, f"counterpoint/{name}")[:length]) for name in self.extra})
        return found

    def _state(self, demo: int, folder: str) -> Array:
        named = {key: np.asarray(self._get(demo, f"{folder}/{key}")[:]) for key in self.keys}
        lengths = {key: len(array) for key, array in named.items()}
        if len(set(lengths.values())) > 1:
            told = listed([f"{key} has {length:,} rows" for key, length in lengths.items()])
            raise FileProblem(f"the observations of demo_{demo} differ in length: {told}.")
        side_by_side = trees.flat(named)
        order = [column for columns in self.keys.values() for column in columns]
        if side_by_side.shape[1] != len(order):
            raise FileProblem(f"the observations of demo_{demo} are not as wide as those of the first.")
        return side_by_side[:, np.argsort(order)]


def looks_like(tree: Mapping[str, Any]) -> bool:
    """Say whether a file has the names that robomimic uses."""
    return any(name.startswith(DEMO) for name in tree)


def layout(
    tree: Mapping[str, Any], keys: Iterable[str] | None, remembered: Mapping[str, Any]
) -> tuple[Demonstrations, Factorization | None]:
    """Find the demonstrations and their keys; return them with a proposal of one factor for each key.

    Args:
        tree: arrays by path.
        keys: the observation keys to take; all by default.
        remembered: what a file written by this package says about its own layout.
    """
    numbers = sorted({_number(name.split("/")[1]) for name in tree if name.startswith("data/") and name.count("/") > 1})
    first = f"{DEMO}{numbers[0]}/"
    there = {name.removeprefix(first + "obs/"): tree[name] for name in tree if name.startswith(first + "obs/")}
    found = trees.chosen(there, keys)
    if not found or first + "actions" not in tree:
        raise FileProblem(f"demo_{numbers[0]} has no observations or no actions.")
    if keys is None and "keys" in remembered:
        columns = {str(key): tuple(int(c) for c in cols) for key, cols in remembered["keys"].items()}
        extra = tuple(name for name in EXTRA if f"{first}counterpoint/{name}" in tree)
        return Demonstrations(tree, tuple(numbers), columns, extra), None
    shapes = tuple((key, tuple(array.shape[1:])) for key, array in found.items())
    spans, start = {}, 0
    for key, shape in shapes:
        spans[key] = tuple(range(start, start + trees.width(shape)))
        start += trees.width(shape)
    action = (("", tuple(tree[first + "actions"].shape[1:])),)
    named = tuple(("" if list(found) == [FLAT] else key, shape) for key, shape in shapes)
    return Demonstrations(tree, tuple(numbers), spans, ()), trees.proposal(named, action)


def filters(tree: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the filter keys with the episodes that each of them lists."""
    masks = {name.removeprefix("mask/"): np.asarray(tree[name][:]) for name in tree if name.startswith("mask/")}
    return {name: tuple(_number(demo.decode()) for demo in demos.reshape(-1)) for name, demos in masks.items()}


def observation_keys(head: Head, width: int) -> dict[str, tuple[int, ...]]:
    """Choose observation keys for states: the factors, if they are known, and the derived columns."""
    if head.factors is None:
        return {FLAT: tuple(range(width))}
    named = {_key(name): columns for name, columns in head.factors.state.items()}
    return {**named, **({"%derived": head.factors.derived} if head.factors.derived else {})}


def demonstration(recording: Recording, keys: Mapping[str, tuple[int, ...]]) -> Columns:
    """Return the arrays of one demonstration, by path within its group."""
    columns = recording.columns()
    data = recording.transitions
    return {
        **{f"obs/{key}": data.state[:, list(cols)] for key, cols in keys.items()},
        **{f"next_obs/{key}": data.next_state[:, list(cols)] for key, cols in keys.items()},
        "actions": data.action,
        "rewards": data.reward,
        "dones": data.terminated.astype(np.int64),
        **{f"counterpoint/{name}": columns[name] for name in EXTRA if name in columns},
    }


def _key(name: str) -> str:
    """Write a factor's name as the name of an HDF5 dataset, which must not hold a slash or be dots alone."""
    quoted = name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


def _number(demo: str) -> int:
    digits = demo.removeprefix("demo_")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise FileProblem(f"expected demonstrations called demo_0, demo_1 and so on, got {listed([demo])}.")
    return int(digits)
