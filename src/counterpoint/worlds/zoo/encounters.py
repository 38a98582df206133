"""Encounters of several: one socket for many, an infection and its cure, a box that is too heavy for one."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import FLAG, LEVEL, Change, Pair, Scene


@dataclass(frozen=True)
class Socket:
    """A charger with one socket: of those within reach, the nearest is charged and the others wait.

    Who is within reach has edges from the charger and from all rivals within reach.

    Attributes:
        charger: the charger.
        robots: those whose level is that of a battery.
        reach: how near.
        rate: share of what is missing that is charged in a step.
    """

    charger: int
    robots: tuple[int, ...]
    reach: float
    rate: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Charge the nearest."""
        robots = range(len(self.robots))
        pairs = tuple((self.charger, robot) for robot in self.robots)
        _, distance = scene.apart(pairs)
        near = distance < self.reach
        first = distance <= distance.min(axis=1, keepdims=True)
        missing = 1.0 - scene.body[:, list(self.robots), LEVEL]
        change.influence(pairs, near, level=np.where(first, self.rate * missing, 0.0))
        rivals = [(i, j) for i in robots for j in robots if i != j]
        both = np.stack([near[:, i] & near[:, j] for i, j in rivals], axis=1)
        change.influence([(self.robots[i], self.robots[j]) for i, j in rivals], both)


@dataclass(frozen=True)
class Infect:
    """A flag that spreads: whoever is near one whose flag is set gets it set too.

    Attributes:
        pairs: source and target.
        radius: how near.
    """

    pairs: tuple[Pair, ...]
    radius: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Pass it on."""
        _, distance = scene.apart(self.pairs)
        ill = scene.body[:, [source for source, _ in self.pairs], FLAG] > 0.5
        change.influence(self.pairs, ill & (distance < self.radius), set_on=distance)


@dataclass(frozen=True)
class Cure:
    """A flag is cleared while a healer is near.

    Attributes:
        pairs: healer and target.
        radius: how near.
    """

    pairs: tuple[Pair, ...]
    radius: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Clear flags."""
        _, distance = scene.apart(self.pairs)
        change.influence(self.pairs, distance < self.radius, set_off=distance)


@dataclass(frozen=True)
class Together:
    """A box that is too heavy for one: it moves only while at least two are at it.

    Attributes:
        pairs: those who push, and the one box.
        radius: how near they must be.
        shove: what each adds to the velocity of the box, away from itself.
        share: share of its own velocity that each adds as well.
    """

    pairs: tuple[Pair, ...]
    radius: float
    shove: float
    share: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Move the box if enough are at it."""
        line, distance = scene.apart(self.pairs)
        at = distance < self.radius
        push = self.shove * line + self.share * scene.velocity[:, [source for source, _ in self.pairs]]
        change.influence(self.pairs, at & (at.sum(axis=1, keepdims=True) >= 2), velocity=push)
