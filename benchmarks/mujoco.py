"""Recording, audit and islands of MuJoCo environments beside the bare environment's steps a second."""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import counterpoint.worlds.fetch  # noqa: F401 (registers the environments)
from counterpoint.adapters.mujoco import Islands, Recorder, Simulator, collect
from experiments import pages

STEPS, ROUNDS, ROWS = 300, 3, 1_000
ENVIRONMENTS = ("FetchPush-v4", "counterpoint/Slide2-v0")


def main() -> None:
    """Print the tables."""
    rows: list[list[object]] = []
    for name in ENVIRONMENTS:
        env = gymnasium.make(name, disable_env_checker=True)
        recorder = Recorder(env)
        data = collect(env, None, STEPS, rng=np.random.default_rng(0))
        alone, islands = Simulator(env, real=data, workers=1, at_least=0.0), Islands(env, workers=1)
        unknown = np.array(data.noise)
        unknown[:, islands.bench.inside.packing.width + 1] = -1.0  # as if islands had not been recorded
        jobs: dict[str, Callable[[], object]] = {
            "bare": lambda env=env: _play(env),  # type: ignore[misc]
            "recording": lambda env=recorder: _play(env),  # type: ignore[misc]
            "audit": lambda step=alone, data=data: step(data.state, data.action, data.noise),  # type: ignore[misc]
            "islands": lambda mask=islands, data=data, noise=unknown: mask(data.state, data.action, noise),  # type: ignore[misc]
        }
        rates = _rates(jobs)
        rows += [[name, job, rate, rate / rates["bare"], "0.80"] for job, rate in rates.items()]
        rows += _processes(name, rates["bare"])
    pages.print_table("MuJoCo, processor time", ["environment", "what", "steps/s", "of bare", "at least"], rows)


def _play(env: Any) -> None:
    env.action_space.seed(0)
    for step in range(STEPS):
        if step % 50 == 0:
            env.reset(seed=step)
        env.step(env.action_space.sample())


def _rates(jobs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Time all jobs in turn, several times, and return the best steps per second of processor time of each."""
    best = dict.fromkeys(jobs, 0.0)
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            best[name] = max(best[name], STEPS / (time.process_time() - start))
    return best


def _processes(name: str, bare: float) -> list[list[object]]:
    """Audit with two processes, by the clock on the wall."""
    env = gymnasium.make(name, disable_env_checker=True)
    data = collect(env, None, ROWS, rng=np.random.default_rng(0))
    many = Simulator(env, real=data, workers=2)
    many(data.state, data.action, data.noise)  # starts them
    start = time.perf_counter()
    many(data.state, data.action, data.noise)
    rate = ROWS / (time.perf_counter() - start)
    many.close()
    return [[name, "audit, 2 processes, wall clock", rate, rate / bare / 2, "0.80"]]


if __name__ == "__main__":
    main()
