"""The paper's icy room: a world in which a hidden context makes innocent-looking swaps wrong."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_share
from counterpoint.worlds.world import check_draw, check_inputs, float_dtype

KEEP_DRY, KEEP_ICY = 0.5, 1.0  # share of its velocity that a body keeps in one step
PUSH = 0.02  # change of velocity by a full push
SPEED = 0.05  # initial velocities are uniform up to this


@dataclass(frozen=True)
class Room:
    """A puck that is pushed and a ball that rolls, in one of two rooms; one of the floors is icy.

    "Imagine there are two rooms, one of which is icy" (paper, appendix on locally factored dynamics,
    footnote): in either room, puck and ball move independently, but not if transitions from both rooms
    are mixed, because the floor decides how both of them move.

    Columns: ``room`` (0 dry, 1 icy; not there if hidden), then ``x, y, vx, vy`` of ``puck`` and of
    ``ball``. The action ``push`` (2 columns) accelerates the puck. One step: velocity times 0.5 on a dry
    floor, times 1 on ice; the puck's push is added; both move by their velocity in the unit square, and
    a component that would leave it is clipped and flips. Puck and ball never meet.

    Visible, the room is a constant column and declared as ``context`` of the factorisation: pairs must
    agree in it, it is never swapped, and every swap is right. (Not declared, its edges tie puck and ball
    together, and there is nothing to swap.)

    Hidden, the room is a cause that the state does not show. It still has to enter the step, so it is
    carried as the one noise column, drawn once per episode. The format gives a noise column to *one*
    factor; it is declared to belong to the puck, and **that is not true**: it drives the ball as well. A
    cause shared by two factors is what the method's assumption of independent noise excludes, and no
    mask of the visible factors can show it; this mask looks, correctly, like two unrelated bodies. So
    swaps are accepted, and putting them back shows that they are wrong whenever the two rooms differ:
    about half of them, if rooms are equally frequent.

    Attributes:
        hidden: whether the room is left out of the state.
        icy: share of episodes in the icy room.
        dtype: dtype of initial states and noise.

    Example:
        >>> Room().factors.names, Room().factors.context
        (('room', 'puck', 'ball', 'push'), ('room',))
        >>> Room(hidden=True).factors.names, Room(hidden=True).noise_owner
        (('puck', 'ball', 'push'), array([0]))
    """

    hidden: bool = False
    icy: float = 0.5
    dtype: Any = np.float32

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", float_dtype(self.dtype))
        require_share("icy", self.icy)

    @cached_property
    def factors(self) -> Factorization:
        """``room`` as context, ``puck``, ``ball`` and the action ``push``; hidden, without ``room``."""
        bodies, push = {"puck": 4, "ball": 4}, {"push": 2}
        if self.hidden:
            return Factorization.blocks(state=bodies, action=push, noise={"puck": (0,)})
        return Factorization.blocks(state={"room": 1, **bodies}, action=push, context=("room",))

    @property
    def noise_owner(self) -> Ints:
        """Hidden: the puck is said to own the room, (1,). Visible: there is no noise, (0,)."""
        return self.factors.noise_owner

    @property
    def noise_per_episode(self) -> bool:
        """A hidden room stays the same for a whole episode."""
        return self.hidden

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw initial states, (B, 9), or (B, 8) if the room is hidden."""
        check_draw(size, rng)
        bodies = np.empty((size, 2, 4))
        bodies[..., :2] = rng.uniform(0.0, 1.0, (size, 2, 2))
        bodies[..., 2:] = rng.uniform(-SPEED, SPEED, (size, 2, 2))
        columns = [] if self.hidden else [self._rooms(size, rng)]
        return np.concatenate([*columns, bodies.reshape(size, 8)], axis=1).astype(self.dtype)

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw the hidden rooms, (B, 1) of 0 and 1; visible, there is no noise, (B, 0)."""
        check_draw(size, rng)
        return self._rooms(size, rng).astype(self.dtype) if self.hidden else np.zeros((size, 0), self.dtype)

    def step(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next states, in the dtype of ``state``; hidden, zero noise is the dry room."""
        state, action, noise = check_inputs(state, action, noise, self.factors)
        room = (noise if self.hidden else state[:, :1]).astype(np.float64)
        bodies = state[:, -8:].astype(np.float64).reshape(-1, 2, 4)
        velocity = bodies[..., 2:] * np.where(room > 0.5, KEEP_ICY, KEEP_DRY)[:, None]
        velocity[:, 0] += PUSH * action.astype(np.float64)
        position = bodies[..., :2] + velocity
        outside = (position < 0.0) | (position > 1.0)
        after = np.concatenate([np.clip(position, 0.0, 1.0), np.where(outside, -velocity, velocity)], axis=2)
        return np.concatenate([state[:, :-8], after.reshape(-1, 8).astype(state.dtype)], axis=1)

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return the local causal graphs, (B, N, n), the same everywhere.

        Bodies depend on themselves, the puck on the push, and both on the room if it is visible.
        """
        state, _, _ = check_inputs(state, action, noise, self.factors)
        graph: Array = np.zeros((self.factors.n + 1, self.factors.n), bool)
        np.fill_diagonal(graph, True)
        graph[-1, -2] = True
        if not self.hidden:
            graph[0] = True
        return np.tile(graph, (len(state), 1, 1))

    def _rooms(self, size: int, rng: np.random.Generator) -> Array:
        return (rng.random((size, 1)) < self.icy).astype(np.float64)
