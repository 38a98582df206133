"""``python -m experiments.goals run | report``; see ``--help``."""

from experiments import command, goals
from experiments.goals import report, run
from experiments.goals.tasks import TASKS


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(goals.__doc__, run.PRESETS, "goals")
    parser.add_argument(
        "--tasks", type=command.some_of(tuple(TASKS)), default=(), help="those of the preset by default"
    )
    parser.add_argument(
        "--arms", type=command.some_of(run.ARMS + run.LARGER), default=(), help="those of the preset by default"
    )
    parser.add_argument(
        "--seeds", type=_numbers, default=(), help="those of the preset by default; 900 and up for pilots"
    )
    parser.add_argument("--unfinished", action="store_true", help="report on runs that are still under way, too")
    given = parser.parse_args(arguments)
    todo = list(run.runs(given.preset, given.arms, given.tasks, given.seeds))
    command.execute(
        given,
        run.work,
        todo,
        lambda _: report.write(given.folder, unfinished=given.unfinished),  # on all presets
        steps=max(config.steps for config in todo),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    main()
