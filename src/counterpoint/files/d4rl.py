"""The flat layout of D4RL: ``observations, actions, rewards, terminals, timeouts``, one row per step.

If the file has ``next_observations``, every row is a transition. If not, the next state of a row is the observation
of the following row *of the same episode*. The last row of an episode has no such row: its next state was not
recorded, so we leave it out. (D4RL's own loader pairs a terminal row with the first observation of the next episode,
and swaps would spread that pair.) ``notes["dropped"]`` counts the rows left out.

We always write ``next_observations``. A transition without an episode is marked as a timeout, so that a loader that
looks at the following row does not pair it with the wrong one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Ints, listed
from counterpoint.core.transitions import OPTIONAL
from counterpoint.files.episodes import cut_off
from counterpoint.files.recording import PARENTS, Columns, FileProblem, Recording

RENAMED = {
    "state": "observations",
    "action": "actions",
    "reward": "rewards",
    "next_state": "next_observations",
    "terminated": "terminals",
}
NOISE = "noise"  # read from any file that has it
EXTRA = (*OPTIONAL, *PARENTS)  # kept under their own names, which D4RL does not use


@dataclass(frozen=True, eq=False)
class FlatRows:
    """The rows of a D4RL-style file that are transitions."""

    tree: Mapping[str, Any]  # arrays, or what can be sliced like arrays
    rows: Ints  # (B,) rows of the file that are transitions
    terminated: Bools  # of every row of the file
    episode: Ints | None = None  # of every row of the file
    step: Ints | None = None
    extra: tuple[str, ...] = ()  # columns that only files of ours have
    dropped: int = 0

    def chunks(self, rows: int) -> Iterator[Columns]:
        """Iterate over the columns of so many transitions at a time."""
        for start in range(0, len(self.rows), rows):
            taken = self.rows[start : start + rows]
            low, high = int(taken[0]), int(taken[-1]) + 1
            inside = slice(None) if high - low == len(taken) else taken - low
            yield self._columns(low, high, inside)

    def _columns(self, low: int, high: int, inside: Any) -> Columns:
        found = {
            name: np.asarray(self.tree[key][low:high])[inside] for name, key in RENAMED.items() if key in self.tree
        }
        if "next_state" not in found:
            found["next_state"] = np.asarray(self.tree["observations"][low + 1 : high + 1])[inside]
        found["terminated"] = self.terminated[low:high][inside]
        found["reward"] = _column("rewards", found["reward"])
        found["action"] = found["action"][:, None] if found["action"].ndim == 1 else found["action"]
        if self.episode is not None and self.step is not None:
            found["episode"], found["step"] = self.episode[low:high][inside], self.step[low:high][inside]
        found.update({name: np.asarray(self.tree[name][low:high])[inside] for name in self.extra})
        return found


def looks_like(tree: Mapping[str, Any]) -> bool:
    """Say whether a file has the names that D4RL uses."""
    return "observations" in tree and "actions" in tree


def layout(tree: Mapping[str, Any], *, ours: bool = False) -> FlatRows:
    """Find the transitions of a D4RL-style file; raise ``FileProblem`` if that is impossible.

    Args:
        tree: arrays by name, or what can be sliced like arrays.
        ours: whether this package wrote the file; then it may hold more columns, and its episodes are complete.
    """
    missing = [key for key in RENAMED.values() if key not in tree and key != "next_observations"]
    if missing:
        raise FileProblem(
            f"it looks like D4RL data, but {listed(missing)} is missing; the file has {listed(sorted(tree))}."
        )
    paired = "next_observations" in tree
    if not paired and "timeouts" not in tree:
        raise FileProblem(
            "without next_observations and timeouts it is impossible to tell where an episode was cut off. "
            "Add one of the two; timeouts are 1 in the last row of each episode that ran out of time."
        )
    extra = tuple(name for name in EXTRA if (ours or name == NOISE) and name in tree)
    _require_one_length(tree, (*RENAMED.values(), "timeouts", *extra))
    terminated = _flags("terminals", tree)
    if ours or "timeouts" not in tree:
        return FlatRows(tree, np.arange(len(terminated)), terminated, extra=extra)
    last = terminated | _flags("timeouts", tree)
    episode, step = _episodes(last)
    if paired:
        return FlatRows(tree, np.arange(len(last)), terminated, episode, step, extra)
    keep = ~last
    keep[-1:] = False
    return FlatRows(tree, np.flatnonzero(keep), terminated, episode, step, extra, dropped=int((~keep).sum()))


def unread(tree: Mapping[str, Any]) -> list[str]:
    """Return the names of what is in a file from elsewhere and not read, such as ``infos/qpos``."""
    return sorted(name for name in tree if name not in {*RENAMED.values(), "timeouts", NOISE})


def _episodes(last: Bools) -> tuple[Ints, Ints]:
    """Number episodes, and the steps within each, from the rows that end them."""
    starts = np.concatenate([[True], last[:-1]]) if len(last) else last
    episode = np.cumsum(starts) - 1
    return episode, np.arange(len(last)) - np.flatnonzero(starts)[episode]


def _require_one_length(tree: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    lengths = {key: tree[key].shape[0] if tree[key].shape else -1 for key in keys if key in tree}
    if len(set(lengths.values())) > 1:
        raise FileProblem(f"every array needs the same number of rows, got {lengths}.")


def arrays(recording: Recording) -> Columns:
    """Return a recording in the layout of D4RL, as a dict of arrays.

    This flat dict is what CORL, SynthER and d4rl's own tools exchange.
    """
    columns = recording.columns()
    found = {RENAMED.get(name, name): array for name, array in columns.items()}
    found["timeouts"] = cut_off(recording.transitions)
    return found


def _flags(key: str, tree: Mapping[str, Any]) -> Bools:
    values = _column(key, np.asarray(tree[key][:]))
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise FileProblem(f"{key}: expected only 0 and 1, or booleans, got dtype {values.dtype} with other values.")
    return values.astype(np.bool_)


def _column(key: str, values: Array) -> Array:
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim != 1:
        raise FileProblem(f"{key}: expected one value for each row, got shape {values.shape}.")
    return values
