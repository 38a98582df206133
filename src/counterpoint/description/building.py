"""From the sections of a description to the functions of an augmenter."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import Sparse, Uniform
from counterpoint.core.require import require_share
from counterpoint.description.source import Source
from counterpoint.masks import Proximity, Threshold
from counterpoint.masks.pairs import tau_of_kinds


def mask_function(source: Source, factors: Factorization) -> Callable[..., Any] | None:
    """Return the mask of a description, if it has one."""
    mask = source.table.get("mask")
    if mask is None:
        return None
    if mask["kind"] == "function":
        return source.function("mask")
    if mask["kind"] == "learned":
        for key in ("file", "tau"):
            if key not in mask:
                source.fail(f"a learned mask needs {key!r}", "mask")
        tau = _tau(source, factors)
        with source.failing("mask", "file"):
            return Threshold(_learned().load(source.path.parent / mask["file"], factors=factors), tau)
    if "radius" not in mask:
        source.fail("proximity needs a radius", "mask")
    with source.failing("mask"):
        positions = {name: place.columns for name, place in factors.positions.items() if name in factors.state}
        return Proximity(factors, positions, mask["radius"], mask.get("attached", ()), mask.get("velocities"))


def _tau(source: Source, factors: Factorization) -> float | Floats:
    """Return the threshold of a learned mask, or one for each kind of edge."""
    table = source.table["mask"]["tau"]
    if not isinstance(table, dict):
        return source.number("mask", "tau")
    for kind, value in table.items():
        if type(value) not in (int, float):
            source.fail(f"tau: expected a number for {kind!r}, got {value!r:.80}", "mask", "tau")
    with source.failing("mask", "tau"):
        return tau_of_kinds(factors, table)


def task_function(source: Source, section: str, factors: Factorization) -> Callable[..., Any] | None:
    """Return the reward or terminal function of a section, if it is there."""
    task = source.table.get(section)
    if task is None:
        return None
    if task["kind"] == "function":
        return source.function(section)
    if task["kind"] == "learned":
        return _learned_task(source, section, factors)
    for key in ("goal", "achieved"):
        if not isinstance(task.get(key), str):
            source.fail(f"from-goal needs {key!r}, the name of a state factor", section)
        source.known("factor", [task[key]], tuple(factors.state), section, key)
    goal, achieved = factors.state[task["goal"]], factors.state[task["achieved"]]
    if len(goal) > len(achieved):
        source.fail(f"the goal {task['goal']!r} has more columns than {task['achieved']!r}", section)
    tolerance = source.number(section, "tolerance", 0.05)
    return _Reached(goal, achieved[: len(goal)], tolerance, section == "terminal")


def derive_function(source: Source) -> Callable[..., Any]:
    """Return the function that computes the derived columns."""
    return source.function("derived")


def settings_of(source: Source) -> dict[str, Any]:
    """Return the settings of the section [augment]."""
    table = source.table.get("augment", {})
    source.known("word", table, ("policy", "samples_per_pair", "pairing", "window", "static_share"), "augment")
    found = dict(table)
    if "policy" in table:
        found["policy"] = _policy(source, table["policy"])
    if "pairing" in table:
        if not isinstance(table["pairing"], str):
            source.fail(f"pairing: expected a word in quotes, got {table['pairing']!r:.80}", "augment", "pairing")
        source.known("pairing", [table["pairing"]], ("uniform", "sharing"), "augment", "pairing")
    for word in ("samples_per_pair", "window"):
        count = table.get(word, 1)
        if type(count) is not int or not 1 <= count <= 10**6:
            source.fail(f"{word}: expected a whole number, 1 or more, got {count!r:.80}", "augment", word)
    with source.failing("augment", "static_share"):
        require_share("static_share", table.get("static_share", 0.0))
    return found


def _policy(source: Source, value: Any) -> Uniform | Sparse:
    if isinstance(value, str):
        source.known("policy", [value], ("uniform", "sparse"), "augment", "policy")
        return Uniform() if value == "uniform" else Sparse()
    if isinstance(value, dict) and set(value) == {"sparse"}:
        with source.failing("augment", "policy"):
            return Sparse(value["sparse"])
    raise source.fail(
        f'policy: expected "uniform", "sparse" or {{ sparse = 2 }}, got {value!r:.80}', "augment", "policy"
    )


def _learned_task(source: Source, section: str, factors: Factorization) -> Callable[..., Any]:
    task = source.table[section]
    if "file" not in task:
        source.fail(f"a learned {section} needs 'file'", section)
    with source.failing(section, "file"):
        model: Any = _learned().RewardModel.load(source.path.parent / task["file"], factors=factors)
    wanted = "reward" if section == "reward" else "terminated"
    if model.predicts != wanted:
        source.fail(f"{task['file']} predicts {model.predicts!r}, expected {wanted!r}", section, "file")
    return model  # type: ignore[no-any-return]


def _learned() -> Any:
    return importlib.import_module("counterpoint.learn")  # needs PyTorch


@dataclass(frozen=True)
class _Reached:
    """0 where the achieved columns of the next state are within tolerance of its goal, else -1; or whether so."""

    goal: tuple[int, ...]
    achieved: tuple[int, ...]
    tolerance: float
    flag: bool

    def __call__(self, state: Floats, action: Floats, next_state: Floats) -> Floats | Bools:  # noqa: ARG002
        apart = next_state[:, list(self.goal)] - next_state[:, list(self.achieved)]
        reached = np.linalg.norm(apart, axis=1) <= self.tolerance
        return np.asarray(reached if self.flag else reached.astype(next_state.dtype) - 1)
