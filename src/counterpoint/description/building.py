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
from counterpoint.simulators import FULL_TURN, Tolerance


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
    scaled = [name for name, place in factors.positions.items() if place.scale != 1.0 or place.offset != 0.0]
    if scaled:
        source.fail(f"proximity measures distances in plain columns, and {scaled[0]!r} has a scale or offset", "mask")
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
    if task["kind"] == "constant":
        return _Constant(_value(source, section))
    goal, achieved = (_goal_columns(source, section, key, factors) for key in ("goal", "achieved"))
    if len(goal) > len(achieved):
        source.fail(f"the goal has {len(goal)} columns, and what is achieved has only {len(achieved)}", section)
    tolerance = source.number(section, "tolerance", 0.05)
    values = (source.number(section, "missed", -1.0), source.number(section, "reached", 0.0))
    return _Reached(goal, achieved[: len(goal)], tolerance, None if section == "terminal" else values)


def derive_function(source: Source, factors: Factorization) -> Callable[..., Any]:
    """Return the function that computes the derived columns: the user's, or a difference of columns."""
    table = source.table["derived"]
    if "plus" not in table:
        return source.function("derived")
    if "function" in table:
        source.fail("give plus (and minus), or a function, not both", "derived")
    plus, minus = (
        None if table.get(key) is None else source.columns("derived", key, table[key], {}) for key in ("plus", "minus")
    )
    for key, columns in (("plus", plus), ("minus", minus)):
        if columns is not None and len(columns) != len(factors.derived):
            source.fail(f"{key} has {len(columns)} columns, and {len(factors.derived)} are derived", "derived")
        wrong = [column for column in columns or () if not 0 <= column < factors.state_width]
        if wrong or set(columns or ()) & set(factors.derived):
            source.fail(f"{key} must name columns of factors, which the derived ones are computed from", "derived")
    return _Difference(plus or (), minus)


def tolerance_of(source: Source, factors: Factorization, atol: float) -> Tolerance:
    """Return how far a simulator may be off: the sections [tolerances] and [angles]."""
    limits = {name: source.number("tolerances", name) for name in source.table.get("tolerances", {})}
    angles: dict[int, float] = {}
    for name in source.table.get("angles", {}):
        found = source.parts("angles", name, ("period",))
        period = found.get("period", FULL_TURN)
        if isinstance(period, bool) or not isinstance(period, int | float) or not 0 < period < 1e300:
            source.fail(f"period: expected a positive number, such as 360, got {period!r:.80}", "angles", name)
        foreign = sorted(set(found["columns"]) - set(factors.state[name]))
        if foreign:
            source.fail(f"{name!r} owns the columns {factors.state[name]}, not {foreign}", "angles", name)
        angles.update(dict.fromkeys(found["columns"], float(period)))
    with source.failing("tolerances"):
        return Tolerance.of(factors, atol, per_factor=limits, angles=angles)


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


def _goal_columns(source: Source, section: str, key: str, factors: Factorization) -> tuple[int, ...]:
    """Return the columns that a goal, or what is achieved, has: those of a factor, or columns."""
    value = source.table[section].get(key)
    if isinstance(value, str) and ":" not in value:
        source.known("factor", [value], tuple(factors.state), section, key)
        return factors.state[value]
    if value is None:
        source.fail(f"from-goal needs {key!r}, the name of a state factor, or columns", section)
    columns = source.columns(section, key, value, {})
    if not all(0 <= column < factors.state_width for column in columns):
        source.fail(f"{key}: the state has only {factors.state_width} columns, got {value!r:.80}", section, key)
    return columns


def _value(source: Source, section: str) -> float | bool:
    """Return the value of a constant reward, or whether every row is terminal."""
    value = source.table[section].get("value")
    if section == "reward":
        return source.number(section, "value")
    if not isinstance(value, bool):
        source.fail(f"value: expected true or false, got {value!r:.80}", section, "value")
    return value


@dataclass(frozen=True)
class _Constant:
    """The same for every row."""

    value: float | bool

    def __call__(self, state: Floats, action: Floats, next_state: Floats) -> Floats | Bools:  # noqa: ARG002
        return np.full(len(state), self.value)


@dataclass(frozen=True)
class _Difference:
    """Derived columns that are others minus others, or copies of others."""

    plus: tuple[int, ...]
    minus: tuple[int, ...] | None

    def __call__(self, state: Floats) -> Floats:
        taken = state[:, list(self.plus)]
        return taken if self.minus is None else np.asarray(taken - state[:, list(self.minus)])


@dataclass(frozen=True)
class _Reached:
    """Whether the achieved columns of the next state are within tolerance of its goal, or the values for no and yes."""

    goal: tuple[int, ...]
    achieved: tuple[int, ...]
    tolerance: float
    values: tuple[float, float] | None

    def __call__(self, state: Floats, action: Floats, next_state: Floats) -> Floats | Bools:  # noqa: ARG002
        apart = next_state[:, list(self.goal)] - next_state[:, list(self.achieved)]
        reached = np.linalg.norm(apart, axis=1) <= self.tolerance
        return np.asarray(reached if self.values is None else np.where(reached, self.values[1], self.values[0]))
