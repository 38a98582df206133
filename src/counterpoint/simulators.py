"""How a simulator is asked about whole batches, and how its answers are compared with what was recorded."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization

FULL_TURN = 2 * np.pi


@dataclass(frozen=True, eq=False)
class Tolerance:
    """How far a simulator may be off in each column, and which columns are angles.

    Attributes:
        columns: (S,) the largest difference that still counts as agreement.
        period: (S,) after how much a column is the same again: a full turn for an angle, infinity for all else.

    Example:
        >>> import numpy as np
        >>> factors = Factorization.blocks(state={"hand": 2, "wheel": 1})
        >>> tolerance = Tolerance.of(factors, 1e-6, per_factor={"hand": 0.1}, angles=[2])
        >>> tolerance.columns
        array([1.e-01, 1.e-01, 1.e-06])
        >>> tolerance.apart(np.array([[0.0, 0.0, 3.1]]), np.array([[0.0, 0.5, -3.1]])).round(2)
        array([[0.  , 0.5 , 0.08]])
    """

    columns: Floats
    period: Floats

    @classmethod
    def of(
        cls,
        factors: Factorization,
        atol: float = 1e-6,
        *,
        per_factor: Mapping[str, float] | None = None,
        angles: Sequence[int] | Mapping[int, float] = (),
    ) -> "Tolerance":
        """Build from a tolerance for every column, others for the columns of some factors, and columns of angles.

        Args:
            factors: how columns split into factors.
            atol: for every column that is not named otherwise.
            per_factor: for all columns of a state factor.
            angles: the state columns that are angles, in radians; or the period of each.
        """
        columns, period = np.full(factors.state_width, float(atol)), np.full(factors.state_width, np.inf)
        for name, limit in (per_factor or {}).items():
            if name not in factors.state or not limit >= 0:
                raise ValueError(f"tolerance: expected a number, 0 or more, for a state factor; got {name!r}: {limit}.")
            columns[list(factors.state[name])] = limit
        turns = angles if isinstance(angles, Mapping) else dict.fromkeys(angles, FULL_TURN)
        for column, turn in turns.items():
            if not 0 <= column < factors.state_width or not 0 < turn < np.inf:
                raise ValueError(f"angles: column {column} with period {turn} is not an angle of these states.")
            period[column] = turn
        return cls(columns, period)

    def apart(self, one: Array, two: Array) -> Floats:
        """Return how far two batches of states are apart, (B, S); angles go the shorter way round."""
        found = np.abs(one.astype(np.float64) - two)
        turning = np.flatnonzero(np.isfinite(self.period))
        if len(turning):
            over = np.remainder(found[:, turning], self.period[turning])
            found[:, turning] = np.minimum(over, self.period[turning] - over)
        return found


def next_states(step: Callable[..., Array], *inputs: Array) -> Array:
    """Return the next states of a batch by a simulator; one that takes a single row is asked row by row.

    Args:
        step: ``(state, action) -> next_state``, or with noise, batched or for one row.
        *inputs: states, actions, and noise if there is any, batches of one length.

    Raises:
        ValueError: if the answer has another shape than the states.
    """
    state = inputs[0]
    try:
        found = np.asarray(step(*inputs))
        if found.shape == state.shape:
            return found
        failure: Exception | None = None
    except Exception as error:
        found, failure = np.empty(0), error
    if len(state) and _takes_one_row(step, inputs):
        return np.stack([np.asarray(step(*(array[row] for array in inputs))) for row in range(len(state))])
    if failure is not None:
        _require_noise_taken(step, inputs)
        raise failure
    raise ValueError(
        f"step: expected next states of shape {state.shape}, got {found.shape}. It is called with a batch, "
        "(B, S) and (B, A); one that takes a single row, (S,) and (A,), will do as well."
    )


def _require_noise_taken(step: Callable[..., Any], inputs: tuple[Array, ...]) -> None:
    """Raise if a simulator is called with noise and takes none."""
    try:
        takes = inspect.signature(step).bind(*inputs) is not None
    except TypeError:
        takes = False
    except ValueError:  # written in C, without a signature
        return
    if not takes and len(inputs) > 2:
        raise ValueError(
            "step: the rows hold noise, or hidden state, so it is called as step(state, action, noise). Give one that "
            "takes the noise."
        )


def _takes_one_row(step: Callable[..., Any], inputs: tuple[Array, ...]) -> bool:
    """Say whether a simulator answers a single row with a single row."""
    try:
        return np.asarray(step(*(array[0] for array in inputs))).shape == inputs[0].shape[1:]
    except Exception:
        return False
