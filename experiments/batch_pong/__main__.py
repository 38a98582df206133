"""``python -m experiments.batch_pong run | report``; see ``--help``."""

from experiments import batch_pong, command
from experiments.batch_pong import report, run


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(batch_pong.__doc__, run.PRESETS, "batch_pong")
    parser.add_argument("--arms", type=command.some_of(run.ARMS), default=(), help="those of the preset by default")
    parser.add_argument("--sizes", type=_thousands, default=(), help="in thousands of rows, with commas between")
    given = parser.parse_args(arguments)
    updates = run.PRESETS[given.preset][3].updates
    command.execute(given, run.work, run.runs(given.preset, given.arms, given.sizes), report.write, steps=updates)


def _thousands(text: str) -> tuple[int, ...]:
    return tuple(int(1000 * float(part)) for part in text.split(","))


if __name__ == "__main__":
    main()
