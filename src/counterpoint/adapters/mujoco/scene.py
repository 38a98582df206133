"""Pictures of recorded and swapped rows, drawn by the environment itself."""

import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from counterpoint.adapters.mujoco.anatomy import anatomy
from counterpoint.adapters.mujoco.probing import put
from counterpoint.adapters.mujoco.rows import whole_of
from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.offscreen import headless

WITHOUT_OPENGL = (mujoco.FatalError, ImportError, AttributeError, OSError, RuntimeError, Warning)  # each way to fail


class SceneDrawing:
    """Draws transitions for a report: ``write_report(..., extras=Extras(draw=SceneDrawing(env)))``.

    Args:
        env: the environment, made with ``render_mode="rgb_array"``. It is used up.
        otherwise: draws the inner environment where there is no OpenGL, ``env -> uint8 (H, W, 3)``.

    Attributes:
        draws: whether it can draw at all.
    """

    uses_noise = True

    def __init__(self, env: Any, otherwise: Callable[[Any], Array] | None = None) -> None:
        self.inside, self.env, self.otherwise = anatomy(env), env, otherwise
        self.plain = False
        env.reset(seed=0)
        self.draws = self._picture() is not None

    def __call__(self, state: Floats, action: Floats, mask: Bools, noise: Floats | None = None) -> Array:  # noqa: ARG002
        """Return a picture of one transition's beginning, (H, W, 3) uint8."""
        put(self.inside.way, whole_of(self.inside, state, noise))
        inner, goal = self.env.unwrapped, state[self.inside.columns.goal]
        if isinstance(getattr(inner, "goal", None), np.ndarray) and inner.goal.size == len(goal):
            inner.goal = goal.reshape(inner.goal.shape).copy()
        drawn = self._picture()
        if drawn is None:
            raise RuntimeError(
                "draw: this environment draws nothing here. It needs render_mode='rgb_array' and OpenGL."
            )
        return drawn

    def _picture(self) -> Array | None:
        if not self.plain:
            try:
                with headless(), warnings.catch_warnings():
                    warnings.simplefilter("error")
                    drawn = self.env.render()
                return None if drawn is None else np.asarray(drawn, np.uint8)
            except WITHOUT_OPENGL:
                self.plain = True
        return None if self.otherwise is None else self.otherwise(self.env.unwrapped)
