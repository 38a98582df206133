"""A file's head as JSON text, exact in both directions, with a format version."""

import json
from collections.abc import Mapping
from typing import Any

from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.files.recording import FileProblem, Head

KEY = "counterpoint"  # under which a file keeps this text
VERSION = 1


def head_to_json(head: Head, **layout: Any) -> str:
    """Write a head as JSON; ``layout`` is what the format itself has to remember."""
    return json.dumps(
        {
            "version": VERSION,
            "factors": None if head.factors is None else factors_to_json(head.factors),
            "source": head.source,
            **({} if head.source_rows is None else {"source_rows": head.source_rows}),
            "filters": {name: [int(episode) for episode in episodes] for name, episodes in head.filters.items()},
            "notes": dict(head.notes),
            **layout,
        }
    )


def head_from_json(text: str | bytes) -> tuple[Head, dict[str, Any]]:
    """Read a head and what the format remembers besides; raise ``FileProblem`` unless it is one of ours."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise FileProblem(f"its header is not readable JSON ({error}); the file is damaged.") from error
    version = found.get("version") if isinstance(found, dict) else None
    if type(version) is not int or version < 1:
        raise FileProblem("its header has no format version; the file is damaged.")
    if version > VERSION:
        raise FileProblem(
            f"it has format version {version}, newer than {VERSION}, the newest this release knows. "
            "Install a newer one: pip install -U counterpoint-rl"
        )
    source, filters, notes = found.get("source"), found.get("filters", {}), found.get("notes", {})
    rows = found.get("source_rows")
    right = isinstance(source, str | None) and isinstance(filters, dict) and isinstance(notes, dict)
    if not right or not (rows is None or (type(rows) is int and 0 < rows < 2**63)):
        raise FileProblem("its header is malformed; the file is damaged.")
    try:
        named = {name: tuple(int(episode) for episode in episodes) for name, episodes in filters.items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise FileProblem(f"the filters in its header are malformed: {error}") from error
    factors = None if found.get("factors") is None else factors_from_json(found["factors"])
    return Head(factors, source, named, notes, rows), found


def factors_to_json(factors: Factorization) -> dict[str, Any]:
    """Return a factorisation as plain JSON values.

    Example:
        >>> factors = Factorization.blocks(state={"hand": 2}, action={"motor": 1})
        >>> factors_to_json(factors)["state"]
        {'hand': [0, 1]}
        >>> factors_from_json(factors_to_json(factors)) == factors
        True
    """
    places = {
        name: {"columns": list(place.columns), "scale": place.scale, "offset": place.offset}
        for name, place in factors.positions.items()
    }
    return {
        **{
            space: {name: list(columns) for name, columns in getattr(factors, space).items()}
            for space in ("state", "action", "noise")
        },
        "derived": list(factors.derived),
        "context": list(factors.context),
        "static": list(factors.static),
        "positions": places,
        "types": dict(factors.types),
    }


def factors_from_json(found: Mapping[str, Any]) -> Factorization:
    """Build a factorisation from plain JSON values, or raise ``FileProblem``."""
    try:
        _require_compact(found)
        places = {
            name: Position(tuple(place["columns"]), place["scale"], place["offset"])
            for name, place in found.get("positions", {}).items()
        }
        names = ("action", "derived", "context", "static", "noise", "types")
        parts = {name: found[name] for name in names if name in found}
        return Factorization(found["state"], **parts, positions=places)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileProblem(f"its factorisation is not valid: {error}") from error


def _require_compact(found: Mapping[str, Any]) -> None:
    """Refuse column numbers beyond the number of columns, before anyone counts up to them."""
    for space in ("state", "action", "noise"):
        listed = [column for columns in found.get(space, {}).values() for column in columns]
        listed += found.get("derived", []) if space == "state" else []
        if listed and not max(listed) < len(listed):
            raise ValueError(f"{space} has {len(listed)} columns, but a factor claims column {max(listed)}.")
