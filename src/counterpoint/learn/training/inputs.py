"""From transitions to what networks see: checked, standardised, and packed into one token per factor.

A new estimator gets ``Batch``es, which are standardised already, and undoes that with
``Scaling.original`` where it needs true units (distances). Columns keep their places, so
``batch.state[:, factors.state[name]]`` is a factor; derived columns are there too, but a network must
not look at them, since they mix factors. ``Tokens`` packs factors of different widths into one tensor.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Array, Floats, Ints, listed, numbers, require_finite
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions

Embedding: TypeAlias = Literal["padded", "marked", "typed", "blocks"]
Target: TypeAlias = Literal["next", "change"]

FEWEST_ROWS = 100  # fewer transitions than this are refused: no network learns a dependence from them


@dataclass(frozen=True, eq=False)
class Batch:
    """Transitions as standardised float32 tensors. Without a next state, ``next_state`` and ``change`` are None."""

    state: Tensor  # (B, S)
    action: Tensor  # (B, A)
    next_state: Tensor | None = None  # (B, S), standardised by its own statistics, not by those of ``state``
    change: Tensor | None = None  # (B, S), next state minus state, standardised by its own statistics

    def __len__(self) -> int:
        return len(self.state)

    def __getitem__(self, rows: Any) -> "Batch":
        """Select rows by slice or by a tensor of indices."""
        return Batch(*(None if x is None else x[rows] for x in self._tensors()))  # type: ignore[arg-type]

    def chunks(self, rows: int) -> Iterator["Batch"]:
        """Iterate over consecutive batches of at most ``rows`` rows."""
        for start in range(0, len(self), rows):
            yield self[start : start + rows]

    def target(self, name: Target) -> Tensor:
        """Return the "next" state or the "change", (B, S); raise if this batch has none."""
        found = self.next_state if name == "next" else self.change
        if found is None:
            raise ValueError("next_state: this needs the next state, and none was given.")
        return found

    def _tensors(self) -> tuple[Tensor | None, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


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

    def batch(self, state: Array, action: Array, next_state: Array | None = None) -> Batch:
        """Standardise arrays into a batch."""
        before = self.state.apply(state), self.action.apply(action)
        if next_state is None:
            return Batch(*before)
        change = _difference(state, next_state)
        return Batch(*before, self.next_state.apply(next_state), self.change.apply(change))

    def original(self, batch: Batch) -> Batch:
        """Return a batch in the units of the data, for what must not be standardised, such as distances."""
        after = None if batch.next_state is None else self.next_state.undo(batch.next_state)
        change = None if batch.change is None else self.change.undo(batch.change)
        return Batch(self.state.undo(batch.state), self.action.undo(batch.action), after, change)


class Tokens:
    """Factors of different widths as one tensor with a token per node, (B, N, W), zero where padded.

    Args:
        factors: how columns split into factors.
        embedding: ``"padded"``: every factor starts at feature 0, so different kinds share features;
            ``"marked"``: the same, followed by a one-hot mark of the factor's kind; ``"typed"``: every
            kind has features of its own; ``"blocks"``: every factor has (block-diagonal). The kind of a
            factor is its type; those that declare none are alike if they are both of the state, or both
            of the action, and of the same width.

    Attributes:
        width: number of features of a token (``W``), marks not counted.
        marks: the marks of the nodes, (N, M); M is 0 unless they are asked for.
        real: which features of a token are not padding, (N, W) bool.
    """

    def __init__(self, factors: Factorization, embedding: Embedding = "padded") -> None:
        columns = [np.array(c) for c in factors.state.values()]
        columns += [np.array(c) + factors.state_width for c in factors.action.values()]
        starts = _starts(factors, embedding)
        self.n = factors.n
        self.width = max(start + len(c) for start, c in zip(starts, columns, strict=True))
        padding = factors.state_width + factors.action_width
        index = np.full((len(columns), self.width), padding)
        for node, (start, own) in enumerate(zip(starts, columns, strict=True)):
            index[node, start : start + len(own)] = own
        self.real = torch.from_numpy(index != padding)
        kinds = _kinds(factors) if embedding == "marked" else []
        self.marks = torch.tensor([[float(kind == other) for other in dict.fromkeys(kinds)] for kind in kinds])
        self.marks = self.marks.reshape(len(columns), -1)
        self._index = torch.from_numpy(index)

    def pack(self, state: Tensor, action: Tensor) -> Tensor:
        """Pack states (B, S) and actions (B, A) into tokens with their marks, (B, N, W + M)."""
        flat = torch.cat([state, action, state.new_zeros(len(state), 1)], dim=1)
        return torch.cat([flat[:, self._index], self.marks.expand(len(state), -1, -1)], dim=2)

    def pack_state(self, state: Tensor) -> Tensor:
        """Pack states alone, or next states or changes, (B, S) into (B, n, W)."""
        flat = torch.cat([state, state.new_zeros(len(state), 1)], dim=1)
        return flat[:, self._index[: self.n].clamp(max=state.shape[1])]


def node_columns(factors: Factorization) -> Ints:
    """Return, for each owned column of ``[state, action]`` in node order, its place there, (C,)."""
    parts = [*factors.state.values(), *(tuple(c + factors.state_width for c in own) for own in factors.action.values())]
    return np.concatenate([np.array(part) for part in parts])


def constant(values: Array) -> Array:
    """Tell which columns never vary, up to rounding, (columns,) bool."""
    return np.asarray(np.ptp(values.astype(np.float64), axis=0) <= _rounding(values))


def require_training_data(data: Transitions, factors: Factorization, *, allow_constant: bool) -> None:
    """Raise unless data can be learned from: covered by the factors, enough rows, nothing NaN or constant."""
    if not isinstance(data, Transitions):
        raise TypeError(f"data: expected Transitions, got {type(data).__name__}.")
    factors.require_widths(data.state.shape[1], data.action.shape[1])
    if len(data) < FEWEST_ROWS:
        raise ValueError(
            f"data: {len(data)} transitions are too little to learn from, expected at least {FEWEST_ROWS}, "
            "better tens of thousands. Collect more, or use a mask without learning: counterpoint.masks."
        )
    for name in ("state", "action", "next_state"):
        require_finite(name, getattr(data, name))
    if not allow_constant:
        _require_variety("state", data.state, factors.state_owner, factors)
        _require_variety("action", data.action, factors.action_owner, factors)


def require_inputs(factors: Factorization, state: object, action: object, next_state: object | None) -> list[Array]:
    """Return the arrays of a batch to score, checked for number of columns and rows and for NaN."""
    arrays = [numbers("state", state, ndim=2), numbers("action", action, ndim=2)]
    factors.require_widths(arrays[0].shape[1], arrays[1].shape[1])
    if next_state is not None:
        arrays.append(numbers("next_state", next_state, ndim=2))
    for name, array in zip(("state", "action", "next_state"), arrays, strict=False):
        require_finite(name, array)
        if len(array) != len(arrays[0]) or (name == "next_state" and array.shape != arrays[0].shape):
            raise ValueError(f"{name}: expected one row for each of the {len(arrays[0])} states, got {array.shape}.")
    return arrays


def _require_variety(space: str, values: Array, owner: Ints, factors: Factorization) -> None:
    stuck = [int(column) for column in np.flatnonzero(constant(values) & (owner >= 0))]
    if stuck:
        named = [f"column {c} of factor {factors.names[owner[c]]!r} (always {values[0, c]:g})" for c in stuck]
        raise ValueError(
            f"{space}: {listed(named)} is constant in the training data, so nothing can be learned of what depends "
            "on it. Collect data in which it varies, leave it out of the factors, or say allow_constant=True and "
            "treat the scores of its edges as unknown."
        )


def _starts(factors: Factorization, embedding: Embedding) -> list[int]:
    """Return the first feature of each node's columns within its token."""
    widths = factors.widths
    if embedding in ("padded", "marked"):
        return [0] * len(widths)
    if embedding == "blocks":
        return [sum(widths[:node]) for node in range(len(widths))]
    kinds = _kinds(factors)
    first = {kind: kinds.index(kind) for kind in kinds}
    owners = sorted(first.values())
    return [sum(widths[node] for node in owners if node < first[kind]) for kind in kinds]


def _kinds(factors: Factorization) -> list[object]:
    """Return the kind of each node: its declared type, or else its space and width."""
    return [
        (name in factors.state, width) if factors.types[name] == name else factors.types[name]
        for name, width in zip(factors.names, factors.widths, strict=True)
    ]


def _rounding(values: Array) -> Floats:
    """Return a difference that rounding alone can make in each column, (columns,)."""
    step = float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    return np.asarray(4 * step * np.abs(values.astype(np.float64)).max(axis=0, initial=0.0))


def _difference(state: Array, next_state: Array) -> Floats:
    return np.asarray(next_state, np.float64) - state
