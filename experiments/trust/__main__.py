"""``python -m experiments.trust run | report``; see ``--help``."""

from experiments import command, trust
from experiments.trust import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    given = command.parser(trust.__doc__, run.PRESETS, "trust").parse_args(arguments)
    command.execute(given, run.work, run.PRESETS[given.preset], report.write, steps=6)


if __name__ == "__main__":
    main()
