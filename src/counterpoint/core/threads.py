"""Sharing the rows of a compiled loop among threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar, cast

import numba

T = TypeVar("T")
R = TypeVar("R")

THREADS = int(cast(Any, numba.config).NUMBA_NUM_THREADS)
FEWEST = 4096  # rows for a thread; below it a second thread costs more than it brings
_lock, _taken = Lock(), 0  # threads that work beside the compiled loops just now
_pool: tuple[int, ThreadPoolExecutor] | None = None  # with the process it belongs to: threads do not survive a fork


def run(loop: Callable[..., None], rows: int, *arrays: object, fewest: int = FEWEST) -> None:
    """Run a kernel over all rows, shared among ``NUMBA_NUM_THREADS`` threads, but for those that are taken.

    Args:
        loop: called with the first row, the one after the last, and the arrays.
        rows: how many there are.
        arrays: what the kernel works on.
        fewest: rows for a thread; give less where a row takes long.
    """
    threads = min(THREADS - _taken, rows // fewest)
    if threads < 2:
        loop(0, rows, *arrays)
        return
    bounds = [rows * share // threads for share in range(threads + 1)]
    shares = [_threads().submit(loop, bounds[i], bounds[i + 1], *arrays) for i in range(threads)]
    for share in shares:
        share.result()


def side_by_side(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function for each item, shared among threads as rows are, and return what it returns, in order.

    The compiled loops within take what threads are left, so that nobody waits for a thread that waits itself.
    """
    items = list(items)
    if min(THREADS - _taken, len(items)) < 2:
        return [function(item) for item in items]

    def called(item: T) -> R:
        with taken():
            return function(item)

    return list(_threads().map(called, items))


@contextmanager
def taken() -> Iterator[None]:
    """Take one of the threads for what the block does, which is work of its own beside the compiled loops.

    Three threads on two processors wait for each other, and the one whose work is the longest waits as well.
    """
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(more: int) -> None:
    global _taken  # noqa: PLW0603
    with _lock:
        _taken += more


def ahead(function: Callable[..., Any], *arguments: object) -> None:
    """Call a function in another thread, if there is one, and do not wait for it."""
    if THREADS > 1:
        _threads().submit(function, *arguments)


def _threads() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(THREADS, "counterpoint")
    return _pool[1]
