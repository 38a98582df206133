"""Show what is in a dataset, and propose a description of it.

Example:
  counterpoint inspect demos.hdf5 --propose robot.toml

Shows shapes, ranges, NaN, episodes, terminals, which factor owns which columns, and columns that seem to mix factors.
No function of yours is run. The proposal has one factor for each named part of the observations, and rules for derived
columns, reward and end where the rows give them away. With --environment or --world, which know who influences whom, it
is complete, and its functions are written beside it; otherwise the mask is yours to fill in.
"""

import argparse
from pathlib import Path

import numpy as np

from counterpoint.command_line import arguments, environment
from counterpoint.command_line.guessing import Guess, guess
from counterpoint.command_line.proposal import proposal, unknown
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.files import Scan
from counterpoint.files.apart import require_apart
from counterpoint.files.contents import Contents, contents
from counterpoint.files.mixtures import Mixture, mixtures
from counterpoint.files.notes import noted_window
from counterpoint.files.output import output, require_free
from counterpoint.progress import ProgressBar

SAMPLE = 8192  # rows that guesses and warnings rest on


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb, optional=True)
    environment.add_environment(verb)
    arguments.add_world(verb)
    verb.add_argument("--description", metavar="TOML", help="check this description against the file")
    verb.add_argument("--propose", metavar="TOML", help="write the proposed description to this file")
    verb.add_argument("--force", action="store_true", help="replace an output that exists")


def run(given: argparse.Namespace) -> int:
    """Inspect a file, or an environment, or both."""
    if given.propose is not None:
        _require_room(given, arguments.simulator_code(given))
    apart = _anatomy(given)
    if given.data is None:
        if apart is None:
            raise ValueError("give a file of transitions, or --environment ID.")
        print("\n".join(apart.lines))
        return _propose(given, apart, apart.factors, Guess())
    source = arguments.opened(given)
    description = None if given.description is None else arguments.described(given.description, source)
    if given.propose is not None:
        _require_room(given, arguments.inputs(source, description))
    with ProgressBar("inspect", source.rows, "rows") as bar:
        found = contents(source, bar.reach)
    widths = len(found.spans["state"].low), len(found.spans["action"].low)
    factors = source.factors if apart is None else apart.factors
    if description is not None:
        factors = description.factors
    if factors is not None:
        factors.require_widths(*widths)
    print("\n".join([*(apart.lines if apart else []), *_about(source, found), "", *_columns(found, factors)]))
    rows = None if found.bad or not found.rows else next(source.chunks(SAMPLE)).transitions
    print("".join(_warnings(rows, factors)), end="")
    if description is not None and given.propose is None:
        return 0
    known = source.factors if apart is None else apart.factors
    seen = Guess() if rows is None else guess(rows, known or unknown(*widths))
    return _propose(given, apart, known, seen, widths)


def _anatomy(given: argparse.Namespace) -> environment.TakenApart | None:
    """Take the environment or world apart that was asked for, if any."""
    if given.environment is not None:
        if given.world is not None:
            raise ValueError("--world: give it or --environment, not both.")
        return environment.taken_apart(given, _module(given))
    found = arguments.world(given)
    if found is None:
        return None
    kind, settings = arguments.WORLDS[given.world], dict(given.setting)
    text = f"from counterpoint.worlds import {kind}\n\nworld = {kind}(**{settings!r})\n"
    text += "mask, step = world.mask, world.step\n"
    return environment.TakenApart([], found.factors, {"mask": "mask"}, text)


def _module(given: argparse.Namespace) -> str:
    """Return the name of the module with the functions of a proposal."""
    return Path(given.propose or "robot").stem.replace("-", "_") + ("_world" if given.world else "_environment")


def _require_room(given: argparse.Namespace, inputs: dict[str, Path]) -> None:
    """Raise unless all that a proposal consists of may be written, and none of it is read."""
    written = {"the proposal": Path(given.propose)}
    if given.world is not None or given.environment is not None:
        written["its module"] = written["the proposal"].with_name(f"{_module(given)}.py")
    require_apart(written, inputs)
    for path in written.values():
        require_free(path, force=given.force)


