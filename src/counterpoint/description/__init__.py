"""One TOML file that says what a dataset's columns mean and how to augment it: see ``docs/description.md``.

Reading a description runs nothing. Making an augmenter of it loads the functions that it names, from the description's
own folder first; `Description.functions` lists them beforehand.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from counterpoint.core.augment import Augmenter
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.description.building import derive_function, mask_function, settings_of, task_function, tolerance_of
from counterpoint.description.source import DescriptionError, Source
from counterpoint.simulators import Tolerance
from counterpoint.user_code import FunctionPlace

Keys: TypeAlias = Mapping[str, Sequence[int]]

__all__ = ["Description", "DescriptionError", "read_description"]

COLUMNS = ("state", "action", "noise", "positions", "types", "angles", "tolerances")  # sections of factors
TABLES = (*COLUMNS, "derived", "mask", "reward", "terminal", "augment")
SECTIONS = (*TABLES, "context", "static")
CALLED = ("derived", "mask", "reward", "terminal")  # the sections that may name a function, or a file
TASKS = {
    "function": ("function",),
    "learned": ("file",),
    "from-goal": ("goal", "achieved", "tolerance", "reached", "missed"),
    "constant": ("value",),
}
KINDS = {
    "mask": {"proximity": ("radius", "attached", "velocities"), "learned": ("file", "tau"), "function": ("function",)},
    "reward": TASKS,
    "terminal": {**TASKS, "from-goal": ("goal", "achieved", "tolerance")},
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
        return found, derive_function(self.source, self.factors) if self.factors.derived else None

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
            found["derive"] = derive_function(source, self.factors)
        with source.failing("augment"):
            return Augmenter(self.factors, **found, **{**settings_of(source), **settings})

    @property
    def without_noise(self) -> bool:
        """Whether the description says to leave recorded noise out: ``noise = false``."""
        return self.source.table.get("noise") is False

    def tolerance(self, atol: float = 1e-6) -> Tolerance:
        """Return how far a simulator may be off in each column: ``atol``, unless [tolerances] says otherwise."""
        return tolerance_of(self.source, self.factors, atol)


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
        if section != "noise" or source.table.get("noise") is not False:
            source.require_table(section)
    if not source.table.get("state"):
        source.fail("a section [state] with at least one factor is needed", None)
    state = source.spans("state", keys)
    action = source.spans("action")
    for section in COLUMNS[2:]:
        names = (*state, *action) if section in ("positions", "types") else tuple(state)
        source.known("factor", source.table.get(section) or {}, names, section)
    for word in ("context", "static"):
        source.known("factor", source.names(word), tuple(state), word, word)
    for section, kinds in KINDS.items():
        source.kind(section, kinds)
    settings_of(source)
    found = Description(_factors(source, state, action, keys), source)
    found.tolerance()
    return found


def _factors(
    source: Source, state: dict[str, tuple[int, ...]], action: dict[str, tuple[int, ...]], keys: Keys
) -> Factorization:
    """Build the factorisation; what it refuses is named with its line."""
    derived = source.table.get("derived", {})
    if derived:
        source.known("word", derived, ("columns", "function", "plus", "minus"), "derived")
        if "columns" not in derived or not {"function", "plus"} & set(derived):
            source.fail("derived needs columns, and a function or plus (and minus) to compute them", "derived")
    places = {}
    for name in source.table.get("positions", {}):
        with source.failing("positions", name):
            places[name] = Position(**source.parts("positions", name, ("scale", "offset")))
    try:
        return Factorization(
            state,
            action,
            derived=source.columns("derived", "columns", derived["columns"], keys) if derived else (),
            context=source.names("context"),
            static=source.names("static"),
            noise={} if source.table.get("noise") is False else source.spans("noise"),
            positions=places,
            types=source.words("types"),
        )
    except (ValueError, TypeError) as error:
        if isinstance(error, DescriptionError):
            raise
        section = str(error).split(":", maxsplit=1)[0].split()[0]
        section = section if section in source.table else "state"
        named = [key for key in source.table[section] if re.search(rf"(?<!\w){re.escape(key)}(?!\w)", str(error))]
        raise source.fail(str(error), section, named[-1] if named else None) from error
