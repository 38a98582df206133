"""Files end to end, beside what PyArrow alone needs to read the input and write an output of that size.

``counterpoint augment`` runs as a user would run it, and all of it is counted: the start of Python, reading, masks,
rewards, provenance, writing, the final sync to the disk. PyArrow reads the same input and writes the same output with
the same options, also in a fresh process, whose start is counted too; and once more with its own defaults, which are
slower. All take turns, and the disk gets time to write what one leaves before the next begins: PyArrow does not wait
for it, the command does. CPU seconds, of all threads, depend less on what else is running.

An environment for development is slower to start than a user's, because Numba loads packages that it finds there. To
measure what users have: ``pip install '.[parquet]'`` into a new environment, and run this with its Python.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from counterpoint import Factorization, Transitions, files
from experiments import pages

ROWS, RATIO, TURNS = 1_000_000, 3, 3
FACTORS = Factorization({"a": (0, 1, 2), "b": (3, 4, 5), "c": (6, 7, 8), "d": (9, 10)}, {"push": (0, 1)})
DESCRIPTION = """
state = { a = "0:3", b = "3:6", c = "6:9", d = "9:11" }
action = { push = "0:2" }
positions = { a = "0:2", b = "3:5", c = "6:8", d = "9:11" }
mask = { kind = "proximity", radius = 0.1, attached = ["a"] }
reward = { kind = "function", function = "bench_reward:reward" }
"""
COMMAND = """
import sys, time
sys.modules["coverage"] = None  # Numba loads it where it is installed, which is for developers only
from benchmarks.measure import peak_bytes
from counterpoint.command_line import main
code = main()
print(time.process_time(), peak_bytes())
sys.exit(code)
"""
PYARROW = """
import sys, time
import pyarrow.parquet as pq
print(time.time() - float(sys.argv[1]), time.process_time())
from counterpoint.adapters.parquet import OPTIONS
from counterpoint.files.writing import CHUNK_ROWS

def timed(function):
    start, cpu = time.perf_counter(), time.process_time()
    found = function()
    print(time.perf_counter() - start, time.process_time() - cpu)
    return found

timed(lambda: pq.read_table("data.parquet"))
table = pq.read_table("out.parquet")
timed(lambda: pq.write_table(table, "copy.parquet", row_group_size=CHUNK_ROWS, **OPTIONS))
timed(lambda: pq.write_table(table, "copy.parquet"))
"""
INSPECT = """
import time
from counterpoint import files
from counterpoint.files.contents import contents
import counterpoint.adapters.parquet
start, cpu = time.perf_counter(), time.process_time()
contents(files.scan("data.parquet"))
print(time.perf_counter() - start, time.process_time() - cpu)
"""


def prepare(folder: Path) -> None:
    """Write the input, 26 numbers a row, and its description."""
    rng = np.random.default_rng(0)
    after = rng.random((ROWS, 11), np.float32)
    data = Transitions(
        state=rng.random((ROWS, 11), np.float32),
        action=rng.random((ROWS, 2), np.float32),
        reward=after[:, 0].copy(),
        next_state=after,
        terminated=np.zeros(ROWS, bool),
    )
    files.write(folder / "data.parquet", data, factors=FACTORS)
    (folder / "robot.toml").write_text(DESCRIPTION)
    (folder / "bench_reward.py").write_text("def reward(state, action, next_state):\n    return next_state[:, 0]\n")


def run(folder: Path, code: str, *words: object) -> list[list[float]]:
    """Run Python code in a process of its own; return the lines of numbers that it prints last."""
    root = Path(__file__).parents[1]
    place = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    line = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(line, cwd=folder, env=place, capture_output=True, text=True, check=True)  # noqa: S603
    return [[float(number) for number in text.split()] for text in done.stdout.splitlines()[-4:] if text[:1].isdigit()]


def augment(folder: Path) -> list[float]:
    """Return CPU seconds, peak memory and seconds of the command."""
    os.sync()
    start = time.perf_counter()
    words = ("augment", "data.parquet", "robot.toml", "--ratio", RATIO, "--out", "out.parquet", "--force")
    return [*(run(folder, COMMAND, *words)[-1]), time.perf_counter() - start]


def main() -> None:
    """Print both tables."""
    starts, reads, writes, defaults, ours, scans = [], [], [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        augment(folder)  # compiles, or loads what was compiled
        for _ in range(TURNS):
            os.sync()
            start, read, write, default = run(folder, PYARROW, time.time())
            defaults.append(default)
            starts.append(start)
            reads.append(read)
            writes.append(write)
            ours.append(augment(folder))
            scans.append(run(folder, INSPECT)[-1])
    start, read, write, default, scan = (np.min(found, axis=0) for found in (starts, reads, writes, defaults, scans))
    cpu, peak, seconds = np.min(ours, axis=0)
    limit, usual, mine = start + read + write, start + read + default, np.array([seconds, cpu])
    head = ["", "seconds", "CPU seconds", "x PyArrow", "x in CPU", "at most", "peak MB", "at most"]
    rows: list[list[object]] = [
        ["PyArrow: start, read, write", *limit.tolist(), 1.0, 1.0, "-", "-", "-"],
        ["PyArrow with its defaults", *usual.tolist(), *(usual / limit).tolist(), "-", "-", "-"],
        ["counterpoint augment", *mine.tolist(), *(mine / limit).tolist(), "1.5", peak / 1e6, "1500"],
    ]
    size = f"{ROWS:,} rows of 26 numbers to {(1 + RATIO) * ROWS:,}"
    pages.print_table(f"Augmenting a Parquet file, {size}, with a proximity mask (best of {TURNS})", head, rows)
    scanned: list[list[object]] = [
        ["PyArrow: read", *read.tolist(), 1.0, 1.0, "-"],
        ["counterpoint inspect", *scan.tolist(), *(scan / read).tolist(), "2.0"],
    ]
    pages.print_table("Inspecting the input, without the start of Python", head[:6], scanned)


if __name__ == "__main__":
    main()
