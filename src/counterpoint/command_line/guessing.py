"""What some rows of a file give away: how derived columns are computed, and what rewards and ends depend on.

A guess is proposed only if it reproduces every row that was looked at; `counterpoint augment` checks it once more, on
rows from the whole file. Masks are not guessed: a wrong one makes wrong data, and nothing would contradict it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from counterpoint.core.arrays import Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.files.mixtures import difference

USUAL = (0.05, 0.1, 0.5, 0.01, 1.0)  # tolerances to try before an odd one


@dataclass(frozen=True)
class Guess:
    """Sections of a description, as far as the rows give them away."""

    derived: Mapping[str, Any] = field(default_factory=dict)
    reward: Mapping[str, Any] = field(default_factory=dict)
    terminal: Mapping[str, Any] = field(default_factory=dict)
    terminals: bool = False  # whether there are terminal rows


def guess(data: Transitions, factors: Factorization) -> Guess:
    """Look for rules that reproduce these rows."""
    derived = _derived(data, factors)
    reward: dict[str, Any] = {}
    if len(data) and (data.reward == data.reward[0]).all():
        reward = {"kind": "constant", "value": float(data.reward[0])}
    elif len(np.unique(data.reward)) == 2:
        low, high = np.unique(data.reward).tolist()
        values = {} if (low, high) == (-1.0, 0.0) else {"reached": high, "missed": low}
        reward = {**found, **values} if (found := _goal(data, factors, data.reward == high)) else {}
    ends = bool(data.terminated.any())
    return Guess(derived, reward, _goal(data, factors, data.terminated) if ends else {}, ends)


def _derived(data: Transitions, factors: Factorization) -> dict[str, Any]:
    """Return which columns the derived ones are differences, or copies, of."""
    allowed = [column for columns in factors.state.values() for column in columns]
    found = [difference((data.state, data.next_state), column, allowed) for column in factors.derived]
    whole = [pair for pair in found if pair is not None]
    if not whole or len(whole) < len(found) or len({pair[1] is None for pair in whole}) > 1:
        return {}
    plus, minus = [pair[0] for pair in whole], [pair[1] for pair in whole if pair[1] is not None]
    return {"columns": factors.derived, "plus": plus, **({"minus": minus} if minus else {})}


def _goal(data: Transitions, factors: Factorization, reached: Any) -> dict[str, Any]:
    """Return the goal, what must come near it, and how near, if that tells exactly which rows have reached it."""
    for goal in (name for name in factors.state if "goal" in name.lower()):
        for achieved, columns in _candidates(factors, goal):
            apart = _distance(data.next_state, factors.state[goal], columns)
            inner, outer = float(apart[reached].max(initial=0.0)), float(apart[~reached].min(initial=np.inf))
            if inner < outer < np.inf and reached.any():
                usual = [value for value in USUAL if inner <= value < outer]
                tolerance = usual[0] if usual else float(f"{(inner + outer) / 2:.6g}")
                return {"kind": "from-goal", "goal": goal, "achieved": achieved, "tolerance": tolerance}
    return {}


def _candidates(factors: Factorization, goal: str) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Yield what may have to come near a goal: derived columns as wide as it, or another factor."""
    wide = len(factors.state[goal])
    if len(factors.derived) == wide:
        yield factors.derived, factors.derived
    for name, columns in factors.state.items():
        if name != goal and len(columns) >= wide:
            yield name, columns[:wide]


def _distance(states: Floats, goal: tuple[int, ...], achieved: tuple[int, ...]) -> Floats:
    return np.asarray(np.linalg.norm(states[:, list(goal)] - states[:, list(achieved)], axis=1))
