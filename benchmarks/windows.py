"""Windows beside single rows: what a row costs, and how the yield falls with the length of windows.

Engine time is the time of ``Augmenter.fill`` without the time spent in mask and reward functions, per row that was
proposed, since longer windows are rejected more often whatever the engine does.
"""

import time
from typing import Any

import numpy as np

from benchmarks import measure
from benchmarks.engine import reward
from counterpoint import Augmenter, Transitions
from counterpoint.masks import Constant
from counterpoint.worlds import Pong, Sprites, collect, pong_policy, uniform_policy
from experiments import machine, pages

LENGTHS = (1, 2, 4, 8, 16)


def episodes(world: Any, policy: Any, rows: int) -> Transitions:
    """Record episodes of 50 rows."""
    rng = np.random.default_rng(0)
    return collect(world, policy, rows, rng, episode_length=50, reset_probability=0.0)


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


def yields(world: Any, policy: Any, length: int, pairing: Any) -> float:
    """Accepted windows per pair of windows."""
    data = episodes(world, policy, 20_000)
    make = Augmenter(world.factors, world.mask, reward, pairs=4000, pairing=pairing, window=length)
    made = make(data, rng=np.random.default_rng(2))
    return made.funnel.accepted / made.funnel.pairs


def main() -> None:
    """Print both tables."""
    data = episodes(Sprites(), uniform_policy(Sprites()), 100_000)
    costs = {length: nanoseconds(data, length) for length in LENGTHS}
    rows = [[length, cost, cost / costs[1]] for length, cost in costs.items()]
    print(machine.describe())
    pages.print_table("Engine without mask calls", ["rows in a window", "ns per row", "relative to 1"], rows)
    found: list[list[object]] = []
    for name, world, policy in (("sprites", Sprites(), uniform_policy(Sprites())), ("pong", Pong(), pong_policy)):
        found += [
            [name, pairing, *(yields(world, policy, length, pairing) for length in LENGTHS)]
            for pairing in ("uniform", "sharing")
        ]
    title = "Accepted windows per pair of windows, exact masks, 20,000 rows in episodes of 50"
    pages.print_table(title, ["world", "pairing", *(f"H = {length}" for length in LENGTHS)], found)


if __name__ == "__main__":
    main()
