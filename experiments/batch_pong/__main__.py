"""``python -m experiments.batch_pong run | report``; see ``--help``."""

from experiments import batch_pong, command
from experiments.batch_pong import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(batch_pong.__doc__, run.PRESETS, "batch_pong")
    parser.add_argument("--arms", type=command.some_of(run.ARMS), default=(), help="those of the preset by default")
    parser.add_argument("--sizes", type=_thousands, default=(), help="in thousands of rows, with commas between")
    parser.add_argument("--together", type=int, default=6, help="agents that a process trains in step")
    given = parser.parse_args(arguments)
    updates = run.PRESETS[given.preset][3].updates
    runs = run.runs(given.preset, given.arms, given.sizes)
    command.execute(given, run.work, runs, report.write, steps=updates, together=given.together)


def _thousands(text: str) -> tuple[int, ...]:
    return tuple(int(1000 * float(part)) for part in text.split(","))


if __name__ == "__main__":
    main()
