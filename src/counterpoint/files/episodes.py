"""Trajectories within a table of transitions: where they end, and formats that take nothing else."""

from itertools import pairwise

import numpy as np

from counterpoint.core.arrays import Bools
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem

SINGLE_TRANSITIONS = (
    "this format holds whole episodes, and these transitions belong to none (counterfactuals never do). Stored "
    "as episodes of one step, each would take many kilobytes, and loaders that look at the following row or "
    "relabel goals within an episode would misread them. Write single transitions to .parquet instead."
)


def cut_off(data: Transitions) -> Bools:
    """Say which rows end their trajectory without being terminal, (B,).

    A transition without an episode is a trajectory by itself.
    """
    if data.episode is None:
        return ~data.terminated
    last = np.ones(len(data), np.bool_)
    last[:-1] = data.episode[1:] != data.episode[:-1]
    return last & ~data.terminated


def runs(data: Transitions) -> list[slice]:
    """Return the rows of each episode, in order; raise ``FileProblem`` if there are only single transitions."""
    if data.episode is None:
        raise FileProblem(SINGLE_TRANSITIONS)
    edges = np.flatnonzero(np.diff(data.episode, prepend=data.episode[:1] - 1, append=data.episode[-1:] + 1))
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]


def require_unbroken(data: Transitions, rows: slice) -> None:
    """Raise unless each next state within an episode is the state of the following row."""
    wrong = (data.next_state[rows][:-1] != data.state[rows][1:]).any(axis=1)
    if wrong.any():
        raise FileProblem(
            f"row {rows.start + int(wrong.argmax()) + 1} does not go on where the row before it ended, though both are "
            "of one episode. This format keeps one list of observations for each episode, and no next states. Write "
            "such transitions to .parquet instead."
        )
