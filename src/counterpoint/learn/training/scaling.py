"""Transitions as networks see them: standardised tensors, taken batch by batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions

Target: TypeAlias = Literal["next", "change"]


class Rows:
    """What training takes batch by batch: a frozen dataclass of tensors that have the same rows.

    Its fields are tensors, other ``Rows``, or None, and rows are selected in all of them at once.
    """

    def __len__(self) -> int:
        return len(next(value for value in self._values().values() if value is not None))

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by slice or by a tensor of indices."""
        picked = {name: None if value is None else value[rows] for name, value in self._values().items()}
        return replace(self, **picked)  # type: ignore[type-var]

    def chunks(self, size: int) -> Iterator[Self]:
        """Iterate over consecutive chunks of at most ``size`` rows."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def _values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class ScaledBatch(Rows):
    """Transitions as standardised float32 tensors. Without a next state, ``next_state`` and ``change`` are None."""

    state: Tensor  # (B, S)
    action: Tensor  # (B, A)
    next_state: Tensor | None = None  # (B, S), standardised by its own statistics, not by those of ``state``
    change: Tensor | None = None  # (B, S), next state minus state, standardised by its own statistics

    def target(self, name: Target) -> Tensor:
        """Return the "next" state or the "change", (B, S); raise if this batch has none."""
        found = self.next_state if name == "next" else self.change
        if found is None:
            raise ValueError("next_state: this needs the next state, and none was given.")
        return found


@dataclass(frozen=True, eq=False)
class Labelled(Rows):
    """A batch and what is to be predicted of it."""

    batch: ScaledBatch
    label: Tensor  # (B, ...)


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of each column; a column that never varies has standard deviation 1."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def of(cls, values: Array, still: Array | None = None) -> "Moments":
        """Measure the columns of an array, (B, columns); ``still`` (columns,) marks those to call constant."""
        exact = values.astype(np.float64)
        std = np.where(constant(values) if still is None else still, 1.0, exact.std(axis=0))
        return cls(tuple(exact.mean(axis=0).tolist()), tuple(std.tolist()))

    def apply(self, values: Array) -> Tensor:
        """Standardise an array, (B, columns), into a float32 tensor of its own memory."""
        scaled = (values.astype(np.float64) - self.mean) / self.std
        return torch.from_numpy(scaled.astype(np.float32))

    def undo(self, values: Tensor) -> Tensor:
        """Return standardised values, (B, columns), to their true units."""
        return values * values.new_tensor(self.std) + values.new_tensor(self.mean)

    def pooled(self, groups: Sequence[Sequence[Sequence[int]]]) -> "Moments":
        """Give columns that correspond the moments of all of them together.

        Args:
            groups: for each type the columns of its factors, (factors, columns of each).
        """
        mean, std = np.array(self.mean), np.array(self.std)
        for group in groups:
            columns = np.array(group)
            means, squares = mean[columns], np.square(std[columns])
            mean[columns] = means.mean(axis=0)
            std[columns] = np.sqrt(squares.mean(axis=0) + means.var(axis=0))
        return Moments(tuple(mean.tolist()), tuple(std.tolist()))


@dataclass(frozen=True)
class Scaling:
    """How the training data was standardised, column by column."""

    state: Moments
    action: Moments
    next_state: Moments
    change: Moments

    @classmethod
    def of(cls, data: Transitions) -> "Scaling":
        """Measure the training data."""
        change = _difference(data.state, data.next_state)
        still = np.ptp(change, axis=0) <= _rounding(data.state)
        before, action, after = (Moments.of(part) for part in (data.state, data.action, data.next_state))
        return cls(before, action, after, Moments.of(change, still))

    def batch(self, state: Array, action: Array, next_state: Array | None = None) -> ScaledBatch:
        """Standardise arrays into a batch."""
        before = self.state.apply(state), self.action.apply(action)
        if next_state is None:
            return ScaledBatch(*before)
        change = _difference(state, next_state)
        return ScaledBatch(*before, self.next_state.apply(next_state), self.change.apply(change))

    def pooled(self, factors: Factorization) -> "Scaling":
        """Return the scaling in which factors of one type have the same units, so that they can share weights."""
        state, action = (_by_type(space, factors) for space in (factors.state, factors.action))
        return Scaling(
            self.state.pooled(state),
            self.action.pooled(action),
            self.next_state.pooled(state),
            self.change.pooled(state),
        )

    def original(self, batch: ScaledBatch) -> ScaledBatch:
        """Return a batch in the units of the data, for what must not be standardised, such as distances."""
        after = None if batch.next_state is None else self.next_state.undo(batch.next_state)
        change = None if batch.change is None else self.change.undo(batch.change)
        return ScaledBatch(self.state.undo(batch.state), self.action.undo(batch.action), after, change)


def constant(values: Array) -> Array:
    """Tell which columns never vary, up to rounding, (columns,) bool."""
    return np.asarray(np.ptp(values.astype(np.float64), axis=0) <= _rounding(values))


def _rounding(values: Array) -> Floats:
    """Return a difference that rounding alone can make in each column, (columns,)."""
    step = float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    return np.asarray(4 * step * np.abs(values.astype(np.float64)).max(axis=0, initial=0.0))


def _difference(state: Array, next_state: Array) -> Floats:
    return np.asarray(next_state, np.float64) - state


def _by_type(space: Mapping[str, tuple[int, ...]], factors: Factorization) -> list[list[tuple[int, ...]]]:
    """Return the columns of the factors of a space, type by type."""
    kinds: dict[str, list[tuple[int, ...]]] = {}
    for name, columns in space.items():
        kinds.setdefault(factors.types[name], []).append(columns)
    return list(kinds.values())
