"""The command line: ``python -m experiments.shards run`` or ``report``."""

from pathlib import Path

from experiments import shards
from experiments.command import parser, some_of
from experiments.shards.report import report
from experiments.shards.run import clean, presets, run_all


def main() -> None:
    """Run, or write the page."""
    known = presets()
    options = parser(shards.__doc__, known, "shards")
    options.add_argument("--place", type=Path, default=Path("shards-data"), help="where datasets and outputs are put")
    names = sorted({name for runs in known.values() for name in runs})
    options.add_argument("--runs", type=some_of(names), help="only these runs")
    options.add_argument("--clean", action="store_true", help="remove the datasets afterwards")
    given = options.parse_args()
    if given.command == "report":
        report(given.folder / given.preset)
        return
    run_all(given.preset, given.place, given.folder, given.runs)
    if given.clean:
        clean(given.place)


if __name__ == "__main__":
    main()
