"""What is known of one kind of pair: its regions, found in one half of the data, and where the other half falls."""

from dataclasses import dataclass, replace

import numpy as np

from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.calibration.own_course import SURPRISING, OwnCourses
from counterpoint.masks.pairs import FactorPairs, Kind, beside
from counterpoint.masks.regions import Regions

CLIP = 4.0  # units; what is beyond counts as a surprise, not as more
_FEWEST, _DEEPEST = 40, 10  # of the trees
_FEWEST_REAL = 12  # rows of a region that are real
_FEWEST_JUDGED = 4  # rows of the other half that a region must have to be one
_GLUED = 3  # glued pairs for each real one
_FEWEST_EPISODES = 50  # from which on glued pairs are made at the same time of two of them
_NEARLY_NOW = 100  # rows apart, in the order of time


@dataclass(frozen=True, eq=False)
class Testimony:
    """One kind of pair: its regions, and what was counted there with glued sources."""

    kind: Kind
    regions: Regions
    before: Floats  # (K, 1 + W) surprises and mean residuals beyond glued pairs, in the rows that they were found in
    learnt: tuple[Ints, ...]  # for each pair the regions of the rows that they were found in, (L,)
    where: tuple[Ints, ...]  # those of the judged rows, (T,)
    glued: tuple[Ints, ...]  # the same with other sources, (_GLUED, T)


def testimony(
    kind: Kind,
    pairs: FactorPairs,
    halves: tuple[Transitions, Transitions],
    residuals: list[Floats],
    rng: np.random.Generator,
) -> Testimony:
    """Grow a tree on one half, where real pairs differ from glued ones, and find its regions in the other."""
    learn, judge = (beside(half.state, half.action) for half in halves)
    targets = np.concatenate([_targets(residuals[j]) for _, j in kind.pairs])
    real = np.concatenate(list(pairs.features(kind, learn, learn)))
    glued = np.concatenate(list(pairs.features(kind, learn[others(halves[0], rng)], learn)))
    regions = Regions.grow(
        np.concatenate([real, glued]),
        np.concatenate([targets, -targets]),
        fewest=2 * _FEWEST,
        deepest=_DEEPEST,
        some=np.arange(2 * len(real)) < len(real),
        of=_FEWEST_REAL,
    )
    fall = np.concatenate([regions(each) for each in pairs.features(kind, judge, judge)])
    regions = regions.merged(totals(fall, 1.0, len(regions))[:, 0], _FEWEST_JUDGED)
    learnt = tuple(regions(each) for each in pairs.features(kind, learn, learn))
    seen = np.concatenate([_seen(residuals[j]) for _, j in kind.pairs])
    means = [
        totals(home, seen, len(regions)) / np.maximum(totals(home, 1.0, len(regions)), 1.0)
        for home in (np.concatenate(learnt), regions(glued))
    ]
    before = np.concatenate([(means[0] - means[1])[:, :1], means[0][:, 1:]], axis=1)
    where = tuple(regions(each) for each in pairs.features(kind, judge, judge))
    apart = [
        [regions(each) for each in pairs.features(kind, judge[others(halves[1], rng)], judge)] for _ in range(_GLUED)
    ]
    return Testimony(kind, regions, before, learnt, where, tuple(np.stack(each) for each in zip(*apart, strict=True)))


def judgeable(kind: Kind, alone: OwnCourses) -> Kind:
    """Return the pairs of a kind whose target moves, and not always because of the source."""
    pairs = tuple((i, j) for i, j in kind.pairs if not alone.still[j] and not alone.always[i, j])
    return replace(kind, pairs=pairs)


def others(data: Transitions, rng: np.random.Generator) -> Ints:
    """Return for each row one of another episode, at about the same time of it, (R,).

    At the beginning of an episode much is alike that later is not, whether or not one moves the other. Where times are
    not known, or episodes are few, it is any row.
    """
    size = len(data)
    if data.step is None or data.episode is None or len(np.unique(data.episode)) < _FEWEST_EPISODES:
        return rng.permutation(size)
    order = np.lexsort((rng.random(size), data.step))
    far = rng.integers(1, min(_NEARLY_NOW, size - 1) + 1, size)
    found = np.empty(size, np.int64)
    found[order] = order[(np.arange(size) + far * rng.choice([-1, 1], size)) % size]
    same = np.asarray(data.episode)[found] == np.asarray(data.episode)
    found[same] = rng.permutation(size)[same]
    return found


def _seen(residual: Floats) -> Floats:
    """Return whether there is a surprise, and the residuals, as they are counted, (R, 1 + W)."""
    odd = np.abs(residual).max(axis=1, keepdims=True) > SURPRISING
    return np.concatenate([odd, np.clip(residual, -CLIP, CLIP)], axis=1)


def _targets(residual: Floats) -> Array:
    """Return what a tree looks at: whether there is a surprise, and which way."""
    odd = np.abs(residual).max(axis=1, keepdims=True) > SURPRISING
    return np.concatenate([2.0 * odd, np.clip(residual, -6.0, 6.0) / 6.0], axis=1)
