"""Pictures of the Fetch worlds: the simulator's own where an OpenGL library is there, a plain drawing elsewhere."""

import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from gymnasium_robotics.envs.fetch import MujocoFetchEnv

from counterpoint.core.arrays import Array, Floats
from counterpoint.offscreen import headless
from counterpoint.worlds.draw import COLOURS, COURT, INK, LINE, Canvas
from counterpoint.worlds.fetch.tasks import TABLE

MARGIN = 0.08  # metres around the table
FAILURES = (mujoco.FatalError, ImportError, AttributeError, OSError, RuntimeError, Warning)  # each way without OpenGL


class Pictures:
    """Draws one environment, and remembers whether OpenGL works."""

    def __init__(self, env: Any) -> None:
        self.env, self.plain = env, False

    def render(self, by_simulator: Callable[[], Array | None]) -> Array | None:
        """Return a picture, drawn by the simulator if that works, else from above with plain shapes."""
        if self.env.render_mode is None or self.plain:
            return None if self.env.render_mode is None else from_above(self.env)
        try:
            with headless(), warnings.catch_warnings():
                warnings.simplefilter("error")
                return by_simulator()
        except FAILURES:
            self.plain = True
            return from_above(self.env)


def from_above(env: Any) -> Array:
    """Return the table from above: gripper, objects and goals as discs; what has fallen is drawn hollow."""
    shown = env._get_obs()
    centre, half = _table(env.model)
    low, high = centre - half - MARGIN, centre + half + MARGIN
    canvas = Canvas((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), env.height)
    canvas.box((float(centre[0]), float(centre[1])), float(half[0]), float(half[1]), COURT, LINE)
    things = shown["achieved_goal"].reshape(-1, 3).tolist()
    for index, (x, y, _) in enumerate(shown["desired_goal"].reshape(-1, 3).tolist()):
        canvas.disc((x, y), env.distance_threshold, (*COLOURS[index], 40), COLOURS[index])
    for index, (x, y, z) in enumerate(things):
        canvas.disc((x, y), 0.025, (*COLOURS[index], 255 if z > TABLE else 0), COLOURS[index])
    x, y, _ = shown["observation"][:3].tolist()
    canvas.disc((x, y), 0.02, INK)
    return canvas.pixels()


def has_table(env: Any) -> bool:
    """Say whether `from_above` can draw an environment: one of Gymnasium-Robotics' Fetch tasks."""
    return isinstance(env, MujocoFetchEnv)


def _table(model: Any) -> tuple[Floats, Floats]:
    """Return centre and half sizes of the table top, (2,) each."""
    body = model.body("table0")
    return np.asarray(body.pos[:2]), np.asarray(model.geom_size[body.geomadr[0], :2])
