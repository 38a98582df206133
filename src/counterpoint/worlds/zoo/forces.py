"""Forces that reach further than a touch, all of finite range and built without transcendental functions."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import FLAG, Change, Pair, Scene


@dataclass(frozen=True)
class Soft:
    """A repulsion that begins at ``reach`` and grows towards ``strength``.

    Attributes:
        pairs: source and target.
        reach: distance at which it begins.
        strength: what is added to the velocity where both meet.
        least: share of the strength that is there at ``reach`` already.
    """

    pairs: tuple[Pair, ...]
    reach: float
    strength: float
    least: float = 0.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the repulsion."""
        line, distance = scene.apart(self.pairs)
        size = self.strength * (self.least + (1.0 - self.least) * (1.0 - distance / self.reach))
        change.influence(self.pairs, distance < self.reach, velocity=size[..., None] * line)


@dataclass(frozen=True)
class Spring:
    """A spring of length ``rest`` between bodies nearer than ``reach``; beyond that it has come off.

    Attributes:
        pairs: source and target.
        reach: distance at which it comes off.
        rest: distance at which it is at ease.
        stiffness: what is added to the velocity for each unit of stretch.
    """

    pairs: tuple[Pair, ...]
    reach: float
    rest: float
    stiffness: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the pull."""
        line, distance = scene.apart(self.pairs)
        pull = self.stiffness * (self.rest - distance)[..., None] * line
        change.influence(self.pairs, distance < self.reach, velocity=pull)


@dataclass(frozen=True)
class Magnet:
    """An attraction within ``reach`` while the magnet's flag is set.

    Attributes:
        pairs: magnet and target.
        reach: how far it acts.
        strength: what is added to the velocity.
    """

    pairs: tuple[Pair, ...]
    reach: float
    strength: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the attraction."""
        line, distance = scene.apart(self.pairs)
        on = scene.body[:, [source for source, _ in self.pairs], FLAG] > 0.5
        near = distance / self.reach
        pull = -self.strength / (1.0 + 2.0 * near * near)
        change.influence(self.pairs, on & (distance < self.reach), velocity=pull[..., None] * line)


@dataclass(frozen=True)
class Click:
    """An action that names a point, and blows away what is near it.

    Attributes:
        pairs: the action factor, as ~k, and a target.
        columns: the action columns of the point; from [-1, 1] they reach over the unit square.
        reach: how near.
        strength: what is added to the velocity.
    """

    pairs: tuple[Pair, ...]
    columns: tuple[int, int]
    reach: float
    strength: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the blow."""
        point = 0.5 * (scene.action[:, None, list(self.columns)] + 1.0)
        gap = scene.position[:, [target for _, target in self.pairs]] - point
        distance = np.sqrt(gap[..., 0] * gap[..., 0] + gap[..., 1] * gap[..., 1])
        blow = self.strength * gap / np.maximum(distance, 1e-9)[..., None]
        change.influence(self.pairs, distance < self.reach, velocity=blow)
