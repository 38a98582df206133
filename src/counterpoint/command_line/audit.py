"""Put counterfactuals back into a simulator: does it agree?

Example:
  counterpoint audit augmented.parquet --world sprites --setting noise_std=0.0 --at-least 0.99

First the real rows, which say how well simulator and data agree at all; then the counterfactuals. Exit code 1 if the
simulator confirms a smaller share of these than --at-least. Swaps of what never changes (a goal) are counted apart.
The simulator starts once for each window, at its first row. In a file without provenance all rows are looked at. Where
the file holds noise, the simulator is called with it.
"""

import argparse

import numpy as np

from counterpoint.checks import Audit
from counterpoint.command_line import arguments
from counterpoint.command_line.environment import judge_by
from counterpoint.files import audit
from counterpoint.files.scanning import Scan
from counterpoint.progress import ProgressBar


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    arguments.add_simulator(verb)
    verb.add_argument("--at-least", type=float, default=1.0, help="share that must be confirmed (1.0)")
    verb.add_argument("--rows", type=int, metavar="N", help="look at about N rows, spread evenly; all by default")


def run(given: argparse.Namespace) -> int:
    """Audit a file, in chunks."""
    if not 0 <= given.at_least <= 1:
        raise ValueError(f"--at-least: expected a share between 0 and 1, got {given.at_least}.")
    step, source = arguments.step_of(given), arguments.opened(given)
    if step is None:
        raise ValueError("give a simulator: --world NAME, --environment ID, or --simulator module:function.")
    judge_by(step, source)
    if next(source.chunks(1)).provenance is not None:
        baseline = _audited(given, source, step, real=True)
        print(f"real rows: {baseline.confirmed:.2%} of {len(baseline.error):,} confirmed{_worst(baseline)}")
    found = _audited(given, source, step, real=False)
    if given.environment is not None:
        print(f"{found.exact:.2%} of {len(found.error):,} transitions come out to the bit")
    counted, apart = found.moving, found.still
    noun = "transitions" if found.window == 1 else f"windows of {found.window} rows"
    print(
        f"{found.confirmed:.2%} of {len(counted.error):,} {noun} confirmed, {len(counted.wrong):,} wrong; "
        f"expected at least {given.at_least:.2%}{_worst(found)}"
    )
    if len(apart.error):
        print(
            f"apart from these, {len(apart.error):,} exchange only what never changes, such as a goal; "
            f"{len(apart.wrong):,} of them wrong"
        )
    return 0 if min(found.confirmed, apart.confirmed) >= given.at_least else 1


def _audited(given: argparse.Namespace, source: Scan, step: object, *, real: bool) -> Audit:
    with ProgressBar("audit, real rows" if real else "audit", source.rows, "rows") as bar:
        return audit(source, step, atol=given.atol, rows=given.rows, real=real, progress=bar.reach)  # type: ignore[arg-type]


def _worst(found: Audit) -> str:
    """Name the columns that differ most, if any row is wrong."""
    worst = found.columns
    columns = [int(column) for column in np.argsort(-worst)[:4] if worst[column] > found.atol]
    if not len(found.wrong):
        return ""
    return "\ncolumns that differ most: " + ", ".join(f"{column} (by {worst[column]:.3g})" for column in columns)
