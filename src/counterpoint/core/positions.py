"""Where factors are: which columns are coordinates, and how they map into one common space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Floats

Number: TypeAlias = float | Sequence[float]


@dataclass(frozen=True)
class Position:
    """The columns of a factor that are coordinates; in the common space they are ``scale * value + offset``.

    Attributes:
        columns: columns of the state, or of the action for an action factor, one per axis.
        scale: one number, or one for each axis.
        offset: one number, or one for each axis.

    Example:
        >>> import numpy as np
        >>> click = Position((0, 1), scale=0.5, offset=0.5)  # from [-1, 1] to the unit square
        >>> click.of(np.array([[-1.0, 1.0]]))
        array([[0., 1.]])
    """

    columns: tuple[int, ...]
    scale: Number = 1.0
    offset: Number = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(int(column) for column in self.columns))
        for name in ("scale", "offset"):
            value = np.asarray(getattr(self, name), np.float64)
            if value.shape not in ((), (len(self.columns),)) or not np.isfinite(value).all():
                raise ValueError(
                    f"{name}: expected one finite number, or one for each axis, got {getattr(self, name)!r}."
                )
            object.__setattr__(self, name, tuple(value.tolist()) if value.ndim else float(value))

    def of(self, values: Array) -> Floats:
        """Return the points of a batch in the common space, (B, axes)."""
        return np.asarray(values[:, list(self.columns)] * np.asarray(self.scale) + np.asarray(self.offset))


Positions: TypeAlias = Mapping[str, Position]


def require_positions(positions: Positions, owned: Mapping[str, tuple[int, ...]]) -> None:
    """Raise unless every position belongs to a factor, is made of its own columns, and has as many axes."""
    for name, position in positions.items():
        if name not in owned:
            raise ValueError(f"positions: no factor is called {name!r}; the factors are {', '.join(owned)}.")
        if not position.columns or not set(position.columns) <= set(owned[name]):
            raise ValueError(
                f"positions: {name!r} owns the columns {owned[name]}, expected some of these, got {position.columns}."
            )
    axes = {name: len(position.columns) for name, position in positions.items()}
    if len(set(axes.values())) > 1:
        raise ValueError(f"positions: every factor needs the same number of axes, got {axes}.")
