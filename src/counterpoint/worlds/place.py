"""Placing sprites: the paper's tasks Place 1 to 4, and a scripted policy that is good at them."""

import re
from dataclasses import dataclass
from typing import Self

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.worlds.sprites import Sprites
from counterpoint.worlds.world import Policy

TARGETS = np.array([[0.25, 0.25], [0.25, 0.75], [0.75, 0.25], [0.75, 0.75]])  # (4, 2), by sprite
TARGETS.flags.writeable = False

TASKS = tuple(f"place-{n}{kind}" for kind in ("", "-sparse") for n in (1, 2, 3, 4))

_HORIZON = 3  # steps of straight motion that the scripted policy looks ahead
_CLICKS = 32  # clicks that it considers


@dataclass(frozen=True)
class Place:
    """The task of bringing sprites to their targets; called as a reward function.

    Each of the four sprites has its own target, one quarter of the canvas: (0.25, 0.25), (0.25, 0.75),
    (0.75, 0.25) and (0.75, 0.75). Of these the **last** ``count`` sprites matter, as in the original
    code: Place 1 asks for sprite 3 only. The task never ends.

    Attributes:
        count: how many sprites matter, 1 to 4.
        sparse: reward 1 only if all of them are placed; otherwise the share that is placed.
        tolerance: a sprite is placed if its centre is nearer than this to its target.

    Example:
        >>> import numpy as np
        >>> task, state = Place(2), np.zeros((1, 16))
        >>> state[0, 12:14] = 0.7, 0.8  # sprite 3 is near its target, sprite 2 is not
        >>> task(state, np.zeros((1, 2)), state)
        array([0.5])
    """

    count: int
    sparse: bool = False
    tolerance: float = 0.25

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or self.count not in range(1, len(TARGETS) + 1):
            raise ValueError(
                f"count: expected the number of sprites that matter, 1 to {len(TARGETS)}, got {self.count!r}."
            )
        if not 0 < self.tolerance < np.inf:
            raise ValueError(f"tolerance: expected a positive distance, got {self.tolerance!r}.")

    @classmethod
    def named(cls, name: str) -> Self:
        """Return a task by its name: ``place-1`` to ``place-4``, and the same with ``-sparse`` added."""
        found = re.fullmatch(r"place-([1-4])(-sparse)?", name)
        if found is None:
            raise ValueError(f"no task is called {name!r}; the tasks are {', '.join(TASKS)}.")
        return cls(int(found[1]), sparse=bool(found[2]))

    def __call__(self, state: Floats, action: Floats, next_state: Floats) -> Floats:  # noqa: ARG002
        """Return the reward, (B,), of reaching ``next_state`` (B, 16), which alone matters, in its dtype."""
        placed = self.distance(next_state) < self.tolerance
        share: Array = placed.sum(axis=1) / self.count
        reward = share == 1.0 if self.sparse else share
        return reward.astype(next_state.dtype if next_state.dtype.kind == "f" else np.float64)

    def distance(self, state: Floats) -> Floats:
        """Return the distances to the targets of the sprites that matter, (B, count), in index order."""
        if state.ndim != 2 or state.shape[1] != 4 * len(TARGETS):
            raise ValueError(
                f"place: expected states of {len(TARGETS)} sprites, shape (B, {4 * len(TARGETS)}), got "
                f"{state.shape}. The task needs Sprites(n={len(TARGETS)})."
            )
        return _distance(_sprites(state)[:, -self.count :, :2], self.count)


def place_policy(world: Sprites, task: Place) -> Policy:
    """Return a scripted policy for a Place task, far better than random.

    It draws 32 clicks, lets the world say what each would do without noise, and takes the one after
    which the sprites that matter are nearest to their targets within three steps of straight motion.
    """
    if world.n != len(TARGETS):
        raise ValueError(f"world: expected Sprites(n={len(TARGETS)}), which has the targets, got n={world.n}.")

    def policy(state: Floats, rng: np.random.Generator) -> Floats:
        clicks = rng.uniform(-1.0, 1.0, (len(state), _CLICKS, 2)).astype(state.dtype)
        after = world.step(state.repeat(_CLICKS, axis=0), clicks.reshape(-1, 2))
        cost = _cost(after, task).reshape(len(state), _CLICKS)
        best: Floats = clicks[np.arange(len(state)), cost.argmin(axis=1)]
        return best

    return policy


def _cost(state: Floats, task: Place) -> Floats:
    """Add up, over the sprites that matter, how far outside tolerance they are now and soon, (B,)."""
    mine = _sprites(state)[:, -task.count :]
    cost = np.zeros(len(state))
    for ahead in range(_HORIZON + 1):
        gap = _distance(mine[..., :2] + ahead * mine[..., 2:], task.count)
        cost += np.maximum(gap - task.tolerance / 2, 0.0).sum(axis=1)
    return cost


def _sprites(state: Floats) -> Array:
    return state.astype(np.float64, copy=False).reshape(len(state), state.shape[1] // 4, 4)


def _distance(centres: Array, count: int) -> Array:
    """Return distances (B, count) of centres (B, count, 2) from the targets of the last ``count`` sprites."""
    gap = centres - TARGETS[-count:]
    distance: Array = np.hypot(gap[..., 0], gap[..., 1])
    return distance
