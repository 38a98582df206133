"""The text of a description file, read with care, and messages that name its lines."""

import difflib
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from counterpoint.core.factors import MOST_COLUMNS
from counterpoint.user_code import FunctionPlace, find, load

MOST_BYTES = 2**20  # of a description


class DescriptionError(ValueError):
    """The description file is wrong; the message names the line and what was probably meant."""


class Source:
    """A description file: its text, its table, and ways to read the table that fail with a line number."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = _text(path)
        try:
            self.table: dict[str, Any] = tomllib.loads(self.text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError, OverflowError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            told = re.fullmatch(r"(?s)(.*) \(at line (\d+), column (\d+)\)", why)
            where = f"{path}, line {told.group(2)}" if told else str(path)
            raise DescriptionError(f"{where}: {told.group(1) if told else why}") from error

    @cached_property
    def places(self) -> dict[tuple[str, ...], int]:
        """The line of every section and of every key, by its path: ("state", "puck")."""
        return dict(_places(self.text))

    def line(self, section: str | None, key: str | None = None) -> int | None:
        """Find the line of a section, or of a key in it."""
        if section is None:
            return None
        exact = self.places.get((section, key)) if key else None
        inside = [line for path, line in self.places.items() if path[0] == section]
        return exact or self.places.get((section,)) or min(inside, default=None)

    def fail(self, message: str, section: str | None, key: str | None = None) -> NoReturn:
        """Raise, naming the line if it can be found."""
        line = self.line(section, key) if section else None
        where = f"{self.path}, line {line}" if line else str(self.path)
        raise DescriptionError(f"{where}: {message}")

    @contextmanager
    def failing(self, section: str, key: str | None = None) -> Iterator[None]:
        """Turn what a constructor refuses into a failure of a section."""
        try:
            yield
        except DescriptionError:
            raise
        except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
            self.fail(str(error), section, key)

    def known(
        self, what: str, words: Any, allowed: Sequence[str], section: str | None = None, key: str | None = None
    ) -> None:
        """Fail at the first word that is not allowed, with the nearest one that is; ``key`` says where it stands."""
        for word in words:
            if word not in allowed:
                near = difflib.get_close_matches(str(word), allowed, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(allowed)}."
                place = (key or str(word)) if section else None
                self.fail(f"unknown {what} {str(word)!r:.80}; {hint}", section or str(word), place)

    def require_table(self, section: str) -> None:
        """Fail unless a section, if it is there, holds entries."""
        if not isinstance(self.table.get(section, {}), dict):
            self.fail(f"expected a section [{section}] with entries, got {self.table[section]!r:.80}", section)

    def names(self, section: str) -> tuple[str, ...]:
        """Read a list of names."""
        value = self.table.get(section, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self.fail(f'expected {section} = ["name"], got {value!r:.80}', section)
        return tuple(value)

    def words(self, section: str) -> dict[str, str]:
        """Read a section whose entries are words."""
        for name, value in self.table.get(section, {}).items():
            if not isinstance(value, str):
                self.fail(f"{name!r}: expected a word in quotes, got {value!r:.80}", section, name)
        return dict(self.table.get(section, {}))

    def spans(self, section: str, keys: Mapping[str, Sequence[int]] | None = None) -> dict[str, tuple[int, ...]]:
        """Read a section whose entries are columns."""
        return {
            name: self.columns(section, name, value, keys or {}) for name, value in self.table.get(section, {}).items()
        }

    def columns(self, section: str, name: str, value: Any, keys: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
        """Read columns: a number, a list of numbers, a range such as "3:6", or observation keys."""
        found: tuple[int, ...] | None = None
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}:[0-9]{1,9}", value):
            start, stop = map(int, value.split(":"))
            if start >= stop:
                self.fail(f"{name!r} has the empty range {value!r}", section, name)
            found = tuple(range(start, stop)) if stop <= MOST_COLUMNS else (stop,)
        elif isinstance(value, dict) and set(value) == {"keys"}:
            found = self._keyed(section, name, value["keys"], keys)
        else:
            numbers = value if isinstance(value, list) else [value]
            if all(isinstance(column, int) and not isinstance(column, bool) for column in numbers):
                found = tuple(numbers)
        if found is None:
            wanted = 'expected columns such as [0, 1], a range such as "3:6", or { keys = ["name"] }'
            self.fail(f"{name!r}: {wanted}, got {value!r:.80}", section, name)
        if any(abs(column) >= MOST_COLUMNS for column in found) or len(found) > MOST_COLUMNS:
            self.fail(f"{name!r}: columns go up to {MOST_COLUMNS - 1:,} at most, got {value!r:.80}", section, name)
        return found

    def _keyed(self, section: str, name: str, value: Any, keys: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
        """Return the columns of observation keys."""
        if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
            self.fail(f'{name!r}: expected {{ keys = ["name"] }}, got {value!r:.80}', section, name)
        if not keys:
            self.fail(f"{name!r} is given by observation keys, but the recording has none", section, name)
        self.known("observation key", value, tuple(keys), section, name)
        return tuple(column for key in value for column in keys[key])

    def parts(self, section: str, name: str, optional: Sequence[str]) -> dict[str, Any]:
        """Read an entry that is plain columns, or a table with columns and optional words."""
        value = self.table[section][name]
        if not isinstance(value, dict) or "columns" not in value:
            return {"columns": self.columns(section, name, value, {})}
        self.known("word", value, ("columns", *optional), section, name)
        return {**value, "columns": self.columns(section, name, value["columns"], {})}

    def kind(self, section: str, kinds: Mapping[str, Sequence[str]]) -> None:
        """Check that a section has a known kind and only the words of that kind."""
        table = self.table.get(section)
        if table is None:
            return
        if "kind" not in table:
            self.fail(f"[{section}] needs a kind: {', '.join(kinds)}", section)
        if not isinstance(table["kind"], str) or table["kind"] not in kinds:
            near = difflib.get_close_matches(str(table["kind"]), kinds, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(kinds)}."
            self.fail(f"unknown kind {table['kind']!r:.80} of {section}; {hint}", section, "kind")
        self.known("word", table, ("kind", *kinds[table["kind"]]), section)
        if not isinstance(table.get("file", ""), str):
            self.fail(f"file: expected a file name in quotes, got {table['file']!r:.80}", section, "file")

    def number(self, section: str, key: str, default: float | None = None) -> float:
        """Read a finite number."""
        value = self.table[section].get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            self.fail(f"{key}: expected a number, got {value!r:.80}", section, key)
        return float(value)

    def place(self, section: str) -> FunctionPlace:
        """Say where the function of a section is, without loading it."""
        with self._looked_up(section) as name:
            return find(name, self.path.parent)

    def function(self, section: str) -> Callable[..., Any]:
        """Load the function of a section, from the description's folder first."""
        with self._looked_up(section) as name:
            return load(name, self.path.parent)

    @contextmanager
    def _looked_up(self, section: str) -> Iterator[str]:
        name = self.table[section].get("function", "")
        if not isinstance(name, str) or not re.fullmatch(r"[\w.]+:\w+", name):
            self.fail(f'expected function = "module:name", got {name!r:.80}', section, "function")
        try:
            yield name
        except ValueError as error:
            self.fail(f"{name}: {error}", section, "function")


