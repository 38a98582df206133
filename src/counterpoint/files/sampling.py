"""Some rows of a file, spread evenly over it: to look at, to learn from, to compare functions with."""

import os
from collections.abc import Callable, Collection, Iterator

import numpy as np

from counterpoint.checks import check_reward_fn, check_terminal_fn
from counterpoint.core.arrays import Ints
from counterpoint.core.augment import Augmenter
from counterpoint.core.require import require_count
from counterpoint.core.transitions import Transitions
from counterpoint.files.formats import look
from counterpoint.files.notes import numbers
from counterpoint.files.recording import FileProblem, Recording, joined
from counterpoint.files.scanning import ROWS, Scan
from counterpoint.progress import Progress


def sample(source: str | os.PathLike[str] | Scan, rows: int) -> Recording:
    """Read so many rows of a file or folder at most, spread evenly over it.

    Raises:
        FileProblem: if it cannot be read, or holds no transitions.
    """
    require_count("rows", rows)
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    if scan.rows <= rows:
        return scan.read()
    found = list(chosen_rows(scan, rows))
    if not found:
        raise FileProblem(f"{scan.path}: it holds no transitions.")
    return joined(found)


def chosen_rows(
    scan: Scan, rows: int | None, window: int = 1, *, real: bool | None = None, progress: Progress | None = None
) -> Iterator[Recording]:
    """Yield rows of a file, chunk by chunk, and not more than so many.

    Args:
        scan: the file.
        rows: how many at most; all by default.
        window: how long the file's counterfactual windows are, which are taken as a whole.
        real: the real rows alone, or the counterfactuals alone; both by default.
        progress: called with the number of rows read so far, now and then.
    """
    start, every = 0, 1 if rows is None else max(1, -(-scan.rows // rows))
    for chunk in scan.chunks(ROWS):
        wanted = numbers(chunk, start, window) % every == 0
        if chunk.provenance is not None and real is not None:
            wanted &= chunk.provenance.swapped.any(axis=1) != real
        start += len(chunk)
        if wanted.any():
            yield chunk[wanted]
        if progress is not None:
            progress(start)


def check_task(
    source: str | os.PathLike[str] | Scan, augmenter: Augmenter, *, reward: bool = True, terminal: bool = True
) -> None:
    """Raise if the reward or the terminal function contradicts the real rows of a file.

    Counterfactuals are relabelled by these functions, so a wrong one makes every row wrong.

    Args:
        source: the file, or what `scan` returned.
        augmenter: has the functions.
        reward: look at the reward function.
        terminal: look at the terminal function, if there is one.

    Raises:
        CheckFailed: naming the worst row by its number in the file.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    check = task_check(augmenter, [name for name, asked in (("reward", reward), ("terminal", terminal)) if asked])
    start = 0
    for chunk in scan.chunks(ROWS):
        rows, start = start + np.arange(len(chunk)), start + len(chunk)
        if chunk.provenance is not None:
            real = ~chunk.provenance.swapped.any(axis=1)
            chunk, rows = chunk[real], rows[real]  # noqa: PLW2901
        if len(rows):
            check(chunk.transitions, rows)


def task_check(augmenter: Augmenter, names: Collection[str]) -> Callable[[Transitions, Ints], None]:
    """Return a function that raises if the reward or the terminal function contradicts some of the rows it is given.

    Args:
        augmenter: has the functions.
        names: ``"reward"``, ``"terminal"``, or both.
    """

    def check(data: Transitions, rows: Ints) -> None:
        every = max(1, -(-len(data) // ROWS))
        some, numbers = data[::every], rows[::every]
        if "reward" in names:
            scale = float(np.abs(some.reward).max(initial=0.0))
            check_reward_fn(augmenter.reward_fn, some, atol=1e-5 + 1e-4 * scale, rows=numbers)
        if "terminal" in names and augmenter.terminal_fn is not None:
            check_terminal_fn(augmenter.terminal_fn, some, rows=numbers)

    return check
