"""What moves a factor always, as a motor moves its arm."""

import numpy as np

from counterpoint.core.arrays import Floats
from counterpoint.core.factors import Factorization
from counterpoint.learn.calibration.laws import corrections, standardised, straight
from counterpoint.masks.pairs import columns_of

_MOST_PARENTS = 4
_BETTER = 0.85  # a parent must reduce the residual to this share, or less
_MUCH_BETTER = 0.5  # its last change must do more: who is pulled goes on as before, too
_WELL = 0.02  # a residual of this share of the change's spread needs no further parents


def parents_of(
    rows: Floats, target: Floats, last: Floats, factors: Factorization, node: int
) -> tuple[tuple[int, ...], bool]:
    """Return the nodes without which the factor is predicted much worse in most rows, found one after another.

    Its own last change is tried like a node: where velocities are hidden, it tells them. It has part in the
    straight law alone, which the majority of the rows decides, so that a push that lasts does not look like it.

    A policy that goes for a block makes the block tell what its moves come to where the law of moves is not straight.
    So another state factor must help as much where trees know all actions: what is left then is no habit.
    """

    def given(nodes: tuple[int, ...]) -> Floats:
        columns = rows[:, [c for each in nodes if each >= 0 for c in columns_of(factors, each)]]
        return np.concatenate([columns, last], axis=1) if -1 in nodes else columns

    def error(nodes: tuple[int, ...]) -> float:
        design = standardised(given(nodes), given(nodes).mean(axis=0), given(nodes).std(axis=0) + 1e-9)
        return float(np.median(np.abs(target - design @ straight(design, target)), axis=0).sum())

    def by_habit(nodes: tuple[int, ...], other: int) -> bool:
        if not 0 <= other < factors.n:
            return False
        known = (*nodes, *(k for k in range(factors.n, factors.n + factors.m) if k not in nodes))
        return _off(given((*known, other)), target) > _BETTER * _off(given(known), target)

    found: tuple[int, ...] = ()
    left = error((node,))
    candidates = [*([-1] if last.any() else []), *(k for k in range(factors.n + factors.m) if k != node)]
    while left > _WELL * target.shape[1] and len(found) < _MOST_PARENTS:
        errors = {other: error((node, *found, other)) for other in candidates if other not in found}
        if -1 in errors and errors[-1] > _MUCH_BETTER * left:
            del errors[-1]
        best = min(errors, key=errors.__getitem__, default=None)
        if best is None or errors[best] > _BETTER * left:
            break
        if by_habit((node, *found), best):
            candidates.remove(best)
        else:
            found, left = (*found, best), errors[best]
    return tuple(each for each in found if each >= 0), -1 in found


def _off(given: Floats, target: Floats) -> float:
    """Return how far a straight law with trees on top is off in the half of the rows that it was not fitted to."""
    design = standardised(given, given.mean(axis=0), given.std(axis=0) + 1e-9)
    left = np.empty_like(target)
    for mine in (np.arange(len(given)) % 2 == 0, np.arange(len(given)) % 2 == 1):
        rest = target - design @ straight(design[mine], target[mine])
        for regions, value in corrections(given[mine], rest[mine]):
            rest[~mine] -= value[regions(given[~mine])]
        left[~mine] = rest[~mine]
    return float(np.median(np.abs(left), axis=0).sum())
