"""Events and exchanges: heat in a contact, a wire that is crossed, flight from the nearest, a way through a portal."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import LEVEL, Change, Pair, Scene, X


@dataclass(frozen=True)
class Warm:
    """Heat: the levels of bodies that touch even out. Their motion is none of its business.

    Attributes:
        pairs: source and target.
        radius: distance at which they touch.
        rate: share of the difference that the target takes over.
    """

    pairs: tuple[Pair, ...]
    radius: float
    rate: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Exchange heat."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        _, distance = scene.apart(self.pairs)
        heat = self.rate * (scene.body[:, source, LEVEL] - scene.body[:, target, LEVEL])
        change.influence(self.pairs, distance < self.radius, level=heat)


@dataclass(frozen=True)
class Cross:
    """A wire from wall to wall: whatever is about to cross it rings a bell elsewhere.

    Attributes:
        pairs: what crosses, and the bell.
        wire: the factor whose x is the place of the wire.
        ring: what is added to the level of the bell.
    """

    pairs: tuple[Pair, ...]
    wire: int
    ring: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Ring the bell."""
        source = [source for source, _ in self.pairs]
        before = scene.position[:, source, 0] - scene.body[:, [self.wire], X]
        after = before + scene.velocity[:, source, 0]
        crossed = (before < 0.0) != (after < 0.0)
        change.influence(self.pairs, crossed, [self.wire], level=np.full(crossed.shape, self.ring))


@dataclass(frozen=True)
class Flee:
    """An animal that runs from the nearest of those that it sees.

    It must look at all that are in sight to know the nearest, so each of them has an edge.

    Attributes:
        pairs: source and animal.
        sight: how far it sees.
        fright: what is added to its velocity.
    """

    pairs: tuple[Pair, ...]
    sight: float
    fright: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Run away."""
        line, distance = scene.apart(self.pairs)
        target = np.array([target for _, target in self.pairs])
        rivals = np.where(target[:, None] == target, distance[:, None, :], np.inf)
        nearest = distance <= rivals.min(axis=2)
        run = np.where(nearest[..., None], self.fright * line, 0.0)
        change.influence(self.pairs, distance < self.sight, velocity=run)


@dataclass(frozen=True)
class Portal:
    """Two doors: what comes to the first one goes on from the second one.

    Attributes:
        pairs: the first door and who goes through.
        exit: the second door.
        radius: how near one must come.
    """

    pairs: tuple[Pair, ...]
    exit: int
    radius: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Take through what is at the door."""
        _, distance = scene.apart(self.pairs)
        way = scene.position[:, [self.exit]] - scene.position[:, [source for source, _ in self.pairs]]
        change.influence(self.pairs, distance < self.radius, [self.exit], shift=way)
