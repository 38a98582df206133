"""A MuJoCo environment on the command line: by its Gymnasium id, or by a function that makes it."""

import argparse
import functools
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.files import Scan
from counterpoint.user_code import load

REAL = 500  # rows of a file that are repeated before a verdict
MODULE = '''"""What {toml} refers to, and a recorder; written by: counterpoint inspect --environment {environment}"""

import sys

import numpy as np

from counterpoint import files
from counterpoint.adapters.mujoco import Islands, collect, factorization, goals
from counterpoint.command_line.environment import maker

make = maker({environment!r}, {settings!r})
mask = Islands(make)
'''
DERIVE = '''

def derive(state):
    """Return the relative columns: {sentence}."""
    return state[:, {plus}] - state[:, {minus}]
'''
REWARD = '''

def reward(state, action, next_state):
    """Return the environment's own reward."""
    return _reward(state, action, next_state)


_reward = goals(mask.bench.env).reward_fn(mask.bench.env.unwrapped.compute_reward)
'''
RECORD = """

policy = None  # acts at random; put your own here: a function (observation, rng) -> action

if __name__ == "__main__":  # python {module}.py recording.parquet 5000
    data = collect(mask.bench.env, policy, int(sys.argv[2]), rng=np.random.default_rng(0))
    files.write(sys.argv[1], data, factors=factorization(mask.bench.env))
"""


def add_environment(verb: argparse.ArgumentParser) -> None:
    """Add a MuJoCo environment."""
    verb.add_argument(
        "--environment",
        metavar="ID",
        help="a MuJoCo environment: a Gymnasium id such as FetchPush-v4, or module:function that makes one",
    )


def maker(environment: str, settings: dict[str, Any] | None = None) -> Any:
    """Return a function that makes an environment, and that other processes can be given.

    Args:
        environment: a Gymnasium id, or ``module:function``.
        settings: keywords for it.
    """
    importlib.import_module("counterpoint.adapters.mujoco")
    importlib.import_module("counterpoint.worlds.fetch")
    gymnasium = importlib.import_module("gymnasium")
    if environment in gymnasium.registry or "/" in environment or ":" not in environment:
        try:
            spec = gymnasium.spec(environment)
        except gymnasium.error.Error as error:
            raise ValueError(f"--environment: {error} Give a Gymnasium id, or module:function.") from error
        return functools.partial(gymnasium.make, spec, disable_env_checker=True, **(settings or {}))
    return functools.partial(load(environment, Path.cwd()), **(settings or {}))


def simulator(given: argparse.Namespace) -> Any:
    """Return the simulator that was asked for, or None."""
    if given.environment is None:
        return None
    make = maker(given.environment, dict(given.setting))
    return importlib.import_module("counterpoint.adapters.mujoco").Simulator(make)


def scene(given: argparse.Namespace) -> Any:
    """Return what draws transitions of the environment that was asked for, or None if nothing can."""
    if given.environment is None:
        return None
    adapter = importlib.import_module("counterpoint.adapters.mujoco")
    pictures = importlib.import_module("counterpoint.worlds.fetch.pictures")
    try:
        env = maker(given.environment, {**dict(given.setting), "render_mode": "rgb_array"})()
    except TypeError:  # a function that takes no such setting
        return None
    found = adapter.SceneDrawing(env, pictures.from_above if pictures.has_table(env.unwrapped) else None)
    return found if found.draws else None


def judge_by(step: Any, source: Scan) -> None:
    """Let a simulator repeat real rows of the file before its first verdict."""
    if not hasattr(step, "replay"):
        return
    chunk = next(source.chunks(REAL))
    real = chunk.transitions if chunk.provenance is None else chunk.transitions[~chunk.provenance.swapped.any(axis=1)]
    step.real, step.sample = (real if len(real) else None), REAL
    step.replayed = step.replay(step.real)
    print(f"real rows: {step.replayed}")


@dataclass(frozen=True)
class TakenApart:
    """An environment, or a world, taken apart: what to show of it, and what a description of its recordings needs."""

    lines: list[str]
    factors: Any
    functions: dict[str, str]  # section of a description -> name in the module
    module: str  # the text of that module
    records: bool = False  # whether the module is a program that records


def taken_apart(given: argparse.Namespace, module: str) -> TakenApart:
    """Take the environment that was asked for apart; its functions are to be in a module of that name."""
    make = maker(given.environment, dict(given.setting))
    adapter = importlib.import_module("counterpoint.adapters.mujoco")
    env = make()
    inside, factors = adapter.anatomy(env), adapter.factorization(env)
    functions = {"mask": "mask"}
    functions |= {"derived": "derive"} if factors.derived else {}
    functions |= {"reward": "reward"} if _rewarded(env, inside) else {}
    lines = _about(given.environment, adapter.Islands(env), inside, factors)
    return TakenApart(lines, factors, functions, _module(given, env, inside, module), records=True)


def _about(environment: str, mask: Any, inside: Any, factors: Any) -> list[str]:
    """Return what was found, a line each."""
    lines = [
        environment,
        f"  states of {factors.state_width} columns, {inside.layout.sizes[0]} of them the observation",
    ]
    for name, columns in factors.state.items():
        hidden = len(factors.noise.get(name, ()))
        lines.append(f"  {name:<24}{len(columns):>3} columns, {hidden:>3} of hidden state: {_short(columns)}")
    for column, plus, minus in inside.columns.differences:
        names = factors.columns["state"]
        lines.append(f"  {names[column]} is derived: {names[plus]} minus {names[minus]}")
    for name, columns in factors.action.items():
        moved = [each for k, each in enumerate(inside.bodies.names) if inside.drives[list(columns), k].any()]
        lines.append(f"  {name} moves {' and '.join(moved)}")
    lines.append(f"  contact islands are {'exact' if mask.exact else 'not exact'} in this model")
    return [*lines, *(f"  {remark}" for remark in mask.remarks)]


def _short(columns: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, columns[:16]))
    return shown if len(columns) <= 16 else f"{shown}, ..."


def _rewarded(env: Any, inside: Any) -> bool:
    """Say whether the environment relabels rewards of whole batches: goals that are plain arrays."""
    plain = inside.layout.goals is not None and all(not name for name, _ in inside.layout.goals.goal)
    return plain and hasattr(env.unwrapped, "compute_reward")


def _module(given: argparse.Namespace, env: Any, inside: Any, name: str) -> str:
    settings = dict(given.setting)
    text = MODULE.format(
        toml=Path(given.propose or "the description").name, environment=given.environment, settings=settings
    )
    table = inside.columns.differences
    if table:
        sentence = ", ".join(f"{column} is {plus} minus {minus}" for column, plus, minus in table)
        text += DERIVE.format(sentence=sentence, plus=[row[1] for row in table], minus=[row[2] for row in table])
    if _rewarded(env, inside):
        text += REWARD
    else:
        text = text.replace(", goals\n", "\n")
    return text + RECORD.format(module=name)
