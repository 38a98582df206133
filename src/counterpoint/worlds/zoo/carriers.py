"""Carrying: riding on a platform, resting on another body, hanging on an arm."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import Change, Pair, Scene


@dataclass(frozen=True)
class Ride:
    """What is on a platform moves with it.

    Attributes:
        pairs: platform and rider.
        half: half the side of the platform, a square.
        grip: share of the platform's motion that the rider gets.
    """

    pairs: tuple[Pair, ...]
    half: float
    grip: float = 1.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Move the riders."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        gap = np.abs(scene.position[:, target] - scene.position[:, source])
        on = (gap[..., 0] < self.half) & (gap[..., 1] < self.half)
        change.influence(self.pairs, on, shift=self.grip * scene.velocity[:, source])


@dataclass(frozen=True)
class Rest:
    """What lies on another body does not fall.

    Attributes:
        pairs: the lower and the upper body.
        half: half the width of a body.
        height: how far above the lower body the upper one lies, at the most.
    """

    pairs: tuple[Pair, ...]
    half: float
    height: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Hold what lies on something."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        gap = scene.position[:, target] - scene.position[:, source]
        above = (gap[..., 1] > 0.0) & (gap[..., 1] < self.height) & (np.abs(gap[..., 0]) < self.half)
        change.influence(self.pairs, above, held=gap[..., 1])


@dataclass(frozen=True)
class Hang:
    """What hangs on an arm always goes along with it.

    Attributes:
        pairs: the arm, and what hangs on it.
        share: share of the arm's motion that it gets.
    """

    pairs: tuple[Pair, ...]
    share: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Move what hangs."""
        motion = self.share * scene.velocity[:, [source for source, _ in self.pairs]]
        change.influence(self.pairs, np.ones(motion.shape[:2], np.bool_), shift=motion)
