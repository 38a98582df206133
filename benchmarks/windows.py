"""Windows beside single rows: what a row costs. How the yield falls with H is ``experiments.window_yield``.

Engine time is the time of ``Augmenter.fill`` without the time spent in mask and reward functions, per row that was
proposed, since longer windows are rejected more often whatever the engine does.
"""

import time

import numpy as np

from benchmarks import measure
from benchmarks.engine import reward
from counterpoint import Augmenter, Transitions
from counterpoint.masks import Constant
from counterpoint.worlds import Sprites, collect, uniform_policy
from experiments import machine, pages

LENGTHS = (1, 2, 4, 8, 16)


def episodes(rows: int) -> Transitions:
    """Record episodes of 50 rows."""
    world, rng = Sprites(), np.random.default_rng(0)
    return collect(world, uniform_policy(world), rows, rng, episode_length=50, reset_probability=0.0)


def nanoseconds(data: Transitions, length: int, rows: int = 400_000) -> float:
    """Engine time per row, all proposals accepted, best of five."""
    world = Sprites()
    times = []
    for _ in range(6):  # the first compiles
        mask, task = measure.Stopwatch(Constant.identity(world.factors)), measure.Stopwatch(reward)
        augmenter = Augmenter(world.factors, mask, task, window=length)
        start = time.perf_counter()
        augmenter.fill(data, rows // length, rng=np.random.default_rng(1))
        times.append(time.perf_counter() - start - mask.seconds - task.seconds)
    return 1e9 * min(times[1:]) / rows


def main() -> None:
    """Print the table."""
    data = episodes(100_000)
    costs = {length: nanoseconds(data, length) for length in LENGTHS}
    rows = [[length, cost, cost / costs[1]] for length, cost in costs.items()]
    print(machine.describe())
    pages.print_table("Engine without mask calls", ["rows in a window", "ns per row", "relative to 1"], rows)


if __name__ == "__main__":
    main()
