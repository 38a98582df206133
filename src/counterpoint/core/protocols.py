"""What users supply: plain functions, called with arrays they cannot change and checked on return."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, listed, read_only
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions


class MaskFn(Protocol):
    """Who influences whom: ``(state, action) -> bool (B, N, n)``.

    Rows are sources at t (state factors, then action factors), columns are state factors at t+1. A
    mask with the attribute ``uses_next_state = True`` is called as ``(state, action, next_state)``, one
    with ``uses_noise = True`` gets the noise columns last.
    """

    def __call__(self, state: Floats, action: Floats, /) -> Bools:  # noqa: D102
        ...


class NextStateMaskFn(Protocol):
    """A mask that also looks at what happened; it says so by its attribute."""

    uses_next_state: bool

    def __call__(self, state: Floats, action: Floats, next_state: Floats, /) -> Bools:  # noqa: D102
        ...


class NoiseMaskFn(Protocol):
    """A mask that also looks at the recorded noise: ``(state, action, noise)``.

    If it declares ``uses_next_state`` too, it is called as ``(state, action, next_state, noise)``.
    """

    uses_noise: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Bools:  # noqa: D102
        ...


Mask: TypeAlias = MaskFn | NextStateMaskFn | NoiseMaskFn


class RewardFn(Protocol):
    """``(state, action, next_state) -> float (B,)``."""

    def __call__(self, state: Floats, action: Floats, next_state: Floats, /) -> Floats:  # noqa: D102
        ...


class TerminalFn(Protocol):
    """``(state, action, next_state) -> bool (B,)``."""

    def __call__(self, state: Floats, action: Floats, next_state: Floats, /) -> Bools:  # noqa: D102
        ...


class DeriveFn(Protocol):
    """Derived columns from the others: ``state (B, S) -> float (B, derived)``, or a whole state (B, S)."""

    def __call__(self, state: Floats, /) -> Floats:  # noqa: D102
        ...


def declared(*masks: Any) -> tuple[str, ...]:
    """Return what masks declare to look at besides state and action, in the order of their arguments."""
    return tuple(name for name in ("next_state", "noise") if any(getattr(m, f"uses_{name}", False) for m in masks))


def ask(mask: Callable[..., Any], data: Transitions) -> Array:
    """Call a mask (or whatever scores edges) with what it declares to look at."""
    extra = declared(mask)
    if "noise" in extra and data.noise is None:
        raise ValueError(
            "mask_fn: it declares uses_noise, but the transitions have no noise columns. Record the noise, and say "
            "in Factorization(noise=...) which factor owns each column, so that swaps carry it along."
        )
    return _call("mask_fn", mask, data.state, data.action, *(getattr(data, name) for name in extra))


def call_mask(mask_fn: Mask, data: Transitions, factors: Factorization) -> Bools:
    """Return the masks of a batch, checked, without the edges out of context factors.

    Base and donor agree on context factors, so what these influence may still be swapped.
    """
    mask = require_mask(ask(mask_fn, data), len(data), factors)
    if factors.context:
        mask = mask & ~factors.nodes(*factors.context)[:, None]
    return mask


def call_reward(reward_fn: RewardFn, data: Transitions, dtype: np.dtype[Any] | None = None) -> Floats:
    """Return the rewards of a batch, checked; they must be finite as ``dtype`` too, by default that of the data."""
    reward = _call("reward_fn", reward_fn, data.state, data.action, data.next_state)
    _require_column("reward_fn", reward, len(data), "fiub", "floats")
    if not np.isfinite(reward).all():
        raise ValueError("reward_fn: returned NaN or infinite rewards; it must be defined for every next state.")
    kept = dtype or (reward.dtype if data.reward is None else data.reward.dtype)
    with np.errstate(over="ignore"):
        stored = reward.astype(kept, copy=False)
    if stored is not reward and not np.isfinite(stored).all():
        row = int(np.argmin(np.isfinite(stored)))
        raise ValueError(
            f"reward_fn: {reward[row]:g} in row {row} of the batch does not fit into {kept}, in which rewards are "
            "stored. Scale rewards down, or store them as float64."
        )
    return reward


def call_terminal(terminal_fn: TerminalFn, data: Transitions) -> Bools:
    """Return the termination flags of a batch, checked."""
    terminated = _call("terminal_fn", terminal_fn, data.state, data.action, data.next_state)
    _require_column("terminal_fn", terminated, len(data), "b", "booleans")
    return terminated


def call_derive(derive: DeriveFn, state: Floats, factors: Factorization) -> Floats:
    """Return the derived columns of a batch of states, checked, (B, derived)."""
    values = _call("derive", derive, state)
    width = len(factors.derived)
    if values.shape == state.shape:
        values = values[:, list(factors.derived)]
    if values.shape != (len(state), width):
        raise ValueError(
            f"derive: expected shape {(len(state), width)}, one column for each of {listed(factors.derived)}, "
            f"or whole states {state.shape}, got {values.shape}."
        )
    return values


def require_mask(mask: Array, rows: int, factors: Factorization) -> Bools:
    """Raise unless ``mask`` is bool (B, N, n) for this factorisation."""
    n, nodes = factors.n, factors.n + factors.m
    if mask.dtype != np.bool_:
        hint = (
            "Scores become a mask by a threshold: wrap the function in Threshold(score_fn, tau)."
            if mask.dtype.kind == "f"
            else "Use .astype(bool)."
        )
        raise TypeError(f"mask_fn: expected booleans, got dtype {mask.dtype}. {hint}")
    if mask.shape != (rows, nodes, n):
        hint = "Rows are sources (state factors, then action factors), columns are next-state factors."
        if mask.shape == (rows, n, nodes):
            hint = "It looks transposed: " + hint
        elif mask.shape == (rows, nodes, nodes):
            hint = f"Drop the last {factors.m} columns: actions have no next value."
        raise ValueError(
            f"mask_fn: expected shape {(rows, nodes, n)} for {listed(factors.names)}, got {mask.shape}. {hint}"
        )
    return np.ascontiguousarray(mask)


def _call(name: str, function: Callable[..., Any], *inputs: Array) -> Array:
    """Call a user's function with inputs that it cannot write to."""
    try:
        return np.asarray(function(*map(read_only, inputs)))
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(
            f"{name}: it tried to change its input in place. Work on a copy: state = state.copy()."
        ) from error


def _require_column(name: str, values: Array, rows: int, kinds: str, noun: str) -> None:
    if values.shape != (rows,):
        raise ValueError(f"{name}: expected shape {(rows,)}, one value per transition, got {values.shape}.")
    if values.dtype.kind not in kinds:
        raise TypeError(f"{name}: expected {noun}, got dtype {values.dtype}.")
