"""What a world is, and how its inputs are checked at the door.

A world is a structural causal model that can be run (paper, section 2.1): the next state is a pure
function of state, action and noise, the noise is explicit and owned column by column by the state
factors, and the local causal graph of every transition is known. So a counterfactual transition can
be put back into the world with its swapped noise, to ask whether it is true.

Actions of every world lie in [-1, 1]. Shape letters are those of ``counterpoint.core.arrays``.
"""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, numbers
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_count, require_generator

ACTION_LIMIT = 1.0  # actions of every world lie in [-ACTION_LIMIT, ACTION_LIMIT]

Policy: TypeAlias = Callable[[Floats, np.random.Generator], Floats]  # (state (B, S), rng) -> action (B, A)


class World(Protocol):
    """A testbed with an exact local mask. All its methods are pure, and batch first."""

    @property
    def factors(self) -> Factorization:
        """How states, actions and noise split into factors."""
        ...

    @property
    def noise_owner(self) -> Ints:
        """The state factor that owns each noise column, (U,)."""
        ...

    @property
    def noise_per_episode(self) -> bool:
        """Whether noise is drawn once per episode (and kept) instead of once per step."""
        ...

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw ``size`` initial states, (B, S)."""
        ...

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw the noise of ``size`` transitions, (B, U)."""
        ...

    def step(self, state: Floats, action: Floats, noise: Floats) -> Floats:
        """Return the next states, (B, S), in the dtype of ``state``; no input is changed."""
        ...

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return the local causal graphs, (B, N, n) bool: sources in rows, next-state factors in columns.

        Without ``noise`` it is unknown: the graphs are those of zero noise, and may have the further edges
        that some likely noise would make. Where there is no noise, both are the same.
        """
        ...


def check_world(world: World, rng: np.random.Generator, *, size: int = 64) -> None:
    """Raise ``ValueError`` unless a world keeps the contract, tried on ``size`` random transitions.

    Shapes and dtypes must be as ``factors`` says, nothing may change its input, the same input must give
    the same bits, alone or in a batch, and every factor must have an edge to itself.
    """
    factors, state, noise = world.factors, world.reset(size, rng), world.noise(size, rng)
    action = rng.uniform(-ACTION_LIMIT, ACTION_LIMIT, (size, factors.action_width)).astype(state.dtype)
    given = check_inputs(state, action, noise, factors)
    before = [array.copy() for array in given]
    after, again = world.step(*given), world.step(*given)
    alone = np.concatenate([world.step(*(array[row : row + 1] for array in given)) for row in range(size)])
    masks, shape = (world.mask(*given), world.mask(*given[:2])), (size, factors.n + factors.m, factors.n)
    shaped = all(mask.shape == shape and mask.dtype == np.bool_ for mask in masks)
    rules = {
        "noise_owner must be that of its factors": np.array_equal(world.noise_owner, factors.noise_owner),
        "step must keep shape and dtype": (after.shape, after.dtype) == (state.shape, state.dtype),
        "step must give the same result again": np.array_equal(after, again),
        "step must treat a row alone as in a batch": np.array_equal(after, alone),
        f"mask must be bool of shape {shape}": shaped,
        "mask must have an edge from every factor to itself": not shaped
        or all(bool(mask.diagonal(axis1=1, axis2=2).all()) for mask in masks),
        "step and mask must not change their input": all(map(np.array_equal, before, given)),
    }
    broken = [rule for rule, kept in rules.items() if not kept]
    if broken:
        raise ValueError(f"{type(world).__name__} breaks the contract of a world: {'; '.join(broken)}.")


def check_inputs(
    state: object, action: object, noise: object | None, factors: Factorization
) -> tuple[Array, Array, Array]:
    """Return state (B, S), action (B, A) and noise (B, U), checked; noise ``None`` becomes zeros."""
    state = check_state(state, factors)
    return state, check_action(action, factors, len(state)), check_noise(noise, factors, len(state))


def check_state(state: object, factors: Factorization) -> Array:
    """Return states as a float array (B, S), or raise ``ValueError`` saying which value is wrong."""
    array = _floats("state", state)
    _check_width("state", array, factors.state_width, factors.names[: factors.n])
    _check_finite("state", array, factors, factors.state_owner)
    return array


def check_action(action: object, factors: Factorization, rows: int) -> Array:
    """Return actions as a float array (B, A) of values in [-1, 1], or raise ``ValueError``."""
    array = _floats("action", action)
    _check_width("action", array, factors.action_width, factors.names[factors.n :])
    _check_rows("action", array, rows)
    _check_finite("action", array, factors, factors.action_owner)
    outside = np.abs(array) > ACTION_LIMIT
    if outside.any():
        raise ValueError(
            f"action: {_first(array, outside, factors, factors.action_owner)}; expected values in "
            f"[{-ACTION_LIMIT:g}, {ACTION_LIMIT:g}]. Scale actions to that range, or clip them before they "
            "are stored: np.clip(action, -1, 1)."
        )
    return array


def check_noise(noise: object | None, factors: Factorization, rows: int) -> Array:
    """Return noise as a float array (B, U); ``None`` stands for zero noise."""
    if noise is None:
        return np.zeros((rows, factors.noise_width))
    array = _floats("noise", noise)
    _check_width("noise", array, factors.noise_width, tuple(factors.noise))
    _check_rows("noise", array, rows)
    _check_finite("noise", array, factors, factors.noise_owner)
    return array


def check_draw(size: object, rng: object) -> None:
    """Raise unless ``size`` is a number of rows and ``rng`` a NumPy generator."""
    require_count("size", size, 0, "number of rows")
    require_generator(rng)


def float_dtype(dtype: object) -> np.dtype[Any]:
    """Return the dtype of a world's states, refusing anything that is not a float of 4 or 8 bytes."""
    found: np.dtype[Any] = np.dtype(cast(Any, dtype))
    if found not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype: expected np.float32 or np.float64, got {found}.")
    return found


def doubles(array: Array) -> Array:
    """Return a copy as compiled loops want it: float64, contiguous and writeable, so they compile once."""
    return array.astype(np.float64, order="C")


def _floats(name: str, value: object) -> Array:
    array = numbers(name, value, ndim=2)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _check_width(name: str, array: Array, width: int, names: tuple[str, ...]) -> None:
    if array.shape[1] != width:
        owners = f" ({', '.join(names)})" if names else ""
        raise ValueError(
            f"{name}: expected {width} columns{owners}, got {array.shape[1]}. "
            "Check that the data was recorded in this world, with the same settings."
        )


def _check_rows(name: str, array: Array, rows: int) -> None:
    if len(array) != rows:
        raise ValueError(f"{name}: expected {rows} rows, one per row of state, got {len(array)}.")


def _check_finite(name: str, array: Array, factors: Factorization, owner: Ints) -> None:
    if np.isfinite(array.sum(dtype=np.float64)):  # a sum is finite only if all its terms are
        return
    bad = ~np.isfinite(array)
    if bad.any():
        raise ValueError(
            f"{name}: {_first(array, bad, factors, owner)}; expected finite numbers. "
            "Remove or repair such rows before they enter the world."
        )


def _first(array: Array, bad: Bools, factors: Factorization, owner: Ints) -> str:
    """Describe the first bad value: its row, its column, the factor that owns it, and the value."""
    row, column = (int(index) for index in np.argwhere(bad)[0])
    factor = factors.names[owner[column]] if owner[column] >= 0 else "derived"
    return f"row {row}, column {column} ({factor}) is {array[row, column]:g}"
