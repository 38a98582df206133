"""The record that everything in the package consumes and produces."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, listed, numbers, require_finite

REQUIRED = ("state", "action", "reward", "next_state", "terminated")
OPTIONAL = ("episode", "step", "noise", "origin")
ORIGINS = ("real", "counterfactual", "model")  # what a row may be; ``origin`` counts their places


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """A batch of transitions (s, a, r, s'), one per row.

    Dtypes are kept. Truncation is not a property of a transition, so there is no such column. The
    last four are optional and travel with their rows through indexing and ``concat``.

    Example:
        >>> import numpy as np
        >>> data = Transitions(
        ...     state=np.zeros((5, 4), np.float32),
        ...     action=np.zeros((5, 1), np.float32),
        ...     reward=np.zeros(5, np.float32),
        ...     next_state=np.zeros((5, 4), np.float32),
        ...     terminated=np.zeros(5, bool),
        ... )
        >>> len(data), len(data[1:3]), len(Transitions.concat(data, data))
        (5, 2, 10)
    """

    state: Floats  # (B, S)
    action: Floats  # (B, A)
    reward: Floats  # (B,)
    next_state: Floats  # (B, S)
    terminated: Bools  # (B,)
    episode: Ints | None = None  # (B,) which episode each row comes from
    step: Ints | None = None  # (B,) its number within the episode
    noise: Floats | None = None  # (B, U) the noise that the simulator drew
    origin: Ints | None = None  # (B,) what each row is, as a place in ``ORIGINS``

    def __post_init__(self) -> None:
        for name in ("state", "action", "next_state"):
            object.__setattr__(self, name, numbers(name, getattr(self, name), ndim=2))
        reward = numbers("reward", self.reward, ndim=1)
        object.__setattr__(self, "reward", reward if reward.dtype.kind == "f" else reward.astype(np.float64))
        object.__setattr__(self, "terminated", _flags("terminated", self.terminated))
        for name, ndim in (("episode", 1), ("step", 1), ("noise", 2), ("origin", 1)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, numbers(name, getattr(self, name), ndim=ndim))
        self._require_one_length()
        for name, array in self.columns():
            require_finite(name, array)
        if self.origin is not None:
            _require_origins(self.origin)

    def _require_one_length(self) -> None:
        lengths = {name: len(array) for name, array in self.columns()}
        if len(set(lengths.values())) > 1:
            came = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ValueError(f"every column needs the same number of rows, got {came}.")
        if self.state.shape != self.next_state.shape:
            raise ValueError(
                f"next_state: expected the shape of state, {self.state.shape}, got {self.next_state.shape}."
            )

    @classmethod
    def trusted(cls, **columns: Array | None) -> Self:
        """Build from columns that are known to be good, without looking at them again."""
        made = object.__new__(cls)
        for name in (*REQUIRED, *OPTIONAL):
            object.__setattr__(made, name, columns.get(name))
        return made

    @classmethod
    def empty_like(cls, other: "Transitions", rows: int) -> Self:
        """Allocate ``rows`` rows with the columns, widths and dtypes of another batch, unfilled."""
        return cls.trusted(**{name: np.empty((rows, *array.shape[1:]), array.dtype) for name, array in other.columns()})

    def columns(self) -> Iterator[tuple[str, Array]]:
        """Iterate over the names and arrays of the columns that are present."""
        for column in fields(self):
            array = getattr(self, column.name)
            if array is not None:
                yield column.name, array

    def replace(self, **columns: Array | None) -> Self:
        """Return a copy with some columns exchanged; the new ones are trusted, not checked."""
        return self.trusted(**{**dict(self.columns()), **columns})

    def labelled(self, origin: str) -> Self:
        """Return these rows with their origin on record: "real", "counterfactual" or "model"."""
        if origin not in ORIGINS:
            raise ValueError(f"origin: expected one of {listed(ORIGINS)}, got {origin!r}.")
        return self.replace(origin=np.full(len(self), ORIGINS.index(origin), np.int8))

    def origins(self) -> dict[str, int]:
        """Return how many rows there are of each origin, or nothing if the rows are not labelled."""
        if self.origin is None:
            return {}
        counts = np.bincount(self.origin, minlength=len(ORIGINS))
        return {name: int(count) for name, count in zip(ORIGINS, counts, strict=True) if count}

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, index: Any) -> Self:
        """Select rows by slice, integer array or boolean array; a single integer gives a batch of one."""
        if isinstance(index, int | np.integer):
            row = range(len(self))[int(index)]
            index = slice(row, row + 1)
        return self.trusted(**{name: np.ascontiguousarray(array[index]) for name, array in self.columns()})

    @classmethod
    def concat(cls, *parts: "Transitions") -> Self:
        """Join batches row after row. An optional column is kept only if every part has it."""
        if not parts:
            raise ValueError("concat: expected at least one batch of transitions, got none.")
        for name in ("state", "action"):
            widths = sorted({getattr(part, name).shape[1] for part in parts})
            if len(widths) > 1:
                raise ValueError(f"concat: {name} must have one width, got {widths}.")
        names = [name for name, _ in parts[0].columns() if all(getattr(part, name) is not None for part in parts)]
        return cls.trusted(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {array.shape[1:]} {array.dtype}" for name, array in self.columns())
        return f"Transitions({len(self):,} rows: {shapes})"


def _require_origins(origin: Ints) -> None:
    if origin.dtype.kind not in "iu" or not np.isin(origin, range(len(ORIGINS))).all():
        meant = listed([f"{place} for {name}" for place, name in enumerate(ORIGINS)])
        raise ValueError(f"origin: expected {meant} in every row. Use labelled(...), which writes them.")


def _flags(name: str, value: object) -> Bools:
    array = np.asarray(value)
    if array.dtype != np.bool_:
        raise TypeError(f"{name}: expected booleans, got dtype {array.dtype}. Use .astype(bool) if it holds 0 and 1.")
    return numbers(name, array, ndim=1)
