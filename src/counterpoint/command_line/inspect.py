"""Show what is in a dataset, and propose a description of it.

Example:
  counterpoint inspect demos.hdf5 --propose robot.toml

Shows shapes, ranges, NaN, episodes, terminals, and which factor owns which columns. The file is read once, in chunks,
and no function of yours is run. The proposal has one factor for each named part of the observations; mask and reward
are yours to fill in.
"""

import argparse
from pathlib import Path

import numpy as np

from counterpoint.command_line import arguments, environment
from counterpoint.command_line.proposal import proposal
from counterpoint.core.factors import Factorization
from counterpoint.files import Scan
from counterpoint.files.apart import require_apart
from counterpoint.files.contents import Contents, contents
from counterpoint.files.notes import noted_window
from counterpoint.files.output import output
from counterpoint.progress import ProgressBar


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb, optional=True)
    environment.add_environment(verb)
    arguments.add_setting(verb)
    verb.add_argument("--description", metavar="TOML", help="check this description against the file")
    verb.add_argument("--propose", metavar="TOML", help="write the proposed description to this file")
    verb.add_argument("--force", action="store_true", help="replace an output that exists")


def run(given: argparse.Namespace) -> int:
    """Inspect a file, or an environment."""
    if given.environment is not None:
        if given.data is not None:
            raise ValueError("--environment and a file: give one of them, not both.")
        return environment.inspect(given)
    if given.data is None:
        raise ValueError("give a file of transitions, or --environment ID.")
    source = arguments.opened(given)
    if given.propose is not None:
        extra = {} if given.description is None else {"the description": Path(given.description)}
        require_apart({"the proposal": Path(given.propose)}, {**arguments.inputs(source), **extra})
    with ProgressBar("inspect", source.rows, "rows") as bar:
        found = contents(source, bar.reach)
    factors = source.factors
    if given.description is not None:
        factors = arguments.described(given.description, source).factors
        factors.require_widths(len(found.spans["state"].low), len(found.spans["action"].low))
    print("\n".join([*_about(source, found), "", *_columns(found, factors)]))
    text = proposal(len(found.spans["state"].low), len(found.spans["action"].low), source.factors)
    if given.propose is not None:
        with output(Path(given.propose), force=given.force) as file:
            file.write(text.encode())
        print(f"\nproposed description: {given.propose}")
    elif given.description is None:
        print(f"\nproposed description (--propose FILE writes it):\n\n{text}", end="")
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
    for name, members in source.head.filters.items():
        rows[f"filter {name}"] = f"{len(members):,} episodes"
    return [source.path, *(f"  {name:<16}{text}" for name, text in rows.items())]


def _columns(found: Contents, factors: Factorization | None) -> list[str]:
    """Return a table of all columns, with the factor that owns each."""
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
    """Return the name of the factor that owns each column of an array."""
    if name not in ("state", "next_state", "action") or factors is None:
        return ["-"] * width
    spaces = factors.action if name == "action" else factors.state
    owned = {column: factor for factor, columns in spaces.items() for column in columns}
    return [owned.get(column, "(derived)") for column in range(width)]
