"""Drawing a world: parts, actions and influences are put together, then frozen."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from counterpoint.worlds.zoo.observation import Observation
from counterpoint.worlds.zoo.parts import Cast, Part
from counterpoint.worlds.zoo.policies import Behaviour
from counterpoint.worlds.zoo.scene import Change, Pair, Scene

Effect: TypeAlias = Callable[[Scene, Change], None]

_STYLES = ("random", "random", "seek", "seek", "aloof", "patrol")


@dataclass(frozen=True)
class Blueprint:
    """A world, ready to run."""

    observation: Observation
    movers: tuple[tuple[int, ...], ...]  # action factors that always move each factor
    effects: tuple[Effect, ...]
    behaviour: Behaviour
    kinds: tuple[str, ...]


@dataclass
class Draft:
    """A world that is being drawn; kinds add to it."""

    rng: np.random.Generator
    parts: list[Part] = field(default_factory=list)
    drives: list[tuple[int, ...]] = field(default_factory=list)
    movers: list[tuple[int, ...]] = field(default_factory=list)
    actions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    points: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    agents: list[int] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)

    def uniform(self, low: float, high: float) -> float:
        """Draw a number."""
        return float(self.rng.uniform(low, high))

    def chance(self, probability: float) -> bool:
        """Toss a coin."""
        return bool(self.rng.random() < probability)

    def pick(self, *values: Any) -> Any:
        """Choose one of several values."""
        return values[int(self.rng.integers(len(values)))]

    def action(self, name: str, width: int) -> tuple[int, tuple[int, ...]]:
        """Add an action factor, and return it as ~k with its columns."""
        start = sum(map(len, self.actions.values()))
        self.actions[f"{name}{len(self.actions)}"] = tuple(range(start, start + width))
        return ~(len(self.actions) - 1), tuple(range(start, start + width))

    def add(self, part: Part, count: int = 1) -> list[int]:
        """Add factors of one kind and return their numbers."""
        first = len(self.parts)
        self.parts += [part] * count
        self.drives += [()] * count
        self.movers += [()] * count
        return list(range(first, first + count))

    def drive(self, node: int, action: tuple[int, tuple[int, ...]]) -> None:
        """Let an action move a factor always."""
        self.drives[node] += action[1]
        self.movers[node] += (action[0],)

    def noise(self) -> dict[str, Any]:
        """Draw the size and shape of a part's noise."""
        size = self.pick(0.0, 0.0005, 0.001, 0.002, 0.005)
        return {"noise": size, "noise_shape": self.pick("normal", "normal", "uniform", "laplace", "kicks")}

    @property
    def body_noise(self) -> float:
        """The size of the first body's noise."""
        return self.parts[self.bodies[0]].noise

    def strength(self, noise: float, low: float, high: float) -> float:
        """Draw a strength: mostly well above the noise, now and then of its size."""
        if self.chance(0.25):
            return max(noise, 0.0005) * self.uniform(1.0, 3.0)
        return self.uniform(low, high)

    def look(self, part: Part, *, hide: bool) -> Part:
        """Draw how a part is shown: order, scale, hidden velocity, further columns."""
        shown = [name for name in part.fields if not (hide and name in ("vx", "vy"))]
        if self.chance(0.3):
            shown = [shown[i] for i in self.rng.permutation(len(shown))]
        return replace(
            part,
            shown=tuple(shown),
            scale=self.pick(1.0, 1.0, 10.0, 20.0),
            attributes=self.pick(0, 0, 0, 1, 2),
        )

    def pairs(self, sources: list[int], targets: list[int]) -> tuple[Pair, ...]:
        """Return all pairs of a source and another target."""
        return tuple((i, j) for i in sources for j in targets if i != j)

    def finished(self, kinds: tuple[str, ...]) -> Blueprint:
        """Freeze the world."""
        count: dict[str, int] = {}
        names = []
        for part in self.parts:
            names.append(f"{part.name}{count.setdefault(part.name, 0)}")
            count[part.name] += 1
        somewhere = [j for j, part in enumerate(self.parts) if "x" in part.shown]
        relative = [(j, self.agents[0]) for j in self.bodies if j in somewhere and j != self.agents[0]]
        observation = Observation(
            Cast(tuple(self.parts), tuple(self.drives)),
            tuple(names),
            self.actions,
            tuple(self.points),
            tuple(relative[:2]) if self.chance(0.25) else (),
            self.chance(0.85),
        )
        style = self.pick(*_STYLES)
        behaviour = Behaviour(observation, style, self.pick(0.1, 0.3, 0.5), tuple(self.bodies))
        return Blueprint(observation, tuple(self.movers), tuple(self.effects), behaviour, kinds)
