"""Sharing the rows of a compiled loop among threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numba

THREADS = int(cast(Any, numba.config).NUMBA_NUM_THREADS)
FEWEST = 4096  # rows for a thread; below it a second thread costs more than it brings
_pool: tuple[int, ThreadPoolExecutor] | None = None  # with the process it belongs to: threads do not survive a fork


def run(loop: Callable[..., None], rows: int, *arrays: object) -> None:
    """Run a kernel over all rows, shared among ``NUMBA_NUM_THREADS`` threads."""
    threads = min(THREADS, rows // FEWEST)
    if threads < 2:
        loop(0, rows, *arrays)
        return
    bounds = [rows * share // threads for share in range(threads + 1)]
    shares = [_threads().submit(loop, bounds[i], bounds[i + 1], *arrays) for i in range(threads)]
    for share in shares:
        share.result()


def ahead(function: Callable[..., Any], *arguments: object) -> None:
    """Call a function in another thread, if there is one, and do not wait for it."""
    if THREADS > 1:
        _threads().submit(function, *arguments)


def _threads() -> ThreadPoolExecutor:
    global _pool  # noqa: PLW0603
    if _pool is None or _pool[0] != os.getpid():
        _pool = os.getpid(), ThreadPoolExecutor(THREADS, "counterpoint")
    return _pool[1]
