"""What a file holds: transitions, what is said about all of them, and where each row comes from.

Every format maps between a file and a plain dict of named columns, so a reader or writer is short:
`columns` takes a recording apart, `assembled` checks columns and puts them together again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, listed, numbers
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.provenance import Provenance
from counterpoint.core.transitions import OPTIONAL, REQUIRED, Transitions

PARENTS = ("base", "donor", "swapped")
NAMES = (*REQUIRED, *OPTIONAL, *PARENTS)  # of all columns that a file may hold

Columns: TypeAlias = dict[str, Array]


class FileProblem(ValueError):
    """A file cannot be read or written; the message says which, why, and what to try."""


@dataclass(frozen=True)
class Head:
    """What a file says about all of its rows.

    Attributes:
        factors: how columns split into factors, if the file says so or its layout suggests it.
        source: the file whose rows ``base`` and ``donor`` count.
        filters: named sets of episodes, such as robomimic's ``train`` and ``valid``.
        notes: anything else worth keeping, as plain JSON values.
        source_rows: how many rows the source has, which bounds ``base`` and ``donor``.
    """

    factors: Factorization | None = None
    source: str | None = None
    filters: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    source_rows: int | None = None


@dataclass(frozen=True, eq=False)
class Recording:
    """The contents of a file, or a chunk of it.

    Example:
        >>> import numpy as np
        >>> data = Transitions(np.zeros((5, 4)), np.zeros((5, 1)), np.zeros(5), np.zeros((5, 4)), np.zeros(5, bool))
        >>> recording = Recording.of(data)
        >>> len(recording), len(recording[1:3]), recording.factors, recording.provenance
        (5, 2, None, None)
    """

    transitions: Transitions
    head: Head = field(default_factory=Head)
    provenance: Provenance | None = None

    @classmethod
    def of(cls, data: "Transitions | Counterfactuals | Recording", head: Head | None = None) -> "Recording":
        """Wrap transitions or counterfactuals; a recording keeps its own head unless another is given."""
        if isinstance(data, Recording):
            return data if head is None else replace(data, head=head)
        if isinstance(data, Counterfactuals):
            return cls(data.transitions, head or Head(), data.provenance)
        if isinstance(data, Transitions):
            return cls(data, head or Head())
        raise TypeError(f"data: expected Transitions, Counterfactuals or a Recording, got {type(data).__name__}.")

    @property
    def factors(self) -> Factorization | None:
        """How columns split into factors, or None if the file does not say."""
        return self.head.factors

    def columns(self) -> Columns:
        """Return every column that is present, by name, in the order of ``NAMES``."""
        found = dict(self.transitions.columns())
        if self.provenance is not None:
            found.update({name: getattr(self.provenance, name) for name in PARENTS})
        return found

    def only(self, name: str) -> "Recording":
        """Return the rows of the episodes of one filter, such as ``train``."""
        episode = self.transitions.episode
        if name not in self.head.filters or episode is None:
            raise ValueError(
                f"only: no filter is called {name!r}; there are {listed(list(self.head.filters)) or 'none'}."
            )
        return self[np.isin(episode, self.head.filters[name])]

    def copy(self) -> "Recording":
        """Return a recording with arrays of its own."""
        return trusted({name: array.copy() for name, array in self.columns().items()}, self.head)

    def __len__(self) -> int:
        return len(self.transitions)

    def __getitem__(self, index: Any) -> "Recording":
        """Select rows, as of ``Transitions``."""
        return trusted({name: np.ascontiguousarray(array[index]) for name, array in self.columns().items()}, self.head)


def trusted(columns: Mapping[str, Array], head: Head) -> Recording:
    """Build a recording from columns that are known to be good."""
    parents = Provenance(*(columns[name] for name in PARENTS)) if PARENTS[0] in columns else None
    plain = {name: array for name, array in columns.items() if name not in PARENTS}
    return Recording(Transitions.trusted(**plain), head, parents)


def assembled(columns: Mapping[str, Array], head: Head, *, first: int = 0) -> Recording:
    """Check columns as they came from a file, and build a recording from them; ``first`` is the file's row number."""
    missing = [name for name in REQUIRED if name not in columns]
    if missing:
        there = listed(sorted(columns)) or "none"
        raise FileProblem(f"the columns {listed(missing)} are missing; those there are {there}.")
    try:
        checked = Transitions(**{name: columns[name] for name in (*REQUIRED, *OPTIONAL) if name in columns})
        if head.factors is not None:
            head.factors.require_widths(checked.state.shape[1], checked.action.shape[1])
    except (TypeError, ValueError) as error:
        for name in (*REQUIRED, *OPTIONAL) if first else ():
            require_finite_from(first, name, columns.get(name))
        raise FileProblem(str(error)) from error
    found = [name for name in PARENTS if name in columns]
    if not found:
        return Recording(checked, head)
    if len(found) < len(PARENTS):
        raise FileProblem(f"provenance needs {listed(PARENTS)}, but there is only {listed(found)}.")
    return Recording(checked, head, _parents(columns, head, len(checked), first))


def require_finite_from(first: int, name: str, array: Array | None) -> None:
    """Raise if a chunk of a column holds NaN or infinity, naming the row of the file."""
    if array is None or array.dtype.kind != "f" or np.isfinite(array).all():
        return
    row = first + int(np.argmax(~np.isfinite(array.reshape(len(array), -1)).all(axis=1)))
    raise FileProblem(f"{name}: it holds NaN or infinity, first at row {row:,}. Remove such rows or repair them.")


def _parents(columns: Mapping[str, Array], head: Head, rows: int, first: int) -> Provenance:
    """Check the provenance that a file claims: every parent must be a row of the source."""
    try:
        base, donor, swapped = (numbers(name, columns[name], ndim=2 if name == "swapped" else 1) for name in PARENTS)
    except (TypeError, ValueError) as error:
        raise FileProblem(f"provenance: {error}") from error
    kinds = (base.dtype.kind, donor.dtype.kind, swapped.dtype.kind)
    if {len(base), len(donor), len(swapped)} != {rows} or kinds != ("i", "i", "b"):
        raise FileProblem("provenance: expected whole numbers base and donor and booleans swapped, one for each row.")
    if head.factors is not None and swapped.shape[1] != len(head.factors.names):
        raise FileProblem(
            f"provenance: swapped has {swapped.shape[1]} nodes, and the factors have {len(head.factors.names)}."
        )
    most = np.iinfo(np.int64).max if head.source_rows is None else head.source_rows - 1
    for name, parent in (("base", base), ("donor", donor)):
        outside = (parent < 0) | (parent > most)
        if outside.any():
            row = int(outside.argmax())
            bound = "" if head.source_rows is None else f"; the source has {head.source_rows:,} rows"
            raise FileProblem(
                f"provenance: {name} of row {first + row:,} is {int(parent[row])}, which is not a row of the source"
                f"{bound}. The file is damaged."
            )
    return Provenance(base, donor, swapped)


def joined(chunks: Iterable[Recording]) -> Recording:
    """Join recordings of one shape row after row, under the head of the first."""
    every = list(chunks)
    if len(every) == 1:
        return every[0]
    columns = [chunk.columns() for chunk in every]
    return trusted({name: np.concatenate([found[name] for found in columns]) for name in columns[0]}, every[0].head)
