"""Ctrl-C and SIGTERM: the command stops where it is, cleans up, and says how to go on.

A library written in C that writes a file calls back into Python for every write, and may not survive an exception from
there. So a signal that comes in the middle of such a write waits a moment.
"""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TypeAlias

MOMENT = 0.01  # seconds
OUTPUT = str(Path(__file__).parents[1] / "files" / "output.py")  # not imported: signals are watched for before that
SIGNALS = (signal.SIGINT, signal.SIGTERM)
Handler: TypeAlias = Callable[[int, FrameType | None], object] | signal.Handlers


class Stopped(BaseException):
    """The user, or the system, asked the command to stop."""


class Watch:
    """Watches for signals, if this is the main thread, which alone may, and remembers the first that came.

    A library may swallow or disguise the exception.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._mine = threading.current_thread() is threading.main_thread()
        self._before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}

    def begin(self) -> None:
        """Stop the command at the next signal."""
        self._set(self)

    def end(self) -> None:
        """Ignore signals from now on: what is done is done."""
        self._set(signal.SIG_IGN)

    def restore(self) -> None:
        """Treat signals as before."""
        for number, old in self._before.items() if self._mine else ():
            signal.signal(number, old if old is not None else signal.SIG_DFL)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Stop; while that is under way, further signals are ignored."""
        self.signal = self.signal or number
        self.end()
        if _writing(frame):
            signal.signal(signal.SIGALRM, self)
            signal.setitimer(signal.ITIMER_REAL, MOMENT)
            return
        raise Stopped

    @property
    def code(self) -> int:
        """The exit code: 128 and the number of the signal, as in a shell."""
        return 128 + (self.signal or signal.SIGINT)

    def _set(self, handler: Handler) -> None:
        """Set the handler of signals that are not ignored, as those of a job in the background may be."""
        for number in SIGNALS if self._mine else ():
            if self._before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)


def _writing(frame: FrameType | None) -> bool:
    """Say whether a write into an output is under way."""
    while frame is not None:
        if frame.f_code.co_filename == OUTPUT:
            return True
        frame = frame.f_back
    return False
