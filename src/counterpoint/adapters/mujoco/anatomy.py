"""Everything that is known about an environment: its trees, columns, hidden state, and what its actions move."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from counterpoint.adapters.mujoco.access import Access, access
from counterpoint.adapters.mujoco.bodies import Bodies, bodies
from counterpoint.adapters.mujoco.columns import FEWEST_AXES, ObservedColumns, columns, coordinates
from counterpoint.adapters.mujoco.contacts import words
from counterpoint.adapters.mujoco.layout import Layout, layout
from counterpoint.adapters.mujoco.packing import Packing, fingerprint, packing, parts
from counterpoint.adapters.mujoco.probing import Probe, tried
from counterpoint.core.arrays import Bools, Floats, Ints, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position

_KNOWN: WeakKeyDictionary[Any, "Anatomy"] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Anatomy:
    """An environment taken apart."""

    way: Access
    bodies: Bodies
    packing: Packing
    layout: Layout
    columns: ObservedColumns
    trial: Probe

    @property
    def model(self) -> float:
        """The fingerprint of the compiled model."""
        return fingerprint(self.way.model) if self.trial.remodels else self._model

    @cached_property
    def _model(self) -> float:
        return fingerprint(self.way.model)

    @property
    def why_another_model(self) -> str:
        """A reason for a recording of another model."""
        if self.trial.remodels:
            return "the environment changes its model when it is reset, so rows of other episodes cannot be put back"
        return "another version of MuJoCo or of the environment, or other settings"

    @cached_property
    def actions(self) -> dict[str, tuple[int, ...]]:
        """Action columns that move the same groups, by name."""
        moved = self.drives
        kinds = [tuple(np.flatnonzero(row)) for row in moved]
        together = {kind: tuple(c for c, each in enumerate(kinds) if each == kind) for kind in dict.fromkeys(kinds)}
        if len(together) == 1:
            return {"action": tuple(range(len(moved)))}
        name = self.bodies.names.__getitem__
        return {f"action on {' and '.join(map(name, kind))}": own for kind, own in together.items()}

    @cached_property
    def drives(self) -> Bools:
        """Which groups each action column moves, (A, groups); a column that moves nothing goes with the others."""
        moved = self.trial.moved.copy()
        idle = ~moved.any(axis=1)
        if moved.any():
            moved[idle] = moved[~idle][0]
        else:
            moved[:, self.bodies.driven] = True
        return moved

    @cached_property
    def factors(self) -> Factorization:
        """Groups as factors, and what never changes as a factor of its own; hidden state as noise."""
        names = self.bodies.names
        state = {name: tuple(map(int, own)) for name, own in zip(names, self.columns.of_group, strict=True)}
        for name, own in (("goal", self.columns.goal), ("constant", self.columns.constant)):
            if len(own):
                state[name if name not in state else f"{name} columns"] = tuple(map(int, own))
        derived = tuple(column for column, _, _ in self.columns.differences)
        made = Factorization(state, self.actions, derived=derived, positions=self.positions)
        return replace(made, noise=self.hidden(made))

    @cached_property
    def positions(self) -> dict[str, Position]:
        """Columns that say where groups are: the coordinates of a body or a site, along the axes that all of them show.

        Empty if fewer than two groups show theirs.
        """
        model, trial = self.way.model, self.trial
        wholes = trial.wholes.reshape(-1, trial.wholes.shape[-1])
        rows = self.layout.states(trial.rows(), wholes[:, parts(model)["QPOS"]])
        owner = np.concatenate([self.bodies.of_bodies(), self.bodies.of_bodies()[model.site_bodyid]])
        points = trial.points.reshape(len(rows), -1, 3)
        shown = [
            coordinates(rows[:, own], points[:, owner == group]) for group, own in enumerate(self.columns.of_group)
        ]
        placed = [group for group, axes in enumerate(shown) if len(axes) >= FEWEST_AXES]
        common = sorted(set.intersection(*(set(shown[group]) for group in placed))) if len(placed) > 1 else []
        if len(common) < FEWEST_AXES:
            return {}
        own = self.columns.of_group
        return {self.bodies.names[g]: Position(tuple(own[g][[shown[g][axis] for axis in common]])) for g in placed}

    def hidden(self, factors: Factorization) -> dict[str, tuple[int, ...]]:
        """Return the noise columns that each factor owns; those about the whole row go with the driven group."""
        owner = np.concatenate([self.packing.owner, np.full(self.tail, self.bodies.driven)])
        found: dict[str, list[int]] = {}
        for column, group in enumerate(owner):
            found.setdefault(list(factors.state)[self.factor_of(factors)[group]], []).append(column)
        return {name: tuple(found[name]) for name in factors.state if name in found}

    @property
    def tail(self) -> int:
        """Number of noise columns after the hidden state: the model, the digest of the row, and its ties."""
        return 2 + words(len(self.bodies.names))

    def factor_of(self, factors: Factorization) -> Ints:
        """Return the state factor that holds each group, (groups,).

        Raises:
            ValueError: if a factor holds only part of a tree.
        """
        factors.require_widths(self.layout.width, factors.action_width)
        found = []
        for name, own in zip(self.bodies.names, self.columns.of_group, strict=True):
            holders = sorted({int(factors.state_owner[column]) for column in own} - {-1})
            if len(holders) != 1:
                held = listed([repr(list(factors.state)[each]) for each in holders])
                raise ValueError(
                    f"factors: the tree {name!r} is split between {held or 'no factors'}, but its joints move "
                    f"together. Give its columns {tuple(map(int, own))} to one factor."
                )
            found.append(holders[0])
        return np.array(found, np.int64)

    @cached_property
    def full_state(self) -> tuple[Ints, Ints]:
        """Entries of the whole state and the state columns that show them, if all positions and velocities are shown.

        Raises:
            ValueError: if some are not, naming how many.
        """
        places, trial = parts(self.way.model), self.trial
        shown = np.array([self.layout.column(raw) is not None for raw in range(trial.places.shape[1])])
        entries = np.r_[places["QPOS"], places["QVEL"]]
        rows, wholes = trial.rows(), trial.wholes[:, :, entries].reshape(-1, len(entries))
        same = [np.flatnonzero(shown & (rows == whole[:, None]).all(axis=0)) for whole in wholes.T]
        hidden = sum(not len(each) for each in same)
        if hidden:
            raise ValueError(
                f"noise: the data holds no hidden state, and the observation shows only {len(same) - hidden} of "
                f"{len(same)} positions and velocities, so the simulator's state cannot be restored. Record with "
                "counterpoint.adapters.mujoco.collect(env, policy, size, rng=rng)."
            )
        return entries, np.array([self.layout.column(int(each[0])) for each in same], np.int64)

    @property
    def shown(self) -> Ints:
        """State columns that are shown as they are: neither derived nor computed from others."""
        first = self.layout.sizes[0]
        derived = [column for column, _, _ in self.columns.differences]
        return np.setdiff1d(np.arange(self.layout.width), [*derived, *range(first, first + len(self.layout.absolute))])

    def derive(self) -> Callable[[Floats], Floats] | None:
        """Return the function that recomputes derived columns, or None if there are none."""
        return Differences(self.columns.differences) if self.columns.differences else None


@dataclass(frozen=True)
class Differences:
    """Derived columns as differences of others: ``(column, plus, minus)`` each."""

    table: tuple[tuple[int, int, int], ...]

    def __call__(self, state: Floats) -> Floats:
        """Return the derived columns, (B, derived)."""
        _, plus, minus = np.array(self.table).T
        return np.asarray(state[:, plus] - state[:, minus])


def anatomy(env: Any) -> Anatomy:
    """Take an environment apart; the second time is free."""
    if env not in _KNOWN:
        way = access(env)
        groups = bodies(way.model)
        shape = layout(env.observation_space)
        trial = tried(env, way, groups, shape)
        shape, found = columns(groups, shape, trial)
        _KNOWN[env] = Anatomy(way, groups, packing(groups, trial.states), shape, found, trial)
    return _KNOWN[env]
