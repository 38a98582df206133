"""Influences that depend on more than a distance: ropes, slipstreams, whirls and shadows."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Bools, Floats
from counterpoint.worlds.zoo.scene import LEVEL, TINY, Change, Pair, Scene


@dataclass(frozen=True)
class Rope:
    """A rope: nothing while it is slack; when it is taut, the target is pulled and cannot run away further.

    Attributes:
        pairs: source and target, both ways where both are pulled.
        length: distance beyond which it is taut.
        stiffness: what is added to the velocity for each unit of stretch.
        jerk: share of the velocity away from the source that is lost.
    """

    pairs: tuple[Pair, ...]
    length: float
    stiffness: float
    jerk: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the pull of taut ropes."""
        line, distance = scene.apart(self.pairs)
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        away = np.maximum(_dot(scene.velocity[:, target] - scene.velocity[:, source], line), 0.0)
        pull = self.stiffness * (distance - self.length) + self.jerk * away
        change.influence(self.pairs, distance > self.length, velocity=-pull[..., None] * line)


@dataclass(frozen=True)
class Slipstream:
    """What is close behind a moving source is drawn into its speed.

    Attributes:
        pairs: source and target.
        reach: how far behind.
        narrow: cosine of half the angle of the cone behind the source.
        share: share of the difference of their velocities that the target takes over.
    """

    pairs: tuple[Pair, ...]
    reach: float
    narrow: float
    share: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Draw along what is behind."""
        line, distance = scene.apart(self.pairs)
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        ahead = scene.velocity[:, source]
        speed = np.sqrt(_dot(ahead, ahead))
        behind = (speed > 0.005) & (-_dot(ahead, line) > self.narrow * speed)
        drawn = self.share * (ahead - scene.velocity[:, target])
        change.influence(self.pairs, behind & (distance < self.reach), velocity=drawn)


@dataclass(frozen=True)
class Whirl:
    """A source that spins drags what is near it sideways, to the left or to the right as its level says.

    Attributes:
        pairs: source and target.
        reach: how near.
        strength: what is added to the velocity at full spin; there is none at a level of one half.
    """

    pairs: tuple[Pair, ...]
    reach: float
    strength: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Drag sideways."""
        line, distance = scene.apart(self.pairs)
        spin = self.strength * (2.0 * scene.body[:, [source for source, _ in self.pairs], LEVEL] - 1.0)
        sideways = np.stack([-line[..., 1], line[..., 0]], axis=-1)
        change.influence(self.pairs, distance < self.reach, velocity=spin[..., None] * sideways)


@dataclass(frozen=True)
class Light:
    """Light that pushes whatever it falls on, unless something stands between.

    Where it falls on a target, all that could have stood between has been asked, and has an edge.

    Attributes:
        pairs: lamp and target.
        reach: how far it shines.
        strength: what is added to the velocity.
        screens: the factors that can stand between.
        half: half the width of a screen.
    """

    pairs: tuple[Pair, ...]
    reach: float
    strength: float
    screens: tuple[int, ...]
    half: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Push what is not in a shadow."""
        line, distance = scene.apart(self.pairs)
        lit = distance < self.reach
        for screen in self.screens:
            lit = lit & ~self._hidden(scene, screen, line, distance)
        change.influence(self.pairs, lit, self.screens, velocity=self.strength * line)

    def _hidden(self, scene: Scene, screen: int, line: Floats, distance: Floats) -> Bools:
        """Return where a screen stands between lamp and target, (B, P)."""
        gap = scene.position[:, [screen]] - scene.position[:, [source for source, _ in self.pairs]]
        along = _dot(gap, line)
        beside = np.abs(gap[..., 0] * line[..., 1] - gap[..., 1] * line[..., 0])
        return np.asarray((along > TINY) & (along < distance) & (beside < self.half))


def _dot(one: Floats, two: Floats) -> Floats:
    return one[..., 0] * two[..., 0] + one[..., 1] * two[..., 1]
