"""Recording, audit and islands of MuJoCo environments beside the environment's own steps a second.

What is compared takes turns of a few steps, so that everything meets the same machine, and each turn is divided by
the turn of the bare environment beside it; the table shows the median. With several processes the yardstick is the
bare environment in as many processes at the same time, by the clock on the wall. ``simulator alone`` is MuJoCo
without the environment's own Python: nothing that goes through the environment can be as fast.

    python -m benchmarks.mujoco [environment ...]
"""

import functools
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import gymnasium
import mujoco
import numpy as np

import counterpoint.worlds.fetch  # noqa: F401 (registers the environments)
from counterpoint.adapters.mujoco import Islands, Recorder, Simulator, collect
from counterpoint.adapters.mujoco.access import access
from experiments import machine, pages

STEPS, TURNS = 50, 15  # of one process; an episode of FetchPush has 50
ROWS, ROUNDS, PROCESSES = 500, 5, 2  # of several
WANTED = 0.80
QUIET = {"robot_noise_ratio": 0.0, "object_noise_ratio": 0.0}
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "FetchPush-v4": {},
    "counterpoint/Slide2-v0": {},
    "FrankaKitchen-v1": QUIET,
}
HEAD = ("environment", "what", "steps/s", "of bare", "at least")

Jobs = dict[str, Callable[[], object]]


def main(*environments: str) -> None:
    """Print the tables, of all environments if none is named."""
    names = environments or tuple(ENVIRONMENTS)
    print(machine.describe())
    alone = [line for name in names for line in _lines(name, _alone(name), STEPS, TURNS, time.process_time)]
    pages.print_table("MuJoCo, one process, processor time", HEAD, alone)
    many = [line for name in names for line in _several(name)]
    pages.print_table(f"MuJoCo, {PROCESSES} processes, clock on the wall, all together", HEAD, many)


def _made(name: str) -> Any:
    return gymnasium.make(name, disable_env_checker=True, **ENVIRONMENTS[name])


_kept = functools.cache(_made)


def _alone(name: str) -> Jobs:
    """Return what to time in one process; the first is the yardstick."""
    env, recorded = _made(name), Recorder(_made(name))
    data = collect(env, None, STEPS, rng=np.random.default_rng(0))
    step, mask = Simulator(env, real=data, workers=1, at_least=0.0), Islands(env, workers=1)
    unknown, way = _unknown(mask, data.noise), access(env)
    substeps = _substeps(env, way)
    return {
        "bare": lambda: _play(env, STEPS),
        "recording": lambda: _play(recorded, STEPS),
        "audit": lambda: step(data.state, data.action, data.noise),
        "islands": lambda: mask(data.state, data.action, data.next_state, unknown),
        "simulator alone": lambda: [mujoco.mj_step(way.model, way.data, nstep=substeps) for _ in range(STEPS)],
    }


def _several(name: str) -> list[list[object]]:
    """Time audit and islands in several processes beside as many bare environments."""
    env = _made(name)
    data = collect(env, None, PROCESSES * ROWS, rng=np.random.default_rng(0))
    step, mask = Simulator(env, real=data, workers=PROCESSES, at_least=0.0), Islands(env, workers=PROCESSES)
    unknown = _unknown(mask, data.noise)
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        jobs: Jobs = {
            "bare": lambda: list(pool.map(_play_there, [name] * PROCESSES)),
            "audit": lambda: step(data.state, data.action, data.noise),
            "islands": lambda: mask(data.state, data.action, data.next_state, unknown),
        }
        for job in jobs.values():
            job()  # starts the processes
        lines = _lines(name, jobs, PROCESSES * ROWS, ROUNDS, time.perf_counter)
    step.close()
    mask.close()
    return lines


def _lines(name: str, jobs: Jobs, steps: int, turns: int, clock: Callable[[], float]) -> list[list[object]]:
    """Time all jobs in turns, and return their lines of the table."""
    seconds = np.array([[_seconds(job, clock) for job in jobs.values()] for _ in range(turns)])
    rates, shares = steps / np.median(seconds, axis=0), np.median(seconds[:, :1] / seconds, axis=0)
    wanted = {"bare": "", "simulator alone": ""}
    return [
        [name, job, float(rate), float(share), wanted.get(job, f"{WANTED:.2f}")]
        for job, rate, share in zip(jobs, rates, shares, strict=True)
    ]


def _seconds(job: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    job()
    return clock() - start


def _unknown(mask: Islands, noise: Any) -> Any:
    """Return noise columns as if islands had not been recorded."""
    other = np.array(noise)
    other[:, mask.bench.inside.packing.width + 1] = -1.0
    return other


def _substeps(env: Any, way: Any) -> int:
    """Return how many steps of the simulator a step of the environment takes."""
    env.reset(seed=0)
    before = way.data.time
    env.step(env.action_space.sample())
    return round((way.data.time - before) / way.model.opt.timestep)


def _play(env: Any, steps: int) -> None:
    env.action_space.seed(0)
    for step in range(steps):
        if step % STEPS == 0:
            env.reset(seed=step)
        env.step(env.action_space.sample())


def _play_there(name: str) -> None:
    """Play in another process, which makes the environment once."""
    _play(_kept(name), ROWS)


if __name__ == "__main__":
    main(*sys.argv[1:])
