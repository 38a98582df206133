"""The counterfactual half of a replay buffer."""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from counterpoint.core.arrays import Array, Ints
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem
from counterpoint.replay.mixing import Mixing
from counterpoint.replay.ring import Ring

FEW = 100  # real rows below which a round that makes nothing is no surprise
NOT_ROWS = ("counts", "measured", "generator")  # names of stored arrays that are not columns


class MakesRows(Protocol):
    """Anything that makes rows from real ones: an ``Augmenter``, ``Rollouts``, or a function of your own."""

    def __call__(self, data: Transitions, *, rng: np.random.Generator) -> Counterfactuals | Transitions:
        """Return rows made of ``data``."""


class CounterfactualRows:
    """Counterfactual rows, the generator that makes and draws them, and figures about them.

    Attributes:
        ring: the rows.
        added: how many real rows there have been.
        rounds: how many times counterfactuals were made.
        seconds: how long that took in total.
        acceptance: share of proposals accepted in the last round.
        share: share of counterfactual rows in the last batch.
    """

    def __init__(self, augmenter: MakesRows, mixing: Mixing) -> None:
        self.augmenter, self.mixing = augmenter, mixing
        self.ring, self.rng = Ring(mixing.capacity), np.random.default_rng(mixing.seed)
        self.added = self.rounds = 0
        self.seconds, self.acceptance, self.share = 0.0, 0.0, 0.0
        self._warned = False

    def emptied(self) -> "CounterfactualRows":
        """Return the same without rows, as it was at the beginning."""
        return CounterfactualRows(self.augmenter, self.mixing)

    def grow(self, added: int, real: Callable[[], int], take: Callable[[Ints | slice], Transitions]) -> None:
        """Count real rows that were added and, if it is time, make counterfactuals of them.

        Args:
            added: how many were added.
            real: tells how many real rows there are to make counterfactuals of; asked if it is time.
            take: gives some of them by number.
        """
        due = self.mixing.rounds(self.added, added)
        self.added += added
        for _ in range(due):
            start, rows, most = time.perf_counter(), real(), self.mixing.sources
            if rows:
                some = most is not None and most < rows
                self._round(take(self.rng.choice(rows, most, replace=False, shuffle=False) if some else slice(None)))
            self.seconds += time.perf_counter() - start

    def _round(self, data: Transitions) -> None:
        made = self.augmenter(data, rng=self.rng)
        rows = made.transitions if isinstance(made, Counterfactuals) else made
        self.acceptance = made.funnel.acceptance if isinstance(made, Counterfactuals) else 1.0
        self.rounds += 1
        if len(rows):
            self.ring.extend(rows)
        elif not len(self.ring) and len(data) >= FEW and not self._warned:
            self._warned = True
            warnings.warn(
                f"not a single counterfactual could be made of {len(data)} transitions, so batches stay real. Perhaps "
                "the mask says that everything depends on everything: raise its threshold or shrink its radius.",
                stacklevel=2,
            )

    def draw(self, batch_size: int, real: int) -> Transitions | None:
        """Return the counterfactual part of a batch, given that there are ``real`` real rows; None if it is empty.

        Rows are drawn with replacement.
        """
        count = self.mixing.counterfactuals(batch_size, real, len(self.ring))
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
        """Go back to what ``arrays`` gave; raise ``FileProblem``, and stay as it was, if they contradict themselves."""
        capacity, position, added, rounds = (int(count) for count in arrays["counts"])
        if capacity != self.mixing.capacity:
            raise FileProblem(
                f"it has room for {capacity} counterfactual rows, this buffer has room for {self.mixing.capacity}."
            )
        rows = {name: array for name, array in arrays.items() if name not in NOT_ROWS}
        size = len(next(iter(rows.values()))) if rows else 0
        seconds, acceptance = (float(value) for value in arrays["measured"])
        places = 0 <= position < capacity if size == capacity else position == size < capacity
        if not places or min(added, rounds) < 0 or not np.isfinite([seconds, acceptance]).all():
            raise FileProblem(f"its {size:,} counterfactual rows, place {position} and counts do not fit together.")
        ring = Ring(capacity)
        if rows:
            ring.extend(Transitions(**rows))
            ring.position = position  # rows are stored in their places, not by age
        generator = json.loads(str(arrays["generator"]))
        before = self.rng.bit_generator.state
        try:
            self.rng.bit_generator.state = generator
        except Exception:
            self.rng.bit_generator.state = before
            raise
        self.ring, self.added, self.rounds = ring, added, rounds
        self.seconds, self.acceptance = seconds, acceptance
