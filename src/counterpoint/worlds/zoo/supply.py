"""What hangs on a supply: a suction cup on its pump, a circuit that two contacts close, power that must do for all."""

from dataclasses import dataclass

import numpy as np

from counterpoint.worlds.zoo.scene import FLAG, LEVEL, Change, Pair, Scene


@dataclass(frozen=True)
class Suction:
    """What is just below a suction cup goes with it, while an action asks for suction and the pump has pressure.

    Attributes:
        pairs: cup and target.
        half: half the width of the cup.
        depth: how far below the cup the target may be.
        pump: the factor whose level is the pressure.
        least: the pressure above which the cup holds.
        valve: the action factor that asks for suction, as ~k.
        column: its column, which must be above zero.
        slip: share of the cup's velocity that the target does not take over.
    """

    pairs: tuple[Pair, ...]
    half: float
    depth: float
    pump: int
    least: float
    valve: int
    column: int
    slip: float = 0.0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Hold what is below."""
        source, target = (list(side) for side in zip(*self.pairs, strict=True))
        gap = scene.position[:, target] - scene.position[:, source]
        below = (gap[..., 1] < 0.0) & (gap[..., 1] > -self.depth) & (np.abs(gap[..., 0]) < self.half)
        sucks = (scene.action[:, [self.column]] > 0.0) & (scene.body[:, [self.pump], LEVEL] > self.least)
        taken = (1.0 - self.slip) * scene.velocity[:, source]
        change.influence(self.pairs, below & sucks, [self.pump, self.valve], held=gap[..., 1], velocity=taken)


@dataclass(frozen=True)
class Circuit:
    """A circuit with two contacts: while something is on each of them, current flows and a motor turns faster.

    Attributes:
        bodies: those that conduct.
        contacts: the two contacts.
        motor: the factor whose level is the speed of the motor.
        radius: how near a contact one must be.
        current: what is added to the level of the motor.
    """

    bodies: tuple[int, ...]
    contacts: tuple[int, int]
    motor: int
    radius: float
    current: float

    def __call__(self, scene: Scene, change: Change) -> None:
        """Turn the motor while the circuit is closed."""
        on = [scene.apart([(contact, body) for body in self.bodies])[1] < self.radius for contact in self.contacts]
        closed = np.asarray(np.stack(on).any(axis=2).all(axis=0))[:, None]
        current = np.full(closed.shape, self.current)
        change.influence([(self.contacts[0], self.motor)], closed, [self.contacts[1]], level=current)
        change.influence([(body, self.motor) for body in self.bodies], closed & (on[0] | on[1]))


@dataclass(frozen=True)
class Budget:
    """Power that is shared: while all want more than there is, none of them gets on as it would.

    It depends on all of them at once, and on nothing that is near. What a machine wants is its level.

    Attributes:
        machines: those that share the power.
        generator: the factor whose flag says whether there is more power.
        power: how much there is while the flag is set.
        less: how much less there is while it is not.
        loss: share of its way that a machine loses while power is short.
        heater: an action factor that uses power as well, as ~k; or none.
        column: its column; it uses nothing at -1, and as much as a machine at 1.
    """

    machines: tuple[int, ...]
    generator: int
    power: float
    less: float
    loss: float
    heater: int | None = None
    column: int = 0

    def __call__(self, scene: Scene, change: Change) -> None:
        """Slow down all machines while power is short."""
        wanted = np.zeros(len(scene.body))
        for machine in self.machines:
            wanted = wanted + scene.body[:, machine, LEVEL]
        also = [*self.machines]
        if self.heater is not None:
            wanted = wanted + 0.5 * (1.0 + scene.action[:, self.column])
            also.append(self.heater)
        there = self.power - np.where(scene.body[:, self.generator, FLAG] > 0.5, 0.0, self.less)
        pairs = [(self.generator, machine) for machine in self.machines]
        short = np.broadcast_to((wanted > there)[:, None], (len(wanted), len(pairs)))
        change.influence(pairs, short, also, shift=-self.loss * scene.velocity[:, list(self.machines)])
