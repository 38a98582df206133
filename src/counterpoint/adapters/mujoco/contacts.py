"""Who was tied to whom during a step, read from the solver's islands in every substep.

MuJoCo splits its constraints (contacts, limits, equalities) into islands and solves each on its own. Trees that share
no island in any substep did not act on each other. The islands of a substep are there when MuJoCo asks for controls,
so a control callback reads them; a step that an environment takes in one call is seen substep by substep.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mujoco
import numpy as np

from counterpoint.adapters.mujoco.bodies import Bodies
from counterpoint.core.arrays import Bools, Floats

COLD = int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
ROUNDING = (
    "rounding: the solver starts from the last step's forces or from none, and decides it for all islands together. A "
    "touch in one island changes the last digits in others, within the solver's tolerance: usually less than 1e-9, but "
    "more with elliptic friction cones or the CG solver. Without warm start (model.opt.disableflags |= "
    "mujoco.mjtDisableBit.mjDSBL_WARMSTART) next to nothing of it is left"
)
BITS = 32  # of ties in each recorded column; a float holds them exactly


class Contacts:
    """What the islands of one simulator say, collected over the substeps of a step."""

    def __init__(self, data: Any, bodies: Bodies) -> None:
        self.data, self.bodies = data, bodies
        self._stages = bodies.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4  # looks within a substep count too
        self._log: list[tuple[float, bytes]] = []  # time and islands, whenever MuJoCo asked for controls
        self._known: dict[frozenset[bytes], tuple[Bools, Floats]] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Collect the islands of all substeps taken inside the block; another control callback still runs."""
        other = mujoco.get_mjcb_control()
        data, log = self.data, self._log
        log.clear()

        def note(model: Any = None, inner: Any = None) -> None:
            # The array lies elsewhere after each substep, and nowhere without islands. MuJoCo knows islands of trees
            # too, but not in its older versions.
            log.append((data.time, data.dof_island.tobytes() if data.nisland else b""))
            if other is not None and model is not None:
                other(model, inner)

        note()
        mujoco.set_mjcb_control(note)
        try:
            yield
        finally:
            mujoco.set_mjcb_control(other)
            log.append((data.time, b""))

    def ties(self) -> Bools:
        """Return which groups shared an island in some substep, (groups, groups), every group with itself."""
        return self._found()[0]

    def words(self) -> Floats:
        """Return the ties as numbers of 32 bits."""
        return self._found()[1]

    def _found(self) -> tuple[Bools, Floats]:
        """Islands count once time has moved on: a mere look at a state ties nothing."""
        log = self._log
        seen = frozenset(log[k][1] for k in range(len(log) - 1) if self._stages or log[k + 1][0] != log[k][0])
        if seen not in self._known:
            ties, owner = np.eye(len(self.bodies.names), dtype=np.bool_), self.bodies.of_dofs()
            for each in filter(None, seen):
                island = np.frombuffer(each, np.int32)
                for one in np.unique(island[island >= 0]):
                    members = np.unique(owner[island == one])
                    ties[np.ix_(members, members)] = True
            self._known[seen] = ties, to_words(ties)
        return self._known[seen]


def to_words(ties: Bools) -> Floats:
    """Write ties, (groups, groups), as numbers of 32 bits."""
    bits = ties[np.triu_indices(len(ties), 1)]
    padded = np.zeros((words(len(ties)), BITS), np.bool_)
    padded.flat[: len(bits)] = bits
    return np.asarray((padded * np.exp2(np.arange(BITS))).sum(axis=1))


def from_words(numbers: Floats, groups: int) -> Bools:
    """Read ties of many rows, (B, words) -> (B, groups, groups)."""
    one, two = np.triu_indices(groups, 1)
    bits = (numbers.astype(np.uint64)[:, :, None] >> np.arange(BITS, dtype=np.uint64)) & np.uint64(1)
    ties = np.zeros((len(numbers), groups, groups), np.bool_)
    ties[:, one, two] = ties[:, two, one] = bits.reshape(len(numbers), -1)[:, : len(one)] > 0
    ties[:, np.arange(groups), np.arange(groups)] = True
    return ties


def words(groups: int) -> int:
    """Return how many numbers hold the ties of so many groups."""
    return -(-(groups * (groups - 1) // 2) // BITS)


def exactness(model: Any) -> tuple[bool, tuple[str, ...]]:
    """Say whether islands tell the whole story in this model, and what else can carry an influence.

    No integrator carries one: implicit ones factor all trees in one matrix, but its blocks stay apart to the bit.

    Returns:
        Whether islands are exact, up to rounding; and a sentence for each thing to know.
    """
    options = model.opt
    found = {
        "islands are switched off (disable flag), so every constraint is solved together": bool(
            options.disableflags & int(getattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND", 0))
        ),
        "actuation is switched off, so substeps cannot be watched": bool(
            options.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        ),
        "the no-slip solver runs over all constraints at once": options.noslip_iterations > 0,
        "the PGS solver runs over all constraints at once": options.solver == mujoco.mjtSolver.mjSOL_PGS,
        "flexible bodies belong to no tree": model.nflex > 0,
        "plugins may read anything": model.nplugin > 0,
        "adhesion acts on whatever is near": bool((model.actuator_trntype == mujoco.mjtTrn.mjTRN_BODY).any()),
        "trees fall asleep, which no recorded state shows": bool(
            options.enableflags & int(getattr(mujoco.mjtEnableBit, "mjENBL_SLEEP", 0))
        ),
    }
    reasons = tuple(sentence for sentence, there in found.items() if there)
    return not reasons, (*reasons, *(() if options.disableflags & COLD else (ROUNDING,)))
