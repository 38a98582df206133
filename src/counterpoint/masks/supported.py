"""No evidence, no counterfactual: pairs of factors in a situation that the recordings do not have are tied together."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import Mask, declared
from counterpoint.core.require import require_data
from counterpoint.core.transitions import Transitions
from counterpoint.masks.pairs import FactorPairs, Kind, beside, tied
from counterpoint.masks.regions import Regions

_MOST = 30_000  # real pairs of a kind that are looked at
_GLUED = 4  # times as many glued ones
_EXPECTED = 12  # real pairs that a region must be expected to hold: if it holds none, that is not by chance
_PER_EPISODE = 8  # rows of an episode that count


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Where the recordings hold pairs of one kind, and where they hold none."""

    kind: Kind
    regions: Regions
    empty: Bools  # (K,) nodes without evidence
    real: Floats  # (K,) real pairs, as a share of those that independent factors would give


class Supported:
    """A mask with an edge, both ways, between factors that the recordings never show like this.

    A counterfactual puts factors into configurations. Where no recording has one like it, nobody can know
    whether the two would have interacted, so they stay together: such proposals are rejected, and the
    funnel counts them as "no evidence".

    For every pair of a factor and another one, or an action, the real pairs are held against glued ones, whose
    halves come from different rows. A tree looks for regions where the real ones are missing: there, fewer
    than ``ratio`` of the pairs were recorded that independent factors would have given. Whatever makes
    them missing (bodies that cannot overlap, a policy that keeps away, a block that never hangs in the air), a
    swap would go where no data is. Factors of one type are looked at together.

    Args:
        mask: any mask.
        data: the recordings.
        factors: how columns split into factors.
        ratio: share of the expected pairs below which there is no evidence.
        seed: of the gluing.

    Example:
        >>> import numpy as np
        >>> from counterpoint import Factorization, Transitions
        >>> from counterpoint.masks import Constant, Supported
        >>> factors = Factorization.blocks(state={"hand": 1, "cup": 1}, positions={"hand": (0,), "cup": (1,)})
        >>> x = np.random.default_rng(0).random((4000, 2))
        >>> x = x[np.abs(x[:, 0] - x[:, 1]) > 0.2]  # they never meet
        >>> data = Transitions(x, np.zeros((len(x), 0)), np.zeros(len(x)), x, np.zeros(len(x), bool))
        >>> mask = Supported(Constant.identity(factors), data, factors)
        >>> mask(np.array([[0.1, 0.9], [0.5, 0.5]]), np.zeros((2, 0))).astype(int)
        array([[[1, 0],
                [0, 1]],
        <BLANKLINE>
               [[1, 1],
                [1, 1]]])

    Cost: a tree of some ten questions for each pair and row; several 10,000 rows per second.
    """

    def __init__(
        self, mask: Mask, data: Transitions, factors: Factorization, *, ratio: float = 0.05, seed: int = 0
    ) -> None:
        if not callable(mask):
            raise TypeError(f"mask: expected a function (state, action) -> bool (B, N, n), got {mask!r}.")
        if not 0 < ratio < 1:
            raise ValueError(f"ratio: expected a share between 0 and 1, got {ratio!r}.")
        require_data(data, factors)
        if len(data) < 10 * _EXPECTED:
            raise ValueError(f"data: expected {10 * _EXPECTED} transitions or more to tell gaps, got {len(data)}.")
        self.mask, self.factors, self.ratio = mask, factors, ratio
        self.pairs = FactorPairs(factors, both_ways=False)
        rng = np.random.default_rng(seed)
        rows = _thinned(data)
        self.evidence = [self._look(kind, rows, rng) for kind in self.pairs.kinds]

    @property
    def uses_next_state(self) -> bool:
        """Whether the mask looks at the next state."""
        return "next_state" in declared(self.mask)

    @property
    def uses_noise(self) -> bool:
        """Whether the mask looks at the noise."""
        return "noise" in declared(self.mask)

    def __call__(self, state: Floats, action: Floats, *others: Any) -> Bools:
        """Return the edges of the mask, and one between all that the recordings never show like this, (B, N, n)."""
        return np.asarray(self.mask(state, action, *others)) | self.unknown(state, action)

    def unknown(self, state: Floats, action: Floats) -> Bools:
        """Return the pairs without evidence as a mask, (B, N, n)."""
        n = self.factors.n
        mask = np.zeros((len(state), n + self.factors.m, n), np.bool_)
        rows = beside(state, action)
        for found in self.evidence:
            if found.empty.any():
                features = self.pairs.features(found.kind, rows, rows)
                tied(found.kind, [found.empty[found.regions(each)] for each in features], mask, n)
        return mask

    def _look(self, kind: Kind, rows: Array, rng: np.random.Generator) -> _Evidence:
        """Compare real pairs with glued ones, of which there are several times as many."""
        size = min(len(rows), max(1, _MOST // len(kind.pairs)))
        some = rows[rng.permutation(len(rows))[:size]]
        real = np.concatenate(list(self.pairs.features(kind, some, some)))
        others = [some[rng.permutation(size)] for _ in range(_GLUED)]
        glued = np.concatenate([each for rest in others for each in self.pairs.features(kind, rest, some)])
        both = np.concatenate([real, glued])
        label = np.repeat([1.0, 0.0], [len(real), len(glued)])
        regions = Regions.grow(both, label[:, None], fewest=_GLUED * _EXPECTED)
        inside, expected = (np.bincount(regions(each), minlength=len(regions)) for each in (real, glued))
        share = _GLUED * inside / np.maximum(expected, 1)
        return _Evidence(kind, regions, (share < self.ratio) & (expected >= _GLUED * _EXPECTED), share)


def _thinned(data: Transitions) -> Array:
    """Return some rows of each episode, states beside actions: the rows of one episode are much alike."""
    rows = beside(data.state, data.action)
    if data.episode is None:
        return rows
    start = np.flatnonzero(np.diff(data.episode, prepend=data.episode[0] - 1) != 0)
    length = np.diff(np.append(start, len(rows)))
    within = np.arange(len(rows)) - np.repeat(start, length)
    every = np.maximum(1, -(-np.repeat(length, length) // _PER_EPISODE))
    return np.asarray(rows[within % every == 0])
