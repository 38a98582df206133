"""Goal environments: their dict observations become flat states in which the goal is a factor, and back.

A goal is a state factor that never changes. Swapping it between transitions is goal relabelling: hindsight
experience replay is the special case in which nothing else is swapped and the goal comes from the same episode.
Rewards are then relabelled by the environment's own ``compute_reward``.

A flat state is ``[observation | desired goal | achieved goal]``. The achieved goal follows from the observation. If it
copies some of its columns, name them, and the state leaves it out. Otherwise its columns are declared derived, and
`Augmenter` needs a ``derive`` function.

Shape letters are those of ``counterpoint.core.arrays``; ``O`` and ``G`` are the columns of observations and goals.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import Mask, RewardFn, TerminalFn
from counterpoint.files.trees import Shapes, flat, leaves, nested, width

OBSERVATION, DESIRED, ACHIEVED = "observation", "desired_goal", "achieved_goal"


@dataclass(frozen=True)
class Goals:
    """Where the three parts of a goal environment's observations lie in a flat state.

    Attributes:
        observation: names and shapes of the parts of ``observation`` (one without a name, if it is an array).
        goal: the same for ``desired_goal``, and so for ``achieved_goal``.
        achieved: the columns of the observation that the achieved goal copies; None keeps it in the state.

    Example:
        >>> import numpy as np
        >>> goals = Goals.arrays(4, 2, achieved=(2, 3))  # hand and puck; the puck must get to the goal
        >>> shown = {"observation": np.arange(4.0)[None], "desired_goal": np.ones((1, 2))}
        >>> state = goals.flatten({**shown, "achieved_goal": np.array([[2.0, 3.0]])})
        >>> state
        array([[0., 1., 2., 3., 1., 1.]])
        >>> goals.unflatten(state)["achieved_goal"]
        array([[2., 3.]])
        >>> goals.factors(Factorization.blocks(state={"hand": 2, "puck": 2}, action={"motor": 2})).names
        ('hand', 'puck', 'goal', 'motor')
    """

    observation: Shapes
    goal: Shapes
    achieved: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.achieved is None:
            return
        object.__setattr__(self, "achieved", tuple(int(column) for column in self.achieved))
        if len(self.achieved) != self.G or not all(0 <= column < self.O for column in self.achieved):
            raise ValueError(
                f"achieved: expected {self.G} columns below {self.O}, as wide as a goal, got {self.achieved}."
            )

    @classmethod
    def arrays(cls, observation: int, goal: int, *, achieved: tuple[int, ...] | None = None) -> Self:
        """Describe observations and goals that are plain arrays of so many columns."""
        return cls((("", (observation,)),), (("", (goal,)),), achieved)

    @classmethod
    def of_space(cls, space: Any, *, achieved: tuple[int, ...] | None = None) -> Self:
        """Describe the observation space of a Gymnasium goal environment, with its keys in their own order."""
        there = getattr(space, "spaces", {})
        missing = [key for key in (OBSERVATION, DESIRED, ACHIEVED) if key not in there]
        if missing:
            raise ValueError(
                f"space: expected a Dict with {OBSERVATION}, {DESIRED} and {ACHIEVED}; {missing} is missing."
            )
        return cls(_shapes(there[OBSERVATION]), _shapes(there[DESIRED]), achieved)

    @property
    def O(self) -> int:  # noqa: E743, N802
        """Number of columns of an observation."""
        return sum(width(shape) for _, shape in self.observation)

    @property
    def G(self) -> int:  # noqa: N802
        """Number of columns of a goal."""
        return sum(width(shape) for _, shape in self.goal)

    @property
    def S(self) -> int:  # noqa: N802
        """Number of columns of a flat state."""
        return self.O + self.G * (1 if self.achieved is not None else 2)

    def flatten(self, shown: Mapping[str, Any]) -> Floats:
        """Return dict observations as flat states, (B, S). One observation is a batch of one: use x[None]."""
        named = {key: dict(leaves(shown[key])) for key in (OBSERVATION, DESIRED, ACHIEVED)}
        for key, shapes in ((OBSERVATION, self.observation), (DESIRED, self.goal), (ACHIEVED, self.goal)):
            came = tuple((name, array.shape[1:]) for name, array in named[key].items())
            if sorted(came) != sorted(shapes):
                raise ValueError(f"{key}: expected a batch of parts shaped {dict(shapes)}, got {dict(came)}.")
            named[key] = {name: named[key][name] for name, _ in shapes}
        seen, wanted, reached = (flat(named[key]) for key in (OBSERVATION, DESIRED, ACHIEVED))
        if self.achieved is None:
            return np.concatenate([seen, wanted, reached], axis=1)
        if not np.array_equal(seen[:, self.achieved], reached):
            raise ValueError(
                f"achieved: the columns {self.achieved} of the observation are not the achieved goal. "
                "Leave `achieved` out to keep it in the state as derived columns."
            )
        return np.concatenate([seen, wanted], axis=1)

    def unflatten(self, state: Array) -> dict[str, Any]:
        """Return flat states as dict observations; the inverse of `flatten`."""
        return {
            OBSERVATION: nested(state[:, : self.O], self.observation),
            ACHIEVED: nested(self.achieved_goal(state), self.goal),
            DESIRED: nested(self.desired_goal(state), self.goal),
        }

    def desired_goal(self, state: Array) -> Floats:
        """Return the goals of flat states, (B, G)."""
        return state[:, self.O : self.O + self.G]

    def achieved_goal(self, state: Array) -> Floats:
        """Return the goals that flat states achieve, (B, G)."""
        return state[:, self.O + self.G :] if self.achieved is None else state[:, list(self.achieved)]

    def factors(self, inner: Factorization, *, name: str = "goal") -> Factorization:
        """Add the goal as the last state factor to a factorisation of the observation."""
        inner.require_widths(self.O, inner.action_width)
        stored = () if self.achieved is not None else tuple(range(self.O + self.G, self.S))
        goal = {name: tuple(range(self.O, self.O + self.G))}
        derived, static = (*inner.derived, *stored), (*inner.static, name)
        return replace(inner, state={**inner.state, **goal}, derived=derived, static=static)

    def mask(self, inner: Mask, factors: Factorization) -> Mask:
        """Extend a mask of the observation's factors: the goal depends on itself alone, and nothing depends on it.

        What the inner mask declares to look at, next states or noise, it is given.

        Args:
            inner: a mask for states without goals.
            factors: what `factors` returned.
        """
        return _WithGoal(inner, self, factors)

    def reward_fn(self, compute_reward: Callable[..., Any]) -> RewardFn:
        """Turn an environment's ``compute_reward(achieved_goal, desired_goal, info)`` into a reward function.

        The reward function passes whole batches and an empty info, as Gymnasium-Robotics allows.
        """
        return lambda _, __, next_state: np.asarray(self._asked(compute_reward, next_state), np.float64)

    def terminal_fn(self, compute_terminated: Callable[..., Any]) -> TerminalFn:
        """Turn an environment's ``compute_terminated`` into a terminal function; one answer for all rows will do."""

        def terminal(_: Floats, __: Floats, next_state: Floats, /) -> Bools:
            return np.broadcast_to(np.asarray(self._asked(compute_terminated, next_state), np.bool_), len(next_state))

        return terminal

    def _asked(self, function: Callable[..., Any], state: Floats) -> Any:
        shown = self.unflatten(state)
        return function(shown[ACHIEVED], shown[DESIRED], {})


