"""Who acts only together with another: a runner that crosses a wire rings a bell, and neither of the two alone does.

They are held against rows in which one of them is taken from another row: what remains the same is no acting
together. It counts only if it is clear in halves of the data that it was not learned from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.core.threads import side_by_side
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.forests.case import Case
from counterpoint.learn.forests.forest import Forest
from counterpoint.learn.forests.single import Blame, Pairs
from counterpoint.masks.regions import Regions

_SURE, _LEAST = 5.0, 0.01  # standard errors, and share of what is left, from which on something is believed
_FEWEST_TRIED, _DEEPEST_TRIED, _PRIOR_TRIED = 20, 5, 10.0  # of the trees that tell whether there is something
_FEWEST, _DEEPEST, _PRIOR = 30, 7, 5.0  # of the trees that tell where
_FEWEST_HALF = 30  # rows
_UNEXPLAINED, _FEWEST_EVENTS = 0.3, 8  # share of a surprise that nothing explains, and how many of these there must be
_QUIET, _QUIET_TIMES = 5000, 2  # other rows that they are held against


@dataclass(frozen=True, eq=False)
class Situation:
    """How two sources lie to each other when something happens to a target."""

    target: int
    pairs: tuple[tuple[int, int], ...]  # of the sources, all of the same types
    forest: Forest  # chance that it happens


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
    if not clear(real, glued, wanted, np.tile(case.halves[0][some], len(pairs))):
        return None
    ready = np.flatnonzero(case.ready[:, target])
    everywhere, apart = _lying(case, pairs, ready, case.partners[1])
    happened = np.tile(events[ready], len(pairs))[:, None]

    def grow(half: Bools) -> tuple[Regions, Floats]:
        mine = np.tile(half[some], len(pairs))
        regions = against(real[mine], [each[mine] for each in glued], wanted[mine], _FEWEST, _DEEPEST)
        chance, *alone = (rates(regions, each, happened, _PRIOR) for each in (everywhere, *apart))
        return regions, np.maximum(chance - np.max(alone, axis=0), 0.0)

    trees, values = zip(*side_by_side(grow, case.halves), strict=True)
    return Situation(target, tuple(pairs), Forest(trees, values))


def _lying(case: Case, pairs: Pairs, rows: Ints, partners: Ints) -> tuple[Floats, list[Floats]]:
    """Return the features of pairs of sources, and the same with either of them from other rows."""
    here, away = case.rows[rows], case.rows[partners[rows]]
    real, *glued = (
        np.concatenate(case.outlook.features(pairs, one, two))
        for one, two in ((here, here), (away, here), (here, away))
    )
    return real, glued


def clear(real: Floats, glued: list[Floats], wanted: Floats, half: Bools, least: float = _LEAST) -> bool:
    """Return whether real configurations tell clearly more of what is wanted than glued ones, of either kind.

    Args:
        real: (R, F) features.
        glued: the same with something from other rows.
        wanted: (R, V).
        half: (R,) rows that are learned from while the others are tried, and the other way round.
        least: share of what is wanted that must be told.
    """
    if min(half.sum(), (~half).sum()) < _FEWEST_HALF:
        return False

    def tried(mine: Bools) -> Floats:
        regions = against(real[mine], [each[mine] for each in glued], wanted[mine], _FEWEST_TRIED, _DEEPEST_TRIED)
        value = rates(regions, real[mine], wanted[mine], _PRIOR_TRIED)
        told, *apart = ((value[regions(each[~mine])] * wanted[~mine]).sum(axis=1) for each in (real, *glued))
        return np.asarray(told - np.max(apart, axis=0))

    more = np.zeros(len(real))
    more[~half], more[half] = side_by_side(tried, (half, ~half))
    sure, share = more.sum() / np.sqrt(np.square(more).sum() + 1e-12), more.sum() / (np.square(wanted).sum() + 1e-12)
    return bool(sure > _SURE and share > least)


def against(real: Floats, glued: list[Floats], wanted: Floats, fewest: int, deepest: int) -> Regions:
    """Grow a tree where real configurations differ from glued ones."""
    features = np.concatenate([real, *glued])
    targets = np.concatenate([wanted, *(-wanted / len(glued) for _ in glued)])
    return Regions.grow(features, targets, fewest=fewest, deepest=deepest)


def rates(regions: Regions, features: Floats, values: Floats, prior: float) -> Floats:
    """Return the mean of some values in each region, a few more rows being 0, (K, V)."""
    where = regions(features)
    return totals(where, values, len(regions)) / (totals(where, 1.0, len(regions)) + prior)
