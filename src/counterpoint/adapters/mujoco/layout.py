"""What an environment shows, as one row of columns, and what has to stand beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.goals import ACHIEVED, DESIRED, OBSERVATION, Goals


@dataclass(frozen=True, eq=False)
class Layout:
    """How what is shown becomes a state: ``[observation | beside | desired goal | achieved goal]``.

    The achieved goal is left out where it copies columns of the observation. Beside the observation stand columns that
    a swap needs but the observation lacks: the absolute part of relative columns, and positions of unseen trees.

    Attributes:
        space: the observation space.
        sizes: columns of the observation, the desired and the achieved goal; the latter are 0 without goals.
        absolute: for each column beside, the two raw columns whose sum it is.
        unseen: entries of ``qpos`` to be shown too.
        achieved: the columns of the observation that the achieved goal copies, or None.
    """

    space: Any
    sizes: tuple[int, int, int]
    absolute: tuple[tuple[int, int], ...] = ()
    unseen: tuple[int, ...] = ()
    achieved: tuple[int, ...] | None = None

    def raw(self, shown: Any) -> Floats:
        """Return all that is shown as one row: observation, desired goal, achieved goal."""
        return np.concatenate(list(_parts(shown, self.space)), axis=None, dtype=np.float64)

    def state(self, shown: Any, qpos: Floats) -> Floats:
        """Return the row of a state, (S,)."""
        return np.asarray(self.states(self.raw(shown)[None], qpos[None])[0])

    def states(self, raw: Floats, qpos: Floats) -> Floats:
        """Return the rows of states, (B, S), given all that is shown and the positions of all joints."""
        seen = self.sizes[0]
        stop = raw.shape[1] if self.achieved is None else seen + self.sizes[1]
        if not self.beside:
            return raw[:, :stop]
        mixed, other, unseen = self._places
        return np.concatenate(
            [raw[:, :seen], raw[:, mixed] + raw[:, other], qpos[:, unseen], raw[:, seen:stop]], axis=1
        )

    @cached_property
    def _places(self) -> tuple[Ints, Ints, Ints]:
        pairs = np.array(self.absolute, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1], np.array(self.unseen, np.int64)

    @property
    def width(self) -> int:
        """Number of columns of a state."""
        return sum(self.sizes) + self.beside - (0 if self.achieved is None else self.sizes[2])

    @property
    def beside(self) -> int:
        """Number of columns beside the observation."""
        return len(self.absolute) + len(self.unseen)

    def column(self, raw: int) -> int | None:
        """Return the state column of a raw column, or None if it is left out."""
        if raw < self.sizes[0]:
            return raw
        return raw + self.beside if self.achieved is None or raw < sum(self.sizes[:2]) else None

    @property
    def goals(self) -> Goals | None:
        """How goals lie in a state, or None if there are none."""
        if not self.sizes[1]:
            return None
        wide = (("", (self.sizes[0] + self.beside,)),)
        return Goals(wide, Goals.of_space(self.space).goal, self.achieved)


def layout(space: Any) -> Layout:
    """Return the layout of an observation space before anything is known about its columns."""
    parts = [[_size(inner) for inner in _leaves(space[key])] if key else [] for key in _keys(space)]
    if not parts:
        return Layout(space, (sum(_size(inner) for inner in _leaves(space)), 0, 0))
    seen, wanted, reached = (sum(each) for each in parts)
    return Layout(space, (seen, wanted, reached))


def copies(rows: Array, target: Ints, source: Ints) -> tuple[int, ...] | None:
    """Return, for each target column, a source column that always holds the same bits; None if one has none."""
    found = []
    for column in target:
        same = (rows[:, source] == rows[:, [column]]).all(axis=0)
        varied = np.ptp(rows[:, source], axis=0) > 0
        candidates = np.flatnonzero(same & varied)
        if not len(candidates):
            return None
        found.append(int(source[candidates[0]]))
    return tuple(found)


def _keys(space: Any) -> tuple[str, ...]:
    wanted = (OBSERVATION, DESIRED, ACHIEVED)
    return wanted if all(key in getattr(space, "spaces", {}) for key in wanted) else ()


def _parts(shown: Any, space: Any) -> Iterator[Array]:
    keys = _keys(space) or getattr(space, "spaces", None)
    if keys is None or not isinstance(shown, Mapping):
        yield shown
        return
    for key in keys:
        if isinstance(shown[key], np.ndarray):
            yield shown[key]
        else:
            yield from _parts(shown[key], space[key])


def _leaves(space: Any) -> Iterator[Any]:
    inner = getattr(space, "spaces", None)
    if inner is None:
        yield space
        return
    for key in inner:
        yield from _leaves(inner[key])


def _size(space: Any) -> int:
    if space.shape is None:
        raise TypeError(f"env: observations must be arrays or dicts of arrays, got {space}.")
    return int(np.prod(space.shape, dtype=np.int64))
