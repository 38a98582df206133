"""In the way: a queue before a light, a door for badges, an arm that sweeps, a band over a peg, a crate that sticks."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Floats
from counterpoint.worlds.zoo.scene import FLAG, LEVEL, TINY, VX, Change, Pair, Scene, X, Y


@dataclass(frozen=True)
class Queue:
    """Carts on a ring along x, each in the lane of its y: none runs into what is ahead of it.

    Ahead of a cart are the carts of its lane that go the same way, and red lights. The nearest within ``gap``
    slows it, and stops it from half of that on. The cart must look at all within ``gap`` to know the nearest, so
    each of them has an edge.

    Attributes:
        carts: the carts; their velocities must be in the state.
        lights: the lights, which are red while their flag is set; they hold for all lanes.
        lane: half the width of a lane.
        gap: how far ahead a cart looks.
    """

    carts: tuple[int, ...]
    lights: tuple[int, ...]
    lane: float
    gap: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Slow down the carts."""
        for cart in self.carts:
            pairs = [(other, cart) for other in (*self.carts, *self.lights) if other != cart]
            others = scene.body[:, [other for other, _ in pairs]]
            own = scene.body[:, [cart]]
            way = np.where(own[..., VX] >= 0.0, 1.0, -1.0)
            beside = np.abs(others[..., Y] - own[..., Y]) < self.lane
            along = beside & (way * others[..., VX] >= 0.0)
            red = others[..., FLAG] > 0.5
            ahead = way * (others[..., X] - own[..., X])
            ahead = ahead - np.floor(ahead)
            counts = np.where([other in self.lights for other, _ in pairs], red, along) & (ahead < self.gap)
            nearest = ahead <= np.where(counts, ahead, np.inf).min(axis=1, keepdims=True)
            brake = np.clip(2.0 * (1.0 - ahead / self.gap), 0.0, 1.0)
            stop = np.where(nearest, -brake * own[..., VX], 0.0)
            change.influence(pairs, counts, shift=np.stack([stop, np.zeros_like(stop)], axis=-1))


@dataclass(frozen=True)
class Badge:
    """A door of one of two colours lets those pass who have a badge of its colour, and drives back the others.

    The colours are the flags of both.

    Attributes:
        pairs: door and target.
        half: half the thickness of the door along x, and half its height along y.
        strength: what is added to the velocity along x, away from the door.
    """

    pairs: tuple[Pair, ...]
    half: tuple[float, float]
    strength: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Drive back whoever has the wrong badge."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        gap = scene.position[:, target] - scene.position[:, source]
        inside = (np.abs(gap[..., 0]) < self.half[0]) & (np.abs(gap[..., 1]) < self.half[1])
        wrong = scene.body[:, source, FLAG] != scene.body[:, target, FLAG]
        back = np.where(gap[..., 0] > 0.0, self.strength, -self.strength)
        change.influence(self.pairs, inside & wrong, velocity=np.stack([back, np.zeros_like(back)], axis=-1))


@dataclass(frozen=True)
class Sweep:
    """An arm that turns hits what it sweeps over in a step, harder further out.

    Its level is its angle as a share of a full turn, counted along the square |x| + |y| = 1 and not along the
    circle: 0 is along x, a quarter along y.

    Attributes:
        pairs: arm and target.
        length: length of the arm.
        rate: by how much its level rises in a step.
        strength: what is added to the velocity at the end of the arm, in the direction of the turn.
        brake: by how much each hit holds up the level of the arm; with none it does not notice.
    """

    pairs: tuple[Pair, ...]
    length: float
    rate: float
    strength: float
    brake: float = 0.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Hit what is in the sweep."""
        line, distance = scene.apart(self.pairs)
        ahead = _turn(line) - scene.body[:, [source for source, _ in self.pairs], LEVEL]
        hit = (ahead - np.floor(ahead) < self.rate) & (distance < self.length)
        size = self.strength * distance / self.length
        sideways = np.stack([-line[..., 1], line[..., 0]], axis=-1)
        change.influence(self.pairs, hit, velocity=size[..., None] * sideways)
        if self.brake:
            back = [(target, source) for source, target in self.pairs]
            change.influence(back, hit, level=np.full(hit.shape, -self.brake))


@dataclass(frozen=True)
class Pulley:
    """A band between two bodies that runs over a peg: while it is taut, it pulls both towards the peg.

    It is taut while their ways to the peg are together longer than the band, however that is shared between them.

    Attributes:
        ends: the two bodies.
        peg: the peg.
        length: length of the band.
        pull: what is added to the velocity of each.
        firm: whether the first body is too firm to be pulled.
    """

    ends: tuple[int, int]
    peg: int
    length: float
    pull: float
    firm: bool = False

    def __call__(self, scene: Scene, change: Change) -> None:
        """Pull both ends."""
        one, two = self.ends
        line, distance = scene.apart([(self.peg, one), (self.peg, two)])
        taut = (distance[:, :1] + distance[:, 1:]) > self.length
        if not self.firm:
            change.influence([(two, one)], taut, [self.peg], velocity=-self.pull * line[:, :1])
        change.influence([(one, two)], taut, [self.peg], velocity=-self.pull * line[:, 1:])


@dataclass(frozen=True)
class Breakaway:
    """A crate that sticks to the floor: a touch moves it only if it is hit faster than a limit.

    Attributes:
        pairs: what hits, whose velocity must be in the state, and the crate.
        radius: distance at which they touch.
        limit: speed towards the crate above which it breaks away.
        transfer: share of this speed that it gets.
    """

    pairs: tuple[Pair, ...]
    radius: float
    limit: float
    transfer: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Move what is hit hard enough."""
        line, distance = scene.apart(self.pairs)
        motion = scene.velocity[:, [source for source, _ in self.pairs]]
        speed = motion[..., 0] * line[..., 0] + motion[..., 1] * line[..., 1]
        hard = (distance < self.radius) & (speed > self.limit)
        change.influence(self.pairs, hard, velocity=self.transfer * speed[..., None] * line)


def _turn(line: Floats) -> Floats:
    """Return the angle of a direction as a share of a full turn, from -1/4 to 3/4, along |x| + |y| = 1."""
    size = np.maximum(np.abs(line[..., 0]) + np.abs(line[..., 1]), TINY)
    rise = line[..., 1] / size
    return np.asarray(0.25 * np.where(line[..., 0] >= 0.0, rise, 2.0 - rise))
