"""What augmentation needs to know about the two Fetch worlds: their columns, goals, rewards and ready-made masks.

A state is ``[observation | desired goal]``; the achieved goal is a copy of observation columns. An observation holds
ten columns of the gripper (position 3, fingers 2, velocity 3, finger velocities 2) and twelve of each object (position
3, Euler angles 3, velocity 3, angular velocity 3). Velocities are per environment step. Nothing here needs MuJoCo.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import RewardFn
from counterpoint.goals import Goals
from counterpoint.masks import Constant, Proximity, Union

GRIPPER, OBJECT = 10, 12  # columns of the gripper, and of each object
NEAR = 0.10  # metres: "objects are disentangled if more than 10cm apart" (paper, section 5)
REACH = (
    0.19  # metres: open fingers end 9 cm from the point between them, a block 4.3 cm from its middle, a step moves 5 cm
)
TABLE = 0.42  # metres above the floor; what lies on the table has its middle above this, what tips over its edge below
ABOVE_TABLE = (-np.inf, -np.inf, TABLE), (np.inf, np.inf, np.inf)  # the least and the greatest position on it


@dataclass(frozen=True)
class FetchTask:
    """A Fetch world as arrays.

    Attributes:
        objects: names of the objects, in the order of their columns.
        threshold: metres from the goal within which every object must lie.
        low: the least position of an object that is still on the table.
        high: the greatest one.

    Example:
        >>> from counterpoint.worlds.fetch.tasks import PUSH, SLIDE2
        >>> PUSH.factors.names, PUSH.factors.state_width
        (('gripper', 'object', 'goal', 'move'), 25)
        >>> SLIDE2.factors.names, SLIDE2.factors.state_width
        (('gripper', 'puck0', 'puck1', 'goal', 'move'), 40)
    """

    objects: tuple[str, ...]
    threshold: float
    low: tuple[float, float, float] = ABOVE_TABLE[0]
    high: tuple[float, float, float] = ABOVE_TABLE[1]

    @cached_property
    def observation_factors(self) -> Factorization:
        """The factors of an observation without its goal, as a replay buffer with hindsight sees it."""
        places = {"gripper": (0, 1, 2), **self._columns(0, 1, 2)}
        kinds = dict.fromkeys(self.objects, "object") if len(self.objects) > 1 else {}
        sizes = {"gripper": GRIPPER, **dict.fromkeys(self.objects, OBJECT)}
        return Factorization.blocks(state=sizes, action={"move": 4}, positions=places, types=kinds)

    @cached_property
    def goals(self) -> Goals:
        """How observation and goal lie in a flat state."""
        achieved = tuple(column for columns in self._columns(0, 1, 2).values() for column in columns)
        return Goals.arrays(self.observation_factors.state_width, len(achieved), achieved=achieved)

    @cached_property
    def factors(self) -> Factorization:
        """The factors of a state: gripper, objects, goal, and the action ``move``."""
        return self.goals.factors(self.observation_factors)

    def near(self, *, goal: bool = True, radius: float = NEAR) -> Proximity:
        """Return the paper's mask: things closer than 10 cm influence each other, the action moves the gripper.

        Args:
            goal: whether the states hold the goal.
            radius: metres.
        """
        factors = self.factors if goal else self.observation_factors
        positions = {name: place.columns for name, place in factors.positions.items()}
        return Proximity(factors, positions, radius, attached=("gripper",))

    def near_or_fallen(self, *, goal: bool = True, radius: float = NEAR) -> Union:
        """Return the paper's mask that also knows that objects leave the table.

        There they lean on the robot's base, torso or wrist while the gripper's fingers, whose position is all that the
        observation shows, are far away. With ``radius=REACH`` it misses nothing that open fingers reach in one step.
        """
        factors = self.factors if goal else self.observation_factors
        fallen = Fallen(factors, "gripper", self._columns(0, 1, 2), self.low, self.high)
        return Union(self.near(goal=goal, radius=radius), fallen)

    def reward_fn(self, threshold: float | None = None) -> RewardFn:
        """Return the sparse reward: 0 where every object is within the threshold of its goal, and -1 elsewhere."""
        limit = self.threshold if threshold is None else threshold
        return self.goals.reward_fn(lambda achieved, desired, _: sparse_reward(achieved, desired, limit))

    def _columns(self, *of_object: int) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(GRIPPER + OBJECT * index + column for column in of_object)
            for index, name in enumerate(self.objects)
        }


@dataclass(frozen=True, eq=False)
class Fallen:
    """A mask: whatever has left the table may touch the robot, and whatever else is out there.

    Attributes:
        factors: how columns split into factors.
        robot: the factor that such objects may touch.
        positions: the state columns that hold each object's position.
        low: metres; an object with a smaller coordinate has left the table.
        high: the same for a greater one.
    """

    factors: Factorization
    robot: str
    positions: Mapping[str, tuple[int, ...]]
    low: tuple[float, float, float] = ABOVE_TABLE[0]
    high: tuple[float, float, float] = ABOVE_TABLE[1]

    def __call__(self, state: Floats, action: Floats, /) -> Bools:
        """Return edges both ways among the robot and all objects off the table, (B, N, n)."""
        n = self.factors.n
        off = np.zeros((len(state), n), np.bool_)
        for name, columns in self.positions.items():
            place = state[:, list(columns)]
            gone = ((place < self.low) | (place > self.high)).any(axis=1, keepdims=True)
            off[:, self.factors.nodes(name)[:n]] = gone
        off[:, self.factors.nodes(self.robot)[:n]] = off.any(axis=1, keepdims=True)
        mask = Constant.identity(self.factors)(state, action).copy()
        mask[:, :n] |= off[:, :, None] & off[:, None, :]
        return mask


def sparse_reward(achieved: Floats, desired: Floats, threshold: float) -> Floats:
    """Return 0 where each three columns of a goal are within the threshold, and -1 elsewhere; (..., G) -> (...)."""
    apart = (np.asarray(achieved) - np.asarray(desired)).reshape(*np.shape(achieved)[:-1], -1, 3)
    reached = (np.linalg.norm(apart, axis=-1) <= threshold).all(axis=-1)
    return np.asarray(reached - 1.0, np.float32)[()]  # a number for a single goal


PUSH = FetchTask(("object",), 0.05)
# Between the rails: a puck that is pressed over them slides on, for the plane of the table has no end, and meets the
# robot's torso, which stands in it.
SLIDE2 = FetchTask(("puck0", "puck1"), 0.05, low=(0.67, 0.42, TABLE), high=(1.33, 1.08, np.inf))
SLIDE2_TEST_THRESHOLD = 0.075  # metres; the paper tests with a wider goal than it trains with
