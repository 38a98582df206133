"""Write a dataset in another format.

Example:
  counterpoint convert minari:D4RL/door/human-v2 door.parquet

Suffixes choose formats: .parquet, .npz, .hdf5 and .h5 (D4RL, or robomimic with --format), minari:ID. All columns are
kept.
"""

import argparse

from counterpoint.command_line import arguments
from counterpoint.command_line.progress import bar
from counterpoint.files import write, writer
from counterpoint.files.formats import MINARI


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("out", help="the output, by suffix, or minari:ID")
    verb.add_argument("--format", choices=("d4rl", "robomimic"), help="which layout of .hdf5 (d4rl)")
    verb.add_argument("--force", action="store_true", help="replace an output that exists")


def run(given: argparse.Namespace) -> int:
    """Convert a file, in pieces; only Minari needs all of it in memory."""
    source = arguments.opened(given)
    if given.out.startswith(MINARI):
        write(given.out, source.read())
    else:
        with (
            bar("convert", source.rows) as show,
            writer(given.out, source.head, format=given.format, force=given.force) as out,
        ):
            for piece in source.pieces():
                out.append(piece)
                show(out.rows)
    print(f"{given.out}: {source.rows:,} transitions from {given.data}")
    return 0
