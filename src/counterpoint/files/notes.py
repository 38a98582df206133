"""What an augmented file notes about its rows, and how it is read back: windows, what never changes, the robot."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from counterpoint.core.arrays import Ints, NodeSet
from counterpoint.files.recording import FileProblem, Head, Recording, joined


def carried(head: Head) -> dict[str, Any]:
    """Return what formats note about a source and want to know of what is made from it: the robot, not the rows."""
    return {name: head.notes[name] for name in ("env_args", "fps", "task", "robot_type") if name in head.notes}


def noted_window(head: Head) -> int:
    """Return how many rows the counterfactual windows of a file have, as its header says; 1 without windows."""
    noted = head.notes.get("window", 1)
    return noted if type(noted) is int and noted > 1 else 1


def noted_static(head: Head) -> NodeSet | None:
    """Return which nodes never change, as a file's header says; None if it does not say."""
    noted, factors = head.notes.get("static"), head.factors
    if factors is None or not isinstance(noted, list) or not set(map(str, noted)) <= set(factors.names):
        return None
    return factors.nodes(*map(str, noted))


def numbers(rows: Recording, first: int, window: int) -> Ints:
    """Number rows from ``first`` on, so that the rows of a counterfactual window have the same number."""
    episode = rows.transitions.episode
    return first + np.arange(len(rows)) if window == 1 or episode is None else episode


def whole_windows(chunks: Iterable[Recording], window: int) -> Iterator[Recording]:
    """Yield rows that come in chunks anew, so that no window is cut."""
    waiting: list[Recording] = []
    for chunk in chunks:
        rows = joined([*waiting, chunk])
        whole = len(rows) - len(rows) % window
        waiting = [rows[whole:].copy()] if whole < len(rows) else []
        if whole:
            yield rows[:whole]
    if waiting:
        raise FileProblem(f"a window of {window} rows is not whole; the file is damaged.")