def _propose(
    given: argparse.Namespace,
    apart: environment.TakenApart | None,
    factors: Factorization | None,
    seen: Guess,
    widths: tuple[int, int] | None = None,
) -> int:
    """Print the proposed description, or write it, with the functions that it names beside it."""
    target, module = Path(given.propose or "robot"), _module(given)
    functions = {} if apart is None else {section: f"{module}:{name}" for section, name in apart.functions.items()}
    if widths is None:
        assert factors is not None  # noqa: S101
        widths = factors.state_width, factors.action_width
    text = proposal(*widths, factors, functions=functions, guess=seen)
    if given.propose is None:
        print(f"\nproposed description (--propose FILE writes it):\n\n{text}", end="")
        return 0
    beside = target.with_name(f"{module}.py")
    for path, content in [*([(beside, apart.module)] if apart else []), (target, text)]:
        with output(path, force=given.force) as file:
            file.write(content.encode())
    print(f"\nproposed description: {target}" + (f", with its functions in {beside}" if apart else ""))
    missing = [name for name in ("mask", "reward", "terminal") if f"# [{name}]" in text]
    if missing:
        print(f"to be filled in before `counterpoint augment` takes it: {', '.join(f'[{name}]' for name in missing)}")
    if apart and apart.records:
        print(f"to record 5,000 steps of random play, or of your policy: python {beside} recording.parquet 5000")
    return 0


def _about(source: Scan, found: Contents) -> list[str]:
    """Return what holds for the whole file, a line each."""
    episodes = "not recorded"
    if found.episodes is not None:
        low, middle, high = np.quantile(found.episodes, [0, 0.5, 1])
        episodes = f"{len(found.episodes):,}, of {low:,.0f} to {high:,.0f} steps, median {middle:,.0f}"
    rows = {
        "format": source.format,
        "transitions": f"{found.rows:,}",
        "episodes": episodes,
        "terminals": f"{found.terminals:,} ({found.terminals / max(1, found.rows):.2%})",
        "NaN": f"{found.bad:,} values are NaN or infinite; repair or remove those rows" if found.bad else "none",
    }
    if found.made:
        window = noted_window(source.head)
        rows["counterfactuals"] = f"{found.made:,}, made from {source.head.source or 'an unknown file'}"
        if window > 1:
            rows["windows"] = f"{found.made // window:,} of {window} rows, each an episode"
    if source.head.notes.get("dropped"):
        rows["left out"] = f"{source.head.notes['dropped']:,} rows whose next state was not recorded"
    if source.unread:
        rows["not read"] = ", ".join(source.unread)
    for name, members in source.head.filters.items():
        rows[f"filter {name}"] = f"{len(members):,} episodes"
    return [source.path, *(f"  {name:<16}{text}" for name, text in rows.items())]


def _columns(found: Contents, factors: Factorization | None) -> list[str]:
    """Return a table of all columns, with the factor that owns each, and its place within the factor."""
    lines = [f"{'array':<12}{'column':>7}  {'factor':<20}{'least':>13}{'mean':>13}{'largest':>13}"]
    for name, span in found.spans.items():
        owners = _owners(name, len(span.low), factors)
        for column, owner in enumerate(owners):
            good = found.rows - int(span.bad[column])
            values = (span.low[column], span.total[column] / good, span.high[column]) if good else (np.nan,) * 3
            remark = f"{int(span.bad[column]):,} NaN" if span.bad[column] else ""
            remark += " constant" if column in span.constant and name != "reward" else ""
            figures = "".join(f"{value:>13.5g}" for value in values)
            lines.append(f"{name:<12}{column:>7}  {owner:<20}{figures}  {remark.strip() or span.dtype}")
    return lines


def _owners(name: str, width: int, factors: Factorization | None) -> list[str]:
    """Return the factor and the place within it of each column of an array."""
    space = name.removeprefix("next_")
    names = () if factors is None else factors.columns.get(space, ())
    return [name.rpartition(" (")[0] for name in names] if len(names) == width else ["-"] * width


def _warnings(rows: Transitions | None, factors: Factorization | None) -> list[str]:
    """Return a warning for each column that seems to mix two factors, and what to do about it."""
    found = [] if rows is None or factors is None else mixtures(rows, factors)
    lines = [f"\nwarning: {_told(one, factors)}" for one in found] if factors is not None else []
    if lines:
        lines.append(
            "\nA swap would tear such a column: half of it belongs to the other factor. Declare differences derived "
            "(derived = { columns, plus, minus }). For relative velocities, record them in a fixed frame instead, or "
            "give both factors' columns to one factor.\n"
        )
    return lines


def _told(one: Mixture, factors: Factorization) -> str:
    names = factors.columns["state"]
    what = "the changes of " if one.changes else ""
    return (
        f"{names[one.column]} follows a difference of {what}{names[one.plus]} and {names[one.minus]} "
        f"({one.explained:.1%} explained; by its own factor {one.by_own:.1%})"
    )
