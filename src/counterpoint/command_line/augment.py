"""Add counterfactual transitions to a dataset.

Example:
  counterpoint augment pushes.parquet robot.toml --ratio 3 --out augmented.parquet --report report.html

The description (TOML) says which columns are which factors, and names mask and reward; `counterpoint inspect` proposes
one. The output holds the real rows, then counterfactuals, each row with its provenance. The same arguments give the
same bytes. An interrupted job leaves no output, only finished pieces in FILE.parts: the same command with --resume
goes on from there.
"""

import argparse
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from counterpoint.command_line import arguments, reporting
from counterpoint.command_line.progress import bar
from counterpoint.core.engine import Funnel
from counterpoint.description import Description
from counterpoint.files import FileProblem, Head, scan, writer
from counterpoint.files.augmentation import Plan, augmented
from counterpoint.files.episodes import SINGLE_TRANSITIONS
from counterpoint.files.formats import MINARI, function
from counterpoint.files.output import require_free
from counterpoint.files.parts import Parts, fingerprint
from counterpoint.files.writing import behind


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("description", help="a TOML file about the dataset")
    amount = verb.add_mutually_exclusive_group(required=True)
    amount.add_argument("--ratio", type=float, help="counterfactuals per real row, such as 3")
    amount.add_argument("--size", type=int, help="rows of the output, real ones included")
    arguments.add_output(verb, "a .parquet, .npz or .hdf5 file")
    verb.add_argument("--seed", type=int, default=0, help="of all randomness (0)")
    verb.add_argument("--report", metavar="PAGE", help="also write a report, an HTML page")
    verb.add_argument("--resume", action="store_true", help="go on from finished pieces of the same job")


def run(given: argparse.Namespace) -> int:
    """Augment a file."""
    if given.out.startswith(MINARI):
        raise FileProblem(f"{given.out}: {SINGLE_TRANSITIONS}")
    if given.seed < 0:
        raise ValueError(f"--seed: expected 0 or more, got {given.seed}.")
    source = arguments.opened(given)
    description = arguments.described(given.description, source)
    size = given.size if given.size is not None else source.rows + _rounded(given.ratio, source.rows)
    plan = Plan(source, description.augmenter(), size, given.seed)
    if given.report is not None:
        require_free(Path(given.report), force=given.force)
    funnel = _write(given, plan, description)
    print(f"{given.out}: {source.rows:,} real transitions and {size - source.rows:,} counterfactuals\n\n{funnel}")
    print(f"{'acceptance':<10}{funnel.acceptance:>14.1%}")
    if given.report is not None:
        print(f"\nreport: {reporting.write(given.report, scan(given.out), plan.augmenter)}")
    return 0


def _rounded(ratio: float, rows: int) -> int:
    if not 0 < ratio < float("inf"):
        raise ValueError(f"--ratio: expected a positive number, got {ratio}.")
    return round(ratio * rows)


def _write(given: argparse.Namespace, plan: Plan, description: Description) -> Funnel:
    """Write the output; return what became of the proposals."""
    notes = {"seed": given.seed, "keys": arguments.observation_keys(plan.source)}
    head = Head(plan.augmenter.factors, given.data, notes=notes)
    require_free(Path(given.out), force=given.force)
    folder, job, funnel = Path(given.out + ".parts"), _job(plan, description, given.keys), Funnel()
    with (
        Parts(folder, job, resume=given.resume, force=given.force) as parts,
        writer(given.out, head, force=given.force, folder=folder) as out,
    ):
        with bar("augment", plan.size) as show, behind(out.append) as put:
            for recording, new in augmented(plan, parts):
                put(recording)
                funnel += new
                show(out.rows)
        out.notes["funnel"] = asdict(funnel)
    return funnel


def _job(plan: Plan, description: Description, keys: list[str] | None) -> dict[str, Any]:
    """Return what tells this job apart from any other."""
    path, mask = plan.source.path, description.table.get("mask", {})
    if path.startswith(MINARI):
        path = str(function("counterpoint.adapters.minari:folder_of")(path.removeprefix(MINARI)))
    learned = [str(description.path.parent / mask["file"])] if "file" in mask else []
    return {
        "counterpoint": metadata.version("counterpoint-rl"),
        "seed": plan.seed,
        "keys": keys,
        "size": plan.size,
        "block_rows": plan.block_rows,
        "data": [plan.source.path, plan.source.rows, fingerprint(path)],
        "description": [description.path.read_text(encoding="utf-8"), *map(fingerprint, learned)],
    }
