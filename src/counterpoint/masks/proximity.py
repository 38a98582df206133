"""Factors influence each other while they are close."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.kernels import kernel
from counterpoint.core.threads import run
from counterpoint.masks.simple import Constant


@dataclass(frozen=True, eq=False)
class Proximity:
    """Factors influence each other, both ways, while they are closer than a radius.

    The paper's mask for Fetch: things far apart do not touch. Factors without a position have only
    their self-edge.

    Attributes:
        factors: how columns split into factors.
        positions: the state columns that hold each factor's position, in the same order of axes.
        radius: edge where the distance is below it; one number, or one for each pair of names.
        attached: which state factors each action factor always moves. With a single action factor the
            names alone will do.
        velocities: columns of displacement per step; if given, the distance one step ahead counts too.

    Example:
        >>> import numpy as np
        >>> factors = Factorization.blocks(state={"hand": 2, "cup": 2}, action={"motor": 1})
        >>> mask = Proximity(factors, {"hand": (0, 1), "cup": (2, 3)}, 0.1, attached=("hand",))
        >>> mask(np.array([[0.0, 0.0, 0.05, 0.0]]), np.zeros((1, 1))).astype(int)[0]
        array([[1, 1],
               [1, 1],
               [1, 0]])
    """

    factors: Factorization
    positions: Mapping[str, Sequence[int]]
    radius: float | Mapping[tuple[str, str], float]
    attached: Mapping[str, Sequence[str]] | Sequence[str] = field(default=())
    velocities: Mapping[str, Sequence[int]] | None = None

    def __post_init__(self) -> None:
        self._require_columns("positions", self.positions)
        if self.velocities is not None:
            self._require_columns("velocities", self.velocities)
            if set(self.velocities) != set(self.positions):
                raise ValueError("velocities: expected the same factors as positions.")
        radii = self.radius.values() if isinstance(self.radius, Mapping) else [self.radius]
        if not all(np.isfinite(radius) and radius > 0 for radius in radii):
            raise ValueError(f"radius: expected positive distances, got {self.radius!r}.")
        _ = self._pairs, self._always

    def _require_columns(self, what: str, columns: Mapping[str, Sequence[int]]) -> None:
        for name, own in columns.items():
            if name not in self.factors.state:
                raise ValueError(
                    f"{what}: {name!r} is not a state factor; these are: {listed(list(self.factors.state))}."
                )
            foreign = sorted(set(own) - set(self.factors.state[name]))
            if foreign or not len(own):
                raise ValueError(
                    f"{what}: {name!r} owns the columns {self.factors.state[name]}, expected some of these, "
                    f"got {tuple(own)}."
                )
        if len({len(own) for own in columns.values()}) > 1:
            raise ValueError(f"{what}: every factor needs the same number of axes, got {dict(columns)}.")

    @cached_property
    def _pairs(self) -> tuple[Ints, Floats]:
        """Pairs of nodes that can come close, (K, 2), and their squared radii, (K,)."""
        order = {name: node for node, name in enumerate(self.factors.names)}
        if isinstance(self.radius, Mapping):
            radii = dict(self.radius)
            unknown = [name for pair in radii for name in pair if name not in self.positions]
            if unknown:
                raise ValueError(
                    f"radius: {listed(unknown)} has no position; those with one: {listed(list(self.positions))}."
                )
        else:
            names = list(self.positions)
            radii = {(one, two): float(self.radius) for k, one in enumerate(names) for two in names[k + 1 :]}
        pairs = np.array([[order[one], order[two]] for one, two in radii], np.int64).reshape(-1, 2)
        return pairs, np.square(np.array(list(radii.values()), np.float64))

    @cached_property
    def _always(self) -> Bools:
        """The edges that are there in any case, (N, n)."""
        actions, attached = list(self.factors.action), self.attached
        if not isinstance(attached, Mapping):
            if len(actions) != 1 and (actions or len(attached)):
                raise ValueError(
                    f"attached: there are {len(actions)} action factors, so say which factors each one moves, "
                    'for instance {"left motor": ["left arm"]}.'
                )
            attached = dict.fromkeys(actions, attached)
        missing = [name for name in actions if not attached.get(name)]
        if missing:
            raise ValueError(
                f"attached: the action factor {listed(missing)} moves nothing. Name the state factors that it "
                "moves: a missing edge makes wrong counterfactuals."
            )
        return Constant.edges(self.factors, [(a, s) for a, moved in attached.items() for s in moved]).adjacency

    @cached_property
    def _columns(self) -> Ints:
        """The columns of both positions of each pair, and of both velocities if there are any, (K, 2 or 4, axes)."""
        names, given = list(self.factors.state), [columns for columns in (self.positions, self.velocities) if columns]
        axes = len(next(iter(self.positions.values()), ()))
        found = [[columns[names[node]] for columns in given for node in pair] for pair in self._pairs[0]]
        return np.array(found, np.uint64).reshape(len(found), 2 * len(given), axes)

    def __call__(self, state: Floats, action: Floats, /) -> Bools:  # noqa: ARG002
        """Return who is near whom, (B, N, n). Time O(B · pairs)."""
        mask = np.empty((len(state), *self._always.shape), np.bool_)
        mask[:] = self._always
        run(_near, len(state), state, self._columns, *self._pairs, mask)
        return mask


@kernel
def _near(start: int, stop: int, state: Floats, columns: Ints, pairs: Ints, radii: Floats, mask: Bools) -> None:
    """Mark pairs whose squared distance, now or one step ahead, is below their squared radius."""
    ahead = columns.shape[1] > 2
    for b in range(start, stop):
        row = state[b]
        for k in range(len(pairs)):
            now, later = 0.0, 0.0
            for x in range(columns.shape[2]):
                one, two = np.float64(row[columns[k, 0, x]]), np.float64(row[columns[k, 1, x]])
                now += (one - two) * (one - two)
                if ahead:
                    one += np.float64(row[columns[k, 2, x]])
                    two += np.float64(row[columns[k, 3, x]])
                    later += (one - two) * (one - two)
            if now < radii[k] or (ahead and later < radii[k]):
                mask[b, pairs[k, 0], pairs[k, 1]] = mask[b, pairs[k, 1], pairs[k, 0]] = True
