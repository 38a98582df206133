"""Arguments that several verbs share, and what they stand for."""

import argparse
import ast
import importlib
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.command_line.environment import add_environment, simulator
from counterpoint.core.arrays import listed
from counterpoint.core.transitions import Transitions
from counterpoint.description import Description, read_description
from counterpoint.files import Scan, sample, scan
from counterpoint.files.jobs import place_of
from counterpoint.user_code import code_of, find, load, sources

WORLDS = {  # name -> class in counterpoint.worlds, imported when asked for
    "sprites": "Sprites",
    "pong": "Pong",
    "room": "Room",
    "two-arms": "TwoArms",
    "stationary": "StationaryMP",
    "nonstationary": "NonstationaryMP",
}
DATA = "a .parquet, .npz, .hdf5 or .h5 file, minari:ID, a LeRobot folder, or a folder of such files"
MOST_ROWS = 1_000_000  # that a mask is fitted to or judged by, unless told otherwise


def add_data(verb: argparse.ArgumentParser, name: str = "data", *, optional: bool = False) -> None:
    """Add a file of transitions, and the choice of its parts."""
    verb.add_argument(name, help=DATA, nargs="?" if optional else None)
    verb.add_argument(
        "--keys", type=_names, metavar="A,B", help="the observation keys to take as the state (robomimic, Minari)"
    )


def add_rows(verb: argparse.ArgumentParser) -> None:
    """Add how many rows to read at most."""
    verb.add_argument(
        "--rows",
        type=int,
        default=MOST_ROWS,
        metavar="N",
        help=f"read N rows at most, spread evenly over the file or folder ({MOST_ROWS:,})",
    )


def add_output(verb: argparse.ArgumentParser, what: str) -> None:
    """Add an output and whether it may be replaced."""
    verb.add_argument("--out", required=True, metavar="FILE", help=what)
    verb.add_argument("--force", action="store_true", help="replace an output that exists")


def add_simulator(verb: argparse.ArgumentParser) -> None:
    """Add a world, or a function, that says what really happens."""
    add_world(verb)
    add_environment(verb)
    verb.add_argument(
        "--simulator",
        metavar="MODULE:FUNCTION",
        help="(state, action) -> next_state, for a batch or for one row; with noise as the third argument if the file "
        "holds noise",
    )
    verb.add_argument("--atol", type=float, default=1e-6, help="largest difference that counts as agreement (1e-6)")


def add_world(verb: argparse.ArgumentParser) -> None:
    """Add a world by name, with settings."""
    verb.add_argument("--world", choices=sorted(WORLDS), help="a world of this package")
    add_setting(verb)


def add_setting(verb: argparse.ArgumentParser) -> None:
    """Add settings of a world or an environment."""
    verb.add_argument(
        "--setting",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the world or environment; may be repeated",
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


def sampled(given: argparse.Namespace, source: Scan) -> Transitions:
    """Read the file, or some rows of it that are spread evenly if it has very many."""
    return sample(source, given.rows).transitions


def described(path: str, source: Scan) -> Description:
    """Read the description of a dataset; observation keys come from the file, and owners of noise if it names none.

    Raises:
        ValueError: if the file holds noise that nobody owns, because it would be lost in a swap.
    """
    known, found = source.factors, read_description(path, source.observation_keys)
    if found.factors.noise or found.without_noise:
        return found
    if known is not None and known.noise and set(known.noise) <= set(found.factors.state):
        return replace(found, factors=replace(found.factors, noise=known.noise))
    return found


def opened_as(given: argparse.Namespace, description: Description) -> Scan:
    """Look at the file of transitions again, without its noise if the description says so."""
    source = opened(given)
    return source.without("noise") if description.without_noise else source


def tell_unread(source: Scan) -> None:
    """Name what a file holds besides, and what is therefore left behind."""
    if source.unread:
        print(f"left behind, not part of the transitions: {listed(source.unread)}", file=sys.stderr)


def outputs(given: argparse.Namespace, place: Path, parts: Path) -> dict[str, Path]:
    """Return all that `augment` writes, by what it is."""
    found = {"the output": place, "the folder of the job": parts}
    return found | ({} if given.report is None else {"the report": Path(given.report)})


def inputs(source: Scan, description: Description | None = None) -> dict[str, Path]:
    """Return all files that a verb reads, by what they are."""
    found = {"the data": place_of(source)}
    if description is not None:
        found["the description"] = description.path
        found |= {f"the file of [{section}]": path for section, path in description.files.items()}
        for section, place in description.functions.items():
            found |= code_of(f"[{section}]", place)
    return found


def called(description: Description) -> list[str]:
    """Say which files would be loaded and which functions of which files be run, a line each, and run none."""
    lines = [f"loads   [{section}] {path}" for section, path in description.files.items()]
    for section, place in description.functions.items():
        lines.append(f"runs    [{section}] {place}")
        if place.path is not None and place.folder is not None:
            others = sources(place.path, place.folder)[1:]
            lines += [f"        which imports {path}" for path in sorted(others)]
    return lines


def simulator_code(given: argparse.Namespace) -> dict[str, Path]:
    """Return the files of the functions that ``--simulator`` and ``--environment`` name, by what they are."""
    named = {"--simulator": getattr(given, "simulator", None), "--environment": given.environment}
    local = {option: text for option, text in named.items() if text is not None and ":" in text}
    found: dict[str, Path] = {}
    for option, text in local.items():
        with suppress(ValueError):  # said when it is loaded
            found |= code_of(option, find(text, Path.cwd()))
    return found


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
    robot = simulator(given)
    simulated = world(given) if robot is None else None
    if (simulated is not None or robot is not None) and given.simulator is not None:
        raise ValueError("--simulator, --world and --environment: give only one of them.")
    if robot is not None:
        return robot
    return simulated.step if simulated is not None else given.simulator and imported(given.simulator)


def imported(place: str) -> Any:
    """Load ``module:function``, from the working folder first."""
    try:
        return load(place, Path.cwd())
    except ValueError as error:
        raise ValueError(f"{place}: {error}. Give module:function, of a module here or an installed one.") from error


def estimator_class(name: str) -> Any:
    """Return a class of estimators by its name."""
    known = importlib.import_module("counterpoint.learn.estimators.loading").ESTIMATORS
    if name not in known:
        raise ValueError(f"--estimator: there is no {name!r}; there are {listed(list(known))}.")
    return known[name]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
