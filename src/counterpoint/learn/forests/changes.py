"""Who changes what another does: a screen between a lamp and a puck changes what the lamp does.

Where a source acts on a target, a third node is held against itself in other rows. What the target does with either
is no change. Trees say where the third node makes a difference, and how much of one: a screen that stands aside does
what nearly all screens in its place would do.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.core.threads import side_by_side
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.forests.case import CLIP, Case
from counterpoint.learn.forests.forest import Forest
from counterpoint.learn.forests.joint import against, clear, rates
from counterpoint.learn.forests.outlook import Outlook, Placed
from counterpoint.learn.forests.single import Blame
from counterpoint.masks.regions import Regions

Triple = tuple[int, int, int]

_ACTS, _MOST = 0.05, 4000  # chance from which on a source acts, and rows in which it does that are looked at
_SMALL = 1.0  # push that is none yet, in units of noise
_BY_PUSH = 0.15  # chance for each unit beyond
_MAIN = 0.5  # share of all that acts on the target
_FEWEST_ACTS = 10  # rows
_FEWEST, _DEEPEST, _PRIOR = 30, 6, 10.0  # of the trees that tell where
_SURE = 1.5  # standard errors that a difference may be chance
_LEAST = 0.0005  # share of what source and target leave that a third node must tell
_ODD = 2.0  # weight of a surprise


@dataclass(frozen=True, eq=False)
class Meddling:
    """What the third nodes of some triples change, all of the same types."""

    triples: tuple[Triple, ...]  # source, target, and who changes what the source does
    forest: Forest  # chance that it makes a difference, where the source acts

    @cached_property
    def by_third(self) -> tuple[Ints, Ints, Ints]:
        """Third nodes with targets, (G, 2), where the sources of each begin, (G + 1,), and these."""
        sources: dict[tuple[int, int], list[int]] = {}
        for i, j, k in self.triples:
            sources.setdefault((k, j), []).append(i)
        ends = np.array(list(sources), np.int64)
        return ends, np.cumsum([0, *map(len, sources.values())]), np.concatenate(list(sources.values()))

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of which features are needed."""
        return tuple({pair for i, j, k in self.triples for pair in ((i, j), (k, j), (k, i))})

    @classmethod
    def everywhere(cls, triples: tuple[Triple, ...]) -> "Meddling":
        """Return what makes a difference wherever the source acts."""
        root = Regions(np.full(1, -1), np.zeros(1), np.zeros(1, np.int64))
        return cls(triples, Forest((root,), (np.ones((1, 1)),)))


@dataclass(frozen=True, eq=False)
class _Cases:
    """Rows in which a source acts on a target, for some triples, one after another."""

    known: Floats  # (R, F) features of source and target
    real: Floats  # (R, F + G) and of both with the third node
    glued: Floats  # (R, F + G) the same with one from another row
    wanted: Floats  # (R, V) what nothing explains of what the target did
    halves: Bools  # (H, R)


def changes(case: Case, found: Blame) -> tuple[Meddling, ...]:
    """Return who changes what single sources do, and where."""
    told = found.left(case), found.total
    every: list[Meddling] = []
    for pairs in case.outlook.kinds(case.asked):
        acting = {pair: _acting(case, found, pair) for pair in pairs}
        for thirds in _by_type(case):
            mine = [(i, j, k) for i, j in pairs for k in thirds if _apart(case, i, j, k)]
            enough = [each for each in mine if len(acting[each[:2]]) >= _FEWEST_ACTS]
            parts = [_cases(case, each, acting[each[:2]], told) for each in enough]
            if parts and len({part.real.shape[1] for part in parts}) == 1:
                cases = _beyond_known(_all(parts))
                if clear(cases.real, [cases.glued], cases.wanted, cases.halves[0], _LEAST):
                    every.append(Meddling(tuple(mine), _forest(cases)))
    return tuple(every)


def change_features(outlook: Outlook, triple: Triple, third: Placed, rows: Placed) -> Floats:
    """Return the features of a third node with target and source, and of these two before them, (B, F + G)."""
    i, j, k = triple
    return np.concatenate([outlook.pair(i, j, rows, rows), *(outlook.pair(k, o, third, rows) for o in (j, i))], axis=1)


