"""Replay buffers in files: plain arrays, no pickle, complete or not there."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from counterpoint.core.arrays import Array, listed
from counterpoint.files.foreign import foreign, named
from counterpoint.files.npz import read_arrays
from counterpoint.files.output import output
from counterpoint.files.recording import FileProblem
from counterpoint.replay import CounterfactualRows

COUNTERFACTUAL = "counterfactual_"  # begins the names of that half's arrays in a file
NOW = "now_observation"  # the name of observations without goals, where there are goals
PLACES = "places"


def save(
    path: str | os.PathLike[str], real: Mapping[str, Array], places: list[int], rows: CounterfactualRows, *, size: int
) -> None:
    """Write both halves of a buffer to an ``.npz`` file, the state of the generator included.

    Args:
        path: where to.
        real: the arrays of the real half by name, with rows first.
        places: numbers that say where the next rows go.
        rows: the counterfactual half.
        size: how many rows of the real half are filled.
    """
    arrays = {name: array[:size] for name, array in real.items()}
    arrays |= {f"{COUNTERFACTUAL}{name}": array for name, array in rows.arrays().items()}
    room = len(next(iter(real.values())))
    with output(Path(path), force=True) as file:
        np.savez(file, allow_pickle=False, **{PLACES: np.array([room, *places])}, **arrays)


def load(
    path: str | os.PathLike[str],
    real: Mapping[str, Array],
    rows: CounterfactualRows,
    check: Callable[[Mapping[str, Array], int], None],
    *,
    count: int = 1,
) -> tuple[int, list[int]]:
    """Read what ``save`` wrote into the arrays of the real half and into an empty counterfactual half.

    Everything is checked before anything is assigned.

    Args:
        path: the file.
        real: the arrays of the real half by name.
        rows: an empty counterfactual half.
        check: is given the arrays that were read and how many rows there is room for; raises if they are not right.
        count: how many places there are.

    Returns:
        How many rows of the real half are filled, and its places.

    Raises:
        FileProblem: if the file is damaged or another buffer's; the real half stays as it was.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    with named(str(path)), foreign():
        stored = read_arrays(Path(path))
        room, *places = (int(value) for value in stored.pop(PLACES))
        mine = [name for name in stored if name.startswith(COUNTERFACTUAL)]
        rows.restore({name.removeprefix(COUNTERFACTUAL): stored.pop(name) for name in mine})
        if set(stored) != set(real):
            raise FileProblem(f"it has {listed([*stored])}; this buffer has {listed([*real])}.")
        for name, array in stored.items():
            there, here = (room, *array.shape[1:]), real[name].shape
            if there != here:
                raise FileProblem(f"{name} has room for {there}, this buffer for {here}.")
        if len(places) != count:
            raise FileProblem(f"it says {len(places)} places for the next rows, expected {count}.")
        _require_sound(stored, room, places)
        _require_width(rows, real)
        check(stored, room)
    for name, array in stored.items():
        real[name][: len(array)] = array
    return len(next(iter(stored.values()))), places


def _require_sound(stored: Mapping[str, Array], room: int, places: list[int]) -> None:
    """Raise unless arrays have the same number of rows, all finite, and the next row goes to a place behind them."""
    filled = {name: len(array) for name, array in stored.items()}
    if len(set(filled.values())) != 1:
        raise FileProblem(f"its arrays have different numbers of rows: {filled}.")
    for name, array in stored.items():
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise FileProblem(f"{name} holds NaN, infinity, or no numbers at all.")
    rows = next(iter(filled.values()))
    right = all(0 <= place < room if rows == room else 0 <= place <= rows for place in places)
    if not right or rows > room or (rows < room and places[:1] != [rows]):
        raise FileProblem(f"it holds {rows:,} rows of {room:,}, so that the next one cannot go to place {places}.")


def _require_width(rows: CounterfactualRows, real: Mapping[str, Array]) -> None:
    """Raise unless counterfactual rows have the states and actions of the real ones."""
    if not len(rows.ring):
        return
    made, seen = rows.ring.take(np.arange(1)), "observations" if "observations" in real else NOW
    for name, array in ((seen, made.state), ("actions", made.action)):
        width = int(np.prod(real[name].shape[2:]))
        if array.shape[1] != width:
            what = "observations" if name == seen else name
            raise FileProblem(f"its counterfactual {what} have {array.shape[1]} columns, this buffer's {width}.")


def require_episodes(stored: Mapping[str, Array], room: int) -> None:
    """Raise unless every row of a finished episode lies in it, and all rows of an episode say the same of it."""
    start, length = (stored[name].astype(np.int64) for name in ("ep_start", "ep_length"))
    filled, row, env = len(start), np.arange(len(start))[:, None], np.arange(start.shape[1])
    right = (start >= 0) & (start < room) & (length >= 0) & (length <= room)
    if right.all():
        first = np.minimum(start, max(0, filled - 1))
        alike = (start[first, env] == start) & (length[first, env] == length)
        there = (filled == room) | (start + length <= filled)
        right = (length == 0) | (alike & there & ((row - start) % room < length))
    if not right.all():
        at = int(np.argmin(right.all(axis=1)))
        raise FileProblem(
            f"row {at:,} cannot lie in an episode of {listed(length[at].tolist())} rows that begins in row "
            f"{listed(start[at].tolist())}."
        )
