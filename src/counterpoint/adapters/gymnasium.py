"""The worlds as Gymnasium environments, alone and in batches; importing this module registers their ids.

The ids are ``counterpoint/Place1-v0`` to ``counterpoint/Place4-v0``, ``counterpoint/Place1Sparse-v0`` to
``counterpoint/Place4Sparse-v0``, and ``counterpoint/Pong-v0``. An observation *is* the world's state, and
``info["noise"]`` the noise of the step: ``world.step(observation, action, noise)`` gives the next observation,
bit for bit. With ``with_mask=True``, ``info["mask"]`` is the step's local causal graph.

Episodes are cut off by the environment itself (``truncated``), not by a wrapper: use the keyword ``length`` of
`place_task` and `pong_task` for longer ones. Actions outside [-1, 1] are refused, not clipped.

Shape letters are those of ``counterpoint.core.arrays``.

Example:
    >>> import gymnasium
    >>> env = gymnasium.make("counterpoint.adapters.gymnasium:counterpoint/Place2-v0", with_mask=True)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> observation.shape, info["noise"].shape, info["mask"].shape
    ((16,), (8,), (5, 4))
    >>> envs = gymnasium.make_vec("counterpoint/Pong-v0", num_envs=1000, length=250)
    >>> envs.reset(seed=0)[0].shape
    (1000, 12)
"""

from typing import Any, cast

import numpy as np

from counterpoint.adapters.gymnasium_tasks import (
    NAMES,
    Play,
    Task,
    check_actions,
    check_mode,
    named_task,
    place_task,
    pong_task,
    resolve,
)
from counterpoint.core.arrays import Array, Floats
from counterpoint.core.require import require_count

try:
    import gymnasium
    from gymnasium.spaces import Box
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError("Environments need Gymnasium: pip install counterpoint-rl[gymnasium]") from error

__all__ = ["IDS", "Task", "WorldEnv", "WorldVectorEnv", "named_task", "place_task", "pong_task"]

IDS = {name: f"counterpoint/{name.title().replace('-', '')}-v0" for name in NAMES}  # by name of the task
FPS = 20  # steps per second, in a window or a film


class WorldEnv(gymnasium.Env[Floats, Floats]):
    """A world as an environment, one episode at a time.

    Args:
        task: what to do, or its name: ``place-1`` to ``place-4``, ``place-1-sparse`` to ``place-4-sparse``, ``pong``.
        render_mode: ``rgb_array``; or ``human`` for a window; or None.
        with_mask: give the exact local causal graph of every step, (N, n), as ``info["mask"]``.
        draw_graph: draw that graph into the pictures.
        size: height of the pictures, in pixels.
        **settings: keywords of `place_task` or `pong_task`, if the task is given by its name.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}  # noqa: RUF012

    def __init__(
        self,
        task: Task | str,
        *,
        render_mode: str | None = None,
        with_mask: bool = False,
        draw_graph: bool = False,
        size: int = 256,
        **settings: Any,
    ) -> None:
        self.task = resolve(task, settings)
        self.observation_space, self.action_space = _spaces(self.task)
        self.render_mode = check_mode(render_mode, self.metadata["render_modes"])
        self.with_mask, self.draw_graph, self.size = with_mask, draw_graph, size
        self._play: Play | None = None
        self._window: _Window | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin an episode, in a state drawn by chance, or in that of ``options={"state": (S,)}``."""
        super().reset(seed=seed)
        state = _given_state(options, self.observation_space)
        self._play = Play.begin(self.task, 1, self.np_random, None if state is None else state[None])
        self._show()
        return self._play.observation(self.task)[0], {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        """Take an action, (A,), and return observation, reward, terminated (never), truncated and info."""
        taken = check_actions(action, self.action_space.shape)[None]
        play = _begun(self._play).advance(self.task, taken, self.np_random)
        self._play = play
        self._show()
        info: dict[str, Any] = {key: value[0] for key, value in play.info(self.task, with_mask=self.with_mask).items()}
        if "is_success" in info:
            info["is_success"] = bool(info["is_success"])
        return play.observation(self.task)[0], float(play.reward[0]), False, bool(play.over[0]), info

    def render(self) -> Array | None:
        """Return a picture, (H, W, 3) uint8, in mode ``rgb_array``; a window is up to date without it."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() has nothing to do: no render_mode was given, such as 'rgb_array'.")
        return self._picture() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _picture(self) -> Array:
        return _begun(self._play).pictures(self.task, draw_graph=self.draw_graph, size=self.size)[0]

    def _show(self) -> None:
        if self.render_mode == "human":
            self._window = self._window or _Window()
            self._window.show(self._picture())


class WorldVectorEnv(VectorEnv[Floats, Floats, Array]):
    """Many episodes side by side, all advanced by one call of the world, without processes.

    An episode that is over begins anew in the next step (``AutoresetMode.NEXT_STEP``): for its row that step
    ignores the action, gives reward 0, and has no info (``info["_noise"]`` is False).

    One generator serves the whole batch: the same seed and ``num_envs`` give the same bits, but a row of
    another batch size sees other chances. A batch of one does what `WorldEnv` does.

    Args:
        task, with_mask, draw_graph, size, **settings: as in `WorldEnv`.
        num_envs: B, the number of rows.
        render_mode: ``rgb_array`` or None; ``render`` returns one picture per row.
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": FPS,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        task: Task | str,
        num_envs: int = 1,
        *,
        render_mode: str | None = None,
        with_mask: bool = False,
        draw_graph: bool = False,
        size: int = 256,
        **settings: Any,
    ) -> None:
        require_count("num_envs", num_envs, noun="number of environments")
        self.task, self.num_envs = resolve(task, settings), num_envs
        self.single_observation_space, self.single_action_space = _spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.render_mode = check_mode(render_mode, self.metadata["render_modes"])
        self.with_mask, self.draw_graph, self.size = with_mask, draw_graph, size
        self._play: Play | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Begin all episodes, in states drawn by chance, or in those of ``options={"state": (B, S)}``."""
        super().reset(seed=seed)
        state = _given_state(options, self.observation_space)
        self._play = Play.begin(self.task, self.num_envs, self.np_random, state)
        return self._play.observation(self.task), {}

    def step(self, actions: Floats) -> tuple[Floats, Array, Array, Array, dict[str, Any]]:
        """Take an action in each row, (B, A), and return observations, rewards, terminated, truncated and info."""
        play = _begun(self._play)
        going = ~play.over
        taken = check_actions(actions, self.action_space.shape, going)
        if going.all():
            play = play.advance(self.task, taken, self.np_random)
        elif not going.any():
            play = Play.begin(self.task, self.num_envs, self.np_random)
        else:
            moved = play.only(going).advance(self.task, taken[going], self.np_random)
            play = moved.join(going, Play.begin(self.task, int(play.over.sum()), self.np_random))
        self._play = play
        never = np.zeros(self.num_envs, np.bool_)
        reward = play.reward.astype(np.float64)
        return play.observation(self.task), reward, never, play.over.copy(), self._info(play)

    def render(self) -> tuple[Array, ...] | None:
        """Return one picture per row, (H, W, 3) uint8."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() has nothing to do: no render_mode was given, such as 'rgb_array'.")
            return None
        return _begun(self._play).pictures(self.task, draw_graph=self.draw_graph, size=self.size)

    def _info(self, play: Play) -> dict[str, Any]:
        """Return the info of the rows that moved, each with Gymnasium's flag of the rows that it is about."""
        info: dict[str, Any] = {}
        for key, value in play.info(self.task, with_mask=self.with_mask).items():
            about = play.over if key == "is_success" else play.steps > 0
            value[~about] = 0
            info |= {key: value, f"_{key}": about.copy()}
        return info


