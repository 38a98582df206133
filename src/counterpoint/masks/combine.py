"""Several masks made one: what all of them say, and what an ensemble says."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from counterpoint.core.arrays import Bools, Floats, listed
from counterpoint.core.protocols import MaskFn, NextStateMaskFn
from counterpoint.masks.simple import ask

Mask: TypeAlias = MaskFn | NextStateMaskFn
Rule = Literal["union", "vote"]


class And:
    """An edge only where every one of several masks has it.

    Its use is ``And(static, learned)``: the first mask knows edges that cannot exist anywhere, such as
    from an action to what is out of its reach, and removes them from what was learned. An edge that one
    mask misses is missed by all, so do not join two learned masks like this: that is ``Union``'s task.

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

    def __init__(self, *masks: Mask) -> None:
        self.masks = _some("And", masks)

    @property
    def uses_next_state(self) -> bool:
        """Whether one of the masks looks at the next state."""
        return _use_next_state(self.masks)

    def __call__(self, *inputs: Floats) -> Bools:
        """Return the edges that all masks share, (B, N, n)."""
        return np.asarray(np.logical_and.reduce(_answers("And", self.masks, inputs)))


class Ensemble:
    """One mask of several that were learned alike, from other seeds or other data.

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
        self.masks = _some("Ensemble", masks)
        self.rule = rule

    @property
    def uses_next_state(self) -> bool:
        """Whether one of the members looks at the next state."""
        return _use_next_state(self.masks)

    def __call__(self, *inputs: Floats) -> Bools:
        """Return the edges by the rule, (B, N, n)."""
        votes = np.sum(_answers("Ensemble", self.masks, inputs), axis=0)
        return np.asarray(votes > 0 if self.rule == "union" else 2 * votes >= len(self.masks))


def _some(name: str, masks: tuple[Mask, ...]) -> tuple[Mask, ...]:
    if not masks:
        raise ValueError(f"{name}: expected at least one mask, got none.")
    wrong = [repr(mask) for mask in masks if not callable(mask)]
    if wrong:
        raise TypeError(
            f"{name}: expected masks, functions (state, action) -> bool (B, N, n), got {listed(wrong)}. "
            "Edges become a mask by Constant(adjacency), scores by Threshold(estimator, tau)."
        )
    return masks


def _use_next_state(masks: Sequence[Mask]) -> bool:
    return any(getattr(mask, "uses_next_state", False) for mask in masks)


def _answers(name: str, masks: Sequence[Mask], inputs: tuple[Floats, ...]) -> list[Bools]:
    """Return what each mask says, all of one shape and all booleans."""
    answers = [ask(mask, *inputs) for mask in masks]
    shapes, dtypes = sorted({answer.shape for answer in answers}), sorted({str(answer.dtype) for answer in answers})
    if len(shapes) > 1:
        raise ValueError(f"{name}: the masks must have one shape, got {listed(shapes)}.")
    if dtypes != ["bool"]:
        raise TypeError(f"{name}: expected booleans, got {listed(dtypes)}. Scores need a Threshold(estimator, tau).")
    return answers
