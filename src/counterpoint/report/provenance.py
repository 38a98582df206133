"""Where counterfactuals come from: which sets of factors were swapped, and how many rows gave them."""

from dataclasses import dataclass

import numpy as np

from counterpoint.core.arrays import Ints, NodeSet
from counterpoint.core.provenance import Provenance

MOST_SETS = 12


@dataclass(frozen=True, eq=False)
class SwapSet:
    """One set of factors that was swapped."""

    nodes: NodeSet  # (N,)
    rows: int  # counterfactuals made by swapping it
    donors: int  # different rows that gave it
    bases: int  # different rows that received it


@dataclass(frozen=True)
class Parents:
    """How many different rows the counterfactuals come from."""

    bases: int
    donors: int
    either: int  # rows that are base or donor of some counterfactual
    heaviest: float  # share of the counterfactuals in which the busiest row has a part


def swap_sets(rows: Provenance, most: int = MOST_SETS) -> tuple[list[SwapSet], int]:
    """Return the sets that were swapped most often, and how many different ones there are.

    Args:
        rows: where the counterfactuals come from.
        most: how many sets to return.

    Time O(B log B).
    """
    if not len(rows):
        return [], 0
    packed = np.packbits(rows.swapped, axis=1)
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first, of_row, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    donors, bases = _different(of_row, rows.donor, len(count)), _different(of_row, rows.base, len(count))
    order = np.argsort(-count, kind="stable")[:most]
    sets = [SwapSet(rows.swapped[first[k]], int(count[k]), int(donors[k]), int(bases[k])) for k in order]
    return sets, len(count)


def parents(rows: Provenance) -> Parents:
    """Count the different rows among bases and donors."""
    base, donor = rows.base, rows.donor
    if not len(base):
        return Parents(0, 0, 0, 0.0)
    size = int(max(base.max(), donor.max())) + 1
    taken = np.bincount(base, minlength=size) + np.bincount(donor[donor != base], minlength=size)
    return Parents(
        len(np.unique(base)), len(np.unique(donor)), int(np.count_nonzero(taken)), float(taken.max() / len(base))
    )


def _different(group: Ints, values: Ints, groups: int) -> Ints:
    """Count the different values in each group, (groups,)."""
    size = int(values.max()) + 1
    return np.bincount(np.unique(group * size + values) // size, minlength=groups)
