"""Actions as the environment gets them, and as agents store them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array


@dataclass(frozen=True, eq=False)
class ActionScale:
    """Actions as the environment gets them, and as agents store them: scaled to [-1, 1].

    Whole numbers stay as they are, and so do columns without bounds.

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
        with np.errstate(invalid="ignore"):
            return self._bounded(stored, self.low + (0.5 * (stored + 1.0) * (self.high - self.low)))

    def stored(self, real: Array) -> Array:
        """Return actions as they are stored."""
        if self.dtype.kind != "f":
            return real
        with np.errstate(invalid="ignore"):
            return self._bounded(real, 2.0 * ((real - self.low) / (self.high - self.low)) - 1.0)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw uniform actions as the environment gets them, (B, A)."""
        shape = (size, len(self.low))
        if self.dtype.kind != "f":
            return rng.integers(self.low, self.high, shape, endpoint=True).astype(self.dtype)
        drawn: Array = rng.uniform(self.low, self.high, shape).astype(self.dtype)
        return np.clip(drawn, self.low, self.high)

    def _bounded(self, given: Array, scaled: Array) -> Array:
        """Return scaled actions, but as they were given where their bounds are infinite."""
        finite = np.isfinite(self.low) & np.isfinite(self.high)
        return np.asarray(scaled if finite.all() else np.where(finite, scaled, given), self.dtype)
