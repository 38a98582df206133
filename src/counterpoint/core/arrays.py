"""Names for the arrays that travel through the package, and how they are checked at the door.

Shape letters, used in every docstring and field comment: ``B`` batch, ``S``/``A`` state/action
columns, ``n``/``m`` state/action factors, ``N = n + m`` nodes (state factors first), ``U`` noise
columns. Batch first, always.

Words for rows that go together: a *batch* is whatever a function is given at once. Where rows are cut up so
that memory stays bounded, what is held at a time is a *chunk*: of a file, of proposals, of anything.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.floating[Any]]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.integer[Any]]
NodeSet: TypeAlias = NDArray[np.bool_]  # (N,) or (B, N): which nodes are in the set

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def listed(items: Sequence[object], most: int = 8) -> str:
    """Write items as a short English list, for messages: ``a, b, c and 4 more``."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def counted(value: int, noun: str) -> str:
    """Write a count with its noun.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{value:,} {noun}" + ("" if value == 1 else "s")


def numbers(name: str, value: object, *, ndim: int) -> Array:
    """Return ``value`` as a contiguous numeric array of ``ndim`` dimensions, or say what is wrong."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.dtype.itemsize not in _UNSIGNED:
        raise TypeError(
            f"{name}: expected an array of numbers of at most 8 bytes, got dtype {array.dtype}. "
            "Convert it first, for instance with .astype(np.float32)."
        )
    if array.ndim != ndim:
        shape = "(B,)" if ndim == 1 else "(B, columns)"
        hint = "Take [:, 0] of a single column." if ndim == 1 else "One transition is a batch of one: use x[None]."
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}. {hint}")
    return np.ascontiguousarray(array)


def require_finite(name: str, array: Array) -> None:
    """Raise ``ValueError`` naming the first row and column that is NaN or infinite.

    The sum of an array is finite only if all its values are, so the usual case needs no memory.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind != "f" or np.isfinite(array.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    row = int(np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))[0])
    where = f"row {row}" if array.ndim == 1 else f"row {row}, column {int(np.flatnonzero(bad[row])[0])}"
    raise ValueError(
        f"{name}: {int(bad.sum())} values are NaN or infinite, first at {where}. "
        "Remove those rows or repair them before augmenting: a swap would spread them."
    )


def words(array: Array) -> NDArray[np.unsignedinteger[Any]]:
    """View an array's bits as unsigned integers, so that copies are bitwise and dtypes do not matter."""
    return array.view(_UNSIGNED[array.dtype.itemsize])


def read_only(array: Array) -> Array:
    """Return a view that cannot be written to; what users' functions are given."""
    view = array.view()
    view.flags.writeable = False
    return view
