"""Constant edges, and a threshold on scores."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import declared


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
class Threshold:
    """Scores become a mask: an edge where the score is above ``tau``.

    Attributes:
        score_fn: ``(state, action) -> float (B, N, n)``, larger meaning more dependent, or an object with
            such a method ``scores``. With the attributes ``uses_next_state`` and ``uses_noise`` it is given
            the next state and the noise.
        tau: the threshold; or one for each edge, (N, n): scores of different kinds may live on different scales.
    """

    score_fn: Callable[..., Array] | Any
    tau: float | Floats

    def __post_init__(self) -> None:
        if np.ndim(self.tau) not in (0, 2):
            raise ValueError(f"tau: expected a number, or one for each edge, (N, n), got shape {np.shape(self.tau)}.")
        if not np.isfinite(self.tau).all():
            raise ValueError(f"tau: expected a finite number, got {self.tau!r}.")
        if not callable(self.score_fn) and not hasattr(self.score_fn, "scores"):
            raise TypeError(
                f"score_fn: expected a function or an object with a method 'scores', got {self.score_fn!r}."
            )

    @property
    def uses_next_state(self) -> bool:
        """Whether the scores look at the next state."""
        return "next_state" in declared(self.score_fn)

    @property
    def uses_noise(self) -> bool:
        """Whether the scores look at the noise."""
        return "noise" in declared(self.score_fn)

    def __call__(self, *inputs: Floats) -> Bools:
        """Return where the scores are above the threshold, (B, N, n)."""
        return ask_scores(self.score_fn, *inputs) > self.tau


def ask_scores(score_fn: Callable[..., Array] | Any, *inputs: Floats) -> Floats:
    """Call a function of scores, or an object with a method ``scores``, and check what it returns, (B, N, n)."""
    scores = np.asarray(getattr(score_fn, "scores", score_fn)(*inputs))
    if scores.dtype.kind != "f":
        raise TypeError(f"score_fn: expected floats, got dtype {scores.dtype}. A mask needs no Threshold.")
    if np.isnan(scores).any():
        raise ValueError("score_fn: some scores are NaN, which is neither an edge nor the lack of one.")
    return scores
