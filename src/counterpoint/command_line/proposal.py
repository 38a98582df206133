"""A first description of a dataset, as TOML, to be finished by whoever knows what the columns mean."""

import json
from collections.abc import Mapping, Sequence

from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position

UNKNOWN = "# The file does not say which columns belong together: split this factor into the things that move.\n"
POSITIONS = """
# [positions]                 # optional: the columns that say where a factor is
# {first} = "0:2"
"""
REST = """
# Who influences whom: things that come closer than a radius, a learned mask, or a function of yours.
# [mask]
# kind = "proximity"          # or "learned" (file, tau), or "function" (function = "module:name")
# radius = 0.1
# attached = {{ {action} = [{first}] }}   # what each action moves
#
# [reward]
# kind = "function"           # (state, action, next_state) -> reward; or "from-goal" (goal, achieved, tolerance)
# function = "my_robot:reward"
"""


def proposal(
    state: int, action: int, factors: Factorization | None, *, module: str = "", rewarded: bool = False
) -> str:
    """Return a description of states and actions of so many columns, with the factors that are known.

    Args:
        state: columns of a state.
        action: columns of an action.
        factors: what is known of them.
        module: where functions ``derive``, ``mask`` and (if ``rewarded``) ``reward`` are, if anywhere.
        rewarded: whether there is a function ``reward``.

    Example:
        >>> print(proposal(4, 1, Factorization.blocks(state={"hand": 1, "cup": 3}, action={"motor": 1}))[:48])
        [state]
        hand = 0
        cup = "1:4"
        <BLANKLINE>
        [action]
        motor = 0
    """
    known = factors or Factorization.blocks(state={"state": state}, action={"action": action} if action else {})
    text = UNKNOWN if factors is None else ""
    if known.derived:
        text += "# These columns are computed from the others; a function says how: state -> (B, derived).\n"
        text += f'derived = {{ columns = {_columns(known.derived)}, function = "{module or "my_robot"}:derive" }}\n\n'
    if known.context:
        text += f"context = [{', '.join(map(_quoted, known.context))}]\n\n"
    if known.static:
        text += f"static = [{', '.join(map(_quoted, known.static))}]\n\n"
    text += _section("state", known.state)
    text += _section("action", known.action)
    text += _section("positions", {name: p.columns for name, p in known.positions.items() if _is_plain(p)})
    text += _section("types", {name: kind for name, kind in known.types.items() if kind != name})
    text += _section("noise", known.noise)
    if module:
        sections = ("mask", "reward") if rewarded else ("mask",)
        return text.lstrip() + "".join(_section(s, {"kind": "function", "function": f"{module}:{s}"}) for s in sections)
    first, mover = next(iter(known.state)), next(iter(known.action), "action")
    text += "" if known.positions else POSITIONS.format(first=_key(first))
    return text.lstrip() + REST.format(first=_quoted(first), action=_key(mover))


def _section(name: str, entries: Mapping[str, Sequence[int] | str]) -> str:
    lines = [f"{_key(key)} = {_quoted(e) if isinstance(e, str) else _columns(e)}\n" for key, e in entries.items()]
    return f"\n[{name}]\n" + "".join(lines) if lines else ""


def _columns(columns: Sequence[int]) -> str:
    """Write columns as a number, a range in quotes, or a list."""
    if len(columns) == 1:
        return str(columns[0])
    first = columns[0]
    together = list(columns) == list(range(first, first + len(columns)))
    return f'"{first}:{first + len(columns)}"' if together else str(list(columns))


def _is_plain(position: Position) -> bool:
    """Say whether a description can hold a position: columns alone."""
    return position.scale == 1.0 and position.offset == 0.0


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    """Write a string as in JSON, which TOML reads alike but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
