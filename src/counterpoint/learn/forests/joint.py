"""What several sources do together: who changes what another does, and who acts only together with another.

A screen between a lamp and a puck changes what the lamp does. A runner that crosses a wire rings a bell, and neither
runner nor wire alone does. Both are held against rows in which one of them is taken from another row: what remains
the same is no acting together. It counts only if it is clear in halves of the data that it was not learned from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.forests.case import CLIP, Case
from counterpoint.learn.forests.forest import Forest
from counterpoint.learn.forests.single import Blame, Pairs
from counterpoint.masks.regions import Regions

_SURE, _LEAST = 5.0, 0.01  # standard errors, and share of what is left, from which on something is believed
_FEWEST_TRIED, _DEEPEST_TRIED, _PRIOR_TRIED = 20, 5, 10.0  # of the trees that tell whether there is something
_FEWEST, _DEEPEST, _PRIOR = 30, 7, 5.0  # of the trees that tell where
_ACTS, _MOST = 0.05, 4000  # chance from which on a source acts, and rows in which it does that are looked at
_SMALL = 1.0  # push that is none yet, in units of noise
_BY_PUSH = 0.15  # chance for each unit beyond
_MAIN = 0.5  # share of all that acts on the target
_FEWEST_ACTS, _FEWEST_HALF = 10, 30  # rows
_UNEXPLAINED, _FEWEST_EVENTS = 0.3, 8  # share of a surprise that nothing explains, and how many of these there must be
_QUIET, _QUIET_TIMES = 5000, 2  # other rows that they are held against


@dataclass(frozen=True, eq=False)
class Situation:
    """How two sources lie to each other when something happens to a target."""

    target: int
    pairs: tuple[tuple[int, int], ...]  # of the sources, all of the same types
    forest: Forest  # chance that it happens


def changers(case: Case, found: Blame) -> tuple[tuple[int, int, int], ...]:
    """Return sources, targets and third nodes that change what the source does to the target."""
    left, total = found.left(case), found.total
    triples: list[tuple[int, int, int]] = []
    for pairs in case.outlook.kinds(case.asked):
        acting = {pair: _acting(case, found, pair) for pair in pairs}
        for thirds in _by_type(case):
            mine = [(i, j, k) for i, j in pairs for k in thirds if _apart(case, i, j, k)]
            enough = [each for each in mine if len(acting[each[:2]]) >= _FEWEST_ACTS]
            parts = [_changed(case, each, acting[each[:2]], (left, total)) for each in enough]
            if parts and len({part[0].shape[1] for part in parts}) == 1:
                real, glued, wanted, half = (np.concatenate(each) for each in zip(*parts, strict=True))
                if _clear(real, [glued], wanted, half.astype(np.bool_)):
                    triples += mine
    return tuple(triples)


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


def _changed(
    case: Case, triple: tuple[int, int, int], rows: Ints, told: tuple[list[Floats], Floats]
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return features with the third node, the same with one from another row, what is left to tell, and the half."""
    (i, j, k), (left, total) = triple, told
    here, away = case.rows[rows], case.rows[case.partners[0][rows]]
    known = case.outlook.pair(i, j, here, here)
    real, glued = (
        np.concatenate([known, *(case.outlook.pair(k, other, third, here) for other in (j, i))], axis=1)
        for third in (here, away)
    )
    more = case.odd[rows, j] - np.minimum(total[rows, j], 1.0)
    wanted = np.concatenate([2.0 * more[:, None], left[j][rows] / CLIP], axis=1)
    return real, glued, wanted, 1.0 * case.halves[0][rows]


def situations(case: Case, found: Blame, rng: np.random.Generator) -> tuple[Situation, ...]:
    """Find pairs of sources that act only together, where no single one explains a target's surprises."""
    alone = case.odd * found.itself / found.total * case.ready
    every = []
    for j in np.flatnonzero((alone > _UNEXPLAINED).sum(axis=0) >= _FEWEST_EVENTS).tolist():
        events = alone[:, j] > _UNEXPLAINED
        quiet = case.ready[:, j] & ~events
        many = max(_QUIET, _QUIET_TIMES * int(events.sum()))
        some = np.flatnonzero(events | (quiet & (rng.random(len(quiet)) < many / max(1, quiet.sum()))))
        every += [each for pairs in _couples(case, j) if (each := _situation(case, j, pairs, alone[:, j], some))]
    return tuple(every)


