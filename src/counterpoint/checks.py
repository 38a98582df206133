"""Checks of what users supply and of what is made, as plain functions for users' own tests."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, listed
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import Mask, RewardFn, TerminalFn, call_mask, call_reward, call_terminal
from counterpoint.core.require import require_data
from counterpoint.core.transitions import Transitions
from counterpoint.simulators import Tolerance, next_states

CHUNK = 65536
MOMENT = 0.2  # seconds between two signs of progress


class CheckFailed(AssertionError, ValueError):
    """A check found what it looks for; the message says what and where."""


@dataclass(frozen=True, eq=False)
class Audit:
    """What a simulator says of counterfactuals that were put back into it.

    Swaps of what never changes, such as a goal, are true whatever the mask says of the rest. They are counted
    apart: the shares speak of the others, unless there are no others.
    """

    error: Floats  # (B,) largest absolute difference between stored and simulated next state; of a window, in all of it
    atol: float
    columns: Floats  # (S,) largest difference in each column
    same: Bools | None = None  # (B,) rows, or windows, that come out to the bit
    static: Bools | None = None  # (B,) rows, or windows, that exchange nothing but what never changes
    window: int = 1  # rows that were put back together
    sets: Mapping[bytes, tuple[int, int]] = field(default_factory=dict)  # swapped nodes, packed -> tried, wrong

    @property
    def wrong(self) -> Ints:
        """Rows, or windows, that the simulator does not confirm."""
        return np.flatnonzero(~(self.error <= self.atol))

    @property
    def moving(self) -> "Audit":
        """The audit of all but the static ones, if there are others; else of all."""
        apart = self._static
        return self if not apart.any() or apart.all() else self._part(~apart)

    @property
    def still(self) -> "Audit":
        """The audit of the static ones, where they are counted apart."""
        apart = self._static
        return self._part(apart & ~apart.all())

    @property
    def confirmed(self) -> float:
        """Share of rows, or of windows, that the simulator confirms; static ones are counted apart."""
        counted = self.moving
        return 1.0 - len(counted.wrong) / max(1, len(counted.error))

    @property
    def exact(self) -> float:
        """Share of rows, or of windows, that come out to the bit; static ones are counted apart."""
        return float(np.mean(self.moving._same))

    @property
    def _same(self) -> Bools:
        return np.asarray(self.error == 0) if self.same is None else self.same

    @property
    def _static(self) -> Bools:
        return np.zeros(len(self.error), np.bool_) if self.static is None else self.static

    def _part(self, rows: Bools) -> "Audit":
        return Audit(self.error[rows], self.atol, self.columns, self._same[rows], window=self.window)

    def __add__(self, other: "Audit") -> "Audit":
        """Join the audits of two lots of rows, so that a file can be audited chunk by chunk: 8 bytes a row are kept."""
        if self.atol != other.atol or self.columns.shape != other.columns.shape:
            raise ValueError("audits add up only if they have the same tolerance and the same columns.")
        error = np.concatenate([self.error, other.error])
        same = np.concatenate([self._same, other._same])
        static = np.concatenate([self._static, other._static])
        both = {key: _sum(self.sets.get(key), other.sets.get(key)) for key in {**self.sets, **other.sets}}
        columns = np.maximum(self.columns, other.columns)
        return Audit(error, self.atol, columns, same, static, self.window, both)

    def by_set(self, factors: Factorization) -> list[tuple[tuple[str, ...], int, int]]:
        """Return the names of each swapped set, how many were put back and how many came out wrong, worst first."""
        found = []
        for key, (tried, wrong) in self.sets.items():
            nodes = np.unpackbits(np.frombuffer(key, np.uint8))[: len(factors.names)]
            found.append((tuple(factors.names[node] for node in np.flatnonzero(nodes)), tried, wrong))
        return sorted(found, key=lambda one: (-one[2], -one[1], one[0]))

    def __str__(self) -> str:
        counted, apart = self.moving, self.still
        noun = "counterfactuals" if self.window == 1 else f"counterfactual windows of {self.window} rows"
        told = f"{self.confirmed:.2%} of {len(counted.error):,} {noun} confirmed, {len(counted.wrong):,} wrong"
        if len(apart.error):
            told += f"; apart from these, {len(apart.error):,} that exchange only what never changes"
            told += f", {len(apart.wrong):,} wrong"
        return told


def check_mask_fn(mask_fn: Mask, data: Transitions, factors: Factorization) -> None:
    """Raise unless ``mask_fn`` is a mask: right shape and dtype, pure, and a function of each row alone.

    Args:
        mask_fn: the mask to check.
        data: some real transitions, a few hundred will do.
        factors: how columns split into factors.
    """
    require_data(data, factors)
    whole = call_mask(mask_fn, data, factors)
    if not np.array_equal(whole, call_mask(mask_fn, data, factors)):
        raise CheckFailed(
            "mask_fn: called twice with the same transitions it gave different masks; it must not be random."
        )
    half = (len(data) + 1) // 2
    parts = [call_mask(mask_fn, part, factors) for part in (data[:half], data[half:]) if len(part)]
    if not np.array_equal(whole, np.concatenate(parts)):
        raise CheckFailed("mask_fn: the mask of a transition depends on the others of its batch; rows must not mix.")


def check_reward_fn(reward_fn: RewardFn, data: Transitions, *, atol: float = 1e-5, rows: Ints | None = None) -> None:
    """Raise unless ``reward_fn`` reproduces the rewards of real transitions.

    Args:
        reward_fn: the function to check.
        data: some real transitions.
        atol: largest difference that still counts as agreement.
        rows: (B,) what to call the rows in the message, such as their numbers in a file.
    """
    made = call_reward(reward_fn, data)
    error = np.abs(made - data.reward)
    if (error > atol).any():
        row = int(error.argmax())
        raise CheckFailed(
            f"reward_fn: it differs from the data in {(error > atol).mean():.1%} of the rows; worst is row "
            f"{row if rows is None else rows[row]:,}: the data says {data.reward[row]:g}, reward_fn says {made[row]:g}."
        )


def check_terminal_fn(terminal_fn: TerminalFn, data: Transitions, *, rows: Ints | None = None) -> None:
    """Raise unless ``terminal_fn`` says of real transitions what the data says; ``rows`` as for the reward."""
    wrong = call_terminal(terminal_fn, data) != data.terminated
    if wrong.any():
        row = int(wrong.argmax())
        raise CheckFailed(
            f"terminal_fn: it differs from the data in {wrong.mean():.1%} of the rows, first in row "
            f"{row if rows is None else rows[row]:,}: the data says {bool(data.terminated[row])}, terminal_fn says "
            f"{not data.terminated[row]}."
        )


def audit(
    made: Counterfactuals | Transitions,
    step: Callable[..., Array],
    *,
    atol: float | Floats | Tolerance = 1e-6,
    progress: Callable[[int], object] | None = None,
) -> Audit:
    """Put transitions back into a simulator and compare with their stored next states.

    Of counterfactual windows, the simulator is started once, at the first row, and must reproduce the
    whole window from its actions (and noise).

    Args:
        made: counterfactuals, or any transitions.
        step: ``(state, action) -> next_state``, batched, or for one row at a time; called as ``(state, action, noise)``
            where the transitions carry noise. If it has ``same(simulated, stored)``, that says which rows agree to the
            bit.
        atol: largest difference in any column that still counts as agreement; or one for each column, (S,), and
            errors are then in proportion to the largest; or a `Tolerance`, which also knows angles.
        progress: called with the number of rows, or windows, put back so far, now and then.
    """
    static: Bools | None = None
    data, window = made if isinstance(made, Transitions) else made.transitions, 1
    if isinstance(made, Counterfactuals):
        window, static = made.window, made.static
    error, same = np.zeros(len(data) // window), np.zeros(len(data) // window, np.bool_)
    columns = np.zeros(data.state.shape[1])
    tolerance = _tolerance(atol, len(columns))
    limit, alike = float(tolerance.columns.max(initial=0.0)), getattr(step, "same", _same)
    for rows in _batches(len(error), progress):
        chunk = data[rows.start * window : rows.stop * window]
        simulated = _simulated(chunk, step, window)
        apart = tolerance.apart(simulated, chunk.next_state)
        apart[np.isnan(apart)] = np.inf
        same[rows] = alike(simulated, chunk.next_state).reshape(-1, window).all(axis=1)
        scaled = _in_proportion(apart, tolerance.columns, limit)
        error[rows] = scaled.reshape(-1, window * len(columns)).max(axis=1, initial=0.0)
        columns = np.maximum(columns, apart.max(axis=0, initial=0.0))
    sets = _sets(made.windows.swapped, error > limit) if isinstance(made, Counterfactuals) else {}
    return Audit(error, limit, columns, same, static, window, sets)


def _tolerance(atol: float | Floats | Tolerance, width: int) -> Tolerance:
    if isinstance(atol, Tolerance):
        return atol
    return Tolerance(np.broadcast_to(np.asarray(atol, np.float64), (width,)), np.full(width, np.inf))


def _batches(count: int, progress: Callable[[int], object] | None) -> Iterator[slice]:
    """Yield runs of rows: long ones, or as many as take a moment if somebody waits for signs of progress."""
    start, size = 0, CHUNK if progress is None else 256
    while start < count:
        begun = time.monotonic()
        yield slice(start, min(count, start + size))
        start += size
        if progress is not None:
            progress(min(start, count))
            size = min(CHUNK, 4 * size) if time.monotonic() - begun < MOMENT else size


def _sets(swapped: Bools, wrong: Bools) -> dict[bytes, tuple[int, int]]:
    """Count rows and wrong rows of each swapped set."""
    keys, which, tried = np.unique(np.packbits(swapped, axis=1), axis=0, return_inverse=True, return_counts=True)
    bad = np.bincount(which.reshape(-1), weights=wrong, minlength=len(keys))
    return {key.tobytes(): (int(rows), int(of)) for key, rows, of in zip(keys, tried, bad, strict=True)}


def _sum(one: tuple[int, int] | None, two: tuple[int, int] | None) -> tuple[int, int]:
    (tried, wrong), (more, worse) = one or (0, 0), two or (0, 0)
    return tried + more, wrong + worse


def _same(simulated: Array, stored: Array) -> Bools:
    return np.asarray((simulated == stored).all(axis=1))


def _in_proportion(apart: Floats, columns: Floats, limit: float) -> Floats:
    """Scale the differences of each column so that one tolerance serves for all."""
    if (columns == limit).all():
        return apart
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(apart == 0, 0.0, apart / columns * (limit or 1.0))


def _simulated(data: Transitions, step: Callable[..., Array], window: int) -> Array:
    """Return the next states by the simulator, started at the first row of each window, (B, S)."""
    after, state = np.empty_like(data.next_state), data.state[::window]
    for number in range(window):
        rows = data[number::window]
        inputs: tuple[Any, ...] = (state, rows.action, *([rows.noise] if rows.noise is not None else []))
        state = next_states(step, *inputs)
        if window == 1:
            return state
        after[number::window] = state
    return after


def check_counterfactuals(
    made: Counterfactuals | Transitions,
    step: Callable[..., Array],
    *,
    atol: float | Floats | Tolerance = 1e-6,
    at_least: float = 1.0,
) -> Audit:
    """Raise unless the simulator confirms counterfactuals; return the audit.

    Args:
        made: counterfactuals, or any transitions.
        step: as for ``audit``.
        atol: largest difference in any column that still counts as agreement.
        at_least: share of rows, or of windows, that must be confirmed; of static ones too, where there are any.
    """
    found = audit(made, step, atol=atol)
    if min(found.confirmed, found.still.confirmed) < at_least:
        row = int(found.error.argmax())
        parents = made.windows[[row]] if isinstance(made, Counterfactuals) else None
        origin = f" (from rows {parents.base[0]} and {parents.donor[0]})" if parents is not None else ""
        noun = "row" if found.window == 1 else "window"
        over = found.columns > _tolerance(atol, len(found.columns)).columns
        worst = [int(column) for column in np.argsort(-found.columns)[:4] if over[column]]
        raise CheckFailed(
            f"{found}, expected at least {at_least:.2%}. Worst is {noun} {row}{origin}, off by {found.error[row]:.3g}; "
            f"columns {listed(worst)} differ most. A missed edge of the mask is the usual reason."
        )
    return found
