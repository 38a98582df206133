"""The robot's tasks: their environments, factors, and what evaluation says about a policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit

from counterpoint.worlds.fetch import PUSH, SLIDE2, SLIDE2_TEST_THRESHOLD, FetchTask
from counterpoint.worlds.fetch.tasks import GRIPPER, NEAR, OBJECT


class Held(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment in which every action is held for some steps: one decision, rewarded as its last step is."""

    def __init__(self, env: gymnasium.Env[Any, Any], steps: int) -> None:
        super().__init__(env)
        self.steps = steps

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a decision."""
        for _ in range(self.steps - 1):
            self.env.step(action)
        return self.env.step(action)


@dataclass(frozen=True)
class Task:
    """A task by its environment."""

    identifier: str
    fetch: FetchTask
    length: int  # decisions in an episode
    thresholds: tuple[float, ...]  # metres within which evaluation counts a success; training uses the first
    held: int = 1  # environment steps that each decision lasts
    middle: tuple[float, float, float] = (1.34, 0.75, 0.45)  # of what is above the table, metres
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the environment, if not the paper's

    def make(self) -> gymnasium.Env[Any, Any]:
        """Return a new environment."""
        env = gymnasium.make(self.identifier, max_episode_steps=-1, disable_env_checker=True, **self.settings)
        return TimeLimit(Held(env, self.held), self.length)

    @property
    def objects(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each object's position."""
        columns: tuple[int, ...] = tuple(self.fetch.goals.achieved)  # type: ignore[arg-type]
        return tuple(columns[k : k + 3] for k in range(0, len(columns), 3))

    @property
    def units(self) -> tuple[list[float], list[float]]:
        """What stands for 0 and for 1 in each column of an observation: the middle of the table, and usual sizes."""
        middle, count = list(self.middle), len(self.objects)
        centre = [*middle, *[0.0] * (GRIPPER - 3), *count * [*middle, *[0.0] * (OBJECT - 3)]]
        return centre, [*_GRIPPER_UNITS, *count * _OBJECT_UNITS]


# Metres, metres in a step, radians, radians in a step.
_PLACE, _FINGERS, _SPEED, _ANGLE, _SPIN = [NEAR] * 3, [0.01] * 2, [0.01] * 3, [1.0] * 3, [0.1] * 3
_GRIPPER_UNITS = [*_PLACE, *_FINGERS, *_SPEED, *_FINGERS]
_OBJECT_UNITS = [*_PLACE, *_ANGLE, *_SPEED, *_SPIN]
_PUSH, _SLIDE2 = "counterpoint/FetchPushDisentangled-v0", "counterpoint/Slide2-v0"
_BOTH = SLIDE2.threshold, SLIDE2_TEST_THRESHOLD
_SQUARE = 1.0, 0.75, 0.45  # the middle of Slide2's table
TASKS = {
    "push": Task(_PUSH, PUSH, 50, (PUSH.threshold,)),
    "push-held": Task(_PUSH, PUSH, 17, (PUSH.threshold,), held=3),
    "slide2": Task(_SLIDE2, SLIDE2, 75, _BOTH, middle=_SQUARE),
    "slide2-held": Task(_SLIDE2, SLIDE2, 25, _BOTH, held=3, middle=_SQUARE),
    "slide2-one": Task(_SLIDE2, SLIDE2, 25, _BOTH, held=3, middle=_SQUARE, settings={"friction": 0.5, "settled": 1}),
}


def aim(way: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return moves along a way to an object, and on, more or less."""
    return np.clip(10.0 * way + 0.3 * noise, -1.0, 1.0)


def evaluate(agent: Any, task: Task, env: gymnasium.Env[Any, Any], seeds: list[int]) -> dict[str, float]:
    """Play greedy episodes, one for each seed; return what holds at their ends by threshold, and the mean return.

    That is success, all objects where they should be; and the share of objects that are.
    """
    normaliser = agent.get_vec_normalize_env()
    apart, total = [], 0.0
    for seed in seeds:
        shown = env.reset(seed=seed)[0]
        for _ in range(task.length):
            action = agent.predict(normaliser.normalize_obs(shown) if normaliser else shown, deterministic=True)[0]
            shown, reward, *_ = env.step(action)
            total += float(reward)
        way = (shown["achieved_goal"] - shown["desired_goal"]).reshape(-1, 3)
        apart.append(np.linalg.norm(way, axis=1))
    found = {"return": total / len(seeds)}
    for threshold, suffix in zip(task.thresholds, ("", "_at_test_threshold"), strict=False):
        there = np.array(apart) <= threshold
        found |= {f"success{suffix}": float(there.all(axis=1).mean()), f"placed{suffix}": float(there.mean())}
    return found
