"""Pictures of the Fetch worlds: the simulator's own where an OpenGL library is there, a plain drawing elsewhere."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.worlds.draw import COLOURS, COURT, INK, LINE, Canvas

MARGIN = 0.08  # metres around the table
FAILURES = (mujoco.FatalError, ImportError, AttributeError, OSError, RuntimeError, Warning)  # each way without OpenGL


class Pictures:
    """Draws one environment, and remembers whether OpenGL works."""

    def __init__(self, env: Any) -> None:
        self.env, self.plain = env, False

    def render(self, by_simulator: Callable[[], Array | None]) -> Array | None:
        """Return a picture, drawn by the simulator if that works, else from above with plain shapes."""
        if self.env.render_mode is None or self.plain:
            return None if self.env.render_mode is None else self.drawn()
        try:
            with _headless(), warnings.catch_warnings():
                warnings.simplefilter("error")
                return by_simulator()
        except FAILURES:
            self.plain = True
            return self.drawn()

    def drawn(self) -> Array:
        """Return the table from above: gripper, objects and goals as discs; what has fallen is drawn hollow."""
        shown = self.env._get_obs()
        centre, half = _table(self.env.model)
        low, high = centre - half - MARGIN, centre + half + MARGIN
        canvas = Canvas((float(low[0]), float(low[1])), (float(high[0]), float(high[1])), self.env.height)
        canvas.box((float(centre[0]), float(centre[1])), float(half[0]), float(half[1]), COURT, LINE)
        things = shown["achieved_goal"].reshape(-1, 3).tolist()
        for index, (x, y, _) in enumerate(shown["desired_goal"].reshape(-1, 3).tolist()):
            canvas.disc((x, y), self.env.distance_threshold, (*COLOURS[index], 40), COLOURS[index])
        for index, (x, y, z) in enumerate(things):
            canvas.disc((x, y), 0.025, (*COLOURS[index], 255 if z > 0.4 else 0), COLOURS[index])
        x, y, _ = shown["observation"][:3].tolist()
        canvas.disc((x, y), 0.02, INK)
        return canvas.pixels()


def _table(model: Any) -> tuple[Floats, Floats]:
    """Return centre and half sizes of the table top, (2,) each."""
    body = model.body("table0")
    return np.asarray(body.pos[:2]), np.asarray(model.geom_size[body.geomadr[0], :2])


@contextmanager
def _headless() -> Iterator[None]:
    """Ask for off-screen OpenGL on a Linux machine without a display, unless the user chose something."""
    alone = sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    chosen = "MUJOCO_GL" in os.environ
    if alone and not chosen:
        os.environ["MUJOCO_GL"] = "egl"
    try:
        yield
    finally:
        if alone and not chosen:
            del os.environ["MUJOCO_GL"]
