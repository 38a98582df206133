"""Checks at the door: what public functions ask of their arguments, each check written once.

One rule for all of them. A value of the wrong kind (no whole number, no function, no generator, no
transitions) is a ``TypeError``. A value of the right kind that cannot be used (too small, not among the
choices, no rows) is a ``ValueError``.
"""

from typing import TYPE_CHECKING

import numpy as np

from counterpoint.core.transitions import Transitions

if TYPE_CHECKING:
    from counterpoint.core.factors import Factorization


def require_count(name: str, value: object, least: int = 1, noun: str = "whole number") -> None:
    """Raise unless ``value`` is a whole number, ``least`` or more."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        kind = ValueError if whole else TypeError
        raise kind(f"{name}: expected a {noun}, {least} or more, got {value!r}.")


def require_counts(settings: object, *names: str) -> None:
    """Raise unless the named settings are whole numbers, 1 or more."""
    for name in names:
        require_count(name, getattr(settings, name))


def require_choice(settings: object, name: str, choices: tuple[str, ...]) -> None:
    """Raise unless the named setting is one of the choices."""
    value = getattr(settings, name)
    if value not in choices:
        raise ValueError(f"{name}: expected {' or '.join(map(repr, choices))}, got {value!r}.")


def require_share(name: str, value: object) -> None:
    """Raise unless ``value`` is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name}: expected a share between 0 and 1, got {value!r}.")
    if not 0 <= value <= 1:
        raise ValueError(f"{name}: expected a share between 0 and 1, got {value!r}.")


def require_functions(settings: object, *names: str) -> None:
    """Raise unless the named settings are functions."""
    for name in names:
        if not callable(getattr(settings, name)):
            raise TypeError(f"{name}: expected a function, got {getattr(settings, name)!r}.")


def require_generator(rng: object) -> None:
    """Raise unless ``rng`` is a NumPy generator."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng: expected a NumPy generator such as np.random.default_rng(0), got {rng!r}.")


def require_data(data: object, factors: "Factorization") -> None:
    """Raise unless ``data`` holds transitions that the factorisation covers."""
    if not isinstance(data, Transitions):
        raise TypeError(f"data: expected Transitions, got {type(data).__name__}.")
    if not len(data):
        raise ValueError("data: it holds no transitions, so there is nothing to recombine.")
    factors.require_widths(data.state.shape[1], data.action.shape[1])
    if factors.noise and data.noise is not None and data.noise.shape[1] != factors.noise_width:
        raise ValueError(
            f"noise: the data has {data.noise.shape[1]} columns, the factors own {factors.noise_width} of them."
        )
