"""Any MuJoCo environment: recorded so that every step can be taken again, factored, masked exactly, and audited.

The observation of a robot rarely shows all its joints, and never the solver's warm start. `collect` records the rest as
noise columns that travel with their factor, `Islands` reads off who touched whom, and `Simulator` puts counterfactuals
back and compares, to the bit.
"""

try:
    import gymnasium  # noqa: F401
    import mujoco
except ImportError as error:
    raise ImportError("MuJoCo environments need MuJoCo: pip install counterpoint-rl[mujoco]") from error

OLDEST, TOO_NEW = (3, 3, 6), (3, 12)


def require_version(version: str) -> None:
    """Raise unless this version of MuJoCo solves islands one by one, and works with Gymnasium-Robotics."""
    numbers = tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
    if not OLDEST <= numbers < TOO_NEW:
        raise ImportError(
            f"mujoco: expected a version from 3.3.6 (contacts are solved island by island since then) to before 3.12 "
            f"(which Gymnasium-Robotics cannot use), got {version}. Try: pip install counterpoint-rl[mujoco]"
        )


require_version(mujoco.__version__)

from counterpoint.adapters.mujoco.anatomy import Anatomy, anatomy  # noqa: E402
from counterpoint.adapters.mujoco.islands import Islands  # noqa: E402
from counterpoint.adapters.mujoco.proposing import derive, factorization, goals  # noqa: E402
from counterpoint.adapters.mujoco.recording import Recorder, collect  # noqa: E402
from counterpoint.adapters.mujoco.scene import SceneDrawing  # noqa: E402
from counterpoint.adapters.mujoco.simulator import Replay, ReplayFailed, Simulator  # noqa: E402

__all__ = [
    "Anatomy",
    "Islands",
    "Recorder",
    "Replay",
    "ReplayFailed",
    "SceneDrawing",
    "Simulator",
    "anatomy",
    "collect",
    "derive",
    "factorization",
    "goals",
    "require_version",
]
