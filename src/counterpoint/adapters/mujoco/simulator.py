"""A MuJoCo environment as the judge of counterfactuals: put back, stepped, compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.adapters.mujoco.recording import collect
from counterpoint.adapters.mujoco.workers import Bench
from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.progress import Progress

ROUNDING = 1e-9  # columns that are computed from others may differ by this and still count as the same bits
NEAR = 1e-6


class ReplayFailed(ValueError):
    """The simulator does not repeat real steps, so it cannot judge counterfactuals."""


@dataclass(frozen=True)
class Replay:
    """How well a simulator repeats real steps."""

    rows: int
    same: float  # share that comes out to the bit
    near: float  # share that comes out within 1e-6
    worst: float  # largest difference in any column
    column: int  # where that is

    def __str__(self) -> str:
        return f"{self.same:.1%} of {self.rows:,} real steps come out to the bit, {self.near:.1%} within 1e-6"


class Simulator:
    """Steps an environment from recorded or swapped rows; `audit` and `check_counterfactuals` take it as ``step``.

    Before its first verdict it repeats real steps, and it refuses to judge if they do not come out as recorded.

    Args:
        env: the environment, or a function that makes it. Its state changes: reset it before you use it again.
        real: real transitions to repeat first; without any, it plays some steps of its own.
        sample: how many real steps to repeat.
        at_least: share of them that must come out to the bit (within 1e-6, if there is no hidden state).
        workers: processes; one per core by default. Few rows need none.
        progress: called with the number of rows done.

    Example:
        >>> import gymnasium
        >>> import numpy as np
        >>> import counterpoint.worlds.fetch  # registers the environment
        >>> from counterpoint.adapters.mujoco import collect
        >>> from counterpoint.checks import audit
        >>> env = gymnasium.make("counterpoint/FetchPushDisentangled-v0")
        >>> data = collect(env, None, 50, rng=np.random.default_rng(0))
        >>> print(audit(data, Simulator(env)))
        100.00% of 50 counterfactuals confirmed, 0 wrong
    """

    def __init__(
        self,
        env: Any,
        *,
        real: Transitions | None = None,
        sample: int = 100,
        at_least: float = 0.99,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        if not 0 <= at_least <= 1:
            raise ValueError(f"at_least: expected a share between 0 and 1, got {at_least}.")
        self.bench, self.real, self.sample, self.at_least = Bench(env, workers), real, sample, at_least
        self.progress, self.replayed = progress, None if at_least else Replay(0, 0.0, 0.0, 0.0, 0)

    @property
    def factors(self) -> Factorization:
        """The factors of the environment, as `factorization` proposes them."""
        return self.bench.inside.factors

    def same(self, simulated: Floats, stored: Floats) -> Bools:
        """Return which rows agree to the bit, (B,); columns that are computed from others, up to rounding."""
        exact = np.zeros(stored.shape[1], np.bool_)
        exact[self.bench.inside.shown] = True
        return np.asarray((np.abs(simulated - stored) <= np.where(exact, 0.0, ROUNDING)).all(axis=1))

    def tolerance(self, by_factor: Mapping[str, float], default: float = NEAR) -> Floats:
        """Return the difference allowed in each column, (S,), from one for each factor, for ``audit(atol=...)``."""
        limits = np.full(self.bench.inside.layout.width, default)
        for name, limit in by_factor.items():
            self.factors.nodes(name)
            limits[list(self.factors.state.get(name, ()))] = limit
        return limits

    def replay(self, real: Transitions | None = None) -> Replay:
        """Repeat real steps, by default some of the simulator's own, and say how many come out as they were.

        They are repeated out of order: in order, an environment could go through states of its own once more.
        """
        if real is None:
            real = collect(self.bench.env, None, min(self.sample, 50), rng=np.random.default_rng(0))
        rows = np.unique(np.linspace(0, len(real) - 1, min(self.sample, len(real))).astype(np.int64))
        part = real[np.random.default_rng(0).permutation(rows)]
        simulated = self._step(part.state, part.action, part.noise)
        same = self.same(simulated, part.next_state)
        apart = np.nan_to_num(np.abs(simulated - part.next_state), nan=np.inf)
        column = int(apart.max(axis=0).argmax())
        near = (apart <= NEAR).all(axis=1)
        return Replay(len(part), float(same.mean()), float(near.mean()), float(apart.max()), column)

    def __call__(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next states, (B, S).

        Raises:
            ReplayFailed: if real steps do not come out as recorded.
            ValueError: if the rows are not from this environment.
        """
        self._require_replay(noise is not None)
        return self._step(state, action, noise, self.progress)

    def close(self) -> None:
        """End the worker processes."""
        self.bench.close()

    def _step(self, state: Floats, action: Floats, noise: Floats | None, progress: Progress | None = None) -> Floats:
        width = self.bench.inside.layout.width
        if state.shape[1] != width:
            raise ValueError(f"state: expected the {width} columns that collect records, got {state.shape[1]}.")
        return self.bench.run(state, action, noise, watch=False, progress=progress).next_state

    def _require_replay(self, hidden: bool) -> None:
        """Repeat real steps, once."""
        if self.replayed is None:
            self.replayed = self.replay(self.real)
        share = self.replayed.same if hidden else self.replayed.near
        if share < self.at_least:
            raise ReplayFailed(
                f"the simulator does not repeat real steps: {self.replayed}, expected {self.at_least:.0%}; column "
                f"{self.replayed.column} is off by up to {self.replayed.worst:.3g}. A verdict on counterfactuals would "
                "mean nothing. Either the environment reads kinematics that are one substep old (record with "
                "Recorder(env, fresh=True), as collect does), or it adds noise to what it shows (switch it off), or it "
                "keeps state of its own outside of MuJoCo."
            )
