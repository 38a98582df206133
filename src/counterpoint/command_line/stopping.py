"""Ctrl-C and SIGTERM: the command stops where it is, cleans up, and says how to go on."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The user, or the system, asked the command to stop."""


class Watch:
    """Remembers which signal came, because a library may swallow or disguise the exception."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Stop; while that is under way, further signals are ignored."""
        self.signal = number
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise Stopped

    @property
    def code(self) -> int:
        """The exit code: 128 and the number of the signal, as in a shell."""
        return 128 + (self.signal or signal.SIGINT)


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch for signals, if this is the main thread, which alone may."""
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    before = [signal.signal(number, watch) for number in SIGNALS]
    try:
        yield watch
    finally:
        for number, old in zip(SIGNALS, before, strict=True):
            signal.signal(number, old if old is not None else signal.SIG_DFL)
