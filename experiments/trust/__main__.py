"""``python -m experiments.trust run | report``; see ``--help``."""

from experiments import command, rows, trust
from experiments.trust import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    given = command.parser(trust.__doc__, run.PRESETS, "trust").parse_args(arguments)
    folder = given.folder / given.preset
    if given.command == "report":
        report.write(folder)
        return
    todo = {config.name: config for config in run.PRESETS[given.preset]}
    rows.run_all(run.work, todo, folder, processes=given.processes, steps=6)


if __name__ == "__main__":
    main()
