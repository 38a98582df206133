"""``python -m experiments.trust run | robots | report``; see ``--help``."""

import importlib

from experiments import command, rows, trust
from experiments.trust import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    given = command.parser(trust.__doc__, run.PRESETS, "trust", more=("robots",)).parse_args(arguments)
    folder = given.folder / given.preset
    if given.command == "report":
        report.write(folder)
        return
    chosen = run if given.command == "run" else importlib.import_module("experiments.trust.robots")  # needs MuJoCo
    todo = {config.name: config for config in chosen.PRESETS[given.preset]}
    rows.run_all(chosen.work, todo, folder, processes=given.processes, steps=12)


if __name__ == "__main__":
    main()
