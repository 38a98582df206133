"""Progress on the error stream: a bar if that is a terminal, otherwise one line for each stage, to suit a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WIDTH, EVERY = 30, 0.1  # characters, seconds


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of rows done so far."""
    if not sys.stderr.isatty():
        stage(f"{what}: {total:,} rows")
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


def stage(text: str) -> bool:
    """Announce a stage in a log; return whether there is a terminal instead, for a bar of its own."""
    terminal = sys.stderr.isatty()
    if not terminal:
        print(text, file=sys.stderr, flush=True)
    return terminal
