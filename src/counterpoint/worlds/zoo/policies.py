"""Behaviour: who acts at random, who looks for contact, and who hardly ever touches anything."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.worlds.zoo.observation import Observation

Style = Literal["random", "seek", "aloof", "patrol"]


@dataclass(frozen=True)
class Behaviour:
    """A policy of a world: ``(state, rng) -> action``.

    Attributes:
        observation: which column is what.
        style: "random" draws actions uniformly, "seek" goes for the nearest body, "aloof" keeps away from it,
            and "patrol" goes to a corner of its own.
        whim: chance that an action is random in any case.
        bodies: the factors that are sought or avoided.
    """

    observation: Observation
    style: Style
    whim: float
    bodies: tuple[int, ...]

    def __call__(self, state: Floats, rng: np.random.Generator) -> Floats:
        """Draw actions, (B, A)."""
        width = self.observation.factors.action_width
        action = rng.uniform(-1.0, 1.0, (len(state), width))
        if self.style != "random":
            position = self.observation.scene(state, action, self._still(state))[0].position
            meant = rng.random(len(state)) >= self.whim
            for j, columns in enumerate(self.observation.cast.drives):
                if len(columns) >= 2:
                    heading = self._heading(position, j)
                    action[:, columns[:2]] = np.where(meant[:, None], heading, action[:, columns[:2]])
        return action.astype(state.dtype)

    def _still(self, state: Array) -> Floats:
        return np.zeros((len(state), self.observation.factors.noise_width))

    def _heading(self, position: Floats, agent: int) -> Floats:
        """Return where an agent wants to go, at full strength, (B, 2)."""
        here = position[:, agent]
        if self.style == "patrol":
            corner = np.array([[0.1, 0.1], [0.9, 0.9], [0.1, 0.9], [0.9, 0.1]])[agent % 4]
            return _clipped(8.0 * (corner - here))
        others = [body for body in self.bodies if body != agent]
        gap = position[:, others] - here[:, None]
        nearest = (gap * gap).sum(axis=2).argmin(axis=1)
        towards = gap[np.arange(len(gap)), nearest]
        if self.style == "aloof":
            away = towards / np.maximum((towards * towards).sum(axis=1, keepdims=True), 0.01)
            return _clipped(8.0 * (0.5 - here) - 0.5 * away)
        return _clipped(8.0 * towards)


def _clipped(heading: Array) -> Floats:
    return np.asarray(np.clip(heading, -1.0, 1.0))
