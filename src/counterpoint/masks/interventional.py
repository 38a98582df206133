"""Ask a simulator who influences whom, by nudging one factor at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization


@dataclass(frozen=True, eq=False)
class Interventional:
    """An oracle mask for any simulator whose state can be set.

    Each factor in turn is nudged a little around (s, a), and an edge is drawn to every factor whose next
    state moves: the paper's footnote, by which the true mask is where the Jacobian of the dynamics is
    not zero. It sees smooth influence (pushing, dragging, springs). It cannot see an influence that is a
    step, such as "hit or not", unless the nudge is large enough to cross it.

    Attributes:
        step: ``(state, action) -> next_state``, batched and deterministic. Fix the noise yourself:
            ``lambda s, a: world.step(s, a, zeros)``.
        factors: how columns split into factors.
        scale: size of the nudge in each column; one number, or one for each state and action column.
        sensitivity: a factor has moved if a column changes by more than this share of the nudge.
        samples: how many directions to try for each factor, each forwards and backwards.
        action_range: lowest and highest allowed action; nudges are turned inwards at these bounds.
        seed: chooses the directions, which are the same for every row.

    Example:
        >>> import numpy as np
        >>> factors = Factorization.blocks(state={"hand": 1, "cup": 1}, action={"motor": 1})
        >>> def step(s, a):  # a hand within 0.1 drags the cup along
        ...     near = np.abs(s[:, :1] - s[:, 1:]) < 0.1
        ...     return s + np.hstack([a, np.where(near, a, 0)])
        >>> mask = Interventional(step, factors)
        >>> mask(np.array([[0.0, 0.05], [0.0, 0.5]]), np.ones((2, 1))).astype(int)[:, 2]
        array([[1, 1],
               [1, 0]])

    Time: ``2 * samples * N + 1`` calls of the simulator for each batch.
    """

    step: Callable[[Floats, Floats], Array]
    factors: Factorization
    scale: float | Floats = 1e-6
    sensitivity: float = 1e-3
    samples: int = 2
    action_range: tuple[float, float] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        scale = np.asarray(self.scale, np.float64)
        width = self.factors.state_width + self.factors.action_width
        if scale.shape not in ((), (width,)) or not (np.isfinite(scale) & (scale > 0)).all():
            raise ValueError(f"scale: expected a positive number, or {width} of them, got {self.scale!r}.")
        if self.factors.derived:
            raise ValueError("factors: derived columns cannot be set in a simulator; leave them out of the state.")
        if self.samples < 1 or not self.sensitivity > 0:
            raise ValueError("samples and sensitivity: expected positive numbers.")

    @cached_property
    def _owner(self) -> Array:
        return np.concatenate([self.factors.state_owner, self.factors.action_owner])

    @cached_property
    def _nudges(self) -> Floats:
        """Directions to try, (2 * samples, S + A), each entry a share of the column's scale."""
        rng = np.random.default_rng(self.seed)
        shares = rng.uniform(0.5, 1.0, (self.samples, len(self._owner)))
        shares *= rng.choice([-1.0, 1.0], shares.shape)
        return np.concatenate([shares, -shares]) * self.scale

    def __call__(self, state: Floats, action: Floats, /) -> Bools:
        """Return which next factors move when each factor is nudged, (B, N, n)."""
        width, n = self.factors.state_width, self.factors.n
        still = np.hstack([state, action]).astype(np.float64)
        after = self._after(still)
        mask = np.zeros((len(state), n + self.factors.m, n), np.bool_)
        limit = self.sensitivity * np.broadcast_to(self.scale, len(self._owner))
        for node in range(n + self.factors.m):
            columns = np.flatnonzero(self._owner == node)
            for nudge in self._nudges:
                moved = still.copy()
                moved[:, columns] += self._inwards(still[:, columns], nudge[columns], columns >= width)
                response = np.abs(self._after(moved) - after) > limit[columns].max()
                for target in range(n):
                    mask[:, node, target] |= response[:, self.factors.state_owner == target].any(axis=1)
        mask[:, range(n), range(n)] = True
        return mask

    def _after(self, inputs: Floats) -> Floats:
        width = self.factors.state_width
        after = np.asarray(self.step(inputs[:, :width].copy(), inputs[:, width:].copy()), np.float64)
        if after.shape != (len(inputs), width):
            raise ValueError(f"step: expected next states of shape {(len(inputs), width)}, got {after.shape}.")
        return after

    def _inwards(self, values: Floats, nudge: Floats, of_action: Bools) -> Floats:
        """Turn nudges of actions around where they would leave the allowed range."""
        if self.action_range is None:
            return np.broadcast_to(nudge, values.shape)
        low, high = self.action_range
        outside = (values + nudge > high) | (values + nudge < low)
        return np.where(outside & of_action, -nudge, nudge)
