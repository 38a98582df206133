"""``python -m experiments.dynamics run | report``; see ``--help``."""

from experiments import command, dynamics, rows
from experiments.dynamics import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    given = command.parser(dynamics.__doc__, run.PRESETS, "dynamics").parse_args(arguments)
    folder = given.folder / given.preset
    if given.command == "report":
        report.write(folder)
        return
    todo = {config.name: config for config in run.runs(given.preset)}
    rows.run_all(run.work, todo, folder, processes=given.processes)


if __name__ == "__main__":
    main()
