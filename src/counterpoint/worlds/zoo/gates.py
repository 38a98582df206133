"""Influences under a condition: fans, switches, grips, latches and valves."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import FLAG, LEVEL, Change, Pair, Scene


@dataclass(frozen=True)
class Fan:
    """Wind on whatever is in a strip beside the fan, while the fan's level is high.

    Attributes:
        pairs: fan and target.
        half: half the width of the strip, along x around the fan.
        high: the level above which it blows.
        wind: what is added to the velocity.
        switch: a factor whose flag must be set as well; -1 for none.
    """

    pairs: tuple[Pair, ...]
    half: float
    high: float
    wind: tuple[float, float]
    switch: int = -1

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add the wind."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        beside = np.abs(scene.position[:, target, 0] - scene.position[:, source, 0]) < self.half
        active = beside & (scene.body[:, source, LEVEL] > self.high)
        if self.switch >= 0:
            active = active & (scene.body[:, [self.switch], FLAG] > 0.5)
        wind = np.broadcast_to(np.array(self.wind), (*active.shape, 2))
        change.influence(self.pairs, active, [self.switch] if self.switch >= 0 else [], velocity=wind)


@dataclass(frozen=True)
class Press:
    """A button: its flag is set while something is on it.

    Attributes:
        pairs: what presses, and the button.
        radius: how near that is.
    """

    pairs: tuple[Pair, ...]
    radius: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Press buttons."""
        _, distance = scene.apart(self.pairs)
        change.influence(self.pairs, distance < self.radius, set_on=distance)


@dataclass(frozen=True)
class Drag:
    """What is near a closed grip goes where the grip goes.

    Attributes:
        pairs: grip and target.
        radius: how near.
        closed: the level of the grip above which it is closed.
        slip: share of the motion that is lost.
    """

    pairs: tuple[Pair, ...]
    radius: float
    closed: float
    slip: float = 0.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Move what is held."""
        source = [source for source, _ in self.pairs]
        _, distance = scene.apart(self.pairs)
        active = (distance < self.radius) & (scene.body[:, source, LEVEL] > self.closed)
        change.influence(self.pairs, active, shift=(1.0 - self.slip) * scene.velocity[:, source])


@dataclass(frozen=True)
class Latch:
    """A closed grip that touches a body latches it; from then on the body moves with it, however far away.

    The body's flag says that it is latched. A grip that opens lets it go.

    Attributes:
        pairs: grip and target.
        radius: how near they must come.
        closed: the level of the grip above which it is closed.
    """

    pairs: tuple[Pair, ...]
    radius: float
    closed: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Latch, move or let go."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        _, distance = scene.apart(self.pairs)
        shut = scene.body[:, source, LEVEL] > self.closed
        held = scene.body[:, target, FLAG] > 0.5
        change.influence(self.pairs, held, shift=np.where(shut[..., None], scene.velocity[:, source], 0.0))
        change.influence(self.pairs, held & ~shut, set_off=distance)
        change.influence(self.pairs, ~held & shut & (distance < self.radius), set_on=distance)


@dataclass(frozen=True)
class Flow:
    """Levels even out between two tanks while a valve is open. Nothing here is anywhere.

    Attributes:
        pairs: source and target.
        valve: the action factor that opens it, as ~k.
        column: its column.
        rate: share of the difference that flows.
        opened: the value of the column above which it is open.
    """

    pairs: tuple[Pair, ...]
    valve: int
    column: int
    rate: float
    opened: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Add what flows."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        flow = self.rate * (scene.body[:, source, LEVEL] - scene.body[:, target, LEVEL])
        opened = np.broadcast_to(scene.action[:, [self.column]] > self.opened, flow.shape)
        change.influence(self.pairs, opened, [self.valve], level=flow)
