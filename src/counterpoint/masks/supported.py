"""No evidence, no counterfactual: pairs of factors in a situation that the recordings do not have are tied together."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import Mask, declared
from counterpoint.core.require import require_data
from counterpoint.core.transitions import Transitions
from counterpoint.masks.pairs import FactorPairs, Kind, beside, tied
from counterpoint.masks.regions import Regions

_MOST = 30_000  # real pairs of a kind that are looked at
_GLUED = 4  # times as many glued ones
_EXPECTED = 8  # episodes that are expected to visit a region: if none does, that is not by chance
_FEWEST_ROWS = 120
_PER_EPISODE = 8  # rows of an episode that count
_FEWEST_EPISODES = 50  # fewer ones cannot be counted, and single rows are
_FEW = 2_000  # rows that are kept of so few


@dataclass(frozen=True, eq=False)
class _Evidence:
    """Where the recordings hold pairs of one kind, and where they hold none."""

    kind: Kind
    regions: Regions
    empty: Bools  # (K,) nodes without evidence
    real: Floats  # (K,) real pairs, as a share of those that independent factors would give


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of each episode, states beside actions."""

    values: Array  # (R, S + A)
    episode: Ints  # (R,) rising
    within: Ints  # (R,) how many rows of the episode come before
    count: int  # episodes

    @classmethod
    def of(cls, data: Transitions) -> "_Rows":
        """Take some rows of each episode: those of one episode are much alike."""
        rows = beside(data.state, data.action)
        if data.episode is None:
            return cls.alone(rows)
        start = np.flatnonzero(np.diff(data.episode, prepend=data.episode[0] - 1) != 0)
        length = np.diff(np.append(start, len(rows)))
        within = np.arange(len(rows)) - np.repeat(start, length)
        each = _PER_EPISODE if len(start) >= _FEWEST_EPISODES else -(-_FEW // len(start))
        every = np.maximum(1, -(-np.repeat(length, length) // each))
        kept = within % every == 0
        if len(start) < _FEWEST_EPISODES:
            return cls.alone(rows[kept])
        episode = np.repeat(np.arange(len(start)), length)[kept]
        return cls(rows[kept], episode, (within // every)[kept], len(start))

    @classmethod
    def alone(cls, rows: Array) -> "_Rows":
        """Take each row for an episode of its own."""
        return cls(rows, np.arange(len(rows)), np.zeros(len(rows), np.int64), len(rows))

    def __len__(self) -> int:
        return len(self.values)

    def halves(self, rng: np.random.Generator) -> tuple["_Rows", "_Rows"]:
        """Return the rows of half of the episodes, and those of the others."""
        first = rng.permutation(self.count) < self.count // 2
        return self.of_episodes(first), self.of_episodes(~first)

    def some(self, most: int, rng: np.random.Generator) -> "_Rows":
        """Return so many episodes that there are at most so many rows."""
        if len(self) <= most:
            return self
        return self.of_episodes(rng.random(self.count) < most / len(self))

    def of_episodes(self, chosen: Bools) -> "_Rows":
        """Return the rows of some episodes, numbered anew."""
        kept = chosen[self.episode]
        number = np.cumsum(chosen) - 1
        return _Rows(self.values[kept], number[self.episode[kept]], self.within[kept], int(chosen.sum()))

    def others(self, rng: np.random.Generator) -> Array:
        """Return for each row one of another episode, the same one for all rows of an episode."""
        start = np.searchsorted(self.episode, np.arange(self.count))
        length = np.diff(np.append(start, len(self)))
        other = rng.permutation(self.count)[self.episode]
        row = start[other] + np.minimum(self.within, length[other] - 1)
        return np.asarray(self.values[row])


class Supported:
    """A mask with an edge, both ways, between factors that the recordings never show like this.

    A counterfactual puts factors into configurations. Where no recording has one like it, nobody can know
    whether the two would have interacted, so they stay together: such proposals are rejected, and the
    funnel counts them as "no evidence".

    For every pair of a factor and another one, or an action, the real pairs are held against glued ones, whose
    halves come from different rows. A tree looks for regions where the real ones are missing: there, fewer
    than ``ratio`` of the pairs were recorded that independent factors would have given. Rows of one episode are
    alike, so episodes are counted, and whole episodes glued; regions are found in one half of them and counted in
    the other, so that what is missing by chance is not taken for a gap. Whatever makes
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
        if len(data) < _FEWEST_ROWS:
            raise ValueError(f"data: expected {_FEWEST_ROWS} transitions or more to tell gaps, got {len(data)}.")
        self.mask, self.factors, self.ratio = mask, factors, ratio
        self.pairs = FactorPairs(factors, both_ways=False)
        rng = np.random.default_rng(seed)
        rows = _Rows.of(data)
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

    def _look(self, kind: Kind, rows: _Rows, rng: np.random.Generator) -> _Evidence:
        """Compare real pairs with glued ones: find regions in half of the episodes, and count in the other half."""
        most = max(2, _MOST // len(kind.pairs))
        found, counted = (half.some(most // 2, rng) for half in rows.halves(rng))
        features, episodes = self._pairs(kind, found, rng)
        label = np.repeat([1.0, 0.0], [len(features) // (1 + _GLUED), len(features) - len(features) // (1 + _GLUED)])
        regions = Regions.grow(features, label[:, None], fewest=_GLUED * _EXPECTED)
        visits = [_visits(regions, features, episodes, len(found) * len(kind.pairs))]
        features, episodes = self._pairs(kind, counted, rng)
        visits.append(_visits(regions, features, episodes, len(counted) * len(kind.pairs)))
        real, expected = (sum(each) for each in zip(*visits, strict=True))
        share = real / np.maximum(expected, 1e-9)
        sure = (visits[1][1] >= _EXPECTED) & (visits[1][0] < self.ratio * visits[1][1])
        return _Evidence(kind, regions, sure & (share < self.ratio), share)

    def _pairs(self, kind: Kind, rows: _Rows, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return the features of real pairs, then of glued ones, and the number of the visit that each belongs to."""
        features, visits = [], []
        for number, source in enumerate([rows.values, *(rows.others(rng) for _ in range(_GLUED))]):
            for pair, each in enumerate(self.pairs.features(kind, source, rows.values)):
                features.append(each)
                visits.append(rows.episode + rows.count * (pair + len(kind.pairs) * number))
        return np.concatenate(features), np.concatenate(visits)


def _visits(regions: Regions, features: Floats, visits: Ints, real: int) -> tuple[Floats, Floats]:
    """Return in how many episodes a region was visited, and in how many of independent factors it would have been."""
    where = regions(features)
    each = np.unique(np.stack([where, visits, np.arange(len(where)) >= real]), axis=1)
    inside, expected = (np.bincount(each[0, each[2] == glued], minlength=len(regions)) for glued in (0, 1))
    return inside.astype(np.float64), expected / _GLUED
