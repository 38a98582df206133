"""Along a line: the beam of a range finder, and a bar that swings on a hinge."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import LEVEL, Change, Pair, Scene


@dataclass(frozen=True)
class RangeFinder:
    """A range finder: its reading tells how near the nearest thing in its beam is. The reading is nowhere.

    It must look at all in the beam to know the nearest, so each of them has an edge, and so has what it is fixed to.

    Attributes:
        pairs: what can be seen, and the one reading.
        mount: the factor that the range finder is fixed to.
        axis: the way it looks: 0 along x, 1 along y.
        way: 1 for up this axis, -1 for down.
        reach: how far it sees.
        half: half the width of the beam.
        gain: the reading when something is at the mount; it falls to a quarter at the end of the beam.
    """

    pairs: tuple[Pair, ...]
    mount: int
    axis: int
    way: float
    reach: float
    half: float
    gain: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Read the distance."""
        gap = scene.position[:, [source for source, _ in self.pairs]] - scene.position[:, [self.mount]]
        ahead = self.way * gap[..., self.axis]
        seen = (ahead > 0.0) & (ahead < self.reach) & (np.abs(gap[..., 1 - self.axis]) < self.half)
        nearest = ahead <= np.where(seen, ahead, np.inf).min(axis=1, keepdims=True)
        reading = np.where(nearest, self.gain * (1.0 - 0.75 * ahead / self.reach), 0.0)
        change.influence(self.pairs, seen, [self.mount], level=reading)


@dataclass(frozen=True)
class Hinge:
    """A bar on a hinge: what touches it swings it, more so further out, and may be held up by it.

    The level t of the bar is its angle: it points to (1 - t², 2t) / (1 + t²), so along x at 0 and along y at 1.

    Attributes:
        pairs: what touches, and the bar.
        length: length of the bar.
        half: half its thickness, with that of what touches it.
        turn: what is added to its level for each unit of speed against it at its end.
        brake: share of the speed against the bar that is taken from what touches it; 0 if it does not notice.
    """

    pairs: tuple[Pair, ...]
    length: float
    half: float
    turn: float
    brake: float = 0.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Swing the bar."""
        source, bar = (list(side) for side in zip(*self.pairs, strict=True))
        t = scene.body[:, bar, LEVEL]
        bar_x, bar_y = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
        gap, motion = scene.position[:, source] - scene.position[:, bar], scene.velocity[:, source]
        along = bar_x * gap[..., 0] + bar_y * gap[..., 1]
        beside = bar_x * gap[..., 1] - bar_y * gap[..., 0]
        touch = (along > 0.0) & (along < self.length) & (np.abs(beside) < self.half)
        side = np.where(beside > 0.0, 1.0, -1.0)
        against = side * np.maximum(-side * (bar_x * motion[..., 1] - bar_y * motion[..., 0]), 0.0)
        change.influence(self.pairs, touch, level=-self.turn * (along / self.length) * against)
        if self.brake:
            normal = np.stack([-bar_y, bar_x], axis=-1)
            back = tuple((bar, source) for source, bar in self.pairs)
            change.influence(back, touch, velocity=self.brake * against[..., None] * normal)
