"""``python -m experiments.online_sprites run | report | model``; see ``--help``."""

from dataclasses import replace

from experiments import command, online_sprites, rows
from experiments.online_sprites import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, report on what has been run, or look at its pretrained model."""
    parser = command.parser(online_sprites.__doc__, run.PRESETS, "online_sprites", more=("model",))
    parser.add_argument("--arms", type=command.some_of(run.ARMS), default=run.ARMS)
    parser.add_argument(
        "--tasks", type=command.some_of(run.ALL_TASKS), default=(), help="those of the preset by default"
    )
    parser.add_argument("--unfinished", action="store_true", help="report on runs that are still under way, too")
    given = parser.parse_args(arguments)
    folder, base = given.folder / given.preset, run.PRESETS[given.preset][2]
    if given.command == "report":
        report.write(folder, run.ARMS, unfinished=given.unfinished)
    elif given.command == "model":
        print(run.model_errors(replace(base, arm="dyna")))
    else:
        todo = {config.name: config for config in run.runs(given.preset, given.arms, given.tasks)}
        rows.run_all(run.work, todo, folder, processes=given.processes, steps=base.steps)


if __name__ == "__main__":
    main()
