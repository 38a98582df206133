"""Ctrl-C and SIGTERM: the command stops where it is, cleans up, and says how to go on.

A library written in C that writes a file calls back into Python for every write, and may not survive an exception from
there. So a signal that comes in the middle of such a write waits a moment.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from counterpoint.files import output

MOMENT = 0.01  # seconds
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(BaseException):
    """The user, or the system, asked the command to stop."""


class Watch:
    """Remembers which signal came, because a library may swallow or disguise the exception."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Stop; while that is under way, further signals are ignored."""
        self.signal = self.signal or number
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        if _writing(frame):
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, MOMENT)
            return
        raise Stopped

    @property
    def code(self) -> int:
        """The exit code: 128 and the number of the signal, as in a shell."""
        return 128 + (self.signal or signal.SIGINT)


def _writing(frame: FrameType | None) -> bool:
    """Say whether a write into an output is under way."""
    while frame is not None:
        if frame.f_code.co_filename == output.__file__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch for signals, if this is the main thread, which alone may."""
    watch = Watch()
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    for number in SIGNALS:
        signal.signal(number, watch)
    try:
        yield watch
    finally:
        if watch.signal is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, old in before.items():
            signal.signal(number, old if old is not None else signal.SIG_DFL)
