"""Masks that need no learning: constant, by distance, by a threshold on scores, and their union.

A mask is any function ``(state, action) -> bool (B, N, n)``; these are ready-made ones. Missed edges
make wrong counterfactuals, extra edges only cost yield, so when in doubt add an edge.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.kernels import kernel, run
from counterpoint.core.protocols import MaskFn, NextStateMaskFn


@dataclass(frozen=True, eq=False)
class Constant:
    """The same edges for every transition.

    Example:
        >>> factors = Factorization.blocks(state={"left": 2, "right": 2}, action={"push": 1})
        >>> Constant.edges(factors, [("push", "left")]).adjacency.astype(int)
        array([[1, 0],
               [0, 1],
               [1, 0]])
    """

    adjacency: Bools  # (N, n)

    def __post_init__(self) -> None:
        adjacency = np.asarray(self.adjacency)
        if adjacency.dtype != np.bool_ or adjacency.ndim != 2:
            raise ValueError(f"adjacency: expected booleans (N, n), got {adjacency.dtype} {adjacency.shape}.")
        object.__setattr__(self, "adjacency", adjacency.copy())

    @classmethod
    def edges(cls, factors: Factorization, edges: Iterable[tuple[str, str]]) -> Self:
        """Self-edges, and an edge from source to target for each named pair."""
        adjacency = np.eye(factors.n + factors.m, factors.n, dtype=np.bool_)
        for source, target in edges:
            adjacency[np.ix_(factors.nodes(source), factors.nodes(target)[: factors.n])] = True
            if target not in factors.state:
                raise ValueError(f"edges: {target!r} is an action; only state factors are influenced.")
        return cls(adjacency)

    @classmethod
    def identity(cls, factors: Factorization) -> Self:
        """Self-edges only: everything may be swapped. Almost always wrong; a baseline."""
        return cls.edges(factors, [])

    @classmethod
    def full(cls, factors: Factorization) -> Self:
        """All edges: nothing may be swapped."""
        return cls(np.ones((factors.n + factors.m, factors.n), np.bool_))

    def __call__(self, state: Floats, action: Floats, /) -> Bools:  # noqa: ARG002
        """Return the adjacency for each row, (B, N, n)."""
        return np.broadcast_to(self.adjacency, (len(state), *self.adjacency.shape))


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
                raise ValueError(f"{what}: {name!r} is no state factor; they are {listed(list(self.factors.state))}.")
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
                "moves: a forgotten edge makes wrong counterfactuals."
            )
        return Constant.edges(self.factors, [(a, s) for a, moved in attached.items() for s in moved]).adjacency

    @cached_property
    def _columns(self) -> tuple[Ints, Ints]:
        """Position and velocity columns of each node, (n, axes); -1 where there is none."""
        tables = []
        for columns in (self.positions, self.velocities or self.positions):
            axes = max((len(own) for own in columns.values()), default=0)
            table = np.full((self.factors.n, axes), -1, np.int64)
            for node, name in enumerate(self.factors.state):
                table[node] = columns.get(name, [-1] * axes)
            tables.append(table)
        return tables[0], tables[1]

    def __call__(self, state: Floats, action: Floats, /) -> Bools:  # noqa: ARG002
        """Return who is near whom, (B, N, n). Time O(B · pairs)."""
        mask = np.empty((len(state), *self._always.shape), np.bool_)
        mask[:] = self._always
        pairs, radii = self._pairs
        position, velocity = self._columns
        run(_near, len(state), state, position, velocity, self.velocities is not None, pairs, radii, mask)
        return mask


@kernel
def _near(  # noqa: PLR0913, PLR0917
    start: int,
    stop: int,
    state: Floats,
    position: Ints,
    velocity: Ints,
    ahead: bool,
    pairs: Ints,
    radii: Floats,
    mask: Bools,
) -> None:
    """Mark pairs whose squared distance, now or one step ahead, is below their squared radius."""
    axes = position.shape[1]
    now, later = np.zeros((len(position), axes)), np.zeros((len(position), axes))
    for b in range(start, stop):
        for i in range(len(position)):
            for x in range(axes):
                if position[i, x] >= 0:
                    now[i, x] = state[b, position[i, x]]
                    later[i, x] = now[i, x] + (state[b, velocity[i, x]] if ahead else 0.0)
        for k in range(len(pairs)):
            i, j = pairs[k, 0], pairs[k, 1]
            apart, after = 0.0, 0.0
            for x in range(axes):
                apart += (now[i, x] - now[j, x]) ** 2
                after += (later[i, x] - later[j, x]) ** 2
            if apart < radii[k] or after < radii[k]:
                mask[b, i, j] = mask[b, j, i] = True


@dataclass(frozen=True, eq=False)
class Threshold:
    """Scores become a mask: an edge where the score is above ``tau``.

    Attributes:
        score_fn: ``(state, action) -> float (B, N, n)``, larger meaning more dependent, or an object with
            such a method ``scores``. With the attribute ``uses_next_state`` it is given the next state.
        tau: the threshold.
    """

    score_fn: Callable[..., Array] | Any
    tau: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.tau):
            raise ValueError(f"tau: expected a finite number, got {self.tau!r}.")
        if not callable(self.score_fn) and not hasattr(self.score_fn, "scores"):
            raise TypeError(
                f"score_fn: expected a function or an object with a method 'scores', got {self.score_fn!r}."
            )

    @property
    def uses_next_state(self) -> bool:
        """Whether the scores look at the next state."""
        return bool(getattr(self.score_fn, "uses_next_state", False))

    def __call__(self, *inputs: Floats) -> Bools:
        """Return where the scores are above the threshold, (B, N, n)."""
        scores = np.asarray(getattr(self.score_fn, "scores", self.score_fn)(*inputs))
        if scores.dtype.kind != "f":
            raise TypeError(f"score_fn: expected floats, got dtype {scores.dtype}. A mask needs no Threshold.")
        if np.isnan(scores).any():
            raise ValueError("score_fn: some scores are NaN, which is neither an edge nor the lack of one.")
        return scores > self.tau


class Union:
    """An edge wherever one of several masks has it."""

    def __init__(self, *masks: MaskFn | NextStateMaskFn) -> None:
        if not masks:
            raise ValueError("Union: expected at least one mask, got none.")
        self.masks = masks

    @property
    def uses_next_state(self) -> bool:
        """Whether one of the masks looks at the next state."""
        return any(getattr(mask, "uses_next_state", False) for mask in self.masks)

    def __call__(self, *inputs: Floats) -> Bools:
        """Return the edges of all masks together, (B, N, n)."""
        parts = [ask(mask, *inputs) for mask in self.masks]
        shapes = sorted({part.shape for part in parts})
        if len(shapes) > 1:
            raise ValueError(f"Union: the masks must have one shape, got {listed(shapes)}.")
        return np.asarray(np.logical_or.reduce(parts))


def ask(mask: MaskFn | NextStateMaskFn, *inputs: Floats) -> Bools:
    """Call a mask with the next state if it declares that it uses it, and without it otherwise."""
    return np.asarray(mask(*inputs) if getattr(mask, "uses_next_state", False) else mask(*inputs[:2]))
