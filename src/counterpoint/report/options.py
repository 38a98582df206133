"""What a report may be given beyond data, counterfactuals, factors and mask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

import numpy as np

from counterpoint.checks import Audit
from counterpoint.core.arrays import Array, Bools, Floats, Ints, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import Uniform, UnionPolicy
from counterpoint.core.protocols import DeriveFn


class DrawFn(Protocol):
    """A picture of one transition: ``(state (S,), action (A,), mask (N, n)) -> uint8 (H, W, 3)``."""

    def __call__(self, state: Floats, action: Floats, mask: Bools, /) -> Array:  # noqa: D102
        ...


@dataclass(frozen=True, eq=False)
class Calibration:
    """How far a learned mask's scores can be taken as probabilities, measured where the true edges are known.

    Attributes:
        predicted: (K,) mean score of the entries in each of K bins.
        observed: (K,) share of them that are edges.
        entries: (K,) how many entries fell into each bin.
    """

    predicted: Floats
    observed: Floats
    entries: Ints

    def __post_init__(self) -> None:
        for name in ("predicted", "observed", "entries"):
            object.__setattr__(self, name, np.asarray(getattr(self, name)))
        shapes = sorted({self.predicted.shape, self.observed.shape, self.entries.shape})
        if len(shapes) > 1 or len(shapes[0]) != 1 or not shapes[0][0]:
            raise ValueError(f"calibration: expected three arrays of one length, 1 or more, got shapes {shapes}.")
        both = np.concatenate([self.predicted, self.observed])
        if not ((both >= 0) & (both <= 1)).all():
            raise ValueError("calibration: expected scores and shares between 0 and 1.")

    @property
    def error(self) -> float:
        """Mean difference between score and share, weighted by entries: the expected calibration error."""
        apart = np.abs(self.predicted - self.observed)
        return float(apart @ self.entries / max(1, self.entries.sum()))


class Extras(TypedDict, total=False):
    """The optional parts of a report, by keyword."""

    audit: Audit | None  # what a simulator said of the counterfactuals
    draw: DrawFn | None  # draws a transition for the gallery
    calibration: Calibration | None  # of a learned mask
    about: Mapping[str, object]  # seed, command, date: whatever should be on record
    labels: Mapping[str, Sequence[str]]  # factor -> a label for each of its columns, with units
    policy: UnionPolicy  # the one that the counterfactuals were made with
    derive: DeriveFn | None  # recomputes derived columns, if there are any


@dataclass(frozen=True)
class Options:
    """The defaults of ``Extras``, and their checks."""

    audit: Audit | None = None
    draw: DrawFn | None = None
    calibration: Calibration | None = None
    about: Mapping[str, object] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    policy: UnionPolicy = field(default_factory=Uniform)
    derive: DeriveFn | None = None

    def __post_init__(self) -> None:
        for name, kind in (("audit", Audit), ("calibration", Calibration)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name}: expected what counterpoint calls {kind.__name__}, got {value!r}.")
        if self.draw is not None and not callable(self.draw):
            raise TypeError(f"draw: expected a function (state, action, mask) -> picture, got {self.draw!r}.")

    def require_labels(self, factors: Factorization) -> None:
        """Raise unless each labelled factor exists and has a label for each of its columns."""
        owned = {**factors.state, **factors.action}
        for name, labels in self.labels.items():
            if name not in owned:
                raise ValueError(f"labels: no factor is called {name!r}; they are {listed(factors.names)}.")
            if isinstance(labels, str) or len(labels) != len(owned[name]):
                raise ValueError(
                    f"labels: {name!r} has {len(owned[name])} columns, so it needs a sequence of as many labels, "
                    f"got {labels!r}."
                )
