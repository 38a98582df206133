"""Where rows come from: the parents of every row, and what was swapped between them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Ints, NodeSet
from counterpoint.core.factors import Factorization


@dataclass(frozen=True, eq=False)
class Provenance:
    """The parents of every row. A real row is its own base and donor, and nothing in it is swapped.

    Example:
        >>> import numpy as np
        >>> swap = Provenance(np.array([4]), np.array([7]), np.array([[False, True, True]]))
        >>> swap.origin
        array([[4, 7, 7]])
    """

    base: Ints  # (B,) row of the data that the counterfactual started from
    donor: Ints  # (B,) row of the data that gave the swapped factors
    swapped: NodeSet  # (B, N) which nodes came from the donor

    @classmethod
    def real(cls, rows: int, factors: Factorization, *, first: int = 0) -> Self:
        """Return the provenance of ``rows`` real rows, counted from ``first``."""
        own = np.arange(first, first + rows, dtype=np.int64)
        return cls(own, own, np.zeros((rows, factors.n + factors.m), np.bool_))

    @classmethod
    def empty(cls, rows: int, nodes: int) -> Self:
        """Allocate room for so many rows, unfilled."""
        return cls(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty((rows, nodes), np.bool_))

    @classmethod
    def concat(cls, *several: "Provenance") -> Self:
        """Join the provenance of rows behind the rows of others."""
        triples = zip(*(part.arrays() for part in several), strict=True)
        return cls(*(np.concatenate(arrays) for arrays in triples))

    def arrays(self) -> tuple[Ints, Ints, NodeSet]:
        """Return base, donor and swapped."""
        return self.base, self.donor, self.swapped

    @property
    def origin(self) -> Ints:
        """The row that each node comes from, (B, N)."""
        return np.where(self.swapped, self.donor[:, None], self.base[:, None])

    def among(self, own: int, first: int, others_first: int = 0) -> Self:
        """Return the same parents in larger data, where they stand elsewhere.

        Args:
            own: how many rows come first and stay together.
            first: the number of the first of them there.
            others_first: the number of the first row behind them there.
        """
        base, donor = (parent + np.where(parent < own, first, others_first - own) for parent in (self.base, self.donor))
        return type(self)(base, donor, self.swapped)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, index: Any) -> Self:
        """Select rows by slice, integer array or boolean array."""
        return type(self)(*(np.ascontiguousarray(array[index]) for array in self.arrays()))

    def require_parents(self, rows: int, factors: Factorization) -> None:
        """Raise unless parents are rows of data with so many, and swapped nodes are those of the factorisation."""
        nodes = len(factors.names)
        base, donor, swapped = self.arrays()
        if base.shape != donor.shape or swapped.shape != (len(base), nodes) or swapped.dtype != np.bool_:
            raise ValueError(f"swapped: expected bool {(len(base), nodes)}, and base and donor of as many rows.")
        for name, parent in (("base", base), ("donor", donor)):
            if parent.dtype.kind != "i" or (len(parent) and not 0 <= parent.min() <= parent.max() < rows):
                raise ValueError(f"{name}: expected rows of the data, whole numbers from 0 to {rows - 1:,}.")
