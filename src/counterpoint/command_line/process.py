"""How the process of a command is set up: for one job, and its end."""

import ctypes
import gc
import os
import sys
from contextlib import suppress

COLLECT = (10_000, 20, 50)  # look for garbage seldom: nearly all that a command loads stays until its end
SWITCH = (
    0.0005  # seconds until a thread that waits for the interpreter gets it: one that writes needs it often, not long
)
MALLOC = {"M_TRIM_THRESHOLD": (-1, 2**30), "M_MMAP_THRESHOLD": (-3, 32 * 2**20), "M_ARENA_MAX": (-8, 1)}


def begin() -> None:
    """Set up a process that belongs to a command, before it loads anything."""
    gc.set_threshold(*COLLECT)
    sys.setswitchinterval(SWITCH)


def end() -> None:
    """Let the process end without a last look through all that was loaded."""
    gc.freeze()


def keep_memory() -> None:
    """Keep memory that is let go of, for the next chunk, where the allocator is one that can be told (glibc's).

    Otherwise it goes back to the system, which clears it each time; and each thread would keep a heap of its own.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when PyArrow is imported
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            for option, value in MALLOC.values():
                mallopt(option, value)
