"""Columns that mix two factors: a velocity relative to another factor's, a difference of positions.

Such a column must not be swapped with the factor that seems to own it, because the other one is in it too. The signs
are in the data: it follows a difference of two factors' columns, or of their changes, better than its own factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions

MOST_COLUMNS, MOST_ROWS = 128, 4096  # looked at
LEAST = 0.9  # share of a column's variance that a difference must explain
CLEARLY = 0.5  # of what its own factor, or either column alone, leaves unexplained


@dataclass(frozen=True)
class Mixture:
    """A state column that follows a difference of two others, in different factors."""

    column: int
    plus: int
    minus: int
    changes: bool  # it follows the difference of their changes within a step, as a relative velocity does
    explained: float  # share of its variance that the difference explains
    by_own: float  # share that the other columns of its own factor explain


def mixtures(data: Transitions, factors: Factorization) -> list[Mixture]:
    """Find state columns that are predicted better by a difference of two factors' columns than by their own factor.

    Time O(S^3 B) for at most ``MOST_ROWS`` rows and ``MOST_COLUMNS`` columns.
    """
    if factors.n < 2 or factors.state_width > MOST_COLUMNS:
        return []
    data = data[:MOST_ROWS]
    values = data.next_state.astype(np.float64)
    changes = values - data.state
    owner = factors.state_owner
    pairs = np.array([(a, b) for a in range(len(owner)) for b in range(len(owner)) if _apart(owner, a, b)]).reshape(
        -1, 2
    )
    found: dict[int, Mixture] = {}
    for moving, source in ((False, values), (True, changes)):
        alone = _squared(source, values)  # (S, S): how well each column alone explains each
        together = np.concatenate([_squared(source[:, p[:, 0]] - source[:, p[:, 1]], values) for p in _cut(pairs)])
        for column in np.flatnonzero((owner >= 0) & (values.std(axis=0) > 0)).tolist():
            others = ~(pairs == column).any(axis=1)
            score = np.where(others, together[:, column], 0.0)
            best = int(score.argmax()) if len(score) else 0
            if not len(score) or score[best] < max(LEAST, found[column].explained if column in found else 0.0):
                continue
            own = _own(values, changes, factors, column)
            rest = 1 - max(own, float(alone[pairs[best], column].max()))
            if 1 - score[best] < CLEARLY * rest:
                plus, minus = pairs[best].tolist()
                found[column] = Mixture(column, plus, minus, moving, float(score[best]), own)
    return [found[column] for column in sorted(found)]


def difference(states: Sequence[Array], column: int, allowed: Sequence[int]) -> tuple[int, int | None] | None:
    """Return the columns whose difference a column is in all states, or the one that it copies; None if there are none.

    Args:
        states: batches of states, (B, S).
        column: the column to explain.
        allowed: the columns to explain it by.
    """
    rows = np.concatenate(states).astype(np.float64)
    target, others = rows[:, column], rows[:, list(allowed)]
    near = 1e-4 * np.maximum(1.0, np.abs(target))
    for copy in np.flatnonzero((np.abs(others - target[:, None]) <= near[:, None]).all(axis=0)):
        return allowed[int(copy)], None
    for place, minus in enumerate(allowed):
        sums = target + others[:, place]
        for plus in np.flatnonzero((np.abs(others - sums[:, None]) <= near[:, None]).all(axis=0)):
            return allowed[int(plus)], minus
    return None


def _apart(owner: Array, a: int, b: int) -> bool:
    return bool(a != b and owner[a] >= 0 and owner[b] >= 0 and owner[a] != owner[b])


def _cut(pairs: Array) -> list[Array]:
    return [pairs[start : start + 1024] for start in range(0, len(pairs), 1024)] or [pairs]


def _squared(inputs: Floats, targets: Floats) -> Floats:
    """Return the squared correlation of each input column with each target column."""
    centred, aims = inputs - inputs.mean(axis=0), targets - targets.mean(axis=0)
    scale = np.outer(np.square(centred).sum(axis=0), np.square(aims).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > 0, np.square(centred.T @ aims) / scale, 0.0)


def _own(values: Floats, changes: Floats, factors: Factorization, column: int) -> float:
    """Return the share of a column that the other columns of its factor, and their changes, explain linearly."""
    columns = next(list(own) for own in factors.state.values() if column in own)
    others = [other for other in columns if other != column]
    inputs = np.concatenate([values[:, others], changes[:, others], np.ones((len(values), 1))], axis=1)
    fitted = inputs @ np.linalg.lstsq(inputs, values[:, column], rcond=None)[0]
    spread = float(np.square(values[:, column] - values[:, column].mean()).sum())
    return max(0.0, 1.0 - float(np.square(values[:, column] - fitted).sum()) / spread)
