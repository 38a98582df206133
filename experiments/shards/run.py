"""The runs: `counterpoint augment` on a folder of shards, watched from outside."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint import Transitions, files
from counterpoint.worlds import Sprites
from experiments.rows import Write, recording

WORLD = Sprites(2, noise_std=0.0)
FUNCTIONS = """
from counterpoint.worlds import Sprites

world = Sprites(2, noise_std=0.0)
mask, step = world.mask, world.step

def reward(state, action, next_state):
    return next_state[:, 0]
"""
DESCRIPTION = """
state = { one = "0:4", two = "4:8" }
action = { click = "0:2" }
mask = { kind = "function", function = "shard_functions:mask" }
reward = { kind = "function", function = "shard_functions:reward" }
"""
EVERY = 1.0  # seconds between two looks at the workers; looking takes time from them


@dataclass(frozen=True)
class Config:
    """One run.

    Attributes:
        shards: files of the dataset.
        rows: transitions in each.
        ratio: counterfactuals for each real row.
        engine: ``pool`` or ``ray``.
        workers: processes, one core each.
        kills: how many workers are killed with SIGKILL, at random moments.
        drivers: how many commands are started on the same output.
        audit: put so many counterfactuals back into the world at the end.
        seed: of the counterfactuals.
        turn: of the moments of the kills.
    """

    shards: int = 40
    rows: int = 500_000
    ratio: float = 1.0
    engine: str = "pool"
    workers: int = 2
    kills: int = 0
    drivers: int = 1
    audit: int = 0
    seed: int = 0
    turn: int = 0


def presets() -> dict[str, dict[str, Config]]:
    """Return the runs of each preset, by name."""
    grid = [("pool", 1), ("pool", 2), ("ray", 1), ("ray", 2)]
    large = {f"{engine}-{workers}": Config(engine=engine, workers=workers) for engine, workers in grid}
    fewer = replace(Config(), shards=10)
    small = replace(Config(), rows=50_000)
    killed = {f"killed-{turn}": replace(small, kills=4, turn=turn) for turn in range(5)}
    calm = {"calm": replace(small, audit=200_000)}
    pair = {"two-drivers": replace(small, drivers=2)}
    tiny = Config(shards=4, rows=2_000, audit=2_000)
    return {
        "laptop": {**large, "fewer-shards": fewer, **calm, **killed, **pair},
        "smoke": {"pool-2": tiny, "two-drivers": replace(tiny, drivers=2)},
    }


def run(config: Config, place: Path, write: Write) -> None:
    """Do one run, and write what was seen."""
    data = prepared(config, place)
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        (folder / "shard_functions.py").write_text(FUNCTIONS)
        (folder / "robot.toml").write_text(DESCRIPTION)
        words = ("--ratio", config.ratio, "--seed", config.seed, "--engine", config.engine, "--workers", config.workers)
        command = [sys.executable, "-m", "counterpoint.command_line", "augment", data, "robot.toml", "--out", "more"]
        line = [str(word) for word in (*command, *words)]
        start = time.perf_counter()
        driver = subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
        seen: list[tuple[float, int]] = []
        refusals: list[Any] = []
        kills = 0
        moments = _moments(config)
        while driver.poll() is None:
            now = time.perf_counter() - start
            workers = list(_workers(driver.pid))
            seen += [(now, bytes_) for _, bytes_ in workers]
            if workers and kills < config.kills and now > moments[kills]:
                os.kill(workers[kills % len(workers)][0], signal.SIGKILL)
                kills += 1
            if workers and len(refusals) < config.drivers - 1:
                refusals.append(subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False))  # noqa: S603
            time.sleep(EVERY)
        seconds = time.perf_counter() - start
        errors = driver.communicate()[1]
        if driver.returncode:
            raise RuntimeError(errors[-2000:])
        _write(config, folder, write, seconds, kills, refusals, seen)


def _write(
    config: Config,
    folder: Path,
    write: Write,
    seconds: float,
    kills: int,
    refusals: list[Any],
    seen: list[tuple[float, int]],
) -> None:
    out = files.scan(folder / "more")
    half = seconds / 2
    early, late = (max((b for t, b in seen if (t > half) == after), default=0) for after in (False, True))
    confirmed = None
    if config.audit:
        confirmed = files.audit(out, WORLD.step, rows=2 * config.audit).confirmed
    write(
        rows=out.rows,
        seconds=seconds,
        rows_per_second=out.rows / seconds,
        manifest=hashlib.sha256((folder / "more" / "manifest.json").read_bytes()).hexdigest(),
        peak_mb_first_half=early / 1e6,
        peak_mb_second_half=late / 1e6,
        kills=kills,
        refused=[(each.returncode, each.stderr.splitlines()[-1].split(":", 2)[-1][:120]) for each in refusals],
        confirmed=confirmed,
        output_bytes=sum(file.stat().st_size for file in (folder / "more").iterdir()),
    )


def _moments(config: Config) -> list[float]:
    """Draw the moments of the kills: the first after the workers have started, about five seconds apart."""
    rng = np.random.default_rng(config.turn)
    found: list[float] = (4 + np.cumsum(rng.exponential(4.0, size=config.kills))).tolist()
    return found


def prepared(config: Config, place: Path) -> Path:
    """Write the dataset, unless it is there."""
    folder = place / f"data-{config.shards}-{config.rows}"
    if folder.exists():
        return folder
    part = Path(tempfile.mkdtemp(dir=place))
    for number in range(config.shards):
        rng = np.random.default_rng([0, number])
        state = WORLD.reset(config.rows, rng).astype(np.float32)
        action = rng.random((config.rows, 2), np.float32)
        after = WORLD.step(state, action)
        still = np.zeros(config.rows, bool)
        data = Transitions(state, action, after[:, 0].copy(), after, still)
        files.write(part / f"part-{number:03d}.parquet", data, factors=WORLD.factors)
    part.rename(folder)
    return folder


def _workers(driver: int) -> Iterator[tuple[int, int]]:
    """Yield process number and resident memory of all workers below a process."""
    parents: dict[int, tuple[int, str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                above = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                pages = int((entry / "statm").read_text().split()[1])
            except (OSError, IndexError, ValueError):
                continue
            parents[int(entry.name)] = above, line, pages * os.sysconf("SC_PAGE_SIZE")
    for process, (_, line, size) in parents.items():
        if ("counterpoint.files.pool" in line or line.startswith("ray::")) and driver in _above(process, parents):
            yield process, size


def _above(process: int, parents: dict[int, tuple[int, str, int]]) -> Iterator[int]:
    """Yield the processes above a process."""
    while process in parents:
        process = parents[process][0]
        yield process


def run_all(preset: str, place: Path, folder: Path, only: list[str] | None = None) -> None:
    """Do the runs that are not finished, one after another: each has the machine for itself."""
    place.mkdir(parents=True, exist_ok=True)
    for name, config in presets()[preset].items():
        path = folder / preset / f"{name}.jsonl"
        if path.exists() or (only and name not in only):
            continue
        with recording(path, config) as write:
            run(config, place, write)
        print(path.read_text().splitlines()[1], flush=True)


def clean(place: Path) -> None:
    """Remove the datasets."""
    for folder in place.glob("data-*"):
        shutil.rmtree(folder)
