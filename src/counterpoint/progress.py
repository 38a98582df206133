"""Progress on the error stream: a bar if that is a terminal, otherwise one line for each stage, to suit a log."""

import sys
import time
from collections.abc import Callable
from typing import Self, TypeAlias

Progress: TypeAlias = Callable[[int], object]  # what a long job calls, now and then, with how much is done

WIDTH, EVERY = 30, 0.1  # characters, seconds


def announce(stage: str, *, shown: bool = True) -> bool:
    """Announce a stage in a log; return whether to draw a bar instead, since there is a terminal."""
    terminal = sys.stderr.isatty()
    if shown and not terminal:
        print(stage, file=sys.stderr, flush=True)
    return shown and terminal


class ProgressBar:
    """Shows how far a stage has come, as long as its ``with`` block lasts.

    Args:
        stage: what takes time.
        total: how much there is to do.
        units: of what, such as "rows".
        shown: whether to show anything at all.
    """

    def __init__(self, stage: str, total: int, units: str, *, shown: bool = True) -> None:
        self.stage, self.total, self.units, self.done = stage, total, units, 0
        self._drawn = announce(f"{stage}: {total:,} {units}", shown=shown)
        self._start = self._last = time.monotonic()

    def reach(self, done: int, note: str = "") -> None:
        """Say how much is done so far, and what is worth knowing about it."""
        self.done, now = done, time.monotonic()
        if not self._drawn or now - self._last < EVERY:
            return
        self._last = now
        filled = min(WIDTH, WIDTH * done // max(1, self.total))
        rate = done / max(now - self._start, 1e-9)
        note = note or (f"{rate:,.0f} a second" if rate >= 10 else f"{rate:.1f} a second")
        bar = f"[{'#' * filled}{'.' * (WIDTH - filled)}]"
        text = f"\r{self.stage} {bar} {done:,} of {self.total:,} {self.units}, {note}"
        print(text, end="\x1b[K", file=sys.stderr, flush=True)

    def advance(self, note: str = "") -> None:
        """Say that one more is done."""
        self.reach(self.done + 1, note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