def _by_type(case: Case) -> list[list[int]]:
    """Return the nodes of each type."""
    factors = case.outlook.factors
    types = [factors.types[name] for name in factors.names]
    return [[k for k, each in enumerate(types) if each == name] for name in dict.fromkeys(types)]


def _apart(case: Case, i: int, j: int, k: int) -> bool:
    """Return whether a third node is another one, and not tied to the target or the source anyhow."""
    n = case.outlook.factors.n
    free = k not in (i, j) and bool(case.asked[k, j])
    return free and (i >= n or bool(case.asked[k, i]) or not case.asked[:, i].any())


def _acting(case: Case, found: Blame, pair: tuple[int, int]) -> Ints:
    """Return rows in which a source acts on a target, and hardly any other does."""
    i, j = pair
    pushed = _BY_PUSH * (np.abs(found.push[pair]).max(axis=1) - _SMALL)
    strong = np.maximum(found.chance[:, i, j], np.clip(pushed, 0.0, 2 * _BY_PUSH)) > _ACTS
    main = found.chance[:, i, j] >= _MAIN * found.chance[:, :, j].sum(axis=1)
    rows = np.flatnonzero(case.ready[:, j] & strong & main)
    return rows[:: max(1, -(-len(rows) // _MOST))]


def _cases(case: Case, triple: Triple, rows: Ints, told: tuple[list[Floats], Floats]) -> _Cases:
    """Return what there is to tell of a triple, given what single sources leave, and what they explain."""
    j, (left, total) = triple[1], told
    here, away = case.rows[rows], case.rows[case.partners[0][rows]]
    real, glued = (change_features(case.outlook, triple, third, here) for third in (here, away))
    more = case.odd[rows, j] - np.minimum(total[rows, j], 1.0)
    wanted = np.concatenate([_ODD * more[:, None], left[j][rows] / CLIP], axis=1)
    return _Cases(case.outlook.pair(*triple[:2], here, here), real, glued, wanted, case.halves[:, rows])


def _all(parts: list[_Cases]) -> _Cases:
    """Return several triples as one."""
    known, real, glued, wanted = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("known", "real", "glued", "wanted")
    )
    return _Cases(known, real, glued, wanted, np.concatenate([part.halves for part in parts], axis=1))


def _beyond_known(cases: _Cases) -> _Cases:
    """Return the same without what source and target tell, as far as that was learned from the other half."""
    wanted, half = cases.wanted.copy(), cases.halves[0]
    for mine in (half, ~half):
        if mine.any() and not mine.all():
            regions = Regions.grow(cases.known[mine], cases.wanted[mine], fewest=_FEWEST, deepest=_DEEPEST)
            wanted[~mine] -= rates(regions, cases.known[mine], cases.wanted[mine], _PRIOR)[regions(cases.known[~mine])]
    return _Cases(cases.known, cases.real, cases.glued, wanted, cases.halves)


def _forest(cases: _Cases) -> Forest:
    """Grow trees that say where the third node makes a difference."""

    def grow(half: Bools) -> tuple[Regions, Floats]:
        regions = against(cases.real[half], [cases.glued[half]], cases.wanted[half], _FEWEST, _DEEPEST)
        return regions, _differences(regions, cases)

    trees, values = zip(*side_by_side(grow, cases.halves), strict=True)
    return Forest(trees, values)


def _differences(regions: Regions, cases: _Cases) -> Floats:
    """Return by how much, at the least, real third nodes make a difference in each region, (K, 1), as a chance."""
    means, errors = [], []
    for features in (cases.real, cases.glued):
        where = regions(features)
        rows = totals(where, 1.0, len(regions)) + _PRIOR
        mean = totals(where, cases.wanted, len(regions)) / rows
        square = (totals(where, np.square(cases.wanted), len(regions)) + cases.wanted.var(axis=0)) / rows
        means.append(mean)
        errors.append(np.maximum(square - np.square(mean), 0.0) / rows)
    least = np.maximum(np.abs(means[0] - means[1]) - _SURE * np.sqrt(sum(errors)), 0.0)
    pushed = _BY_PUSH * CLIP * least[:, 1:].max(axis=1)
    return np.asarray(np.clip(np.maximum(least[:, 0] / _ODD, pushed), 0.0, 1.0)[:, None])
