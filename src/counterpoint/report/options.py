"""What a report may be given beyond data, counterfactuals and the augmenter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, listed
from counterpoint.core.factors import Factorization


class DrawFn(Protocol):
    """A picture of one transition: ``(state (S,), action (A,), mask (N, n)) -> uint8 (H, W, 3)``.

    One with the attribute ``uses_noise = True`` gets the noise columns (U,) last, where there are any.
    """

    def __call__(self, state: Floats, action: Floats, mask: Bools, /) -> Array:  # noqa: D102
        ...


@dataclass(frozen=True, eq=False)
class Reliability:
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
            raise ValueError(f"reliability: expected three arrays of one length, 1 or more, got shapes {shapes}.")
        both = np.concatenate([self.predicted, self.observed])
        if not ((both >= 0) & (both <= 1)).all():
            raise ValueError("reliability: expected scores and shares between 0 and 1.")

    @property
    def error(self) -> float:
        """Mean difference between score and share, weighted by entries: the expected calibration error."""
        apart = np.abs(self.predicted - self.observed)
        return float(apart @ self.entries / max(1, self.entries.sum()))


@dataclass(frozen=True)
class Judgement:
    """What recordings alone say of the mask, as `counterpoint.learn.calibrate` finds it."""

    fine: bool
    words: str


@dataclass(frozen=True)
class Extras:
    """The optional parts of a report.

    Attributes:
        draw: draws a transition for the gallery.
        reliability: how far the scores of a learned mask can be taken as probabilities.
        about: seed, command, date: whatever should be on record.
        labels: factor -> a label for each of its columns, with units.
        judgement: what recordings alone say of the mask.
        force: replace a page that exists.
    """

    draw: DrawFn | None = None
    reliability: Reliability | None = None
    about: Mapping[str, object] = field(default_factory=dict)
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    judgement: Judgement | None = None
    force: bool = True

    def __post_init__(self) -> None:
        if self.reliability is not None and not isinstance(self.reliability, Reliability):
            raise TypeError(f"reliability: expected counterpoint.report.Reliability, got {self.reliability!r}.")
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
