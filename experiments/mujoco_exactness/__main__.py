"""``python -m experiments.mujoco_exactness run | report``; see ``--help``."""

from experiments import command, mujoco_exactness
from experiments.mujoco_exactness import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(mujoco_exactness.__doc__, run.PRESETS, "mujoco_exactness")
    parser.add_argument(
        "--environments", type=command.some_of(tuple(run.ENVIRONMENTS)), default=tuple(run.ENVIRONMENTS)
    )
    parser.add_argument("--masks", type=command.some_of(run.MASKS), default=run.MASKS)
    parser.add_argument("--seeds", type=int, nargs="+", default=run.SEEDS)
    given = parser.parse_args(arguments)
    todo = run.runs(given.preset, given.environments, given.masks, given.seeds)
    command.execute(given, run.work, todo, report.write)


if __name__ == "__main__":
    main()
