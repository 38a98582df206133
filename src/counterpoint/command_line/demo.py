"""Run the main job on embedded data: record, fit a mask, augment, audit, train, report.

Example:
  counterpoint demo --out demo

It takes a few minutes and leaves report.html in the folder.
"""

import argparse
import importlib


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    verb.add_argument("--out", default="demo", metavar="FOLDER", help="where the report goes (demo)")
    verb.add_argument("--seed", type=int, default=0, help="the seed of all randomness (0)")


def run(given: argparse.Namespace) -> int:
    """Run the demonstration."""
    page = importlib.import_module("counterpoint.demonstration").run(given.out, given.seed)
    print(f"\nreport: {page.resolve()}")
    return 0
