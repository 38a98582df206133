"""Parts: what a factor is, and what it does by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.worlds.zoo.scene import FIELDS, FLAG, LEVEL, VX, Change, Scene, X

Shape = Literal["normal", "uniform", "laplace", "kicks"]
Walls = Literal["none", "bounce", "stick", "wrap"]
LevelRule = Literal["still", "turn", "follow", "decay"]

FIRED = (0.25, 0.5)  # a part with a kick fires while its level is between these


@dataclass(frozen=True)
class Part:
    """One kind of factor. Factors of one kind differ in nothing but their state.

    Attributes:
        name: name of the kind; the factors are numbered.
        fields: which of x, y, vx, vy, level and flag it has.
        shown: which of these are columns of the state, in this order; the others are hidden.
        scale: by how much velocity and level are multiplied when they are shown.
        attributes: number of further columns that never change.
        speed: standard deviation of its first velocity.
        keep: share of the velocity that is left after a step.
        walls: what happens at the edge of the unit square.
        gain: how strongly its action moves it.
        gravity: by how much its velocity falls in a step, unless it is held.
        kick: what is added to its velocity along x while its level is between 0.25 and 0.5.
        level_rule: "turn" adds ``level_rate`` and begins again at 1, "follow" goes to its action, "decay"
            falls towards 0.
        level_rate: see there.
        flip: chance per step that its flag changes by itself.
        noise: standard deviation of what is added to each component of the velocity, and to the level.
        noise_shape: its distribution; "kicks" are rare and large.
    """

    name: str
    fields: tuple[str, ...] = ("x", "y", "vx", "vy")
    shown: tuple[str, ...] = ("x", "y", "vx", "vy")
    scale: float = 1.0
    attributes: int = 0
    speed: float = 0.04
    keep: float = 1.0
    walls: Walls = "bounce"
    gain: float = 0.0
    gravity: float = 0.0
    kick: float = 0.0
    level_rule: LevelRule = "still"
    level_rate: float = 0.0
    flip: float = 0.0
    noise: float = 0.0
    noise_shape: Shape = "normal"

    @property
    def hidden(self) -> tuple[str, ...]:
        """The fields that are not shown."""
        return tuple(name for name in self.fields if name not in self.shown)

    @property
    def noisy(self) -> tuple[str, ...]:
        """The fields that have noise of their own."""
        moved = [name for name in ("vx", "vy", "level") if name in self.fields] if self.noise else []
        return (*moved, *(["flag"] if self.flip else []))

    @property
    def width(self) -> int:
        """Number of columns of the state."""
        return len(self.shown) + self.attributes

    def begin(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw first states, (B, 6); fields that it does not have are 0."""
        body = np.zeros((size, len(FIELDS)))
        body[:, :2] = rng.uniform(0.05, 0.95, (size, 2))
        body[:, 2:4] = rng.normal(0.0, self.speed, (size, 2))
        body[:, LEVEL] = 0.0 if self.level_rule == "decay" and self.kick else rng.random(size)
        body[:, FLAG] = rng.random(size) < 0.5
        return np.where([name in self.fields for name in FIELDS], body, 0.0)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw its noise, one column for each field of ``noisy``."""
        chance = rng.random((size, 1)) if self.flip else np.zeros((size, 0))
        moved = len(self.noisy) - chance.shape[1]
        return np.concatenate([self.noise * _standard(self.noise_shape, (size, moved), rng), chance], axis=1)


@dataclass(frozen=True)
class Cast:
    """The factors of a world, and how each of them goes on by itself."""

    parts: tuple[Part, ...]
    drives: tuple[tuple[int, ...], ...]  # columns of the action that move each factor; empty for most

    def coefficient(self, name: str) -> Array:
        """Return one number of each part, (n,)."""
        return np.array([getattr(part, name) for part in self.parts])

    @cached_property
    def _walls(self) -> dict[str, Array]:
        return {kind: self.coefficient("walls") == kind for kind in ("bounce", "stick", "wrap")}

    @cached_property
    def _rules(self) -> dict[str, Array]:
        return {rule: self.coefficient("level_rule") == rule for rule in ("turn", "follow", "decay")}

    def has(self, name: str) -> Array:
        """Return which factors have a field, (n,)."""
        return np.array([name in part.fields for part in self.parts])

    def advance(self, scene: Scene, change: Change, noise: Floats) -> Floats:
        """Return the scene one step later, (B, n, 6); ``noise`` has a place for each field, (B, n, 6)."""
        body = scene.body.copy()
        body[..., VX : VX + 2] = self._velocity(scene, change, noise)
        body[..., X : X + 2] += body[..., VX : VX + 2] + change.shift
        self._at_walls(body)
        body[..., LEVEL] = self._level(scene, change, noise)
        flips = noise[..., FLAG] > 1.0 - self.coefficient("flip")
        flag = np.where(flips, 1.0 - scene.body[..., FLAG], scene.body[..., FLAG])
        body[..., FLAG] = np.where(change.set_on, 1.0, np.where(change.set_off, 0.0, flag))
        return np.where(np.stack([self.has(name) for name in FIELDS], axis=1), body, 0.0)

    def _velocity(self, scene: Scene, change: Change, noise: Floats) -> Floats:
        velocity = scene.velocity * self.coefficient("keep")[:, None] + self._drive(scene)
        level = scene.body[..., LEVEL]
        fires = (level > FIRED[0]) & (level <= FIRED[1])
        velocity[..., 0] += np.where(fires, self.coefficient("kick"), 0.0)
        velocity[..., 1] -= np.where(change.held, 0.0, self.coefficient("gravity"))
        velocity = np.where(change.held[..., None], 0.0, velocity)
        velocity += change.velocity + noise[..., VX : VX + 2]
        return np.clip(velocity, -0.15, 0.15)

    def _drive(self, scene: Scene) -> Floats:
        """Return what actions add to velocities, (B, n, 2)."""
        drive = np.zeros_like(scene.velocity)
        for j, columns in enumerate(self.drives):
            if len(columns) >= 2:
                drive[:, j] = self.parts[j].gain * scene.action[:, columns[:2]]
        return drive

    def _at_walls(self, body: Floats) -> None:
        """Keep factors on the unit square, in place."""
        position, velocity = body[..., :2], body[..., 2:4]
        outside = (position < 0.0) | (position > 1.0)
        clipped, walls = np.clip(position, 0.0, 1.0), self._walls
        wrapped = position - np.floor(position)
        stuck = (walls["bounce"] | walls["stick"])[:, None]
        velocity[:] = np.where(outside & walls["bounce"][:, None], -velocity, velocity)
        velocity[:] = np.where(outside & walls["stick"][:, None], 0.0, velocity)
        position[:] = np.where(stuck, clipped, np.where(walls["wrap"][:, None], wrapped, position))

    def _level(self, scene: Scene, change: Change, noise: Floats) -> Floats:
        level, rate, rules = scene.body[..., LEVEL], self.coefficient("level_rate"), self._rules
        target = np.zeros_like(level)
        for j, columns in enumerate(self.drives):
            if columns and rules["follow"][j]:
                target[:, j] = 0.5 * (scene.action[:, columns[-1]] + 1.0)
        after = np.where(rules["turn"], level + rate, level)
        after = np.where(rules["follow"], level + rate * (target - level), after)
        after = np.where(rules["decay"], level * (1.0 - rate), after) + change.level + noise[..., LEVEL]
        return np.where(rules["turn"], after - np.floor(after), np.clip(after, -1.0, 3.0))


def _standard(shape: Shape, size: Sequence[int], rng: np.random.Generator) -> Floats:
    """Draw from a distribution of mean 0 and standard deviation 1."""
    if shape == "uniform":
        return rng.uniform(-(3.0**0.5), 3.0**0.5, size)
    if shape == "laplace":
        return rng.laplace(0.0, 0.5**0.5, size)
    if shape == "kicks":
        return np.where(rng.random(size) < 0.05, rng.normal(0.0, 4.0, size), rng.normal(0.0, 0.45, size))
    return rng.normal(0.0, 1.0, size)
