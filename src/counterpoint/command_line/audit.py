"""Put counterfactuals back into a simulator: does it agree?

Example:
  counterpoint audit augmented.parquet --world sprites --setting noise_std=0.0 --at-least 0.99

Exit code 1 if the simulator confirms a smaller share than --at-least. In a file with provenance only counterfactuals
are looked at, otherwise all rows. Where the file holds noise, the simulator is called with it.
"""

import argparse

import numpy as np

from counterpoint.checks import audit
from counterpoint.command_line import arguments
from counterpoint.command_line.progress import bar
from counterpoint.core.arrays import Array


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    arguments.add_simulator(verb)
    verb.add_argument("--at-least", type=float, default=1.0, help="share that must be confirmed (1.0)")


def run(given: argparse.Namespace) -> int:
    """Audit a file, in pieces."""
    if not 0 <= given.at_least <= 1:
        raise ValueError(f"--at-least: expected a share between 0 and 1, got {given.at_least}.")
    step, source = arguments.step_of(given), arguments.opened(given)
    if step is None:
        raise ValueError("give a simulator: --world NAME, or --simulator module:function.")
    rows = wrong = done = 0
    worst: Array = np.zeros(0)
    with bar("audit", source.rows) as show:
        for piece in source.pieces():
            data = piece.transitions
            if piece.provenance is not None:
                data = data[piece.provenance.swapped.any(axis=1)]
            found = audit(data, step, atol=given.atol)
            rows, wrong = rows + len(data), wrong + len(found.wrong)
            worst = np.maximum(worst, found.columns) if len(worst) else found.columns
            show(done := done + len(piece))
    if not rows:
        raise ValueError(f"{given.data}: it holds no counterfactuals to audit.")
    confirmed = 1 - wrong / rows
    print(f"{confirmed:.2%} of {rows:,} transitions confirmed, {wrong:,} wrong; expected at least {given.at_least:.2%}")
    if wrong:
        columns = [int(column) for column in np.argsort(-worst)[:4] if worst[column] > given.atol]
        print("columns that differ most: " + ", ".join(f"{column} (by {worst[column]:.3g})" for column in columns))
    return 0 if confirmed >= given.at_least else 1
