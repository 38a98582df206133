"""A first description of a dataset, as TOML, to be finished by whoever knows what the columns mean."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from counterpoint.command_line.guessing import Guess
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position

UNKNOWN = "# The file does not say which columns belong together: split this factor into the things that move.\n"
DERIVED = "# These columns are computed from the others; a function says how: state -> (B, derived).\n"
POSITIONS = """
# [positions]                 # optional: the columns that say where a factor is
# {first} = "0:2"
"""
MASK = """
# Who influences whom: things that come closer than a radius, a learned mask, or a function of yours.
# [mask]
# kind = "proximity"          # or "learned" (file, tau), or "function" (function = "module:name")
# radius = 0.1
# attached = {{ {action} = [{first}] }}   # what each action moves
"""
REWARD = """
# [reward]
# kind = "function"           # (state, action, next_state) -> reward; or "from-goal" (goal, achieved, tolerance)
# function = "my_robot:reward"
"""
TERMINAL = """
# The file holds terminal rows, so say when a transition is terminal.
# [terminal]
# kind = "function"           # (state, action, next_state) -> whether; or "from-goal" (goal, achieved, tolerance)
# function = "my_robot:done"
"""


def proposal(
    state: int,
    action: int,
    factors: Factorization | None,
    *,
    functions: Mapping[str, str] | None = None,
    guess: Guess = Guess(),  # noqa: B008 (frozen)
) -> str:
    """Return a description of states and actions of so many columns, with what is known of them.

    Args:
        state: columns of a state.
        action: columns of an action.
        factors: what is known of them.
        functions: ``module:name`` for the sections ``derived``, ``mask`` and ``reward`` that have one.
        guess: what the rows give away.

    Example:
        >>> print(proposal(4, 1, Factorization.blocks(state={"hand": 1, "cup": 3}, action={"motor": 1}))[:48])
        [state]
        hand = 0
        cup = "1:4"
        <BLANKLINE>
        [action]
        motor = 0
    """
    known, functions = factors or unknown(state, action), functions or {}
    text = UNKNOWN if factors is None else ""
    if known.derived:
        rule = guess.derived if guess.derived and "derived" not in functions else {"columns": known.derived}
        if "plus" not in rule:
            rule = {**rule, "function": functions.get("derived", "my_robot:derive")}
        text += f"{'' if 'plus' in rule else DERIVED}derived = {_value(rule)}\n\n"
    for word in ("context", "static"):
        if getattr(known, word):
            text += f"{word} = {_value([*getattr(known, word)])}\n\n"
    text += _section("state", known.state)
    text += _section("action", known.action)
    text += _section("positions", {name: _place(place) for name, place in known.positions.items()})
    text += _section("types", {name: kind for name, kind in known.types.items() if kind != name})
    text += _section("noise", known.noise)
    first, mover = next(iter(known.state)), next(iter(known.action), "action")
    if not known.positions and not functions:
        text += POSITIONS.format(first=_key(first))
    rules = {section: {"kind": "function", "function": place} for section, place in functions.items()}
    text += _section("mask", rules.get("mask", {})) or MASK.format(first=_quoted(first), action=_key(mover))
    text += _section("reward", rules.get("reward", {}) or guess.reward) or REWARD
    text += _section("terminal", guess.terminal) or (TERMINAL if guess.terminals else "")
    return text.lstrip()


def unknown(state: int, action: int) -> Factorization:
    """Return the factors of which nothing is known: one of the state, one of the action."""
    return Factorization.blocks(state={"state": state}, action={"action": action} if action else {})


def _section(name: str, entries: Mapping[str, Any]) -> str:
    lines = [f"{_key(key)} = {_value(entry)}\n" for key, entry in entries.items()]
    return f"\n[{name}]\n" + "".join(lines) if lines else ""


def _value(value: Any) -> str:
    """Write a word, a number, columns, a list of words, or a table of these."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(inner)}" for key, inner in value.items()) + " }"
    if not isinstance(value, Sequence):
        return repr(value)
    if all(isinstance(each, int) for each in value):
        return _columns(value)
    return f"[{', '.join(map(_value, value))}]"


def _columns(columns: Sequence[int]) -> str:
    """Write columns as a number, a range in quotes, or a list."""
    if len(columns) == 1:
        return str(columns[0])
    first = columns[0]
    together = list(columns) == list(range(first, first + len(columns)))
    return f'"{first}:{first + len(columns)}"' if together else str(list(columns))


def _place(position: Position) -> Any:
    """Return the columns of a position, with scale and offset if it has them."""
    if position.scale == 1.0 and position.offset == 0.0:
        return position.columns
    return {"columns": position.columns, "scale": position.scale, "offset": position.offset}


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _quoted(name)


def _quoted(text: str) -> str:
    """Write a string as in JSON, which TOML reads alike but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
