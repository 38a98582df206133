"""Do the reward and terminal functions say of real rows what the file says?"""

import os
from typing import Any

import numpy as np

from counterpoint.checks import check_reward_fn, check_terminal_fn
from counterpoint.core.arrays import Ints
from counterpoint.core.augment import Augmenter
from counterpoint.core.transitions import Transitions
from counterpoint.files.formats import look
from counterpoint.files.recording import FileProblem
from counterpoint.files.scanning import ROWS, Scan


def check_task(
    source: str | os.PathLike[str] | Scan, augmenter: Augmenter, *, reward: bool = True, terminal: bool = True
) -> None:
    """Raise if the reward or the terminal function contradicts the real rows of a file.

    Counterfactuals are relabelled by these functions, so a wrong one makes every row wrong. About 65,536 rows are
    looked at, spread evenly over the file.

    Args:
        source: the file, or what `scan` returned.
        augmenter: has the functions.
        reward: look at the reward function.
        terminal: look at the terminal function, if there is one.

    Raises:
        CheckFailed: naming the worst row by its number in the file.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    data, rows = real_rows(scan, ROWS)
    if reward:
        scale = float(np.abs(data.reward).max(initial=0.0))
        check_reward_fn(augmenter.reward_fn, data, atol=1e-5 + 1e-4 * scale, rows=rows)
    if terminal and augmenter.terminal_fn is not None:
        check_terminal_fn(augmenter.terminal_fn, data, rows=rows)


def real_rows(scan: Scan, most: int) -> tuple[Transitions, Ints]:
    """Return so many real rows of a file at most, spread evenly, and their numbers in it."""
    every, start = max(1, -(-scan.rows // most)), 0
    parts: list[Any] = []
    numbers: list[Ints] = []
    for chunk in scan.chunks(ROWS):
        order = start + np.arange(len(chunk))
        wanted = order % every == 0
        if chunk.provenance is not None:
            wanted &= ~chunk.provenance.swapped.any(axis=1)
        start += len(chunk)
        if wanted.any():
            parts.append(chunk[wanted].transitions)
            numbers.append(order[wanted])
    if not parts:
        raise FileProblem(f"{scan.path}: it holds no real transitions.")
    return Transitions.concat(*parts), np.concatenate(numbers)
