"""The masks of the arms, for observations without goals."""

import fcntl
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint import Transitions, learn
from counterpoint.core.protocols import MaskFn
from counterpoint.masks import Constant, Threshold, Union
from experiments.goals.tasks import TASKS, Task, aim

STEP = 0.05  # metres that an action of 1 moves the gripper in one step of the environment
MODELS = Path(__file__).parents[2] / "runs" / "goals"  # not kept under version control
FIT_SEED = 2020


def heuristic(task: Task) -> MaskFn:
    """Return the paper's mask: what is within 10 cm of the gripper at the beginning of a step is not independent.

    Where an action is held, that is asked for each of its steps, with the gripper where the action has moved it.
    """
    near = task.fetch.near(goal=False)

    def mask(state: np.ndarray, action: np.ndarray) -> np.ndarray:
        found = near(state, action)
        for step in range(1, task.held):
            moved = state.copy()
            moved[:, :3] += step * STEP * action[:, :3]
            found = found | near(moved, action)
        return found

    return mask


def play(task: Task, size: int, rng: np.random.Generator) -> Transitions:
    """Record observations without goals; half of the time the gripper goes for an object, else it moves at random.

    Random moves alone hardly ever touch anything, so nothing could be learned from them about touching.
    """
    env, rows = task.make(), list[tuple[Any, Any, Any]]()
    while len(rows) < size:
        seen = env.reset(seed=int(rng.integers(2**31)))[0]["observation"]
        target, aims = int(rng.integers(len(task.objects))), rng.random() < 0.5
        for _ in range(min(task.length, size - len(rows))):
            action = rng.uniform(-1, 1, 4)
            if aims:
                place = seen[list(task.objects[target])]
                action[:3] = aim(place - seen[:3], rng.normal(size=3))
            action = action.astype(np.float32)
            after = env.step(action)[0]["observation"]
            rows.append((seen, action, after))
            seen = after
    state, action, after = (np.array(column) for column in zip(*rows, strict=True))
    return Transitions(state, action, np.zeros(size), after, np.zeros(size, bool))


@cache
def learned(name: str, rows: int, epochs: int) -> Any:
    """Return the learned mask of a task, fitted once for all runs and stored; others wait for it."""
    task, path = TASKS[name], MODELS / f"{name}_{rows}_{epochs}.safetensors"
    factors = task.fetch.observation_factors
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            rng = np.random.default_rng(FIT_SEED)
            data = play(task, rows, rng)
            learn.ResidualAttribution(epochs=epochs).fit(data, factors, rng=rng, progress=False).save(path)
    fitted, rng = learn.load(path), np.random.default_rng(FIT_SEED + 1)
    found = learn.calibrate(fitted, play(task, max(rows // 5, 2_000), rng), factors, rng=rng, progress=False)
    return Union(Constant.identity(factors), Threshold(fitted, found.tau))
