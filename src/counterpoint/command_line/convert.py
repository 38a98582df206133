"""Write a dataset in another format.

Example:
  counterpoint convert minari:D4RL/door/human-v2 door.parquet

Suffixes choose formats: .parquet, .npz, .hdf5 and .h5 (D4RL, or robomimic with --format), minari:ID, lerobot:FOLDER.
All columns of the transitions are kept. What else a file holds, such as the states of a simulator, is named and left
behind.
"""

import argparse
from dataclasses import replace

from counterpoint.command_line import arguments
from counterpoint.files import FORMATS, writer
from counterpoint.files.apart import require_apart
from counterpoint.files.formats import chosen
from counterpoint.progress import ProgressBar


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("out", help="the output: its suffix or prefix chooses the format")
    verb.add_argument("--format", choices=sorted(FORMATS), help="where a suffix has two formats (.hdf5): which one")
    verb.add_argument("--force", action="store_true", help="replace an output that exists")


def run(given: argparse.Namespace) -> int:
    """Convert a file, in chunks."""
    source = arguments.opened(given)
    place = chosen(given.out, given.format).place(given.out)
    require_apart({"the output": place}, arguments.inputs(source))
    arguments.tell_unread(source)
    notes = {name: note for name, note in source.head.notes.items() if name != "not read"}
    with (
        ProgressBar("convert", source.rows, "rows") as bar,
        writer(given.out, replace(source.head, notes=notes), format=given.format, force=given.force) as out,
    ):
        for chunk in source.chunks():
            out.append(chunk)
            bar.reach(out.rows)
    print(f"{given.out}: {source.rows:,} transitions from {given.data}")
    return 0
