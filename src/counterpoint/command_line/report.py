"""Write a report about an augmented dataset: can it be trusted?

Example:
  counterpoint report augmented.parquet robot.toml --out report.html --simulator my_robot:step

The page is one HTML file that works offline. The dataset is one that `counterpoint augment` wrote, with its
description; the functions that the description names are run.
"""

import argparse
import importlib
from pathlib import Path
from typing import Any

from counterpoint.command_line import arguments
from counterpoint.command_line.environment import scene
from counterpoint.command_line.judging import judging
from counterpoint.files import report
from counterpoint.files.apart import require_apart
from counterpoint.files.output import require_free
from counterpoint.progress import announce


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    arguments.add_data(verb)
    verb.add_argument("description", help="the TOML file that it was augmented with")
    arguments.add_output(verb, "the page, such as report.html")
    arguments.add_simulator(verb)


def run(given: argparse.Namespace) -> int:
    """Write a report."""
    require_free(Path(given.out), force=given.force)
    source = arguments.opened(given)
    description = arguments.described(given.description, source)
    read = {**arguments.inputs(source, description), **arguments.simulator_code(given)}
    require_apart({"the report": Path(given.out)}, read)
    step, draw = arguments.step_of(given), scene(given) or drawing(given.world)
    announce(f"report: {source.rows:,} rows")
    augmenter = description.augmenter()
    options: dict[str, Any] = {"force": given.force, "step": step, "draw": draw, "command": given.command}
    options["atol"] = description.tolerance(given.atol)
    print(f"report: {report(source, augmenter, given.out, judge=judging(augmenter), **options)}")
    return 0


def drawing(world: str | None) -> Any:
    """Return the function that draws transitions of a world, if there is one."""
    name = {"sprites": "draw_sprites", "pong": "draw_pong", "two-arms": "draw_two_arms"}.get(world or "")
    if name is None:
        return None
    pictures: Any = importlib.import_module("counterpoint.worlds.draw")
    if world == "two-arms":
        pictures = importlib.import_module("counterpoint.worlds.draw_arms")
    picture = getattr(pictures, name)
    return lambda state, action, mask: picture(state, action=action, mask=mask)
