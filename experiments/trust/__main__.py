"""``python -m experiments.trust run | robots | report``; see ``--help``."""

import importlib

from experiments import command, trust
from experiments.trust import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    given = command.parser(trust.__doc__, run.PRESETS, "trust", more=("robots",)).parse_args(arguments)
    chosen = importlib.import_module("experiments.trust.robots") if given.command == "robots" else run  # needs MuJoCo
    command.execute(given, chosen.work, chosen.PRESETS[given.preset], report.write, steps=12)


if __name__ == "__main__":
    main()
