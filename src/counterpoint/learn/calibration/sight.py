"""How much a witness sees, tried by what the mask sees: what its edges do, the witness should find by itself."""

import numpy as np

from counterpoint.core.arrays import Bools, Floats
from counterpoint.learn.calibration.witness import Witness

_LEAST_PLANTED = 160.0  # strain of the influences that the mask sees, by which the witness is tried: ten strong ones
_STRAIN = 2.0  # beyond the usual, of an influence; edges with less are taken for such that do not always act
_MOST_TOGETHER = 3  # edges to one target
_FEWEST = 50  # rows with an edge, that it is told from whether edges come alone
_SURELY = 4.0  # standard errors by which it must be beyond the usual


def tried(witness: Witness, edges: Bools) -> tuple[float | None, float]:
    """Return how much of what the mask sees the witness sees too, and how many influences of a row it is deaf to.

    The witness knows nothing of the mask. Rows with a single edge, whose target is further off than usual, are
    influences that it should find by itself, the stronger the sooner. Where it does not, it would not find those
    that the mask misses either; and where there are none to try it by, nobody can say that it sees anything.
    Where sources act only together, as a door and where it leads to, rows with two or three edges must do; each
    edge has its part of what happens. It is tried by each kind of pair, too: who hears springs need not hear a
    breath.
    """
    moved = witness.moved(edges)
    several = moved.sum(axis=1)  # (T, n)
    seen = witness.loud | (witness.joint | (witness.telling.sights & (several == 1)))[:, None]  # (T, N, n)
    calm = witness.known & ~witness.loud.any(axis=1) & (several == 0)
    usual = np.where(calm, witness.strain, 0.0).sum(axis=0) / np.maximum(calm.sum(axis=0), 1)
    noise = np.where(calm, (witness.strain - usual) ** 2, 0.0).sum(axis=0) / np.maximum(calm.sum(axis=0), 1)
    only = np.where(several == 1, witness.known * (witness.strain - usual), 0.0)[:, None] * moved
    for most in range(1, _MOST_TOGETHER + 1):
        asked = witness.known & (several > 0) & (several <= most)
        beyond = np.where(asked, (witness.strain - usual) / np.maximum(several, 1), 0.0)[:, None] * moved
        sight = _heard(beyond.sum(), beyond[seen].sum(), (asked.sum(axis=0) * noise).sum())
        if sight is not None:
            return sight, _deaf(witness, only, seen, noise, moved.mean(axis=0), sight)
    return None, 0.0


def alone(witness: Witness, edges: Bools) -> float:
    """Return how often an edge comes alone, of the target of which that is least often.

    What a mask misses is counted where it has no edge to a target at all. Of edges that come together, as those of
    two contacts that close a circuit, it may miss one, and nobody sees that.
    """
    several = witness.moved(edges).sum(axis=1)  # (T, n)
    some, one = (several > 0).sum(axis=0), (several == 1).sum(axis=0)
    return float(np.min(one / np.maximum(some, 1), where=some >= _FEWEST, initial=1.0))


def _deaf(witness: Witness, only: Floats, seen: Bools, noise: Floats, rate: Floats, sight: float) -> float:
    """Return how many influences of a row the witness does not see, because it sees less of their kind than of all.

    Args:
        witness: what it has seen.
        only: (T, N, n) what the single edge of a row does to its target.
        seen: (T, N, n) where the witness sees it.
        noise: (n,) variance of a row.
        rate: (N, n) share of the rows with an edge.
        sight: how much it sees of all.
    """
    planted, heard, rows = (each.sum(axis=0) for each in (only, only * seen, only != 0))
    total = 0.0
    for each in witness.testimonies:
        i, j = np.transpose(each.kind.pairs)
        share = _heard(planted[i, j].sum(), heard[i, j].sum(), (rows * noise)[i, j].sum())
        if share is not None:
            acts = min(1.0, planted[i, j].sum() / (_STRAIN * rows[i, j].sum()))
            total += max(0.0, sight - share) * acts * float(rate[i, j].sum())
    return total


def _heard(planted: float, heard: float, doubt: float) -> float | None:
    """Return which share of what influences do is heard; None where that may be noise.

    Args:
        planted: how much they do.
        heard: how much of it is heard.
        doubt: squared error of how much they do.
    """
    if planted < max(_LEAST_PLANTED, _SURELY * np.sqrt(doubt)):
        return None
    return float(np.clip(heard / planted, 0.0, 1.0))
