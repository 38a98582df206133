"""``python -m experiments.mask_calibration run | report``; see ``--help``."""

from experiments import command, mask_calibration
from experiments.mask_calibration import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(mask_calibration.__doc__, run.PRESETS, "mask_calibration")
    parser.add_argument("--estimators", type=command.some_of((*run.MADE, *run.BROKEN, *run.LATER)), default=())
    given = parser.parse_args(arguments)
    command.execute(given, run.work, run.runs(given.preset, given.estimators), report.write, steps=16)


if __name__ == "__main__":
    main()
