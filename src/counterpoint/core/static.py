"""Static factors: those that never change, such as goals and appearance, and how many swaps they may take up.

Exchanging a static factor alone is always right and teaches little about the dynamics: it is goal
relabelling. On a robot whose other factors are all entangled, most swaps would be of that kind. So they are drawn
and accepted only up to a share. A swap is *static* if everything that is not static stays on one side of it.
"""

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from counterpoint.core.arrays import Array, Bools, Ints, NodeSet
from counterpoint.core.factors import Factorization
from counterpoint.core.graphs import UnionPolicy, unions
from counterpoint.core.kernels import FIRST, SECOND, kernel, scramble
from counterpoint.core.threads import run
from counterpoint.core.transitions import Transitions

FEWEST, MOST = 1024, 65536  # rows that are compared at first, where mostly all is seen to change, and later


def static_nodes(data: Transitions, factors: Factorization) -> NodeSet:
    """Return the factors that are declared static, and those that never change in the data, (N,) bool.

    Context factors are not among them: they are never swapped. If nothing at all changes, the data says
    nothing about what is static.
    """
    changes = np.zeros(data.state.shape[1], np.bool_)
    start, count = 0, FEWEST
    while start < len(data) and not changes.all():
        rows = slice(start, start + count)
        changes |= (data.state[rows] != data.next_state[rows]).any(axis=0)
        start, count = start + count, MOST
    still = [name for name, own in factors.state.items() if not changes[list(own)].any()]
    if len(still) == factors.n:
        still = []
    return factors.nodes(*still, *factors.static) & ~factors.nodes(*factors.context)


@dataclass(frozen=True, eq=False)
class Draws:
    """Unions for some pairs: how many of each kind, and how their components are numbered."""

    static: Ints  # (P,) how many static unions to draw
    mixed: Ints  # (P,) how many others
    merged: Ints  # (P, N) numbers of the components where all that is not static counts as one
    sizes: Ints  # (P,) how many components that makes
    dynamic: Bools  # (P, N) whether the component of this number moves something
    limited: Bools  # (P,) whether the share limits what is drawn for a pair


@dataclass(frozen=True, eq=False)
class StaticShare:
    """Which nodes are static, and which share of the counterfactuals may exchange nothing else."""

    nodes: NodeSet  # (N,)
    share: float

    def draws(
        self, graphs: tuple[Ints, Ints, Bools], samples: int, policy: UnionPolicy, seed: tuple[int, np.uint64]
    ) -> Draws:
        """Decide how many unions of each kind to draw for each pair.

        Args:
            graphs: numbers of the components (P, N), -1 where a swap changes nothing; how many there are
                (P,); and whether both parents agree on a node (P, N).
            samples: how many unions to draw for a pair, at most.
            policy: which unions may be drawn.
            seed: number of the first pair, and the key.
        """
        number, sizes, same = graphs
        dynamic, merged = np.zeros(number.shape, np.bool_), np.empty_like(number)
        moving, joint = np.empty(len(number), np.int64), np.empty(len(number), np.int64)
        run(_merge_dynamic, len(number), number, same | self.nodes, dynamic, merged, moving, joint)
        still = sizes - moving
        slots = np.empty(len(number), np.int64)
        run(_static_slots, len(number), *seed, samples, self.share, slots)
        slots[(still == 0) & (self.share < 1)] = 0
        kinds, kind = np.unique(np.stack([moving, still]), axis=1, return_inverse=True)
        available = np.array([_counts(int(k), int(s), policy) for k, s in kinds.T], np.int64).reshape(-1, 2)[kind]
        static = np.where(still > 0, np.minimum(slots, available[:, 0]), 0)
        return Draws(
            static,
            np.minimum(samples - slots, available[:, 1]),
            merged,
            joint,
            dynamic,
            (still > 0) | (self.share == 1),
        )

    def kept(self, valid: Ints, static: Bools, accepted: int, before: int) -> Ints:
        """Leave out the valid proposals that would exceed the share, given how many came before."""
        keep = np.empty(len(valid), np.bool_)
        _within_share(static[valid], accepted, before, self.share, keep)
        return valid[keep]


@cache
def _counts(moving: int, still: int, policy: UnionPolicy) -> tuple[int, int]:
    """Count the static unions of so many components, and all others; large numbers are cut off."""
    static = unions(still + (moving > 0), policy) if still else 0
    most, every = policy.most(moving + still), unions(moving + still, policy)
    if most >= moving + still - 1:
        mixed = max(0, 2**moving - 2) * 2**still
    else:
        one_sided = unions_up_to(still, most) + (unions_up_to(still, most - moving) + 1 if moving <= most else 0)
        mixed = every - one_sided if moving else 0
    return min(static, 2**40), min(mixed, 2**40)


def unions_up_to(components: int, most: int) -> int:
    """Count the non-empty unions of at most so many components."""
    return sum(comb(components, size) for size in range(1, min(components, most) + 1))


def swaps_only_static(swapped: NodeSet, static: NodeSet) -> Bools:
    """Tell which swaps leave all that is not static on one side, (B,)."""
    moving: Array = swapped[:, ~static]
    return np.asarray((moving == moving[:, :1]).all(axis=1)) if moving.shape[1] else np.ones(len(swapped), np.bool_)


@kernel
def _merge_dynamic(  # noqa: PLR0913, PLR0917
    start: int, stop: int, number: Ints, still: Bools, dynamic: Bools, merged: Ints, moving: Ints, joint: Ints
) -> None:
    """Tell static components from others, and number them anew with all others as one.

    ``still`` marks nodes that are static, or the same in both parents. ``moving`` receives how many components
    are not static, ``joint`` how many the new numbers count.
    """
    names = np.empty(number.shape[1], np.int64)
    for p in range(start, stop):
        for i in range(number.shape[1]):
            if number[p, i] >= 0 and not still[p, i]:
                dynamic[p, number[p, i]] = True
        moving[p] = 0
        for c in range(number.shape[1]):
            moving[p] += dynamic[p, c]
        joint[p] = min(moving[p], 1)
        names[:] = -1
        for i in range(number.shape[1]):
            c = number[p, i]
            if c >= 0 and names[c] < 0:
                if dynamic[p, c]:
                    names[c] = 0
                else:
                    names[c] = joint[p]
                    joint[p] += 1
            merged[p, i] = names[c] if c >= 0 else -1


@kernel
def _static_slots(start: int, stop: int, first: int, key: np.uint64, samples: int, share: float, slots: Ints) -> None:
    """Decide how many of a pair's unions may be static: the share of them, rounded up or down by chance."""
    for p in range(start, stop):
        chance = (scramble((key ^ SECOND) + np.uint64(first + p) * FIRST) >> np.uint64(11)) * 2.0**-53
        slots[p] = np.int64(samples * share + chance)


@kernel
def _within_share(static: Bools, accepted: int, before: int, share: float, keep: Bools) -> None:
    """Keep static ones, in order, only while they are at most a share of all that is kept, with those before.

    As long as there is nothing else to keep, they have no one to crowd out.
    """
    for r in range(len(static)):
        alone = share > 0 and accepted == before
        keep[r] = not static[r] or alone or before + 1 <= share * (accepted + 1)
        accepted += keep[r]
        before += keep[r] and static[r]
