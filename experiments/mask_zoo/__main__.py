"""``python -m experiments.mask_zoo run | report``; see ``--help``."""

from experiments import command, mask_zoo
from experiments.mask_zoo import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(mask_zoo.__doc__, run.PRESETS, "mask_zoo")
    parser.add_argument("--estimators", type=command.some_of(run.ESTIMATORS), default=run.ESTIMATORS)
    given = parser.parse_args(arguments)
    command.execute(given, run.work, run.runs(given.preset, given.estimators), report.write)


if __name__ == "__main__":
    main()
