"""Made rows beside real ones: a ring that holds them, when to make more, and how many to draw.

Nothing here knows a library of agents. An adapter keeps real transitions where its library wants them,
tells ``MadeRows`` about each one that is added, and asks it for the other part of every batch. How rows are
made is a function ``(data, rng) -> Round``: ``Recombine`` (CoDA) and ``Imagine`` (Dyna) are two.

Shape letters are those of ``counterpoint.core.arrays``.
"""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.augment import Augmenter, require_count
from counterpoint.core.protocols import RewardFn, TerminalFn, call_reward, call_terminal
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem

ForwardModel: TypeAlias = Callable[[Floats, Floats], Array]  # (state (B, S), action (B, A)) -> next_state (B, S)
DrawActions: TypeAlias = Callable[[int, np.random.Generator], Array]  # (B, rng) -> action (B, A)

FEW = 100  # real rows below which a round that makes nothing is no surprise
UNKEPT = ("episode", "step")  # a made row is part of no episode


@dataclass(frozen=True)
class Mixing:
    """When rows are made, how many are kept, and how much of a batch they may be.

    Attributes:
        every: make rows once for every so many real ones.
        capacity: how many made rows to keep; the oldest give way.
        max_fraction: largest share of made rows in a batch. At 1 a batch is like the union of both kinds.
        seed: of the one generator that makes rows and draws them.
    """

    every: int = 1000
    capacity: int = 4_000_000
    max_fraction: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("every", self.every)
        require_count("capacity", self.capacity)
        if not 0 <= self.max_fraction <= 1:
            raise ValueError(f"max_fraction: expected a share between 0 and 1, got {self.max_fraction!r}.")

    def rounds(self, before: int, added: int) -> int:
        """Return how many rounds are due when ``added`` real rows follow the first ``before`` ones.

        With ``every=1000``, 8 rows after 996 bring one round, and 8 after 1000 none.
        """
        return (before + added) // self.every - before // self.every

    def made_rows(self, batch_size: int, real: int, made: int) -> int:
        """Return how many of a batch are made rows, if there are so many real and made ones.

        As in the original code, the real share is rounded down. 1000 of 1000 real and 7000 made rows are
        125 real and 875 made ones; with ``max_fraction=0.5`` they are 500 and 500.
        """
        if not made:
            return 0
        proportional = batch_size - batch_size * real // (real + made)
        return min(proportional, int(self.max_fraction * batch_size))


