"""What the command lines of all experiments have in common: ``run`` and ``report``, presets, processes and a folder."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from experiments import rows

RESULTS = Path(__file__).parent / "results"


def parser(
    description: str | None,
    presets: Iterable[str],
    subject: str,
    *,
    default: str = "laptop",
    more: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Return a parser of ``run`` and ``report`` and what both need; an experiment adds its own options.

    Args:
        description: shown as help, usually the docstring of the experiment.
        presets: names of the presets.
        subject: the experiment's name, and of its folder among the results.
        default: the preset that is meant if none is named.
        more: further commands beside ``run`` and ``report``.
    """
    made = argparse.ArgumentParser(
        prog=f"python -m experiments.{subject}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("command", choices=("run", "report", *more))
    made.add_argument("--preset", choices=tuple(presets), default=default)
    made.add_argument("--processes", type=int, default=2, help="how many runs at a time")
    made.add_argument("--folder", type=Path, default=RESULTS / subject, help="where the rows are kept")
    return made


def execute(
    given: argparse.Namespace,
    work: Callable[[Any, Any], None],
    runs: Iterable[Any],
    report: Callable[[Path], None],
    *,
    steps: int = 1,
    together: int | None = None,
) -> None:
    """Do what the command line asks for: the runs of its preset, or the report on those that are finished.

    Args:
        given: what the parser found.
        work: does one run; see ``rows.run_all``.
        runs: configurations with a ``name``, in the order in which they start.
        report: writes the page, given the folder of the preset's rows.
        steps: the ``step`` of the last measurement.
        together: how many runs a process does in step, if ``work`` is one that takes several.
    """
    folder = given.folder / given.preset
    if given.command == "report":
        report(folder)
    else:
        todo = {config.name: config for config in runs}
        rows.run_all(work, todo, folder, processes=given.processes, steps=steps, together=together)


def some_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return what reads an option of the command line: some of the known names, with commas between."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(text.split(","))
        unknown = [name for name in given if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no {', '.join(unknown)} here; there are {', '.join(known)}.")
        return given

    return names
