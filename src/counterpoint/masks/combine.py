"""Several masks made one: what any of them says, what all of them say, and what an ensemble says."""

from abc import ABC, abstractmethod
from typing import Literal, get_args

import numpy as np

from counterpoint.core.arrays import Bools, Floats, listed
from counterpoint.core.protocols import Mask, declared

Rule = Literal["union", "vote"]


class Joined(ABC):
    """Several masks behind one: it looks at whatever one of them looks at."""

    def __init__(self, *masks: Mask) -> None:
        name = type(self).__name__
        if not masks:
            raise ValueError(f"{name}: expected at least one mask, got none.")
        wrong = [repr(mask) for mask in masks if not callable(mask)]
        if wrong:
            raise TypeError(
                f"{name}: expected masks, functions (state, action) -> bool (B, N, n), got {listed(wrong)}. "
                "Edges become a mask by Constant(adjacency), scores by Threshold(estimator, tau)."
            )
        self.masks = masks

    @property
    def uses_next_state(self) -> bool:
        """Whether one of the masks looks at the next state."""
        return "next_state" in declared(*self.masks)

    @property
    def uses_noise(self) -> bool:
        """Whether one of the masks looks at the noise."""
        return "noise" in declared(*self.masks)

    @abstractmethod
    def __call__(self, *inputs: Floats) -> Bools:
        """Return the joint edges, (B, N, n)."""

    def answers(self, inputs: tuple[Floats, ...]) -> list[Bools]:
        """Ask each mask with those of the joint inputs that it looks at; all of one shape, all booleans."""
        name = type(self).__name__
        extra = dict(zip(declared(*self.masks), inputs[2:], strict=False))
        answers = [
            np.asarray(mask(*inputs[:2], *(extra[key] for key in declared(mask) if key in extra)))
            for mask in self.masks
        ]
        shapes, dtypes = sorted({answer.shape for answer in answers}), sorted({str(answer.dtype) for answer in answers})
        if len(shapes) > 1:
            raise ValueError(f"{name}: the masks must have one shape, got {listed(shapes)}.")
        if dtypes != ["bool"]:
            raise TypeError(
                f"{name}: expected booleans, got {listed(dtypes)}. Scores need a Threshold(estimator, tau)."
            )
        return answers


class Union(Joined):
    """An edge wherever one of several masks has it."""

    def __call__(self, *inputs: Floats) -> Bools:
        """Return the edges of all masks together, (B, N, n)."""
        return np.asarray(np.logical_or.reduce(self.answers(inputs)))


class And(Joined):
    """An edge only where every one of several masks has it.

    Use it as ``And(static, learned)``: the first mask knows which edges can never exist, such as from an
    action to something out of its reach, and removes them from what was learned. An edge that one mask
    misses is missed by the whole, so do not join two learned masks like this: use ``Union`` for those.

    Example:
        >>> import numpy as np
        >>> from counterpoint import Factorization
        >>> from counterpoint.masks import Constant
        >>> factors = Factorization.blocks(state={"hand": 1, "cup": 1}, action={"motor": 1})
        >>> possible = Constant.edges(factors, [("motor", "hand"), ("hand", "cup")])
        >>> And(possible, Constant.full(factors))(np.zeros((1, 2)), np.zeros((1, 1)))[0].astype(int)
        array([[1, 1],
               [0, 1],
               [1, 0]])
    """

    def __call__(self, *inputs: Floats) -> Bools:
        """Return the edges that all masks share, (B, N, n)."""
        return np.asarray(np.logical_and.reduce(self.answers(inputs)))


class Ensemble(Joined):
    """One mask from several that were learned the same way, with other seeds or from other data.

    Args:
        *masks: the members.
        rule: "union" draws every edge that a member has: fewer are missed, and fewer swaps are made.
            "vote" draws the edges that at least half of the members have. A tie is an edge, because a
            missed one makes wrong counterfactuals.

    Example:
        >>> import numpy as np
        >>> from counterpoint import Factorization
        >>> from counterpoint.masks import Constant
        >>> factors = Factorization.blocks(state={"hand": 1, "cup": 1})
        >>> members = Constant.full(factors), Constant.identity(factors), Constant.identity(factors)
        >>> state, action = np.zeros((1, 2)), np.zeros((1, 0))
        >>> [int(Ensemble(*members, rule=rule)(state, action).sum()) for rule in ("union", "vote")]  # number of edges
        [4, 2]
    """

    def __init__(self, *masks: Mask, rule: Rule = "union") -> None:
        if rule not in get_args(Rule):
            raise ValueError(f"rule: expected {' or '.join(map(repr, get_args(Rule)))}, got {rule!r}.")
        super().__init__(*masks)
        self.rule = rule

    def __call__(self, *inputs: Floats) -> Bools:
        """Return the edges by the rule, (B, N, n)."""
        votes = np.sum(self.answers(inputs), axis=0)
        return np.asarray(votes > 0 if self.rule == "union" else 2 * votes >= len(self.masks))
