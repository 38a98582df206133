"""Rows as they are recorded, and rows put back into the simulator.

The noise columns of a row are ``[hidden state | model | digest | ties]``. The digest is computed from hidden state and
action: where it fits, nothing was swapped since the row was recorded, and the ties that stand beside it are its own.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint.adapters.mujoco.anatomy import Anatomy
from counterpoint.adapters.mujoco.contacts import Contacts, from_words
from counterpoint.adapters.mujoco.packing import Packing
from counterpoint.adapters.mujoco.probing import put
from counterpoint.core.arrays import Bools, Floats

UNKNOWN = -1.0  # instead of the digest, where ties were not recorded


def noise_row(inside: Anatomy, packed: Floats, action: Floats, ties: Floats | None) -> Floats:
    """Return the noise columns of one row, (U,); ties come as `Contacts.words`."""
    width = len(packed)
    row = np.zeros(width + inside.tail)
    row[:width], row[width] = packed, inside.model
    row[width + 1] = UNKNOWN if ties is None else digest(packed, action)
    if ties is not None:
        row[width + 2 :] = ties
    return row


def digest(packed: Floats, action: Floats) -> float:
    """Return a number that stands for hidden state and action, 48 bits."""
    found = hashlib.blake2b(packed.tobytes(), digest_size=6)
    found.update(np.asarray(action, np.float64).tobytes())
    return float(int.from_bytes(found.digest(), "big"))


@dataclass(frozen=True, eq=False)
class Ended:
    """What came out of steps: next states (B, S), and who was tied to whom (B, groups, groups), if asked for."""

    next_state: Floats
    ties: Bools | None


def packing_of(inside: Anatomy, noise: Floats) -> Packing:
    """Return the packing that noise columns were recorded with.

    Raises:
        ValueError: if they are not a recording of this environment, or of another model.
    """
    whole = inside.packing.everything()
    widths = {packing.width + inside.tail: packing for packing in (inside.packing, whole)}
    if noise.dtype != np.float64:
        raise ValueError(f"noise: the hidden state needs float64 to be exact, got {noise.dtype}.")
    if noise.shape[1] not in widths:
        raise ValueError(
            f"noise: expected the {min(widths)} columns that counterpoint.adapters.mujoco.collect records for this "
            f"environment, got {noise.shape[1]}. Was it recorded in another environment?"
        )
    found = widths[noise.shape[1]]
    other = np.flatnonzero(noise[:, found.width] != inside.model)
    if len(other):
        raise ValueError(
            f"noise: row {other[0]} was recorded with another model ({noise[other[0], found.width]:.0f}, "
            f"this one is {inside.model:.0f}): {inside.why_another_model}."
        )
    return found


def known_ties(inside: Anatomy, action: Floats, noise: Floats) -> tuple[Bools, Bools]:
    """Return the recorded ties, (B, groups, groups), and for which rows they hold, (B,)."""
    hidden = packing_of(inside, noise).width
    stored = noise[:, hidden + 1]
    packed = np.ascontiguousarray(noise[:, :hidden])
    holds = np.array([digest(*row) for row in zip(packed, action, strict=True)], np.float64) == stored
    return from_words(noise[:, hidden + 2 :], len(inside.bodies.names)), holds


def whole_of(inside: Anatomy, state: Floats, noise: Floats | None, packing: Packing | None = None) -> Floats:
    """Return the simulator's whole state of one row, (S,) and (U,); without noise, from columns that show it all."""
    if noise is not None:
        packing = packing or packing_of(inside, noise[None])
        return packing.unpack(noise[: packing.width])
    whole = inside.packing.rest.copy()
    whole[inside.full_state[0]] = state[inside.full_state[1]]
    return whole


class Stepper:
    """Puts rows into an environment and steps it."""

    def __init__(self, env: Any, inside: Anatomy) -> None:
        self.env, self.inside = env, inside
        self.contacts = Contacts(inside.way.data, inside.bodies)
        self.env.reset(seed=0)

    def __call__(self, state: Floats, action: Floats, noise: Floats | None, *, watch: bool) -> Ended:
        """Step from each row, (B, S), (B, A) and (B, U)."""
        packing = None if noise is None else packing_of(self.inside, noise)
        ends, ties = np.empty((len(state), self.inside.layout.width)), []
        for row in range(len(state)):
            put(self.inside.way, whole_of(self.inside, state[row], None if noise is None else noise[row], packing))
            if watch:
                with self.contacts.watched():
                    shown = self.env.step(action[row])[0]
                ties.append(self.contacts.ties())
            else:
                shown = self.env.step(action[row])[0]
            ends[row] = self.inside.layout.state(shown, self.inside.way.data.qpos)
        goal = self.inside.columns.goal
        ends[:, goal] = state[:, goal]
        return Ended(ends, np.array(ties).reshape(len(state), *[len(self.inside.bodies.names)] * 2) if watch else None)
