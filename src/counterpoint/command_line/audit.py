"""Put counterfactuals back into a simulator: does it agree?

Example:
  counterpoint audit augmented.parquet --world sprites --setting noise_std=0.0 --at-least 0.99

First the real rows, which say how well simulator and data agree at all; then the counterfactuals, and each swapped set
by itself. Exit code 1 if the simulator confirms a smaller share of these than --at-least. Swaps of what never changes
(a goal) are counted apart. The simulator starts once for each window, at its first row. In a file without provenance
all rows are looked at. Where the file holds noise, the simulator is called with it. With --description, the sections
[tolerances] and [angles] say how far each factor may be off, and which columns are angles.
"""

import argparse

import numpy as np

from counterpoint.checks import Audit
from counterpoint.command_line import arguments
from counterpoint.command_line.environment import judge_by
from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.files import audit
from counterpoint.files.scanning import Scan
from counterpoint.progress import ProgressBar
from counterpoint.simulators import Tolerance

SETS = 8  # shown


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    arguments.add_simulator(verb)
    verb.add_argument(
        "--description", metavar="TOML", help="its [tolerances] and [angles] say what counts as agreement"
    )
    verb.add_argument("--at-least", type=float, default=1.0, help="share that must be confirmed (1.0)")
    verb.add_argument("--rows", type=int, metavar="N", help="look at about N rows, spread evenly; all by default")


def run(given: argparse.Namespace) -> int:
    """Audit a file, in chunks."""
    if not 0 <= given.at_least <= 1:
        raise ValueError(f"--at-least: expected a share between 0 and 1, got {given.at_least}.")
    step, source = arguments.step_of(given), arguments.opened(given)
    if step is None:
        raise ValueError("give a simulator: --world NAME, --environment ID, or --simulator module:function.")
    factors, atol = source.factors, given.atol
    if given.description is not None:
        description = arguments.described(given.description, source)
        factors, atol = description.factors, description.tolerance(given.atol)
    judge_by(step, source)
    first = next(source.chunks(1))
    if factors is not None:
        factors.require_widths(first.transitions.state.shape[1], first.transitions.action.shape[1])
    if first.provenance is not None:
        baseline = _audited(given, source, step, atol, real=True)
        worst = _worst(baseline, factors, atol)
        print(f"real rows: {baseline.confirmed:.2%} of {len(baseline.error):,} confirmed{worst}")
    found = _audited(given, source, step, atol, real=False)
    if given.environment is not None:
        print(f"{found.exact:.2%} of {len(found.error):,} transitions come out to the bit")
    counted, apart = found.moving, found.still
    noun = "transitions" if found.window == 1 else f"windows of {found.window} rows"
    print(
        f"{found.confirmed:.2%} of {len(counted.error):,} {noun} confirmed, {len(counted.wrong):,} wrong; "
        f"expected at least {given.at_least:.2%}{_worst(found, factors, atol)}"
    )
    if len(apart.error):
        print(
            f"apart from these, {len(apart.error):,} exchange only what never changes, such as a goal; "
            f"{len(apart.wrong):,} of them wrong"
        )
    if factors is not None and found.sets:
        print("\n".join(_sets(found, factors)))
    return 0 if min(found.confirmed, apart.confirmed) >= given.at_least else 1


def _audited(given: argparse.Namespace, source: Scan, step: object, atol: float | Tolerance, *, real: bool) -> Audit:
    made = source.rows - (source.head.source_rows or 0)
    rows = (source.head.source_rows or source.rows) if real else made
    if given.rows is not None:
        rows = -(-rows // max(1, -(-source.rows // max(1, given.rows))))
    with ProgressBar("audit, real rows" if real else "audit", rows, "rows") as bar:
        return audit(source, step, atol=atol, rows=given.rows, real=real, progress=bar.reach)  # type: ignore[arg-type]


def _worst(found: Audit, factors: Factorization | None, atol: float | Tolerance) -> str:
    """Name the columns that differ most, if any row is wrong."""
    if not len(found.wrong):
        return ""
    over = found.columns / np.maximum(atol.columns if isinstance(atol, Tolerance) else atol, 1e-300)
    names = [f"column {column}" for column in range(len(over))] if factors is None else factors.columns["state"]
    worst = [int(column) for column in np.argsort(-over)[:4] if over[column] > 1]
    return "\ncolumns that differ most: " + ", ".join(f"{names[k]} by {found.columns[k]:.3g}" for k in worst)


def _sets(found: Audit, factors: Factorization) -> list[str]:
    """Return what came of each swapped set, a line each, the worst first."""
    every = found.by_set(factors)
    lines = [f"{'tried':>12}{'wrong':>10}{'confirmed':>11}  swapped"]
    for names, tried, wrong in every[:SETS]:
        lines.append(f"{tried:>12,}{wrong:>10,}{1 - wrong / tried:>11.2%}  {listed(names)}")
    rest = every[SETS:]
    if rest:
        tried, wrong = sum(one[1] for one in rest), sum(one[2] for one in rest)
        lines.append(f"{tried:>12,}{wrong:>10,}{1 - wrong / tried:>11.2%}  {len(rest):,} other sets")
    return lines