@dataclass(frozen=True, eq=False)
class _WithGoal:
    """A mask of the observation's factors, and of a goal that keeps to itself."""

    inner: Any
    goals: Goals
    factors: Factorization

    @property
    def uses_next_state(self) -> bool:
        """Whether the inner mask looks at next states."""
        return bool(getattr(self.inner, "uses_next_state", False))

    @property
    def uses_noise(self) -> bool:
        """Whether the inner mask looks at noise."""
        return bool(getattr(self.inner, "uses_noise", False))

    @property
    def rows_at_once(self) -> int:
        """How many rows the inner mask likes to see at a time."""
        return int(getattr(self.inner, "rows_at_once", 65536))

    def __call__(self, state: Floats, action: Floats, /, *more: Floats) -> Bools:
        """Return the masks, bool (B, N, n)."""
        n, width = self.factors.n, self.goals.O
        extra = list(more)
        if self.uses_next_state:
            extra[0] = extra[0][:, :width]
        small = np.asarray(self.inner(state[:, :width], action, *extra))
        mask = np.zeros((len(state), n + self.factors.m, n), np.bool_)
        mask[:, : n - 1, : n - 1], mask[:, n:, : n - 1] = small[:, : n - 1], small[:, n - 1 :]
        mask[:, n - 1, n - 1] = True
        return mask


def no_reward(state: Floats, action: Floats, next_state: Floats, /) -> Floats:  # noqa: ARG001
    """Return zeros: the reward function of states without goals, where only a goal makes a reward."""
    return np.zeros(len(state))


def _shapes(space: Any, name: str = "") -> Shapes:
    """Return the shapes of the parts of a Gymnasium space."""
    inner = getattr(space, "spaces", None)
    if inner is None:
        return ((name, tuple(space.shape)),)
    return tuple(part for key in inner for part in _shapes(inner[key], f"{name}/{key}" if name else str(key)))
