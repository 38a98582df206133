"""Observations and actions made of named parts, as flat columns with one factor for each part.

A tree is an array, or a mapping or tuple of trees, batch first. A part within a part is named by its path:
``{"goal": {"kettle": ...}}`` has the part ``goal/kettle``.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, listed, numbers
from counterpoint.core.factors import Factorization
from counterpoint.files.recording import FileProblem

Shapes: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]  # of each part, without the batch

ACHIEVED = "achieved_goal"  # what Gymnasium calls the part that is computed from the others


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Array]]:
    """Iterate over the named arrays of a tree; a tree that is one array has one part without a name.

    Example:
        >>> import numpy as np
        >>> [name for name, _ in leaves({"hand": np.zeros((5, 2)), "goal": {"cup": np.zeros((5, 3))}})]
        ['hand', 'goal/cup']
    """
    if isinstance(tree, tuple):
        tree = {str(index): part for index, part in enumerate(tree)}
    if not isinstance(tree, Mapping):
        yield name, np.asarray(tree)
        return
    for key, part in tree.items():
        yield from leaves(part, f"{name}/{key}" if name else str(key))


def chosen(named: Mapping[str, Any], keys: Iterable[str] | None) -> dict[str, Any]:
    """Return the parts that ``keys`` name, in that order; all of them for None."""
    if keys is None:
        return dict(named)
    keys = list(keys)
    unknown = [key for key in keys if key not in named]
    if unknown or not keys:
        raise FileProblem(f"keys: there is no part {listed(unknown) or 'named'}; there are {listed(list(named))}.")
    return {key: named[key] for key in keys}


def flat(named: Mapping[str, Array]) -> Array:
    """Put parts side by side as columns, (B, S), in the smallest dtype that holds them all."""
    return np.concatenate([_columns(name or "observations", array) for name, array in named.items()], axis=1)


def shapes_of(named: Mapping[str, Array]) -> Shapes:
    """Return the shape of each part, without the batch."""
    return tuple((name, array.shape[1:]) for name, array in named.items())


def width(shape: tuple[int, ...]) -> int:
    """Return the number of columns of a part."""
    return math.prod(shape)


def nested(columns: Array, shapes: Shapes) -> Any:
    """Undo `parts` and `flat`: columns (B, S) become a tree again; a single part without a name, an array."""
    tree: dict[str, Any] = {}
    start = 0
    for name, shape in shapes:
        array = columns[:, start : start + width(shape)].reshape(len(columns), *shape)
        start += width(shape)
        if not name:
            return array
        *folders, leaf = name.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = array
    return tree


def proposal(state: Shapes, action: Shapes) -> Factorization | None:
    """Propose one factor for each named part of the observations, or nothing if they have no names.

    An achieved goal is computed from the rest of the state, so its columns are declared derived.
    """
    if [name for name, _ in state] == [""]:
        return None
    spans, start = {}, 0
    for name, shape in state:
        spans[name] = tuple(range(start, start + width(shape)))
        start += width(shape)
    made = [name for name in spans if name.split("/")[0] == ACHIEVED]
    kept = {name: columns for name, columns in spans.items() if columns and name not in made}
    moves = {name or "action": width(shape) for name, shape in action if width(shape)}
    moves = {f"action/{name}" if name in kept else name: size for name, size in moves.items()}
    return Factorization(
        kept or spans,
        Factorization.blocks(state=moves).state if moves else {},
        derived=tuple(column for name in made for column in spans[name]) if kept else (),
    )


def _columns(name: str, array: Array) -> Array:
    """Return one part as columns, (B, width)."""
    if array.ndim >= 3 and array.dtype == np.uint8 and min(array.shape[1:3]) >= 32:
        raise FileProblem(
            f"{name} holds pictures of {' x '.join(map(str, array.shape[1:]))}, which cannot be swapped factor by "
            "factor. Name the parts to take instead: keys=[...]."
        )
    try:
        return numbers(name, array.reshape(len(array), -1) if array.size else _no_columns(array), ndim=2)
    except (TypeError, ValueError) as error:
        raise FileProblem(str(error)) from error


def _no_columns(array: Array) -> Array:
    return np.zeros((len(array), width(array.shape[1:])), array.dtype)
