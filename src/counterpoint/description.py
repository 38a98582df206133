"""One TOML file that says what a dataset's columns mean and how to augment it.

derived = { columns = "6:9", function = "my_robot:relative" }
context = ["room"]

[state]                       # columns, ranges, or observation keys of the recording
gripper = [0, 1, 2]
puck = "3:6"
room = { keys = ["room"] }

[action]
motor = "0:2"

[positions]                   # optional; learned masks and proximity use them
gripper = "0:3"
puck = "3:6"

[types]                       # optional; factors that are alike
[mask]
kind = "proximity"            # or "learned" (file, tau), or "function" (function = "module:name")
radius = 0.1
attached = { motor = ["gripper"] }

[reward]
kind = "function"             # or "learned" (file), or "from-goal" (goal, achieved, tolerance)
function = "my_robot:reward"

[terminal]                    # optional; as for the reward
kind = "function"
function = "my_robot:done"
"""

import difflib
import importlib
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.augment import Augmenter
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.masks import Proximity, Threshold

SECTIONS = ("state", "action", "derived", "context", "positions", "types", "mask", "reward", "terminal")
KINDS = {
    "mask": {"proximity": ("radius", "attached", "velocities"), "learned": ("file", "tau"), "function": ("function",)},
    "reward": {"function": ("function",), "learned": ("file",), "from-goal": ("goal", "achieved", "tolerance")},
    "terminal": {"function": ("function",), "learned": ("file",), "from-goal": ("goal", "achieved", "tolerance")},
}


class DescriptionError(ValueError):
    """The description file is wrong; the message names the line and what was probably meant."""


@dataclass(frozen=True)
class Description:
    """A description file, read and checked."""

    factors: Factorization
    table: Mapping[str, Any]
    path: Path

    def augmenter(self, **settings: Any) -> Augmenter:
        """Return the ``Augmenter`` that the file describes; ``settings`` are passed on to it."""
        source = _Source(self.path)
        parts: dict[str, Any] = {
            "mask_fn": _mask(source, self.table, self.factors),
            "reward_fn": _task(source, self.table, "reward", self.factors),
            "terminal_fn": _task(source, self.table, "terminal", self.factors),
        }
        if self.factors.derived:
            parts["derive"] = source.function("derived", self.table["derived"])
        for section in ("mask", "reward"):
            if parts[f"{section}_fn"] is None:
                source.fail(f"a section [{section}] is needed to augment", None)
        return Augmenter(self.factors, **parts, **settings)


def read_description(path: str | Path, keys: Mapping[str, Sequence[int]] | None = None) -> Description:
    """Read a description file.

    Args:
        path: the TOML file. Functions named in it are looked up beside it and on the Python path.
        keys: state columns of each observation key of the recording, for factors given by ``keys``.

    Raises:
        DescriptionError: naming the line, what is wrong, and the nearest right word.
    """
    source = _Source(Path(path))
    table = source.table
    source.known("section", table, SECTIONS)
    if "state" not in table:
        source.fail("a section [state] with at least one factor is needed", None)
    state = {name: source.columns("state", name, value, keys or {}) for name, value in table["state"].items()}
    action = {name: source.columns("action", name, value, {}) for name, value in table.get("action", {}).items()}
    derived = table.get("derived", {})
    for section in ("positions", "types"):
        source.known("factor", table.get(section, {}), (*state, *action), section)
    for name in table.get("context", []):
        source.known("factor", [name], tuple(state), "context")
    for section, kinds in KINDS.items():
        source.kind(section, table.get(section), kinds)
    try:
        factors = Factorization(
            state,
            action,
            derived=source.columns("derived", "columns", derived["columns"], keys or {}) if derived else (),
            context=tuple(table.get("context", ())),
            positions={
                n: Position(source.columns("positions", n, v, {})) for n, v in table.get("positions", {}).items()
            },
            types=table.get("types", {}),
        )
    except (ValueError, TypeError) as error:
        section = str(error).split(":", maxsplit=1)[0].split()[0]
        source.fail(str(error), section if section in table else "state")
    return Description(factors, table, source.path)


