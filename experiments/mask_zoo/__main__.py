"""``python -m experiments.mask_zoo run | report``; see ``--help``."""

from experiments import command, mask_zoo, rows
from experiments.mask_zoo import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(mask_zoo.__doc__, run.PRESETS, "mask_zoo")
    parser.add_argument("--estimators", type=command.some_of(run.ESTIMATORS), default=run.ESTIMATORS)
    given = parser.parse_args(arguments)
    folder = given.folder / given.preset
    if given.command == "report":
        report.write(folder)
        return
    todo = {config.name: config for config in run.runs(given.preset, given.estimators)}
    rows.run_all(run.work, todo, folder, processes=given.processes)


if __name__ == "__main__":
    main()
