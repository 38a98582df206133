"""Trajectories within a table of transitions: where they end, and formats that take nothing else."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from counterpoint.core.arrays import Bools
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem, Recording, joined

SINGLE_TRANSITIONS = (
    "this format holds whole episodes, and these transitions do not belong to any (single counterfactuals never do). "
    "As an episode of one step each would take many kilobytes, and loaders that look at the following row or "
    "relabel goals within an episode would misread them. Write single transitions to .parquet instead, or make "
    "windows (--window 16), which are whole episodes."
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


def require_unbroken(data: Transitions, rows: slice, *, first: int = 0) -> None:
    """Raise unless each next state within an episode is the state of the following row; ``first`` is its row number."""
    wrong = (data.next_state[rows][:-1] != data.state[rows][1:]).any(axis=1)
    if wrong.any():
        raise FileProblem(
            f"row {first + rows.start + int(wrong.argmax()) + 1} does not start where the row before it ended, though "
            "both are of one episode. This format keeps one list of observations for each episode, and no next states. "
            "Write such transitions to .parquet instead."
        )


class Episodes:
    """Collects rows that come in chunks into whole episodes."""

    def __init__(self) -> None:
        self._waiting: list[Recording] = []

    def push(self, chunk: Recording) -> Iterator[Recording]:
        """Take more rows; yield the episodes that are now complete, because another one has begun."""
        rows = joined([*self._waiting, chunk])
        *whole, last = runs(rows.transitions)
        self._waiting = [rows[last].copy()]
        for run in whole:
            yield _whole(rows[run])

    def rest(self) -> Iterator[Recording]:
        """Yield the last episode."""
        yield from map(_whole, self._waiting)
        self._waiting = []


def _whole(episode: Recording) -> Recording:
    """Return an episode, unless it is a single counterfactual."""
    parents = episode.provenance
    if len(episode) == 1 and parents is not None and parents.swapped.any():
        raise FileProblem(SINGLE_TRANSITIONS)
    return episode
