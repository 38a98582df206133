"""Arguments that several verbs share, and what they stand for."""

import argparse
import ast
import importlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.core.arrays import listed
from counterpoint.description import Description, cast_function, read_description
from counterpoint.files import Scan, scan

WORLDS = {  # name -> class in counterpoint.worlds, imported when asked for
    "sprites": "Sprites",
    "pong": "Pong",
    "room": "Room",
    "stationary": "StationaryMP",
    "nonstationary": "NonstationaryMP",
}
DATA = "a .parquet, .npz, .hdf5 or .h5 file, or minari:ID"


def add_data(verb: argparse.ArgumentParser, name: str = "data") -> None:
    """Add a file of transitions, and the choice of its parts."""
    verb.add_argument(name, help=DATA)
    verb.add_argument(
        "--keys", type=_names, metavar="A,B", help="the observation keys to take as the state (robomimic, Minari)"
    )


def add_output(verb: argparse.ArgumentParser, what: str) -> None:
    """Add an output and whether it may be replaced."""
    verb.add_argument("--out", required=True, metavar="FILE", help=what)
    verb.add_argument("--force", action="store_true", help="replace an output that exists")


def add_simulator(verb: argparse.ArgumentParser) -> None:
    """Add a world, or a function, that says what really happens."""
    add_world(verb)
    verb.add_argument(
        "--simulator", metavar="MODULE:FUNCTION", help="(state, action) -> next_state, batched; with noise if there is"
    )
    verb.add_argument("--atol", type=float, default=1e-6, help="largest difference that counts as agreement (1e-6)")


def add_world(verb: argparse.ArgumentParser) -> None:
    """Add a world by name, with settings."""
    verb.add_argument("--world", choices=sorted(WORLDS), help="a world of this package")
    verb.add_argument(
        "--setting",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="of the world; may be repeated",
    )


def setting(text: str) -> tuple[str, Any]:
    """Read ``name=value``; the value is a Python literal, or else plain text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def opened(given: argparse.Namespace) -> Scan:
    """Look at the file of transitions."""
    return scan(given.data, keys=given.keys)


def described(path: str, source: Scan) -> Description:
    """Read the description of a dataset; observation keys and the owners of noise are those of the file."""
    known, found = source.factors, read_description(path, observation_keys(source))
    if known is not None and known.noise and set(known.noise) <= set(found.factors.state):
        return replace(found, factors=replace(found.factors, noise=known.noise))
    return found


def observation_keys(source: Scan) -> dict[str, Sequence[int]]:
    """Return the state columns of each observation key of a file, or of the file that it was made from."""
    remembered: dict[str, Sequence[int]] = source.head.notes.get("keys", {})
    known = source.factors
    if remembered or known is None:
        return remembered
    return {**known.state, **({"achieved_goal": known.derived} if known.derived else {})}


def world(given: argparse.Namespace) -> Any:
    """Build the world that was asked for, or return None."""
    if given.world is None:
        if given.setting:
            raise ValueError("--setting: it belongs to --world, which was not given.")
        return None
    kind = getattr(importlib.import_module("counterpoint.worlds"), WORLDS[given.world])
    try:
        return kind(**dict(given.setting))
    except TypeError as error:
        raise ValueError(f"--setting: {given.world} does not take this: {error}") from error


def step_of(given: argparse.Namespace) -> Any:
    """Return the step function that was asked for, or None."""
    simulated = world(given)
    if simulated is not None and given.simulator is not None:
        raise ValueError("--simulator: give it or --world, not both.")
    return simulated.step if simulated is not None else given.simulator and imported(given.simulator)


def imported(place: str) -> Any:
    """Import ``module:function``, looked up in the working folder first."""
    module, colon, name = place.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        if not colon:
            raise ValueError("expected module:function")
        return cast_function(getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {error}. Give module:function, of a module here or an installed one.") from error
    finally:
        sys.path.remove(here)


def estimator_class(name: str) -> Any:
    """Return a class of estimators by its name."""
    known = importlib.import_module("counterpoint.learn.estimators.loading").ESTIMATORS
    if name not in known:
        raise ValueError(f"--estimator: there is no {name!r}; there are {listed(list(known))}.")
    return known[name]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
