"""What an environment is made of, as the rest of the package wants to know it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from counterpoint.adapters.mujoco.anatomy import anatomy
from counterpoint.core.arrays import Floats
from counterpoint.core.factors import Factorization
from counterpoint.goals import Goals


def factorization(env: Any, factors: Factorization | None = None) -> Factorization:
    """Propose kinematic trees as factors, or add the hidden state to factors of your own.

    Columns are found by moving each tree alone and looking what changes; relative columns are proposed as derived.
    Trees that something joins in every step become one factor. The desired goal is a factor of its own.

    Args:
        env: an environment with a MuJoCo simulator.
        factors: a factorisation of its states; it is returned with its noise columns filled in.

    Raises:
        ValueError: if columns cannot be told apart, or if a factor of yours holds part of a tree.

    Example:
        >>> import gymnasium
        >>> import counterpoint.worlds.fetch  # registers the environment
        >>> factorization(gymnasium.make("counterpoint/FetchPushDisentangled-v0")).names
        ('robot0:base_link', 'object0', 'goal', 'action')
    """
    inside = anatomy(env)
    if factors is None:
        return inside.factors
    return replace(factors, noise=inside.hidden(factors))


def derive(env: Any) -> Callable[[Floats], Floats] | None:
    """Return the function that recomputes the derived columns of `factorization`, or None if there are none."""
    return anatomy(env).derive()


def goals(env: Any) -> Goals | None:
    """Return how goals lie in the states that `collect` records, or None if the environment has none."""
    return anatomy(env).layout.goals
