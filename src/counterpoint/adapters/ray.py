"""Shards on Ray: one plain task for each, on this machine or on a cluster.

Not through Ray Data: what its read_parquet, map_batches and write_parquet give depends on where batches happen to end,
and changes from run to run. A task that makes one shard from its number can be tried again anywhere. On a cluster the
dataset, the description and the output must be on storage that every node sees under the same name.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.core.require import require_count
from counterpoint.files.pool import KEPT_MEMORY, ONE_THREAD, Chances, cores

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray is going to do anyway; else it warns

try:
    import ray
except ImportError as error:
    raise ImportError("The engine ray needs Ray: pip install counterpoint-rl[ray]") from error

_ray: Any = ray  # parts of which have no types
STORE_BYTES = 100 * 2**20  # of shared memory for results, which are tiny; Ray would take a third of all memory
AHEAD = 4  # tasks that wait for each worker


@dataclass(frozen=True)
class Ray:
    """Calls a function in tasks of Ray; what `augment_shards` takes as its engine.

    Attributes:
        workers: how many tasks at a time; on this machine as many as there are cores, by default, and on a cluster as
            many as it has room for.
        address: of a cluster, such as ``auto`` or ``ray://head:10001``. A local one is started and ended by default.
        tries: how often the worker of a task may die while no other task gets finished, before all is given up.
    """

    workers: int | None = None
    address: str | None = None
    tries: int = 3

    def __post_init__(self) -> None:
        require_count("tries", self.tries)
        if self.workers is not None:
            require_count("workers", self.workers)

    def __call__(self, task: Callable[[int], Any], numbers: Sequence[int]) -> Iterator[Any]:
        """Call the function with each number; yield the results as they come, and raise what a call raised."""
        if not numbers:
            return
        mine = not ray.is_initialized()
        if mine:
            self._start()
        try:
            yield from self._results(task, numbers)
        finally:
            if mine:
                ray.shutdown()

    def _start(self) -> None:
        """Start Ray here, or find the cluster."""
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self.address is None:
            local: dict[str, Any] = {"num_cpus": self.workers or cores(), "object_store_memory": STORE_BYTES}
            ray.init(include_dashboard=False, **local, **quiet)
        else:
            ray.init(address=self.address, **quiet)

    def _results(self, task: Callable[[int], Any], numbers: Sequence[int]) -> Iterator[Any]:
        at_once = self.workers or int(_ray.cluster_resources().get("CPU", 1))
        place = {"env_vars": {**KEPT_MEMORY, **ONE_THREAD}}
        remote = ray.remote(num_cpus=1, max_retries=0, runtime_env=place)(_call)
        held, waiting, chances = ray.put(task), deque(numbers), Chances(self.tries)
        running: dict[Any, int] = {}
        while waiting or running:
            while waiting and len(running) < at_once * AHEAD:
                number = waiting.popleft()
                running[remote.remote(held, number)] = number
            for ready in ray.wait(list(running), num_returns=1)[0]:
                number = running.pop(ready)
                try:
                    found = ray.get(ready)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, Exception) else error from error
                except ray.exceptions.RayError as error:  # it is not the task that failed
                    end = chances.died(number, type(error).__name__)
                    if end is not None:
                        raise end from error
                    waiting.append(number)
                else:
                    chances.finished()
                    yield found


def _call(task: Callable[[int], Any], number: int) -> Any:
    return task(number)
