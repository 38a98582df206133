"""The simulator's full state as columns that travel with their factor: positions, velocities, warm start, all of it.

MuJoCo's integration state decides a step to the last bit. Most of it is usually zero and never changes (forces that
nobody applies); those entries are left out, and a recording that would need them is refused.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np

from counterpoint.adapters.mujoco.bodies import Bodies
from counterpoint.core.arrays import Array, Floats, Ints

WHOLE = mujoco.mjtState.mjSTATE_INTEGRATION
PHYSICAL = (
    "body_",
    "jnt_",
    "dof_",
    "geom_",
    "eq_",
    "tendon_",
    "wrap_",
    "actuator_",
    "mesh_vert",
    "hfield_data",
    "pair_",
)
COSMETIC = ("rgba", "matid", "user", "group", "sameframe", "bvh", "plugin", "name")


@dataclass(frozen=True, eq=False)
class Packing:
    """Which entries of the integration state are recorded, and who owns them.

    Attributes:
        bodies: the groups of trees.
        rest: (W,) the whole state after a reset; entries that are not recorded keep these values.
        kept: which entries are recorded.
    """

    bodies: Bodies
    rest: Floats
    kept: Ints

    @property
    def width(self) -> int:
        """Number of recorded entries."""
        return len(self.kept)

    @cached_property
    def owner(self) -> Ints:
        """The group that owns each recorded entry."""
        return owners(self.bodies)[self.kept]

    @cached_property
    def _left_out(self) -> tuple[Ints, Floats]:
        out = np.setdiff1d(np.arange(len(self.rest)), self.kept)
        return out, self.rest[out]

    def pack(self, whole: Floats) -> Floats:
        """Return the recorded entries of a whole state, (W,) -> (width,)."""
        out, rest = self._left_out
        if not (whole[out] == rest).all():
            entry = int(out[np.flatnonzero(whole[out] != rest)[0]])
            raise ValueError(
                f"{_part_of(self.bodies.model, entry)}: the environment changes it now, but did not when it was tried "
                "out, so it would not be recorded. Record everything: Recorder(env, everything=True)."
            )
        return whole[self.kept]

    def unpack(self, packed: Floats) -> Floats:
        """Return the whole state, (width,) -> (W,)."""
        whole = self.rest.copy()
        whole[self.kept] = packed
        return whole

    def everything(self) -> "Packing":
        """Return the packing that leaves nothing out."""
        return Packing(self.bodies, self.rest, np.arange(len(self.rest)))


def packing(bodies: Bodies, states: Floats) -> Packing:
    """Find out which entries are worth recording.

    Args:
        bodies: the groups of trees.
        states: (K, W) whole states that were seen, the first of them after a reset.
    """
    always = np.ones(states.shape[1], np.bool_)
    for name, columns in parts(bodies.model).items():
        if name in ("QFRC_APPLIED", "XFRC_APPLIED", "USERDATA"):
            always[columns] = False
    changed = (states != states[0]).any(axis=0)
    return Packing(bodies, states[0].copy(), np.flatnonzero(always | changed))


def whole_state(model: Any, data: Any) -> Floats:
    """Return the integration state, (W,)."""
    state = np.empty(mujoco.mj_stateSize(model, WHOLE))
    mujoco.mj_getState(model, data, state, WHOLE)
    return state


def parts(model: Any) -> dict[str, slice]:
    """Return where each part of the integration state lies, by MuJoCo's name for it."""
    found, start = {}, 0
    for name, bit in mujoco.mjtState.__members__.items():
        value = int(bit)
        if name.startswith("mjSTATE_") and value & (value - 1) == 0 and value & int(WHOLE):
            stop = start + mujoco.mj_stateSize(model, value)
            found[name.removeprefix("mjSTATE_")] = slice(start, stop)
            start = stop
    return found


def owners(bodies: Bodies) -> Ints:
    """Return the group that owns each entry of the integration state, (W,)."""
    dofs = bodies.of_dofs()
    known: dict[str, Array] = {
        "QPOS": bodies.of_qpos(),
        "QVEL": dofs,
        "WARMSTART": dofs,
        "QFRC_APPLIED": dofs,
        "ACT": bodies.of_activations(),
        "CTRL": bodies.of_actuators(),
        "XFRC_APPLIED": np.repeat(bodies.of_bodies(), 6),
        "EQ_ACTIVE": bodies.of_equalities(),
        "MOCAP_POS": np.repeat(bodies.of_mocaps(), 3),
        "MOCAP_QUAT": np.repeat(bodies.of_mocaps(), 4),
    }
    places = parts(bodies.model)
    owner = np.full(max(place.stop for place in places.values()), bodies.driven)
    for name, group in known.items():
        owner[places[name]] = group
    return owner


def _part_of(model: Any, entry: int) -> str:
    return next(name.lower() for name, place in parts(model).items() if place.start <= entry < place.stop)


def fingerprint(model: Any) -> float:
    """Return a number that two models share only if their physics is the same: 48 bits, so that a float holds them."""
    digest = hashlib.blake2b(mujoco.__version__.encode(), digest_size=6)
    for name in sorted(name for name in dir(model) if name.startswith(PHYSICAL)):
        if not any(word in name for word in COSMETIC):
            value = getattr(model, name)
            if isinstance(value, np.ndarray):
                digest.update(name.encode() + value.tobytes())
    for name in sorted(name for name in dir(model.opt) if not name.startswith("_")):
        value = np.asarray(getattr(model.opt, name))
        digest.update(name.encode() + value.astype(np.float64).tobytes())
    return float(int.from_bytes(digest.digest(), "big"))
