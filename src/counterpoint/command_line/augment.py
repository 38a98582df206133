"""Add counterfactual transitions to a dataset.

Example:
  counterpoint augment pushes.parquet robot.toml --ratio 3 --out augmented.parquet --report report.html

The description (TOML) says which columns are which factors, and names mask and reward; `counterpoint inspect` proposes
one. Functions that it names are run; --dry-run lists them, and what would be made, and runs none. The output holds the
real rows, then counterfactuals, each row with its provenance. The same arguments give the same bytes. An interrupted
job leaves no output, only what it has accepted so far in FILE.parts: the same command with --resume goes on from there.

A folder of files is a dataset, and each of its files is a shard:
  counterpoint augment data/ robot.toml --ratio 3 --out more/ --workers 2

Shards are augmented one by one: in processes of this machine, on Ray, or by commands that you run yourself. The bytes
are the same. more/manifest.json lists shards, seeds, funnels and checksums; `report` and `audit` take the folder.
"""

import argparse
import os
from pathlib import Path
from typing import Any

from counterpoint.command_line import arguments, shards
from counterpoint.command_line.judging import judging
from counterpoint.core.augment import Augmenter
from counterpoint.description import Description
from counterpoint.description.building import settings_of
from counterpoint.files import FORMATS, report, scan
from counterpoint.files.apart import require_apart
from counterpoint.files.augmentation import Plan
from counterpoint.files.formats import chosen
from counterpoint.files.jobs import carry_out, planned
from counterpoint.files.output import require_free
from counterpoint.files.sampling import task_check
from counterpoint.progress import ProgressBar


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("description", help="a TOML file about the dataset")
    amount = verb.add_mutually_exclusive_group(required=True)
    amount.add_argument("--ratio", type=float, help="counterfactuals per real row, such as 3")
    amount.add_argument("--size", type=int, help="rows of the output, real ones included")
    arguments.add_output(verb, "a .parquet, .npz or .hdf5 file, minari:ID or lerobot:FOLDER; or a folder for a folder")
    verb.add_argument("--format", choices=sorted(FORMATS), help="where a suffix has two formats (.hdf5): which one")
    verb.add_argument(
        "--window",
        type=int,
        metavar="H",
        help="recombine windows of H consecutive rows; each becomes an episode",
    )
    verb.add_argument("--seed", type=int, default=0, help="the seed of all randomness (0)")
    verb.add_argument("--report", metavar="PAGE", help="also write a report, an HTML page")
    verb.add_argument("--resume", action="store_true", help="continue an interrupted job")
    verb.add_argument("--dry-run", action="store_true", help="print what would be run and written, and stop there")
    verb.add_argument(
        "--trust-reward", action="store_true", help="do not check reward and terminal functions against the real rows"
    )
    shards.add_arguments(verb)


def run(given: argparse.Namespace) -> int:
    """Augment a file, or a folder of files."""
    source = arguments.opened(given)
    description = arguments.described(given.description, source)
    if shards.meant(given, source):
        return shards.run(given, source, description, _window(given))
    source = arguments.opened_as(given, description)
    kind = chosen(given.out, given.format)
    outputs = arguments.outputs(given, kind.place(given.out), kind.parts(given.out))
    require_apart(outputs, arguments.inputs(source, description))
    amount: dict[str, Any] = {name: getattr(given, name) for name in ("size", "ratio", "seed", "format")}
    if given.dry_run:
        plan = planned(source, _unloaded(description, _window(given)), given.out, **amount)
        print("\n".join(_foretold(given, plan, description)))
        return 0
    augmenter = description.augmenter(**_window(given))
    plan = planned(source, augmenter, given.out, **amount)
    kind.require_free(given.out, force=given.force)
    if given.report is not None:
        require_free(Path(given.report), force=given.force)
    arguments.tell_unread(source)
    names = shards.checked(given, description)
    how: dict[str, Any] = {"format": given.format, "resume": given.resume, "force": given.force}
    with ProgressBar("augment", plan.size, "rows") as bar:
        check = task_check(augmenter, names) if names else None
        done = carry_out(plan, given.out, progress=bar.reach, check=check, **how)
    print(done)
    if given.report is not None:
        options: dict[str, Any] = {"force": given.force, "judge": judging(augmenter), "command": given.command}
        print(f"\nreport: {report(scan(given.out), augmenter, given.report, **options)}")
    return 0


def go_on(given: argparse.Namespace) -> str:
    """Say how to go on after the job was stopped."""
    if Path(os.path.normpath(given.out) + ".parts").is_dir() or (
        not os.path.isdir(given.data) and chosen(given.out, given.format).parts(given.out).is_dir()
    ):
        return "The same command with --resume continues it."
    return "Run the same command again."


def _window(given: argparse.Namespace) -> dict[str, Any]:
    """Return the length of windows, if the command line gives one."""
    return {} if given.window is None else {"window": given.window}


def _unloaded(description: Description, settings: dict[str, Any]) -> Augmenter:
    """Return an augmenter whose functions are not there, to plan with."""

    def never(*_: Any) -> Any:
        raise AssertionError("a plan calls nothing")

    factors, derive = description.factors, never if description.factors.derived else None
    return Augmenter(factors, never, never, derive=derive, **{**settings_of(description.source), **settings})


def _foretold(given: argparse.Namespace, plan: Plan, description: Description) -> list[str]:
    """Return what a job would do, a line each."""
    source, size = plan.source, plan.size - plan.source.rows
    lines = [f"reads   {source.path}: {source.rows:,} transitions ({source.format})"]
    lines += arguments.called(description)
    chunks = -(-source.rows // plan.chunk_rows)
    amount = f"{source.rows:,} real transitions and {size:,} counterfactuals"
    lines.append(f"writes  {given.out}: {amount}, made in chunks of {plan.chunk_rows:,} rows ({chunks:,} in all)")
    if given.report is not None:
        lines.append(f"writes  {given.report}: the report")
    return [*lines, "nothing was run or written"]