def _couples(case: Case, target: int) -> Iterator[Pairs]:
    """Yield the pairs of sources that may act on a target together, those of the same types at once."""
    factors = case.outlook.factors
    n = factors.n
    kinds: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for a, b in combinations(np.flatnonzero(case.asked[:, target]).tolist(), 2):
        tied = any(one < n and not case.asked[two, one] and case.asked[:, one].any() for one, two in ((a, b), (b, a)))
        if not tied:
            kinds.setdefault((factors.types[factors.names[a]], factors.types[factors.names[b]]), []).append((a, b))
    yield from kinds.values()


def _situation(case: Case, target: int, pairs: Pairs, events: Floats, some: Ints) -> Situation | None:
    """Return where two sources act together, if they do.

    Args:
        case: what there is to explain.
        target: on which they act.
        pairs: of sources.
        events: (T,) shares of its surprises that nothing explains.
        some: rows that trees are grown on.
    """
    real, glued = _lying(case, pairs, some, case.partners[0])
    wanted = np.tile((events[some] - events[some].mean())[:, None], (len(pairs), 1))
    if not _clear(real, glued, wanted, np.tile(case.halves[0][some], len(pairs))):
        return None
    ready = np.flatnonzero(case.ready[:, target])
    everywhere, apart = _lying(case, pairs, ready, case.partners[1])
    happened, trees, values = np.tile(events[ready], len(pairs))[:, None], [], []
    for half in case.halves:
        mine = np.tile(half[some], len(pairs))
        regions = _against(real[mine], [each[mine] for each in glued], wanted[mine], _FEWEST, _DEEPEST)
        chance, *alone = (_rates(regions, each, happened, _PRIOR) for each in (everywhere, *apart))
        trees.append(regions)
        values.append(np.maximum(chance - np.max(alone, axis=0), 0.0))
    return Situation(target, tuple(pairs), Forest(tuple(trees), tuple(values)))


def _lying(case: Case, pairs: Pairs, rows: Ints, partners: Ints) -> tuple[Floats, list[Floats]]:
    """Return the features of pairs of sources, and the same with either of them from other rows."""
    here, away = case.rows[rows], case.rows[partners[rows]]
    real, *glued = (
        np.concatenate(case.outlook.features(pairs, one, two))
        for one, two in ((here, here), (away, here), (here, away))
    )
    return real, glued


def _clear(real: Floats, glued: list[Floats], wanted: Floats, half: Bools) -> bool:
    """Return whether real configurations tell clearly more of what is wanted than glued ones, of either kind.

    Args:
        real: (R, F) features.
        glued: the same with something from other rows.
        wanted: (R, V).
        half: (R,) rows that are learned from while the others are tried, and the other way round.
    """
    if min(half.sum(), (~half).sum()) < _FEWEST_HALF:
        return False
    more = np.zeros(len(real))
    for mine in (half, ~half):
        regions = _against(real[mine], [each[mine] for each in glued], wanted[mine], _FEWEST_TRIED, _DEEPEST_TRIED)
        value = _rates(regions, real[mine], wanted[mine], _PRIOR_TRIED)
        told, *apart = ((value[regions(each[~mine])] * wanted[~mine]).sum(axis=1) for each in (real, *glued))
        more[~mine] = told - np.max(apart, axis=0)
    sure, share = more.sum() / np.sqrt(np.square(more).sum() + 1e-12), more.sum() / (np.square(wanted).sum() + 1e-12)
    return bool(sure > _SURE and share > _LEAST)


def _against(real: Floats, glued: list[Floats], wanted: Floats, fewest: int, deepest: int) -> Regions:
    """Grow a tree where real configurations differ from glued ones."""
    features = np.concatenate([real, *glued])
    targets = np.concatenate([wanted, *(-wanted / len(glued) for _ in glued)])
    return Regions.grow(features, targets, fewest=fewest, deepest=deepest)


def _rates(regions: Regions, features: Floats, values: Floats, prior: float) -> Floats:
    """Return the mean of some values in each region, a few more rows being 0, (K, V)."""
    where = regions(features)
    return totals(where, values, len(regions)) / (totals(where, 1.0, len(regions)) + prior)