class _Window:
    """A window on the screen."""

    def __init__(self) -> None:
        try:
            import pygame  # noqa: PLC0415
        except ImportError as error:
            raise ImportError("A window needs pygame: pip install counterpoint-rl[gymnasium]") from error
        self.pygame, self.clock = pygame, pygame.time.Clock()
        self.screen: pygame.Surface | None = None

    def show(self, picture: Array) -> None:
        """Show a picture, (H, W, 3) uint8, no sooner than it is due."""
        if self.screen is None:
            self.pygame.display.init()
            self.pygame.display.set_caption("counterpoint")
            self.screen = self.pygame.display.set_mode((picture.shape[1], picture.shape[0]))
        self.pygame.event.pump()
        self.pygame.surfarray.blit_array(self.screen, picture.swapaxes(0, 1))
        self.pygame.display.flip()
        self.clock.tick(FPS)

    def close(self) -> None:
        """Close the window."""
        self.pygame.display.quit()


def _spaces(task: Task) -> tuple[Box[Any], Box[Any]]:
    """Return the spaces of one observation, (S,), and of one action, (A,), in the dtype of the world's states."""
    dtype = task.world.reset(0, np.random.default_rng(0)).dtype
    low, high = np.asarray(task.bounds).astype(dtype)
    width = task.world.factors.action_width
    return Box(low, high, dtype=dtype.type), Box(-1.0, 1.0, (width,), dtype.type)


def _begun(play: Play | None) -> Play:
    if play is None:
        raise gymnasium.error.ResetNeeded("There is no episode yet: call reset() first.")
    return play


def _given_state(options: dict[str, Any] | None, space: gymnasium.Space[Any]) -> Floats | None:
    """Return the state that the options of a reset ask for, if any, checked."""
    unknown = sorted(set(options or {}) - {"state"})
    if unknown:
        raise ValueError(f"options: expected no other than 'state', got {', '.join(map(repr, unknown))}.")
    if not options:
        return None
    box = cast("Box[Any]", space)
    state: Floats = np.array(options["state"], box.dtype)
    if state.shape != box.shape:
        raise ValueError(f"options['state']: expected shape {box.shape}, got {state.shape}.")
    if not box.contains(state):
        raise ValueError("options['state']: expected a state within observation_space, got one outside of it, or NaN.")
    return state


def _register() -> None:
    for name, identifier in IDS.items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                identifier,
                entry_point="counterpoint.adapters.gymnasium:WorldEnv",
                vector_entry_point="counterpoint.adapters.gymnasium:WorldVectorEnv",
                kwargs={"task": name},
            )


_register()
