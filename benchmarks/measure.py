"""Timing, peak memory and plain tables, shared by all benchmarks."""

import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numba
import numpy as np


def best(function: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


class Stopwatch:
    """Wrap a function and add up the time spent inside it."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *args: object) -> object:
        """Call the function and count its time."""
        start = time.perf_counter()
        try:
            return self.function(*args)
        finally:
            self.seconds += time.perf_counter() - start


def reset_peak() -> None:
    """Start counting peak memory anew, where the system allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Peak resident memory of this process since ``reset_peak``."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_bytes() -> int:
    """Memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def table(title: str, head: list[str], rows: list[list[object]]) -> None:
    """Print a table with aligned columns."""
    cells = [
        head,
        *[
            [f"{x:.3g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else str(x) for x in row]
            for row in rows
        ],
    ]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        if not number:
            print("  " + "  ".join("-" * width for width in widths))


def machine() -> str:
    """One line that says where and with what the numbers were measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout  # noqa: S607
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return (
        f"commit {commit.strip() or 'unknown'}, {cpu}, {numba.config.NUMBA_NUM_THREADS} threads, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
    )
