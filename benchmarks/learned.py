"""Learned masks: what augmenting with one costs beside its bare forward passes, and how fitting grows.

python -m benchmarks.learned
"""

import time
from typing import Any

import numpy as np
import torch

from benchmarks import measure
from benchmarks.engine import reward
from counterpoint import Augmenter
from counterpoint.learn import NetworkEstimator, TreeAttribution
from counterpoint.learn.estimators.loading import ESTIMATORS
from counterpoint.masks import Threshold
from counterpoint.worlds import Sprites, World, collect, uniform_policy
from counterpoint.worlds.zoo import FOREIGN, Zoo
from experiments import machine, pages

LIMIT = 1.2
ROWS, CHEAP_ROWS = 2_000, 20_000  # and as many pairs; what takes microseconds a row needs more rows to be measured
CHEAP = ("SandyMixture", "ResidualAttribution", "DistilledLikelihood")
NETWORKS = [name for name, kind in ESTIMATORS.items() if issubclass(kind, NetworkEstimator)]
SMALL: dict[str, Any] = {"epochs": 3, "batch_size": 500}


def recorded(n: int, rows: int) -> tuple[Sprites, Any]:
    """Record transitions of n sprites."""
    world = Sprites(n=n)
    return world, collect(world, uniform_policy(world), rows, np.random.default_rng(0))


def overhead(name: str) -> list[object]:
    """Measure a whole augmentation with an estimator's mask, and the time inside its network."""
    rows = CHEAP_ROWS if name in CHEAP else ROWS
    world, data = recorded(4, rows)
    fitted = ESTIMATORS[name](**SMALL).fit(data[:1000], world.factors, rng=np.random.default_rng(1), progress=False)
    tau = float(np.quantile(fitted.scores(data.state, data.action, data.next_state), 0.7))
    augmenter = Augmenter(world.factors, Threshold(fitted, tau), reward, pairs=rows, samples_per_pair=1)
    kind: Any = type(fitted)
    watch, before = measure.Stopwatch(kind.edges), kind.edges

    def watched(*given: Any) -> Any:
        return watch(*given)

    kind.edges = watched
    try:
        augmenter(data, rng=np.random.default_rng(2))
        watch.seconds, start = 0.0, time.perf_counter()
        augmenter(data, rng=np.random.default_rng(2))
        whole = time.perf_counter() - start
    finally:
        kind.edges = before
    return [name, rows, whole, watch.seconds, whole / watch.seconds]


def fitting(name: str, n: int, rows: int) -> float:
    """Return the seconds of one epoch."""
    world, data = recorded(n, rows)
    kind: Any = ESTIMATORS[name]
    history = kind(**SMALL).fit(data, world.factors, rng=np.random.default_rng(1), progress=False).learned().history
    return history.seconds / len(history.train)


def trees(name: str, world: World, rows: int) -> list[object]:
    """Measure how long trees take to fit, and how many rows they score in a second."""
    data = collect(world, uniform_policy(world), rows, np.random.default_rng(0))
    estimator = TreeAttribution(allow_constant=True)
    estimator.fit(data[:1000], world.factors, rng=np.random.default_rng(1), progress=False)  # loops are compiled
    start = time.perf_counter()
    fitted = estimator.fit(data, world.factors, rng=np.random.default_rng(1), progress=False)
    fitting = time.perf_counter() - start
    fitted.scores(data.state[:1000], data.action[:1000])
    start = time.perf_counter()
    fitted.scores(data.state, data.action)
    return [name, rows, fitting, rows / (time.perf_counter() - start)]


def main() -> None:
    """Print all tables."""
    torch.set_num_threads(1)
    print(machine.describe())
    pages.print_table(
        f"Augmenting rows by as many pairs, four sprites, 1 thread; at most {LIMIT} times the network wanted",
        ["estimator", "rows", "whole, s", "network, s", "ratio"],
        [overhead(name) for name in NETWORKS],
    )
    rows: list[list[object]] = []
    for name in NETWORKS:
        base = fitting(name, 4, 2000)
        grown = [fitting(name, n, size) for n, size in ((4, 4000), (8, 2000), (16, 2000))]
        rows.append([name, base, *(seconds / base for seconds in grown)])
    pages.print_table(
        "Fitting: seconds per epoch of 2,000 rows of 4 sprites, and how many times that with more rows or sprites",
        ["estimator", "seconds", "4,000 rows", "8 sprites", "16 sprites"],
        rows,
    )
    pages.print_table(
        "TreeAttribution, which has no network and no epochs",
        ["world", "rows", "fitting, s", "rows scored in a second"],
        [
            trees("4 sprites", Sprites(n=4), 20_000),
            trees("8 sprites", Sprites(n=8), 20_000),
            trees("zoo 9125, 15 nodes", Zoo(9125, kinds=FOREIGN), 20_000),
        ],
    )


if __name__ == "__main__":
    main()
