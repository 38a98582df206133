"""What can be learned from and scored: checks at the door."""

import numpy as np

from counterpoint.core.arrays import Array, Ints, listed, numbers, require_finite
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.learn.training.scaling import constant

FEWEST_ROWS = 100  # fewer transitions than this are refused: no network learns a dependence from them


def require_training_data(data: Transitions, factors: Factorization, *, allow_constant: bool) -> None:
    """Raise unless data can be learned from: covered by the factors, enough rows, nothing NaN or constant."""
    if not isinstance(data, Transitions):
        raise TypeError(f"data: expected Transitions, got {type(data).__name__}.")
    factors.require_widths(data.state.shape[1], data.action.shape[1])
    if len(data) < FEWEST_ROWS:
        raise ValueError(
            f"data: {len(data)} transitions are too few to learn from: expected at least {FEWEST_ROWS}, "
            "better tens of thousands. Collect more, or use a mask that needs no learning: counterpoint.masks."
        )
    for name in ("state", "action", "next_state"):
        require_finite(name, getattr(data, name))
    if not allow_constant:
        _require_variety("state", data.state, factors.state_owner, factors)
        _require_variety("action", data.action, factors.action_owner, factors)


def require_inputs(factors: Factorization, state: object, action: object, next_state: object | None) -> list[Array]:
    """Return the arrays of a batch to score, checked for number of columns and rows and for NaN."""
    arrays = [numbers("state", state, ndim=2), numbers("action", action, ndim=2)]
    factors.require_widths(arrays[0].shape[1], arrays[1].shape[1])
    if next_state is not None:
        arrays.append(numbers("next_state", next_state, ndim=2))
    for name, array in zip(("state", "action", "next_state"), arrays, strict=False):
        require_finite(name, array)
        if len(array) != len(arrays[0]) or (name == "next_state" and array.shape != arrays[0].shape):
            raise ValueError(f"{name}: expected one row for each of the {len(arrays[0])} states, got {array.shape}.")
    return arrays


def require_several(factors: Factorization) -> None:
    """Raise unless there are two factors or more, one of which might influence another."""
    if factors.n + factors.m < 2:
        raise ValueError(
            f"factors: {factors.names[0]!r} is the only one, so there is nothing that could influence it. "
            "Split the state into the factors that you want to swap."
        )


def _require_variety(space: str, values: Array, owner: Ints, factors: Factorization) -> None:
    stuck = [int(column) for column in np.flatnonzero(constant(values) & (owner >= 0))]
    if stuck:
        named = [f"{factors.columns[space][c]}, always {values[0, c]:g}" for c in stuck]
        raise ValueError(
            f"{space}: {listed(named)} is constant in the training data, so nothing can be learned about what depends "
            "on it. Collect data in which it varies, leave it out of the factors, or pass allow_constant=True and "
            "treat the scores of its edges as unknown."
        )
