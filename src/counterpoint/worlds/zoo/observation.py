"""From scenes to columns and back: what is shown, what is hidden, and what is shown relative to something."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.worlds.zoo.parts import Cast, Part
from counterpoint.worlds.zoo.scene import FIELDS, Scene

_SCALED = ("vx", "vy", "level")


@dataclass(frozen=True)
class Observation:
    """Which column of states, actions and noise is what.

    Hidden fields are columns of the noise, owned by their factor: a step needs them, and a recording of
    states does not have them.
    """

    cast: Cast
    names: tuple[str, ...]  # of the state factors
    actions: Mapping[str, tuple[int, ...]]
    points: tuple[str, ...] = ()  # action factors that name a point
    relative: tuple[tuple[int, int], ...] = ()  # pairs whose relative position is shown as well
    declared: bool = True  # whether types and positions are told

    @cached_property
    def state_columns(self) -> dict[str, tuple[int, ...]]:
        """The columns of each factor, consecutive."""
        return _blocks(self.names, [part.width for part in self.cast.parts])

    @cached_property
    def noise_columns(self) -> dict[str, tuple[int, ...]]:
        """The columns of each factor's noise, then of its hidden fields."""
        widths = [len(part.noisy) + len(part.hidden) for part in self.cast.parts]
        return {name: columns for name, columns in _blocks(self.names, widths).items() if columns}

    @cached_property
    def factors(self) -> Factorization:
        """The factorisation of a world."""
        width, extra = sum(part.width for part in self.cast.parts), 2 * len(self.relative)
        places: dict[str, Position] = {}
        for name, part in zip(self.names, self.cast.parts, strict=True):
            if self.declared and "x" in part.shown:
                own = self.state_columns[name]
                places[name] = Position((own[part.shown.index("x")], own[part.shown.index("y")]))
        if self.declared:
            places.update({name: Position(self.actions[name], scale=0.5, offset=0.5) for name in self.points})
        return Factorization(
            self.state_columns,
            dict(self.actions),
            derived=tuple(range(width, width + extra)),
            noise=self.noise_columns,
            positions=places,
            types=dict(zip(self.names, (part.name for part in self.cast.parts), strict=True)) if self.declared else {},
        )

    def scene(self, state: Array, action: Array, noise: Array) -> tuple[Scene, Floats]:
        """Return the scene, and the noise of each field, (B, n, 6)."""
        body = np.zeros((len(state), len(self.names), len(FIELDS)))
        random = np.zeros_like(body)
        for j, (name, part) in enumerate(zip(self.names, self.cast.parts, strict=True)):
            own, unseen = self.state_columns[name], self.noise_columns.get(name, ())
            for field, column in zip(part.shown, own, strict=False):
                body[:, j, FIELDS.index(field)] = state[:, column] / _scale(part, field)
            for field, column in zip(part.noisy, unseen, strict=False):
                random[:, j, FIELDS.index(field)] = noise[:, column]
            for field, column in zip(part.hidden, unseen[len(part.noisy) :], strict=True):
                body[:, j, FIELDS.index(field)] = noise[:, column]
        return Scene(body, action.astype(np.float64)), random

    def show(self, body: Floats, attributes: Array) -> Array:
        """Return states that show a scene, (B, S), with the unchanging columns of other states."""
        state = attributes.copy()
        for j, (name, part) in enumerate(zip(self.names, self.cast.parts, strict=True)):
            for field, column in zip(part.shown, self.state_columns[name], strict=False):
                state[:, column] = _scale(part, field) * body[:, j, FIELDS.index(field)]
        if self.relative:
            state[:, list(self.factors.derived)] = self.derive(state)
        return state

    def hide(self, body: Floats, noise: Array) -> Array:
        """Return noise whose hidden columns are those of a scene, (B, U)."""
        hidden = noise.copy()
        for j, (name, part) in enumerate(zip(self.names, self.cast.parts, strict=True)):
            columns = self.noise_columns.get(name, ())[len(part.noisy) :]
            for field, column in zip(part.hidden, columns, strict=True):
                hidden[:, column] = body[:, j, FIELDS.index(field)]
        return hidden

    def derive(self, state: Array) -> Floats:
        """Return the relative positions, (B, 2 · relative), from the factors' own columns."""
        values = []
        for pair in self.relative:
            there, here = (self._position(state, j) for j in pair)
            values.append(there - here)
        return np.concatenate(values, axis=1) if values else np.zeros((len(state), 0), state.dtype)

    def _position(self, state: Array, node: int) -> Array:
        part, own = self.cast.parts[node], self.state_columns[self.names[node]]
        return np.asarray(state[:, [own[part.shown.index("x")], own[part.shown.index("y")]]])


def _scale(part: Part, field: str) -> float:
    return part.scale if field in _SCALED else 1.0


def _blocks(names: tuple[str, ...], widths: list[int]) -> dict[str, tuple[int, ...]]:
    """Give each name its block of columns, one after another."""
    ends = np.cumsum(widths).tolist()
    return {name: tuple(range(end - width, end)) for name, width, end in zip(names, widths, ends, strict=True)}
