"""Contacts: what happens between factors that touch."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import LEVEL, Change, Pair, Scene


@dataclass(frozen=True)
class Collide:
    """Bodies that touch and approach each other exchange part of their velocity along the line between them.

    Attributes:
        pairs: source and target, both ways where both are moved.
        radius: distance at which they touch.
        bounce: 1 for an elastic contact, 0 for one after which both go on together.
        slide: share of the rest of the velocity that is exchanged too; 0 for smooth bodies.
        known: whether the velocities are in the state. If they are hidden, every touch counts as an edge.
    """

    pairs: tuple[Pair, ...]
    radius: float
    bounce: float
    slide: float = 0.0
    known: bool = True

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the impulses."""
        line, distance = scene.apart(self.pairs)
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        relative = scene.velocity[:, source] - scene.velocity[:, target]
        along = relative[..., 0] * line[..., 0] + relative[..., 1] * line[..., 1]
        touch = distance < self.radius
        strength = 0.5 * (1.0 + self.bounce) * np.maximum(along, 0.0)
        normal = strength[..., None] * line
        rest = 0.5 * self.slide * (relative - along[..., None] * line)
        impulse = np.where((along > 0.0)[..., None], normal + rest, 0.0)
        change.influence(self.pairs, touch & (along > 0.0) if self.known else touch, velocity=impulse)


@dataclass(frozen=True)
class Push:
    """A body that is touched gets momentum from what pushes it, and is shoved out of its way.

    Attributes:
        pairs: pusher and target.
        radius: distance at which they touch.
        transfer: share of the pusher's velocity that the target gets.
        action: the action factor of the pusher that acts through it in the same step, as ~k; or none.
        columns: its columns.
        gain: how strongly.
        helper: a factor whose level must be above one half, or nothing is pushed; -1 for none.
    """

    pairs: tuple[Pair, ...]
    radius: float
    transfer: float
    action: int | None = None
    columns: tuple[int, ...] = ()
    gain: float = 0.0
    helper: int = -1

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add what is pushed."""
        line, distance = scene.apart(self.pairs)
        active = distance < self.radius
        momentum = self.transfer * scene.velocity[:, [source for source, _ in self.pairs]]
        also = []
        if self.helper >= 0:
            active = active & (scene.body[:, [self.helper], LEVEL] > 0.5)
            also.append(self.helper)
        if self.action is not None:
            momentum = momentum + self.gain * scene.action[:, None, list(self.columns[:2])]
            also.append(self.action)
        out = 0.3 * np.maximum(self.radius - distance, 0.0)[..., None] * line
        change.influence(self.pairs, active, also, velocity=momentum, shift=out)


@dataclass(frozen=True)
class Touch:
    """A touch that shows only later: it winds up the target, which fires by itself when it has run down.

    Attributes:
        pairs: source and target.
        radius: distance at which they touch.
    """

    pairs: tuple[Pair, ...]
    radius: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Wind up what is touched and has run down."""
        _, distance = scene.apart(self.pairs)
        down = scene.body[:, [target for _, target in self.pairs], LEVEL] < 0.05
        change.influence(self.pairs, (distance < self.radius) & down, level=np.ones_like(distance))
