"""What the replay buffer for goal environments checks at its door, and where it finds the reward function."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import gymnasium
import numpy as np
from gymnasium import spaces

from counterpoint.core.arrays import Array, Floats, listed
from counterpoint.core.factors import Factorization
from counterpoint.goals import ACHIEVED, DESIRED, OBSERVATION

KEYS = (OBSERVATION, ACHIEVED, DESIRED)
AchievedFn = Callable[[Floats], Floats]  # observation (B, O) -> achieved goal (B, G)


@dataclass(frozen=True)
class FutureActual:
    """A strategy for the goals of real rows; of every future + actual + 1 rows, one keeps its own goal.

    Attributes:
        future: how many get a goal that was achieved later in their episode, as in hindsight experience replay.
        actual: how many get the desired goal of another row.
        future_until: until so many real rows were added, all goals are achieved later in the episode.
    """

    future: int = 2
    actual: int = 2
    future_until: int = 0

    def __post_init__(self) -> None:
        if min(self.future, self.actual, self.future_until) < 0 or not self.future + self.actual:
            raise ValueError(f"goal_selection_strategy: expected counts of goals, not all of them 0, got {self}.")

    @classmethod
    def named(cls, strategy: object) -> Self | None:
        """Return the strategy of a name such as "futureactual_2_2"; None if it is one of Stable-Baselines3's own."""
        if isinstance(strategy, cls):
            return strategy
        found = re.fullmatch(r"futureactual_(\d+)_(\d+)", str(strategy))
        return cls(int(found[1]), int(found[2])) if found else None

    @property
    def goals(self) -> int:
        """How many new goals there are for one that stays."""
        return self.future + self.actual


class RewardsHere:
    """Answers for the environments when Stable-Baselines3 asks for rewards; computes them in this process."""

    def __init__(self, env: Any) -> None:
        self.compute_reward = _reward_function(env)
        width = env.observation_space[DESIRED].shape[0]
        goals = np.zeros((2, width), env.observation_space[DESIRED].dtype)
        try:
            found = np.asarray(self.compute_reward(goals, goals, [{}, {}]))
        except Exception as error:
            raise ValueError(f"compute_reward: it fails on a batch of two goals: {error}. {_BATCHES}") from error
        if found.shape != (2,):
            raise ValueError(f"compute_reward: expected rewards (2,) of two goals, got shape {found.shape}. {_BATCHES}")

    def env_method(self, name: str, *given: Any, indices: Any = None) -> list[Any]:  # noqa: ARG002
        """Compute rewards as the first environment would."""
        return [getattr(self, name)(*given)]


_BATCHES = (
    "Rewards of whole batches are needed: write compute_reward(achieved_goal, desired_goal, info) so that goals "
    "(B, G) give rewards (B,), for instance with np.linalg.norm(..., axis=-1)."
)


def _reward_function(env: Any) -> Callable[..., Any]:
    """Return ``compute_reward`` of an environment that lives in this process, made anew if all live in others."""
    base = env.unwrapped
    if hasattr(base, "envs"):
        one = base.envs[0]
    else:
        spec = env.get_attr("spec", indices=[0])[0]
        if spec is None:
            raise ValueError(
                "env: its environments live in other processes and are not registered with Gymnasium, so rewards "
                "cannot be computed here. Register yours with gymnasium.register, or use a DummyVecEnv."
            )
        one = gymnasium.make(spec)
    try:
        return one.get_wrapper_attr("compute_reward")  # type: ignore[no-any-return]
    except AttributeError:
        raise TypeError(
            "env: it has no compute_reward(achieved_goal, desired_goal, info), so rows with new goals cannot be "
            "rewarded. For an environment without goals use CodaReplayBuffer."
        ) from None


def require_goal_space(space: Any) -> None:
    """Raise unless observations are a dict of observation, achieved and desired goal, each of them flat."""
    there = getattr(space, "spaces", None)
    if not isinstance(space, spaces.Dict) or there is None or not set(KEYS) <= set(there):
        raise TypeError(
            f"observation_space: expected a Dict of {listed(KEYS)}, got {space}. For flat observations use "
            "CodaReplayBuffer."
        )
    others = sorted(set(there) - set(KEYS))
    if others:
        raise TypeError(
            f"observation_space: nobody knows what {listed(others)} of a counterfactual would look like. Leave all but "
            f"{listed(KEYS)} out: gymnasium.wrappers.FilterObservation(env, {list(KEYS)})."
        )
    for key in KEYS:
        if not isinstance(there[key], spaces.Box) or len(there[key].shape) != 1:
            raise TypeError(
                f"observation_space: expected {key} to be a flat Box, whose columns are split into factors, got "
                f"{there[key]}. Images have no columns that could be swapped."
            )


def require_factors(factors: Factorization, space: Any, action_width: int) -> None:
    """Raise unless the factors are those of an observation without goals."""
    seen, goal = space[OBSERVATION].shape[0], space[DESIRED].shape[0]
    if factors.state_width in (seen + goal, seen + 2 * goal):
        raise ValueError(
            f"augmenter: its factors have {factors.state_width} state columns, those of a flattened state with its "
            f"goal. This buffer keeps goals apart and gives them anew: use factors and a mask of the {seen} columns of "
            "the observation alone."
        )
    factors.require_widths(seen, action_width)


@dataclass(frozen=True)
class AchievedColumns:
    """Achieved goals that are columns of the observation."""

    which: tuple[int, ...]

    def __call__(self, observation: Floats) -> Floats:
        """Take them, (B, G)."""
        return observation[:, list(self.which)]


def achieved_columns(observation: Floats, achieved: Floats) -> AchievedColumns:
    """Find the columns of observations (B, O) that achieved goals (B, G) copy; return them.

    Where several do, as heights of what lies on one table, columns that follow on one another are taken.
    """
    found: list[int] = []
    for column in achieved.T:
        same = np.flatnonzero((observation == column[:, None]).all(axis=0))
        if not len(same):
            raise ValueError(
                f"achieved: column {len(found)} of the achieved goal is not a column of the observation, so nobody "
                "knows what a counterfactual achieves. "
                "Give achieved=function, observation (B, O) -> achieved goal (B, G)."
            )
        found.append(found[-1] + 1 if found and found[-1] + 1 in same else int(same[0]))
    return AchievedColumns(tuple(found))


def require_achieved(achieved: AchievedFn, observation: Floats, recorded: Floats) -> None:
    """Raise unless a function gives the achieved goals that were recorded."""
    found: Array = np.asarray(achieved(observation))
    if found.shape != recorded.shape or not np.allclose(found, recorded, rtol=1e-5, atol=1e-6):
        raise ValueError(
            "achieved: it does not give the achieved goals that the environment shows. Leave it out if they are "
            "columns of the observation, or compute them like the environment."
        )


@contextmanager
def about_goals(width: int) -> Iterator[None]:
    """Say what a mask sees, if it turns out to be unfit."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not str(error).startswith("mask_fn"):
            raise
        raise type(error)(
            f"{error} It is called with the {width} columns of the observation, without the goal: was it made for a "
            "flattened state? Then make it for the observation's factors."
        ) from error
