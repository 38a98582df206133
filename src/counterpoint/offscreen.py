"""Pictures without a screen: ask for OpenGL that needs none."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def headless() -> Iterator[None]:
    """Ask MuJoCo for off-screen OpenGL on a Linux machine without a display, unless the user chose something."""
    alone = sys.platform == "linux" and not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    chosen = "MUJOCO_GL" in os.environ
    if alone and not chosen:
        os.environ["MUJOCO_GL"] = "egl"
    try:
        yield
    finally:
        if alone and not chosen:
            del os.environ["MUJOCO_GL"]
