"""Distributions of single quantities, before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions

MOST_VALUES = 12  # different values up to which each has a bar of its own
BINS = 30


@dataclass(frozen=True, eq=False)
class FiveNumbers:
    """A quantity in five numbers; NaN where there are no values."""

    mean: float
    deviation: float
    low: float
    median: float
    high: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """One quantity in real transitions and in counterfactual ones."""

    label: str
    discrete: bool  # whether bars stand for single values instead of ranges
    bounds: Floats  # (K,) the values, or (K + 1,) the bounds of the ranges
    before: Floats  # (K,) share of the real transitions in each bar
    after: Floats  # (K,) share of the counterfactuals
    gap: float  # largest difference between the two distribution functions, 0 to 1
    real: FiveNumbers
    made: FiveNumbers


def compare(label: str, real: Array, made: Array) -> Comparison:
    """Compare the values (T,) of a quantity in real transitions with those (B,) in counterfactuals."""
    real, made = real.astype(np.float64), made.astype(np.float64)
    both = np.concatenate([real, made])
    values = np.unique(both)
    discrete = len(values) <= MOST_VALUES
    bounds = values if discrete else np.linspace(*_range(both), BINS + 1)
    before, after = (_shares(part, bounds, discrete) for part in (real, made))
    return Comparison(
        label=label,
        discrete=discrete,
        bounds=bounds,
        before=before,
        after=after,
        gap=gap(real, made),
        real=summary(real),
        made=summary(made),
    )


def gap(first: Array, second: Array) -> float:
    """Return the largest difference between two empirical distribution functions (Kolmogorov and Smirnov's).

    >>> gap(np.array([0.0, 1.0]), np.array([1.0, 1.0])), gap(np.array([0.0]), np.array([]))
    (0.5, 0.0)

    Time O(B log B).
    """
    if not len(first) or not len(second):
        return 0.0
    places = np.concatenate([first, second])
    below = (np.searchsorted(np.sort(part), places, side="right") / len(part) for part in (first, second))
    one, two = below
    return float(np.abs(one - two).max())


def noise_gap(first: int, second: int) -> float:
    """Return the gap that two samples of one distribution exceed in about one case of a hundred."""
    return 1.63 * float(np.sqrt(1 / max(1, first) + 1 / max(1, second)))


def summary(values: Array) -> FiveNumbers:
    """Return mean, standard deviation, minimum, median and maximum; what is too large becomes infinite."""
    if not len(values):
        return FiveNumbers(*[float("nan")] * 5)
    with np.errstate(over="ignore", invalid="ignore"):
        return FiveNumbers(*(float(f(values)) for f in (np.mean, np.std, np.min, np.median, np.max)))


def features(
    real: Transitions, made: Transitions, factors: Factorization, labels: Mapping[str, Sequence[str]]
) -> list[Comparison]:
    """Compare every column of state and action, those that moved most first."""
    names = column_names(factors, labels)
    columns = [(name, real.state[:, k], made.state[:, k]) for k, name in enumerate(names[: factors.state_width])]
    columns += [(name, real.action[:, k], made.action[:, k]) for k, name in enumerate(names[factors.state_width :])]
    return sorted((compare(*column) for column in columns), key=lambda found: -found.gap)


def column_names(factors: Factorization, labels: Mapping[str, Sequence[str]]) -> list[str]:
    """Name every column of state, then of action: "cup[0] (column 3)", or "cup x (column 3)" with a label."""
    names = [*factors.columns["state"], *factors.columns["action"]]
    for shift, owned in ((0, factors.state), (factors.state_width, factors.action)):
        for factor, columns in owned.items():
            for label, column in zip(labels.get(factor, ()), columns, strict=False):
                names[shift + column] = f"{factor} {label} (column {column})"
    return names


def _range(values: Array) -> tuple[float, float]:
    """Return where to draw: everything, unless a few outliers would squeeze the rest into one bar."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = (float(q) for q in np.quantile(values, [0.005, 0.995]))
    return (inner_low, inner_high) if high - low > 4 * (inner_high - inner_low) > 0 else (low, high)


def _shares(values: Array, bounds: Array, discrete: bool) -> Floats:
    """Return the share of the values in each bar; those beyond the last bound count in the outer bars."""
    if discrete:
        counts = np.bincount(np.searchsorted(bounds, values), minlength=len(bounds))
    else:
        counts = np.histogram(np.clip(values, bounds[0], bounds[-1]), bounds)[0]
    return np.asarray(counts / max(1, len(values)))
