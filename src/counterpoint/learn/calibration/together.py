"""Sources that act only together: a runner that crosses a wire rings a bell, and is near to it or not.

No pair of a source and the bell tells of this. So for each target, trees look for situations of two other factors in
which it is surprised more often than its own state explains; the other half of the data is counted there. What one
of the two tells without the other, it tells as well with the other taken from another row: that is no acting together.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, NodeSet
from counterpoint.learn.calibration.laws import totals
from counterpoint.masks.pairs import FactorPairs, Kind
from counterpoint.masks.regions import Regions

_FEWEST_SURPRISES = 8  # of a target, in the half that is learnt from, from which on a cause is looked for
_FEWEST, _DEEPEST = 20, 6  # of the trees
_LOUD = 5.0  # standard errors beyond what is usual; there are many situations to be wrong about
_FEWEST_EVENTS = 3


@dataclass(frozen=True, eq=False)
class Situations:
    """Regions of how two factors of certain kinds lie to each other, in which a target is surprised."""

    target: int
    kind: Kind
    regions: Regions
    loud: Bools  # (K,) in the half that they were found in
    where: tuple[Ints, ...]  # for each pair the regions of the judged rows, (T,)
    apart: tuple[tuple[Ints, ...], ...]  # the same with the first, and with the second, of other rows

    def chance(self, odd: Bools, usual: Floats, rows: Bools) -> Floats:
        """Return how often the target is surprised beyond the usual, (K,), 0 where that may be noise.

        Args:
            odd: (T,) judged rows in which it is.
            usual: (T,) how often its own state makes it so.
            rows: (T,) those that are counted.
        """
        return self.missed(odd, usual, rows, rows)[0]

    def missed(self, odd: Bools, usual: Floats, rows: Bools, every: Bools) -> tuple[Floats, Floats]:
        """Return the same of some rows alone, those that a mask knows nothing of, and its squared error, (K,) each.

        Whether it may be noise is told by all rows: what happens there is known, and only how often is asked.
        """
        events, expected, count = self._counted(self.where, odd, usual, every)
        glued = [self._counted(where, odd, usual, every) for where in self.apart]
        alone = np.max([each[0] / np.maximum(each[2], 1.0) for each in glued], axis=0)
        expected = np.maximum(expected, alone * count)
        surely = events - expected > _LOUD * np.sqrt(np.maximum(expected, 0.2))
        found = self.loud & surely & (events >= _FEWEST_EVENTS)
        events, expected, count = self._counted(self.where, odd, usual, rows)
        expected = np.maximum(expected, alone * count)
        chance = np.clip((events - expected) / np.maximum(count, 1.0), 0.0, 1.0)
        error = np.maximum(events, expected) / np.maximum(count, 1.0) ** 2
        return np.where(found, chance, 0.0), np.where(found, error, 0.0)

    def _counted(self, where: tuple[Ints, ...], odd: Bools, usual: Floats, rows: Bools) -> Floats:
        """Return how many surprises there are, how many are usual, and how many rows, (3, K)."""
        values = np.stack([odd, usual, np.ones(len(odd))], axis=1)[rows]
        every = np.concatenate([each[rows] for each in where])
        return totals(every, np.tile(values, (len(where), 1)), len(self.regions)).T

    def crossing(self, nodes: NodeSet) -> Iterator[Bools]:
        """Yield for each pair which proposals (R, N) take it and the target apart, (R,)."""
        for i, j in self.kind.pairs:
            yield (nodes[:, i] != nodes[:, self.target]) | (nodes[:, j] != nodes[:, self.target])


def situations(
    pairs: FactorPairs,
    halves: tuple[Array, Array],
    odd: Bools,
    usual: Floats,
    rows: Bools,
    partners: Ints,
) -> tuple[Situations, ...]:
    """Find situations of two factors in which a third is surprised.

    Args:
        pairs: of the factorisation.
        halves: (L, S + A) and (T, S + A), what is learnt from and what is judged.
        odd: (L, n) surprises of the first.
        usual: (L, n) how often a factor's own state makes it surprised.
        rows: (L, n) where a factor can be judged, and no single source explains what it does.
        partners: (T,) for each row of the second another one, to take a factor from.
    """
    learn, judge = halves
    other = judge[partners]
    found = []
    for kind in FactorPairs(pairs.factors, both_ways=False).kinds:
        features, *asked = (
            list(pairs.features(kind, *both))
            for both in ((learn, learn), (judge, judge), (other, judge), (judge, other))
        )
        for target in np.flatnonzero((odd & rows).sum(axis=0) >= _FEWEST_SURPRISES).tolist():
            others = [k for k, pair in enumerate(kind.pairs) if target not in pair]
            if not others:
                continue
            some = rows[:, target]
            left = np.tile((odd[:, target] - usual[:, target])[some], len(others))
            given = np.concatenate([features[k][some] for k in others])
            regions = Regions.grow(given, left[:, None], fewest=_FEWEST * len(others), deepest=_DEEPEST)
            where = regions(given)
            expected = totals(where, np.tile(usual[some, target], len(others))[:, None], len(regions))[:, 0]
            loud = totals(where, left[:, None], len(regions))[:, 0] > _LOUD * np.sqrt(np.maximum(expected, 0.2))
            if loud.any():
                mine = Kind(kind.types, tuple(kind.pairs[k] for k in others), kind.labels)
                there, *apart = [tuple(regions(each[k]) for k in others) for each in asked]
                found.append(Situations(target, mine, regions, loud, there, tuple(apart)))
    return tuple(found)
