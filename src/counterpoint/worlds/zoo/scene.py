"""What happens in one step: the scene before it, and the changes that factors cause in each other.

Everything that one factor does to another goes through ``Change.influence``. It takes the condition and
the effect together, draws the edge where the condition holds, and adds the effect there and nowhere else.
So the mask comes from the very quantities that the step uses. *Why it is exact:* if no edge of base, donor
and proposal crosses a node set, the conditions that hold for a target in the proposal are those that held in
the row it comes from, with the same sources, so the same effects are added in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from counterpoint.core.arrays import Bools, Floats

FIELDS = ("x", "y", "vx", "vy", "level", "flag")  # what a factor can have; most have only some of these
X, Y, VX, VY, LEVEL, FLAG = range(6)
TINY = 1e-9

Pair: TypeAlias = tuple[int, int]  # source and target; an action factor k as a source is written ~k


@dataclass(frozen=True, eq=False)
class Scene:
    """States as the parts see them, whatever is shown to the outside."""

    body: Floats  # (B, n, 6) the fields of each factor
    action: Floats  # (B, A)

    @property
    def position(self) -> Floats:
        """Where each factor is, (B, n, 2)."""
        return self.body[..., :2]

    @property
    def velocity(self) -> Floats:
        """How far each factor moves in a step, (B, n, 2)."""
        return self.body[..., 2:4]

    def apart(self, pairs: Sequence[Pair]) -> tuple[Floats, Floats]:
        """Return the unit vectors from sources to targets, (B, P, 2), and their distances, (B, P)."""
        source, target = (list(side) for side in zip(*pairs, strict=True))
        gap = self.position[:, target] - self.position[:, source]
        distance = np.sqrt(gap[..., 0] * gap[..., 0] + gap[..., 1] * gap[..., 1])
        return gap / np.maximum(distance, TINY)[..., None], distance


@dataclass(frozen=True, eq=False)
class Change:
    """What others do to each factor in one step, and the graph of who did; filled in place."""

    velocity: Floats  # (B, n, 2) added to the velocity
    shift: Floats  # (B, n, 2) added to the position
    level: Floats  # (B, n) added to the level
    set_on: Bools  # (B, n) the flag is set
    set_off: Bools  # (B, n) the flag is cleared
    held: Bools  # (B, n) kept from falling
    mask: Bools  # (B, N, n)

    @classmethod
    def none(cls, rows: int, n: int, m: int) -> Self:
        """Return a change of nothing, whose graph has the edge of every factor to itself."""
        mask = np.zeros((rows, n + m, n), np.bool_)
        mask[:, np.arange(n), np.arange(n)] = True
        off, still = np.zeros((rows, n), np.bool_), np.zeros((rows, n, 2))
        return cls(still, still.copy(), np.zeros((rows, n)), off, off.copy(), off.copy(), mask)

    def influence(self, pairs: Sequence[Pair], active: Bools, also: Sequence[int] = (), **effects: Floats) -> None:
        """Add effects where a condition holds, and draw the edges.

        Args:
            pairs: P pairs of source and target.
            active: (B, P) whether the source acts.
            also: further sources that the condition or the effects depend on.
            **effects: by name of the attribute, what is done, (B, P) or (B, P, 2); for the flags nothing
                but their name counts.
        """
        n = self.mask.shape[2]
        for p, (source, target) in enumerate(pairs):
            acts = active[:, p]
            for node in {source, *also} - {target}:
                self.mask[:, node if node >= 0 else n + ~node, target] |= acts
            for name, effect in effects.items():
                into = getattr(self, name)[:, target]
                if into.dtype == np.bool_:
                    into |= acts
                else:
                    into += np.where(acts[:, None] if into.ndim == 2 else acts, effect[:, p], 0.0)
