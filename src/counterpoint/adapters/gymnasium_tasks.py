"""What an environment needs beside a world: a task, and the episodes under way.

Nothing here knows Gymnasium. Shape letters are those of ``counterpoint.core.arrays``; H and W are pixels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints, listed
from counterpoint.core.protocols import RewardFn
from counterpoint.core.require import require_count
from counterpoint.worlds.bounce import SPEED_LIMIT
from counterpoint.worlds.draw import draw_pong, draw_sprites
from counterpoint.worlds.place import TARGETS, TASKS, Place
from counterpoint.worlds.pong import PAPER_LENGTH, Pong
from counterpoint.worlds.sprites import Sprites
from counterpoint.worlds.world import ACTION_LIMIT, World

NAMES = (*TASKS, "pong")
FASTEST = 50.0  # bound of Pong's velocities, 100 m/s; play stays below 8 m/s, and a contact adds 12 at most


@dataclass(frozen=True, eq=False)
class Task:
    """A world with a purpose: what earns a reward, when an episode is cut off, and what is seen.

    Episodes are truncated, never terminated: these worlds go on for ever.

    Attributes:
        world: where it happens.
        reward_fn: ``(state, action, next_state) -> (B,)``.
        bounds: (2, S) the lowest and the highest observations.
        ends: ``(steps, scored) -> (B,) bool``, from how many steps an episode has had, (B,), and how many of
            them with a reward that is not 0, (B,).
        success: ``reward of the last step (B,) -> (B,) bool``; without it there is no ``info["is_success"]``.
        observe: ``state -> observation``, both (B, S); without it the state is seen as it is.
        draw: ``(state (S,), action=, mask=, size=) -> (H, W, 3) uint8``; without it there are no pictures.
    """

    world: World
    reward_fn: RewardFn
    bounds: Floats
    ends: Callable[[Ints, Ints], Bools]
    success: Callable[[Floats], Bools] | None = None
    observe: Callable[[Floats], Floats] | None = None
    draw: Callable[..., Array] | None = None

    def __post_init__(self) -> None:
        came, expected = np.shape(self.bounds), (2, self.world.factors.state_width)
        if came != expected:
            raise ValueError(f"bounds: expected the lowest and the highest state, shape {expected}, got {came}.")


def place_task(name: str, *, length: int = 50, separate: bool = False, noise_std: float = 0.01) -> Task:
    """Return a Place task by its name, ``place-1`` to ``place-4``, or the same with ``-sparse`` added.

    Args:
        name: as above.
        length: number of steps in an episode.
        separate: begin without overlaps; see ``Sprites``.
        noise_std: of the velocity noise; see ``Sprites``.
    """
    reward_fn, world = Place.named(name), Sprites(separate=separate, noise_std=noise_std)
    require_count("length", length, noun="number of steps")
    bounds = np.tile([[0, 0, -SPEED_LIMIT, -SPEED_LIMIT], [1, 1, SPEED_LIMIT, SPEED_LIMIT]], len(TARGETS))
    draw = partial(draw_sprites, targets=TARGETS[-reward_fn.count :], tolerance=reward_fn.tolerance)
    return Task(world, reward_fn, bounds, partial(_has_lasted, length), draw=draw)


def pong_task(*, clip: bool = False, length: int = PAPER_LENGTH, points: int = 10) -> Task:
    """Return Pong. An episode is won if its last reward is 1.

    Args:
        clip: clip observations to [-1, 1], as in the paper. A fast ball then hides its speed, and an
            observation is no longer the state.
        length: number of steps after which an episode is over; the paper's code has 250.
        points: number of steps with a reward after which it is over, too.
    """
    world, fastest = Pong(length=length, points=points), 1.0 if clip else FASTEST
    bounds = np.tile([[-1, -1, -fastest, -fastest], [1, 1, fastest, fastest]], 3)
    return Task(world, Pong.reward, bounds, world.ends, Pong.success, Pong.observe if clip else None, draw_pong)


def named_task(name: str, **settings: Any) -> Task:
    """Return a task by its name, ``pong`` or one that `place_task` knows; ``settings`` are its keywords."""
    if name not in NAMES:
        raise ValueError(f"task: no task is called {name!r}; the tasks are {listed(NAMES, len(NAMES))}.")
    return pong_task(**settings) if name == "pong" else place_task(name, **settings)


def resolve(task: Task | str, settings: Mapping[str, Any]) -> Task:
    """Return a task that is given as such, or by its name and the keywords of `named_task`."""
    if isinstance(task, str):
        return named_task(task, **settings)
    if settings:
        raise TypeError(
            f"{listed(list(settings))}: these settings belong to a task given by its name; this task is already made."
        )
    return task


def check_mode(mode: str | None, known: Sequence[str]) -> str | None:
    """Return a render mode, or say which there are."""
    if mode is not None and mode not in known:
        raise ValueError(f"render_mode: expected None or one of {listed(known)}, got {mode!r}.")
    return mode


def check_actions(action: object, shape: tuple[int, ...] | None, rows: Bools | None = None) -> Floats:
    """Return a copy of actions, (A,) or (B, A), or say which is wrong; only ``rows`` (B,) matter, if given."""
    array: Array = np.array(action)
    if array.shape != shape or array.dtype.kind not in "fiu":
        raise ValueError(f"action: expected numbers of shape {shape}, got {array.dtype} of shape {array.shape}.")
    magnitude: Array = np.abs(array)
    if not magnitude.max(initial=0) <= ACTION_LIMIT:  # NaN is the largest of all
        _refuse(array, ~(magnitude <= ACTION_LIMIT) & (True if rows is None else rows[:, None]))
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _refuse(array: Array, wrong: Bools) -> None:
    """Raise if any action is wrong, naming the first."""
    if wrong.any():
        at = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"action: expected numbers in [-1, 1], got {array[at]:g} at index {listed(at)}. "
            "Scale actions to that range, or clip them: np.clip(action, -1, 1)."
        )


def _has_lasted(length: int, steps: Ints, scored: Ints) -> Bools:
    del scored
    return np.asarray(steps >= length)


class Play(NamedTuple):
    """Episodes under way, one per row, and the step that led to where they are: what a pure world does not keep."""

    state: Floats  # (B, S)
    noise: Floats  # (B, U) of the last step, or of the whole episode
    steps: Ints  # (B,) since the episode began; where it is 0 there was no last step
    scored: Ints  # (B,) how many of them had a reward that is not 0
    before: Floats  # (B, S) the state before the last step
    action: Floats  # (B, A) of the last step
    reward: Floats  # (B,) of the last step
    over: Bools  # (B,) whether the episode is cut off here

    @classmethod
    def begin(cls, task: Task, size: int, rng: np.random.Generator, state: Floats | None = None) -> "Play":
        """Begin episodes, in states that are drawn, or in those given, (B, S)."""
        world, none = task.world, np.zeros(size, np.int64)
        state = world.reset(size, rng) if state is None else state
        noise = (
            world.noise(size, rng)
            if world.noise_per_episode
            else np.zeros((size, world.factors.noise_width), state.dtype)
        )
        action = np.zeros((size, world.factors.action_width), state.dtype)
        return cls(state, noise, none, none, state, action, none.astype(np.float64), none > 0)

    def advance(self, task: Task, action: Floats, rng: np.random.Generator) -> "Play":
        """Take one step in every row, by one call of the world."""
        world = task.world
        noise = self.noise if world.noise_per_episode else world.noise(len(action), rng)
        state = world.step(self.state, action, noise)
        reward = task.reward_fn(self.state, action, state)
        steps, scored = self.steps + 1, self.scored + (reward != 0)
        return Play(state, noise, steps, scored, self.state, action, reward, task.ends(steps, scored))

    def only(self, rows: Bools) -> "Play":
        """Return the episodes where ``rows`` (B,) is true."""
        return Play._make(column[rows] for column in self)

    def join(self, rows: Bools, others: "Play") -> "Play":
        """Return a play that has these episodes where ``rows`` (B,) is true, and the others where it is not."""
        return Play._make(_joined(rows, *columns) for columns in zip(self, others, strict=True))

    def observation(self, task: Task) -> Floats:
        """Return what is seen, (B, S), a new array."""
        return self.state.copy() if task.observe is None else task.observe(self.state)

    def info(self, task: Task, *, with_mask: bool) -> dict[str, Array]:
        """Return what else there is to know about the last step: new arrays, (B, ...), by name."""
        found: dict[str, Array] = {"noise": self.noise.copy()}
        if with_mask:
            found["mask"] = self.mask(task)
        if task.success is not None and self.over.any():
            found["is_success"] = task.success(self.reward)
        return found

    def mask(self, task: Task) -> Bools:
        """Return the local causal graphs of the last step, (B, N, n)."""
        return task.world.mask(self.before, self.action, self.noise)

    def pictures(self, task: Task, *, draw_graph: bool, size: int) -> tuple[Array, ...]:
        """Return a picture of each row, (H, W, 3) uint8, with the local causal graph if there is one to draw."""
        if task.draw is None:
            raise ValueError(
                f"render: there is no picture of {type(task.world).__name__}. Give its Task a draw function."
            )
        masks, made = self.mask(task) if draw_graph else None, []
        for row, state in enumerate(self.state):
            moved = self.steps[row] > 0
            action = self.action[row] if moved else None
            mask = masks[row] if moved and masks is not None else None
            made.append(task.draw(state, action=action, mask=mask, size=size))
        return tuple(made)


def _joined(rows: Bools, mine: Array, other: Array) -> Array:
    both = np.empty((len(rows), *mine.shape[1:]), mine.dtype)
    both[rows], both[~rows] = mine, other
    return both