class _Source:
    """The text of a description file, for messages that name the line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8")
            self.table: dict[str, Any] = tomllib.loads(self.text)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DescriptionError(f"{path}: {error}") from error

    def line(self, section: str | None, key: str | None = None) -> int | None:
        """Find the line of a section, or of a key in it."""
        inside = section is None
        for number, text in enumerate(self.text.splitlines(), start=1):
            heading = re.match(r"\s*\[([^\]]+)\]", text)
            if heading:
                inside = heading.group(1).strip() == section
                if inside and key is None:
                    return number
            word = re.match(r"\s*[\"']?([^\"'=\[\]]+?)[\"']?\s*=", text)
            if word and (word.group(1) == key if inside and key else word.group(1) == section):
                return number
        return self.line(section) if key else None

    def fail(self, message: str, section: str | None, key: str | None = None) -> Any:
        """Raise, naming the line if it can be found."""
        line = self.line(section, key) if section else None
        where = f"{self.path}, line {line}" if line else str(self.path)
        raise DescriptionError(f"{where}: {message}")

    def known(
        self, what: str, words: Any, allowed: Sequence[str], section: str | None = None, key: str | None = None
    ) -> None:
        """Fail at the first word that is not allowed, with the nearest one that is; ``key`` says where it stands."""
        for word in words:
            if word not in allowed:
                near = difflib.get_close_matches(str(word), allowed, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(allowed)}."
                self.fail(
                    f"unknown {what} {word!r}; {hint}", section or str(word), (key or str(word)) if section else None
                )

    def columns(self, section: str, name: str, value: Any, keys: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
        """Read columns: a number, a list of numbers, a range such as "3:6", or observation keys."""
        if isinstance(value, int) and not isinstance(value, bool):
            return (value,)
        if isinstance(value, str) and re.fullmatch(r"\d+:\d+", value):
            start, stop = map(int, value.split(":"))
            return tuple(range(start, stop)) or self.fail(f"{name!r} has the empty range {value!r}", section, name)
        if isinstance(value, list) and all(
            isinstance(column, int) and not isinstance(column, bool) for column in value
        ):
            return tuple(value)
        if isinstance(value, dict) and set(value) == {"keys"}:
            if not keys:
                self.fail(f"{name!r} is given by observation keys, but the recording has none", section, name)
            self.known("observation key", value["keys"], tuple(keys), section, name)
            return tuple(column for key in value["keys"] for column in keys[key])
        wanted = 'expected columns such as [0, 1], a range such as "3:6", or { keys = ["name"] }'
        return tuple(self.fail(f"{name!r}: {wanted}, got {value!r}", section, name))

    def kind(self, section: str, table: Any, kinds: Mapping[str, Sequence[str]]) -> None:
        """Check that a section has a known kind and only the words of that kind."""
        if table is None:
            return
        if not isinstance(table, dict) or "kind" not in table:
            self.fail(f"[{section}] needs a kind: {', '.join(kinds)}", section)
        if table["kind"] not in kinds:
            near = difflib.get_close_matches(str(table["kind"]), kinds, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(kinds)}."
            self.fail(f"unknown kind {table['kind']!r} of {section}; {hint}", section, "kind")
        self.known("word", table, ("kind", *kinds[table["kind"]]), section)

    def function(self, section: str, table: Mapping[str, Any]) -> Callable[..., Any]:
        """Look up ``module:name``, beside the file first."""
        name = str(table.get("function", ""))
        if not re.fullmatch(r"[\w.]+:\w+", name):
            self.fail(f'expected function = "module:name", got {name!r}', section, "function")
        module, _, attribute = name.partition(":")
        beside = str(self.path.parent.resolve())
        sys.path.insert(0, beside)
        try:
            return cast_function(getattr(importlib.import_module(module), attribute))
        except (ImportError, AttributeError, TypeError) as error:
            return cast_function(self.fail(f"{name}: {error}", section, "function"))
        finally:
            sys.path.remove(beside)


def cast_function(value: Any) -> Callable[..., Any]:
    """Return a function, or raise ``TypeError``."""
    if not callable(value):
        raise TypeError(f"expected a function, got {type(value).__name__}")
    return value  # type: ignore[no-any-return]


def _mask(source: _Source, table: Mapping[str, Any], factors: Factorization) -> Callable[..., Any] | None:
    mask = table.get("mask")
    if mask is None:
        return None
    if mask["kind"] == "function":
        return source.function("mask", mask)
    if mask["kind"] == "learned":
        for key in ("file", "tau"):
            if key not in mask:
                source.fail(f"a learned mask needs {key!r}", "mask")
        load = importlib.import_module("counterpoint.learn").load
        return Threshold(load(source.path.parent / mask["file"], factors=factors), float(mask["tau"]))
    try:
        positions = {name: place.columns for name, place in factors.positions.items() if name in factors.state}
        return Proximity(factors, positions, mask["radius"], mask.get("attached", ()), mask.get("velocities"))
    except (KeyError, ValueError, TypeError) as error:
        missing = isinstance(error, KeyError)
        return cast_function(source.fail("proximity needs a radius" if missing else str(error), "mask"))


def _task(source: _Source, table: Mapping[str, Any], section: str, factors: Factorization) -> Callable[..., Any] | None:
    """Return the reward or terminal function of a section, if it is there."""
    task = table.get(section)
    if task is None:
        return None
    if task["kind"] == "function":
        return source.function(section, task)
    if task["kind"] == "learned":
        if "file" not in task:
            source.fail(f"a learned {section} needs 'file'", section)
        model = importlib.import_module("counterpoint.learn").RewardModel.load(
            source.path.parent / task["file"], factors=factors
        )
        wanted = "reward" if section == "reward" else "terminated"
        if model.predicts != wanted:
            source.fail(f"{task['file']} predicts {model.predicts!r}, expected {wanted!r}", section, "file")
        return cast_function(model)
    for key in ("goal", "achieved"):
        if key not in task:
            source.fail(f"from-goal needs {key!r}, the name of a state factor", section)
        source.known("factor", [task[key]], tuple(factors.state), section, key)
    goal, achieved = list(factors.state[task["goal"]]), list(factors.state[task["achieved"]])
    if len(goal) > len(achieved):
        source.fail(f"the goal {task['goal']!r} has more columns than {task['achieved']!r}", section)
    return _Reached(
        tuple(goal), tuple(achieved[: len(goal)]), float(task.get("tolerance", 0.05)), section == "terminal"
    )


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
