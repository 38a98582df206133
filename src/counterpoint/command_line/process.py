"""How the process of a command is set up: for one job, and its end."""

import gc
import sys

COLLECT = (10_000, 20, 50)  # look for garbage seldom: nearly all that a command loads stays until its end
SWITCH = 0.0005  # seconds that a thread waits for the interpreter: one that writes needs it often, but not for long


def begin() -> None:
    """Set up a process that belongs to a command, before it loads anything."""
    gc.set_threshold(*COLLECT)
    sys.setswitchinterval(SWITCH)


def end() -> None:
    """Let the process end without a last look through all that was loaded."""
    gc.freeze()