@dataclass(frozen=True, eq=False)
class ActionScale:
    """Actions as the environment gets them, and as agents store them: scaled to [-1, 1], unless they are whole numbers.

    Attributes:
        low, high: (A,) the lowest and the highest action.
        dtype: of stored actions.
    """

    low: Array
    high: Array
    dtype: np.dtype[Any]

    def real(self, stored: Array) -> Array:
        """Return actions as the environment got them; the same formula as in Stable-Baselines3, the same bits."""
        if self.dtype.kind != "f":
            return stored
        return np.asarray(self.low + (0.5 * (stored + 1.0) * (self.high - self.low)), self.dtype)

    def stored(self, real: Array) -> Array:
        """Return actions as they are stored."""
        if self.dtype.kind != "f":
            return real
        return np.asarray(2.0 * ((real - self.low) / (self.high - self.low)) - 1.0, self.dtype)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw uniform actions as the environment gets them, (B, A)."""
        shape = (size, len(self.low))
        if self.dtype.kind != "f":
            return rng.integers(self.low, self.high, shape, endpoint=True).astype(self.dtype)
        drawn: Array = rng.uniform(self.low, self.high, shape).astype(self.dtype)
        return np.clip(drawn, self.low, self.high)


class Ring:
    """The newest transitions, up to a capacity. Memory grows as it fills, to twice what it holds at most."""

    def __init__(self, capacity: int) -> None:
        require_count("capacity", capacity)
        self.capacity, self.size, self.position = int(capacity), 0, 0
        self._rows: Transitions | None = None

    def __len__(self) -> int:
        return self.size

    def extend(self, rows: Transitions) -> None:
        """Append rows; the first ones to be appended decide columns and dtypes."""
        rows = rows[-self.capacity :]
        kept = self._room(rows)
        index = (self.position + np.arange(len(rows))) % self.capacity
        for name, column in kept.columns():
            column[index] = getattr(rows, name)
        self.size = min(self.size + len(rows), self.capacity)
        self.position = (self.position + len(rows)) % self.capacity

    def take(self, index: Ints) -> Transitions:
        """Return the rows at these places, in no order of age."""
        return self._held()[index]

    def transitions(self) -> Transitions:
        """Return a copy of all rows, oldest first."""
        oldest = self.position if self.size == self.capacity else 0
        return self.take((oldest + np.arange(self.size)) % self.capacity)

    def _held(self) -> Transitions:
        if self._rows is None:
            raise ValueError("the ring holds no rows yet; extend it first.")
        return self._rows

    def _room(self, rows: Transitions) -> Transitions:
        """Return the columns, long enough for ``rows`` more."""
        needed = min(self.capacity, self.size + len(rows))
        if self._rows is None or len(self._rows) < needed:
            like = self._rows or rows.replace(**dict.fromkeys(UNKEPT))
            grown = Transitions.empty_like(like, min(self.capacity, max(needed, 2 * self.size)))
            for name, column in grown.columns() if self._rows else ():
                column[: self.size] = getattr(self._rows, name)[: self.size]
            self._rows = grown
        return self._rows


@dataclass(frozen=True)
class Round:
    """Rows that were made at one time."""

    rows: Transitions
    acceptance: float = 1.0  # share of proposals that were accepted


@dataclass(frozen=True, eq=False)
class Recombine:
    """Make counterfactual rows, by CoDA."""

    augmenter: Augmenter

    def __call__(self, data: Transitions, rng: np.random.Generator) -> Round:
        """Look at as many pairs of ``data`` as the augmenter says and return what is accepted."""
        made = self.augmenter(data, rng=rng)
        return Round(made.transitions, made.funnel.acceptance)


@dataclass(frozen=True, eq=False)
class Imagine:
    """Make rows with a forward model, by short rollouts of random actions from real states (Dyna).

    Attributes:
        forward_model: ``(state, action) -> next_state (B, S)``.
        draw_actions: ``(B, rng) -> action (B, A)``.
        reward_fn: ``(state, action, next_state) -> float (B,)``.
        terminal_fn: ``(state, action, next_state) -> bool (B,)``; a rollout ends there.
        starts: how many rollouts a round has.
        steps: how many steps a rollout has.
    """

    forward_model: ForwardModel
    draw_actions: DrawActions
    reward_fn: RewardFn
    terminal_fn: TerminalFn | None = None
    starts: int = 1500
    steps: int = 5

    def __post_init__(self) -> None:
        require_count("starts", self.starts)
        require_count("steps", self.steps)
        for name in ("forward_model", "reward_fn"):
            if not callable(getattr(self, name)):
                raise TypeError(f"{name}: expected a function, got {getattr(self, name)!r}.")

    def __call__(self, data: Transitions, rng: np.random.Generator) -> Round:
        """Roll out from random states of ``data`` and return all rows, first steps first."""
        state = data.state[rng.integers(len(data), size=self.starts)]
        parts: list[Transitions] = []
        while len(state) and len(parts) < self.steps:
            row = self._step(state, self.draw_actions(len(state), rng), data.reward.dtype)
            parts.append(row)
            state = row.next_state[~row.terminated]
        return Round(Transitions.concat(*parts))

    def _step(self, state: Floats, action: Array, dtype: np.dtype[np.floating]) -> Transitions:
        after = np.asarray(self.forward_model(state, action))
        if after.shape != state.shape:
            raise ValueError(f"forward_model: expected next states of shape {state.shape}, got {after.shape}.")
        if not np.isfinite(after).all():
            raise ValueError("forward_model: it predicts NaN or infinite states. Shorten the rollouts, or clip them.")
        never = np.zeros(len(state), np.bool_)
        row = Transitions.trusted(
            state=state, action=action, next_state=after.astype(state.dtype, copy=False), terminated=never
        )
        ends = never if self.terminal_fn is None else call_terminal(self.terminal_fn, row)
        return row.replace(reward=call_reward(self.reward_fn, row).astype(dtype), terminated=ends)


class MadeRows:
    """The made half of a replay buffer: rows, a generator, and figures about them.

    Attributes:
        ring: the rows.
        added: how many real rows there have been.
        rounds: how many times rows were made.
        seconds: how long that took, all in all.
        acceptance: share of proposals accepted in the last round.
        share: share of made rows in the last batch.
    """

    def __init__(self, make: Callable[[Transitions, np.random.Generator], Round], mixing: Mixing) -> None:
        self.make, self.mixing = make, mixing
        self.ring, self.rng = Ring(mixing.capacity), np.random.default_rng(mixing.seed)
        self.added = self.rounds = 0
        self.seconds, self.acceptance, self.share = 0.0, 0.0, 0.0
        self._warned = False

    def grow(self, added: int, data: Callable[[], Transitions]) -> None:
        """Count real rows that were added and, if it is time, make rows from ``data()``, all real ones."""
        due = self.mixing.rounds(self.added, added)
        self.added += added
        for _ in range(due):
            start = time.perf_counter()
            self._round(data())
            self.seconds += time.perf_counter() - start

    def _round(self, data: Transitions) -> None:
        made = self.make(data, self.rng)
        self.rounds, self.acceptance = self.rounds + 1, made.acceptance
        if len(made.rows):
            self.ring.extend(made.rows)
        elif not len(self.ring) and len(data) >= FEW and not self._warned:
            self._warned = True
            warnings.warn(
                f"{len(data)} transitions could not be recombined into a single new one, so batches stay real. Perhaps "
                "the mask says that all depends on all: raise its threshold or shrink its radius.",
                stacklevel=2,
            )

    def draw(self, batch_size: int, real: int) -> Transitions | None:
        """Return the made part of a batch, drawn with replacement, if there are ``real`` real rows; None if empty."""
        count = self.mixing.made_rows(batch_size, real, len(self.ring))
        self.share = count / batch_size
        return self.ring.take(self.rng.integers(len(self.ring), size=count)) if count else None

    def arrays(self) -> dict[str, Array]:
        """Return all that changes over time as plain arrays by name, to be stored."""
        ring = self.ring
        counts = np.array([ring.capacity, ring.position, self.added, self.rounds], np.int64)
        rows = dict(ring.take(np.arange(len(ring))).columns()) if len(ring) else {}
        measured = np.array([self.seconds, self.acceptance])
        generator = np.array(json.dumps(self.rng.bit_generator.state))
        return {**rows, "counts": counts, "measured": measured, "generator": generator}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Go back to what ``arrays`` gave."""
        capacity, position, added, rounds = (int(count) for count in arrays["counts"])
        if capacity != self.mixing.capacity:
            raise FileProblem(f"its made rows have room for {capacity}, this buffer's for {self.mixing.capacity}.")
        rows = {name: array for name, array in arrays.items() if name not in ("counts", "measured", "generator")}
        self.ring = Ring(capacity)
        if rows:
            self.ring.extend(Transitions(**rows))
            self.ring.position = position  # rows are stored in their places, not by age
        self.added, self.rounds = added, rounds
        self.seconds, self.acceptance = (float(value) for value in arrays["measured"])
        self.rng.bit_generator.state = json.loads(str(arrays["generator"]))
