"""Any world is a structural causal model; here it gets the form that ``counterpoint.scm`` can ask."""

import numpy as np

from counterpoint.core.arrays import Array
from counterpoint.core.factors import Factorization, OwnedColumns
from counterpoint.scm import Equation, StructuralCausalModel, Values
from counterpoint.worlds.world import ACTION_LIMIT, World

MOST_POINTS = 4096


def as_scm(world: World, *, values: int | None = None, rng: np.random.Generator | None = None) -> StructuralCausalModel:
    """Return a world as a structural causal model over a finite domain.

    The domain combines some initial values of each factor and some actions, each with each. Equations are
    the world's own step, and noise is drawn from the world; they can also be asked about any other point.

    Args:
        world: the world.
        values: how many values to draw for each node; as many as give 4,096 points, and at least two.
        rng: source of randomness; by default always the same points.

    Example:
        >>> from counterpoint.worlds import Room
        >>> as_scm(Room()).graph.astype(int)  # room, puck, ball, push
        array([[1, 1, 1],
               [0, 1, 0],
               [0, 0, 1],
               [0, 1, 0]])
    """
    rng = rng or np.random.default_rng(0)
    factors = world.factors
    values = values or max(2, int(MOST_POINTS ** (1 / len(factors.names)) + 1e-9))
    state, noise = world.reset(8 * values, rng), world.noise(values, rng)
    action = rng.uniform(-ACTION_LIMIT, ACTION_LIMIT, (values, factors.action_width)).astype(state.dtype)
    drawn = {name: _different(state[:, list(own)], values) for name, own in factors.state.items()}
    drawn |= {name: action[:, list(own)] for name, own in factors.action.items()}
    points = np.meshgrid(*(np.arange(len(each)) for each in drawn.values()), indexing="ij")
    return StructuralCausalModel(
        domain={name: each[index.ravel()] for (name, each), index in zip(drawn.items(), points, strict=True)},
        equations={name: _equation(world, name) for name in factors.state},
        noise={name: noise[:, list(own)] for name, own in factors.noise.items()},
    )


def state_and_action(values: Values, factors: Factorization) -> tuple[Array, Array]:
    """Return the values of nodes as states (B, S) and actions (B, A)."""
    return _columns(values, factors.state, factors.state_width), _columns(values, factors.action, factors.action_width)


def _columns(values: Values, owned: OwnedColumns, width: int) -> Array:
    first = next(iter(values.values()))
    out = np.zeros((len(first), width), first.dtype)  # derived columns are nobody's, and no step looks at them
    for name, own in owned.items():
        out[:, list(own)] = values[name]
    return out


def _equation(world: World, name: str) -> Equation:
    """Return one factor's part of the world's step; the noise of the others has no say in it."""
    factors = world.factors

    def equation(values: Values, noise: Array) -> Array:
        state, action = state_and_action(values, factors)
        every = np.zeros((len(state), factors.noise_width), state.dtype)
        if name in factors.noise:
            every[:, list(factors.noise[name])] = noise
        return world.step(state, action, every)[:, list(factors.state[name])]

    return equation


def _different(values: Array, most: int) -> Array:
    """Return up to so many different rows, in the order in which they come."""
    first = np.sort(np.unique(values, axis=0, return_index=True)[1])
    return values[first[:most]]
