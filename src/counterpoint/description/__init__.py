"""One TOML file that says what a dataset's columns mean and how to augment it.

derived = { columns = "6:9", function = "my_robot:relative" }
context = ["room"]

[state]                       # columns, ranges, or observation keys of the recording
gripper = [0, 1, 2]
puck = "3:6"
room = { keys = ["room"] }

[action]
motor = "0:2"

[noise]                       # optional; columns of the recorded noise, or hidden state, that each factor owns
[positions]                   # optional; learned masks and proximity use them
gripper = "0:3"
puck = "3:6"

[types]                       # optional; factors that are alike
[mask]
kind = "proximity"            # or "learned" (file, tau), or "function" (function = "module:name")
radius = 0.1
attached = { motor = ["gripper"] }

[reward]
kind = "function"             # or "learned" (file), or "from-goal" (goal, achieved, tolerance)
function = "my_robot:reward"

[terminal]                    # optional; as for the reward
kind = "function"
function = "my_robot:done"

[augment]                     # optional; how pairs and swaps are chosen
policy = "uniform"            # or "sparse", or { sparse = 2 } to swap two components at most
samples_per_pair = 5
pairing = "uniform"           # or "sharing": only pairs that have an independent component in common

Reading a description runs nothing. Making an augmenter of it loads the functions that it names, from the description's
own folder first; `Description.functions` lists them beforehand.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.core.augment import Augmenter
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.description.building import derive_function, mask_function, settings_of, task_function
from counterpoint.description.source import DescriptionError, Source
from counterpoint.user_code import FunctionPlace

__all__ = ["Description", "DescriptionError", "read_description"]

TABLES = ("state", "action", "noise", "derived", "positions", "types", "mask", "reward", "terminal", "augment")
SECTIONS = (*TABLES, "context", "static")
CALLED = ("derived", "mask", "reward", "terminal")  # the sections that may name a function, or a file
KINDS = {
    "mask": {"proximity": ("radius", "attached", "velocities"), "learned": ("file", "tau"), "function": ("function",)},
    "reward": {"function": ("function",), "learned": ("file",), "from-goal": ("goal", "achieved", "tolerance")},
    "terminal": {"function": ("function",), "learned": ("file",), "from-goal": ("goal", "achieved", "tolerance")},
}


@dataclass(frozen=True)
class Description:
    """A description file, read and checked."""

    factors: Factorization
    source: Source

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    @property
    def functions(self) -> dict[str, FunctionPlace]:
        """The functions that it names, by section; none of them has been loaded."""
        tables = {section: self.source.table.get(section, {}) for section in CALLED}
        return {section: self.source.place(section) for section, table in tables.items() if "function" in table}

    @property
    def files(self) -> dict[str, Path]:
        """The learned masks and rewards that it names, by section."""
        tables = {section: self.source.table.get(section, {}) for section in CALLED}
        return {section: self.path.parent / table["file"] for section, table in tables.items() if "file" in table}

    def mask(self) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
        """Return its mask and what recomputes its derived columns, if it has any, both loaded.

        Raises:
            DescriptionError: if there is no mask, or a function cannot be loaded.
        """
        found = mask_function(self.source, self.factors)
        if found is None:
            raise self.source.fail("a section [mask] is needed", None)
        return found, derive_function(self.source) if self.factors.derived else None

    def augmenter(self, **settings: Any) -> Augmenter:
        """Return the ``Augmenter`` that the file describes, with its functions loaded; ``settings`` go before its own.

        Raises:
            DescriptionError: if a function cannot be loaded, or does not fit.
        """
        source = self.source
        found: dict[str, Any] = {
            "mask_fn": mask_function(source, self.factors),
            "reward_fn": task_function(source, "reward", self.factors),
            "terminal_fn": task_function(source, "terminal", self.factors),
        }
        for section in ("mask", "reward"):
            if found[f"{section}_fn"] is None:
                source.fail(f"a section [{section}] is needed to augment", None)
        if self.factors.derived:
            found["derive"] = derive_function(source)
        with source.failing("augment"):
            return Augmenter(self.factors, **found, **{**settings_of(source), **settings})


def read_description(path: str | Path, keys: Mapping[str, Sequence[int]] | None = None) -> Description:
    """Read a description file. This runs no code of the user's.

    Args:
        path: the TOML file. Functions named in it are looked up beside it and on the Python path.
        keys: state columns of each observation key of the recording, for factors given by ``keys``.

    Raises:
        DescriptionError: naming the line, what is wrong, and the nearest right word.
    """
    source, keys = Source(Path(path)), keys or {}
    source.known("section", source.table, SECTIONS)
    for section in TABLES:
        source.require_table(section)
    if not source.table.get("state"):
        source.fail("a section [state] with at least one factor is needed", None)
    state = source.spans("state", keys)
    action = source.spans("action")
    owners = {"positions": (*state, *action), "types": (*state, *action), "noise": tuple(state)}
    for section, names in owners.items():
        source.known("factor", source.table.get(section, {}), names, section)
    context, static = source.names("context"), source.names("static")
    for word, names in (("context", context), ("static", static)):
        source.known("factor", names, tuple(state), word, word)
    for section, kinds in KINDS.items():
        source.kind(section, kinds)
    settings_of(source)
    derived = source.table.get("derived", {})
    if derived:
        source.known("word", derived, ("columns", "function"), "derived")
        if "columns" not in derived:
            source.fail("derived needs columns", "derived")
    try:
        factors = Factorization(
            state,
            action,
            derived=source.columns("derived", "columns", derived["columns"], keys) if derived else (),
            context=context,
            static=static,
            noise=source.spans("noise"),
            positions={name: Position(columns) for name, columns in source.spans("positions").items()},
            types=source.words("types"),
        )
    except (ValueError, TypeError) as error:
        if isinstance(error, DescriptionError):
            raise
        section = str(error).split(":", maxsplit=1)[0].split()[0]
        source.fail(str(error), section if section in source.table else "state")
    return Description(factors, source)
