"""LeRobot datasets of version 3, states only: a folder of Parquet and JSON files.

A row is a frame: an observation, the action that followed, and the outcome as ``next.reward``, ``next.done`` and
``next.truncated``. The last observation is not stored, so an episode of T frames gives T - 1 transitions.

Datasets that we write also have ``next.observation.state``, and every frame is a transition; LeRobot's policies ignore
that feature. What else a recording holds is kept in features called ``counterpoint.*``, and its head in
``meta/counterpoint.json``, so that what was written comes back as it was.

Every episode is one run of rows. A transition without an episode becomes an episode of one frame. Each episode has a
row of statistics, several kilobytes, so the format suits windows better than millions of single transitions.
"""

from pathlib import Path

try:
    import pyarrow
except ImportError as error:
    raise ImportError("LeRobot datasets need PyArrow: pip install counterpoint-rl[lerobot]") from error

from counterpoint.adapters.lerobot.reading import scan
from counterpoint.adapters.lerobot.writing import sink

__all__ = ["locate", "scan", "sink"]

del pyarrow


def locate(folder: str) -> Path:
    """Return the folder that ``lerobot:FOLDER`` means."""
    return Path(folder)
