"""``python -m experiments.online_sprites run | report | model``; see ``--help``."""

from dataclasses import replace
from functools import partial

from experiments import command, online_sprites
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
    base = run.PRESETS[given.preset][2]
    if given.command == "model":
        print(run.model_errors(replace(base, arm="dyna")))
        return
    todo = run.runs(given.preset, given.arms, given.tasks)
    write = partial(report.write, arms=run.ARMS, unfinished=given.unfinished)
    command.execute(given, run.work, todo, write, steps=base.steps)


if __name__ == "__main__":
    main()
