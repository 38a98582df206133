"""Machines: a belt that runs, a gate that opens one way, a catapult that fires."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import FLAG, LEVEL, Change, Pair, Scene


@dataclass(frozen=True)
class Conveyor:
    """What lies on a belt is carried along while the belt runs; its level says which way and how fast.

    Attributes:
        pairs: belt and target.
        half: half the length and half the width of the belt.
        along: how far it carries in a step at a level of one; nowhere at one half, and back at zero.
        power: the action factor that must switch it on as well, as ~k; or none.
        column: its column, which must be above zero.
    """

    pairs: tuple[Pair, ...]
    half: tuple[float, float]
    along: tuple[float, float]
    power: int | None = None
    column: int = 0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Carry what lies on a running belt."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        gap = np.abs(scene.position[:, target] - scene.position[:, source])
        runs = (gap[..., 0] < self.half[0]) & (gap[..., 1] < self.half[1]) & (scene.body[:, source, FLAG] > 0.5)
        if self.power is not None:
            runs = runs & (scene.action[:, [self.column]] > 0.0)
        pace = (2.0 * scene.body[:, source, LEVEL] - 1.0)[..., None] * np.array(self.along)
        change.influence(self.pairs, runs, [] if self.power is None else [self.power], shift=pace)


@dataclass(frozen=True)
class Turnstile:
    """A gate that lets pass one way; what goes through it the other way is held up or thrown back.

    Attributes:
        pairs: gate and target.
        half: half the depth of the gate along the way through, and half its width across.
        axis: the way through: 0 for x, 1 for y.
        way: 1 if it lets pass what goes up this axis, -1 if what goes down.
        share: share of the velocity against the way that is taken: 1 stops, 2 throws back.
        known: whether the velocities are in the state. If they are hidden, all in the gate have an edge.
    """

    pairs: tuple[Pair, ...]
    half: tuple[float, float]
    axis: int
    way: float
    share: float
    known: bool = True

    def __call__(self, scene: Scene, change: Change) -> None:
        """Hold up what goes the wrong way."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        gap = np.abs(scene.position[:, target] - scene.position[:, source])
        inside = (gap[..., self.axis] < self.half[0]) & (gap[..., 1 - self.axis] < self.half[1])
        against = np.maximum(-self.way * scene.velocity[:, target, self.axis], 0.0)
        back = np.zeros_like(gap)
        back[..., self.axis] = self.share * self.way * against
        change.influence(self.pairs, inside & (against > 0.0) if self.known else inside, velocity=back)


@dataclass(frozen=True)
class Catapult:
    """It winds up, and in the one step in which its level passes a mark it throws all that is within reach.

    Attributes:
        pairs: catapult and target.
        reach: how near.
        mark: the level at which it fires.
        rate: by how much its level rises in a step.
        throw: what is added to the velocity of the target.
        recoil: share of it that the catapult gets the other way; with none it does not notice its load.
    """

    pairs: tuple[Pair, ...]
    reach: float
    mark: float
    rate: float
    throw: tuple[float, float]
    recoil: float = 0.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Throw what is within reach."""
        level = scene.body[:, [source for source, _ in self.pairs], LEVEL]
        fires = (level < self.mark) & (level + self.rate >= self.mark)
        active = fires & (scene.apart(self.pairs)[1] < self.reach)
        throw = np.broadcast_to(np.array(self.throw), (*active.shape, 2))
        change.influence(self.pairs, active, velocity=throw)
        if self.recoil:
            back = tuple((target, source) for source, target in self.pairs)
            change.influence(back, active, velocity=-self.recoil * throw)