def _places(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Iterate over the sections and keys of a TOML text with their lines; what is inside a value is passed over."""
    section: tuple[str, ...] = ()
    depth, quotes = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        begins = depth == 0 and not quotes
        heading = re.match(r"\s*\[\[?([^\[\]]+)\]", line) if begins else None
        if heading:
            section = _words(heading.group(1))
            yield section, number
            continue
        key = re.match(r"""\s*((?:"[^"]*"|'[^']*'|[^\s"'=#])(?:"[^"]*"|'[^']*'|[^"'=#])*)=""", line) if begins else None
        if key:
            yield (*section, *_words(key.group(1))), number
        depth, quotes = _after(line[key.end() :] if key else line, depth, quotes)


def _after(line: str, depth: int, quotes: str) -> tuple[int, str]:
    """Return how many brackets, and which long quotes, are open at the end of a line."""
    for found in re.finditer(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*|[\[\]{}]', line):
        mark = found.group()
        if quotes or mark in ('"""', "'''"):
            quotes = "" if mark == quotes else quotes or mark
        elif mark in "[{":
            depth += 1
        elif mark in "]}":
            depth = max(0, depth - 1)
    return depth, quotes


def _words(path: str) -> tuple[str, ...]:
    """Split a dotted key into its words."""
    return tuple(word.strip(" \t\"'") for word in re.findall(r"""(?:"[^"]*"|'[^']*'|[^.])+""", path))


def _text(path: Path) -> str:
    """Read a description, if it is a regular file of a sensible size."""
    try:
        about = os.stat(path)
        if not stat.S_ISREG(about.st_mode):
            raise DescriptionError(f"{path}: this is not a regular file.")
        if about.st_size > MOST_BYTES:
            raise DescriptionError(f"{path}: it has {about.st_size:,} bytes; a description has {MOST_BYTES:,} at most.")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, DescriptionError):
            raise
        why = error.strerror if isinstance(error, OSError) else None
        raise DescriptionError(f"{path}: {why or error}") from error
