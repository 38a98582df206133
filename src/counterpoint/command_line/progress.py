"""A progress bar on the error stream, if that is a terminal; nothing otherwise."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDTH, EVERY = 30, 0.1  # characters, seconds


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of rows done so far."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    start = last = time.monotonic()

    def show(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < EVERY:
            return
        last = now
        filled = min(WIDTH, WIDTH * done // max(1, total))
        rate = done / max(now - start, 1e-9)
        text = f"\r{what} [{'#' * filled}{'.' * (WIDTH - filled)}] {done:,} of {total:,} rows, {rate:,.0f} a second"
        print(text, end="\x1b[K", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
