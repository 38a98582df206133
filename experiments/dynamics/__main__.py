"""``python -m experiments.dynamics run | report``; see ``--help``."""

from experiments import command, dynamics
from experiments.dynamics import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    given = command.parser(dynamics.__doc__, run.PRESETS, "dynamics").parse_args(arguments)
    command.execute(given, run.work, run.runs(given.preset), report.write)


if __name__ == "__main__":
    main()
