"""What there is to explain: what factors did that their own laws do not say."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.threads import side_by_side
from counterpoint.core.transitions import Transitions
from counterpoint.learn.calibration.laws import totals
from counterpoint.learn.calibration.own_course import SURPRISING, OwnCourses, limits
from counterpoint.learn.calibration.testimony import others
from counterpoint.learn.forests.outlook import Outlook, Placed
from counterpoint.masks.pairs import beside
from counterpoint.masks.regions import Regions

CLIP = 6.0  # units; what is beyond counts as a surprise, not as more
_FEWEST, _DEEPEST, _PRIOR = 60, 5, 10.0  # of the trees that say what a factor's own state explains
_LEAST = 1e-5  # chance of a surprise that nothing explains
_FEWEST_READY = 50  # rows that the shape of ordinary residuals is told from


@dataclass(frozen=True, eq=False)
class Case:
    """Recordings, and the surprises in them.

    Halves come in twos, each with the episodes that the other leaves out. What is learned from one is tried on the
    rest, so that no row is explained by what was learned from itself.
    """

    outlook: Outlook
    asked: Bools  # (N, n) pairs that may have an edge that comes and goes
    rows: Placed
    partners: tuple[Ints, Ints]  # twice for each row another one, of another episode, (T,)
    odd: Bools  # (T, n) which factors were surprised
    off: tuple[Floats, ...]  # residuals of each factor in ordinary ones, bounded, (T, W)
    ready: Bools  # (T, n) where a factor can be judged
    own: tuple[Floats, ...]  # where each factor is, and would go by itself, (T, I + W)
    halves: Bools  # (H, T)

    @classmethod
    def of(cls, alone: OwnCourses, data: Transitions, halvings: int, rng: np.random.Generator) -> "Case":
        """Find the surprises of all factors.

        Args:
            alone: the laws of all factors.
            data: recorded transitions.
            halvings: how often the episodes are cut in two.
            rng: source of randomness.
        """
        outlook, ready = Outlook.of(alone), alone.judged(data)
        residuals = alone.residuals(data)
        both = zip(residuals, ready.T, strict=True)
        odd = [(np.abs(each) > _limits(each[known])).any(axis=1) & known for each, known in both]
        off = [np.clip(each, -CLIP, CLIP) * known[:, None] for each, known in zip(residuals, ready.T, strict=True)]
        return cls(
            outlook,
            asked_of(alone),
            outlook.placed(beside(data.state, data.action)),
            (others(data, rng), others(data, rng)),
            np.stack(odd, axis=1),
            tuple(off),
            ready,
            tuple(np.ascontiguousarray(course.ahead(data)) for course in alone.courses),
            _halves(data, halvings, rng),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def by_itself(self, share: Floats) -> Floats:
        """Return how much of some surprises (T, n) each factor's own state explains, (T, n)."""
        return np.stack([self._own_rate(j, values) for j, values in enumerate(share.T)], axis=1)

    def _own_rate(self, j: int, values: Floats) -> Floats:
        own, rate = self.own[j], np.full(len(self), _LEAST)
        if not self.asked[:, j].any():
            return rate

        def grow(half: Bools) -> Floats:
            some = half & self.ready[:, j]
            regions = Regions.grow(own[some], values[some, None], fewest=_FEWEST, deepest=_DEEPEST)
            where = regions(own)
            rows, sums = (totals(where[some], each, len(regions))[:, 0] for each in (1.0, values[some, None]))
            usual = _PRIOR * float(values[some].mean()) if some.any() else 0.0
            return np.asarray(((sums + usual) / (rows + _PRIOR))[where[~half]] / (len(self.halves) // 2))

        for half, rates in zip(self.halves, side_by_side(grow, self.halves), strict=True):
            rate[~half] += rates
        return rate


def asked_of(alone: OwnCourses) -> Bools:
    """Return the pairs whose target moves, and not always because of the source; context ties nothing, (N, n)."""
    factors = alone.factors
    context = factors.nodes(*factors.context)
    asked = ~alone.always & ~alone.still & ~np.eye(*alone.always.shape, dtype=np.bool_)
    return np.asarray(asked & ~context[:, None] & ~context[: factors.n])


def _limits(residual: Array) -> Floats:
    """Return what noise hardly ever exceeds, from its shape, (W,)."""
    if len(residual) < _FEWEST_READY:
        return np.full(residual.shape[1], SURPRISING)
    return limits(residual)


def _halves(data: Transitions, halvings: int, rng: np.random.Generator) -> Bools:
    """Cut the episodes in two, several times, (2 · halvings, T)."""
    groups = np.arange(len(data)) if data.episode is None else np.unique(data.episode, return_inverse=True)[1]
    if groups.max() == 0:
        groups = np.arange(len(data)) * 20 // len(data)  # one long episode: its parts must do
    count = int(groups.max()) + 1
    first = np.stack([(rng.permutation(count) < count // 2)[groups] for _ in range(halvings)])
    return np.stack([first, ~first], axis=1).reshape(-1, len(data))
