"""Which combinations of two factors' values occur: before, and with counterfactuals.

Each factor's values fall into cells. A pair of factors then has as many combinations as the cells of one times the
cells of the other, and coverage is the share of these that some transition shows. Swapping makes new combinations
of values that were there, never new values, so all of what is counted can be reached.
"""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions

MOST_NODES = 64  # factors whose pairs are looked at
MOST_CELLS = 64  # per factor


@dataclass(frozen=True, eq=False)
class Coverage:
    """Share of the combinations of cells that occur, for each pair of K factors; NaN on the diagonal."""

    names: tuple[str, ...]  # (K,)
    before: Floats  # (K, K)
    after: Floats  # (K, K)
    cells: Ints  # (K,) occupied cells of each factor

    def pairs(self) -> tuple[Ints, Ints]:
        """Return both ends of every pair, each once."""
        return np.triu_indices(len(self.names), 1)

    @property
    def means(self) -> tuple[float, float]:
        """Mean coverage before and after, over all pairs; NaN if there is none."""
        pairs = self.pairs()
        return (float(self.before[pairs].mean()), float(self.after[pairs].mean())) if len(pairs[0]) else (np.nan,) * 2


def coverage(real: Transitions, made: Transitions, factors: Factorization) -> Coverage:
    """Measure coverage by real transitions, and by real and made ones together.

    Time O(pairs of factors · rows).
    """
    chosen = range(min(MOST_NODES, factors.n + factors.m))
    codes = [cells(_columns(real, factors, node), _columns(made, factors, node)) for node in chosen]
    sizes = np.array([int(code.max(initial=-1)) + 1 for code in codes])
    before, after = np.full((2, len(codes), len(codes)), np.nan)
    for i in chosen:
        for j in range(i):
            both, total = codes[i] * sizes[j] + codes[j], int(sizes[i] * sizes[j])
            for values, out in ((both[: len(real)], before), (both, after)):
                out[i, j] = out[j, i] = np.count_nonzero(np.bincount(values, minlength=total)) / max(1, total)
    return Coverage(factors.names[: len(codes)], before, after, sizes)


def cells(real: Array, made: Array) -> Ints:
    """Number the cell of each row, real ones first, (B,); every number from 0 to the largest occurs.

    The cells of a column are bounded by quantiles of the real values: about the square root of the number of rows
    for a single column, and the fourth root for each of two, so that a pair of factors has as many combinations as
    there are rows.

    Args:
        real: (T, 1) or (T, 2) values of a factor.
        made: the same of other transitions.
    """
    values, width = np.concatenate([real, made]), real.shape[1]
    bins = int(np.clip(round(len(real) ** (0.5 / width)), 2, round(MOST_CELLS ** (1 / width))))
    code = np.zeros(len(values), np.int64)
    for k in range(width):
        bounds = np.unique(np.quantile(real[:, k], np.arange(1, bins) / bins))
        code = code * bins + np.searchsorted(bounds, values[:, k], side="right")
    return np.asarray(np.unique(code, return_inverse=True)[1])


def _columns(data: Transitions, factors: Factorization, node: int) -> Array:
    """Return up to two columns of a factor: its position, or else the first ones, (B, 1 or 2) float64."""
    name = factors.names[node]
    values = data.state if node < factors.n else data.action
    own = factors.positions[name].columns if name in factors.positions else {**factors.state, **factors.action}[name]
    return values[:, list(own[:2])].astype(np.float64)
