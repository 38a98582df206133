"""``python -m experiments.mask_roc run | report``; see ``--help``."""

from experiments import command, mask_roc
from experiments.mask_roc import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(mask_roc.__doc__, run.PRESETS, "mask_roc")
    parser.add_argument("--worlds", type=command.some_of(run.WORLDS), default=run.WORLDS)
    parser.add_argument("--estimators", type=command.some_of(run.ESTIMATORS), default=run.ESTIMATORS)
    given = parser.parse_args(arguments)
    todo = run.runs(given.preset, given.worlds, given.estimators)
    command.execute(given, run.work, todo, lambda folder: report.write(folder, run.WORLDS, run.ESTIMATORS))


if __name__ == "__main__":
    main()
