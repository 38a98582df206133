"""Bouncing sprites on a canvas: the paper's Spriteworld as a structural causal model."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.core.require import require_count
from counterpoint.worlds import bounce
from counterpoint.worlds.world import check_draw, check_inputs, doubles, float_dtype

ActionRule = Literal["redirect", "reverse"]

_TRIES = 1000  # rounds of redrawing a sprite that overlaps another, before giving up


@dataclass(frozen=True)
class Sprites:
    """Square sprites that bounce off walls and off each other, one of them pushed by a click.

    State: ``x, y, vx, vy`` of sprite 0, then of sprite 1, and so on, (B, 4n). Action: a point in
    [-1, 1]², standing for the click ``(action + 1) / 2`` on the unit canvas. Noise: two columns per
    sprite, (B, 2n), added to its velocity if it is the one acted on, and otherwise unused.

    One step, in this order (every velocity component is clipped to ±0.08 when it changes, only then):

    1. The click acts on one sprite, by ``action_rule``, and noise is added to its velocity.
    2. The sprites move one after another, in index order. A centre that reaches the edge of the canvas
       is clipped to it, and both velocity components flip.
    3. If the place a sprite moves to is nearer than 0.1 to the centre of another, or lies inside its
       square of side 0.15, the mover goes back to where it came from and both its velocity components
       flip. The others are tested in index order, the first hit counts; those of lower index have
       already moved. Only the mover is affected. A sprite that neither moves nor has a velocity hits
       nothing.

    The mask has the identity; an edge j → i if j is the sprite that i hit in its own move; and an edge
    action → i if i is the sprite acted on. It is exact: if no edge of base, donor and proposal crosses a
    node set, the assembled next state is the true one. *Why:* "the nearest" and "the first hit" are the
    first of all candidates in a fixed order. If the first of all lies on one side of the cut, in the
    parent and in the proposal alike, it is the first of that side, and that side is the same in both.
    If the parent has no candidate, its side of the proposal has none, and one from the other side would
    be an edge across. So each sprite meets the same fate, by induction over the order of moves. The
    same holds for a click that hits nothing under "reverse": it needs no edge, because the proposal's
    own mask shows when the click meets a sprite from the other side.

    Attributes:
        n: number of sprites.
        noise_std: standard deviation of the velocity noise, per component.
        separate: draw initial centres at least 0.1 apart. The original code meant to and did not: with
            four sprites, about one reset in five has an overlapping pair, which can stay stuck.
        action_rule: "redirect" turns the nearest sprite away from the click and keeps its speed: with z
            the distance, the new heading is (1 − z)·old + z·away, a plain blend of two angles in (−π, π].
            "reverse" (the older click) reverses the first sprite whose square holds the click, if any.
        noise_margin: how much unknown noise ``mask`` allows for when it is not told the noise, in
            standard deviations. Zero gives the graph of zero noise. With a margin every contact that
            some noise within ±margin·noise_std per component would cause is an edge, so a swap can only
            be wrong if the noise was larger than that. Of the accepted swaps of random-policy data,
            99.5% are true at margin 0, 99.99% at 2 (for 3% fewer swaps), and all of 330,000 at 3 (5%).
        dtype: dtype of initial states and noise. Rules are computed in float64, from whatever is given.

    Example:
        >>> import numpy as np
        >>> world = Sprites(n=4)
        >>> state = world.reset(2, np.random.default_rng(0))
        >>> action, noise = np.zeros((2, 2)), world.noise(2, np.random.default_rng(1))
        >>> world.step(state, action, noise).shape, world.mask(state, action, noise).shape
        ((2, 16), (2, 5, 4))
    """

    n: int = 4
    noise_std: float = 0.01
    separate: bool = False
    action_rule: ActionRule = "redirect"
    noise_margin: float = 2.0
    dtype: Any = np.float32

    noise_per_episode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", float_dtype(self.dtype))
        require_count("n", self.n, noun="number of sprites")
        for name in ("noise_std", "noise_margin"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name}: expected a finite number, 0 or more, got {getattr(self, name)!r}.")
        if self.action_rule not in get_args(ActionRule):
            rules = " or ".join(map(repr, get_args(ActionRule)))
            raise ValueError(f"action_rule: expected {rules}, got {self.action_rule!r}.")

    @cached_property
    def factors(self) -> Factorization:
        """State factors ``sprite0`` ... of four columns each, one action factor ``action`` of two."""
        names = [f"sprite{i}" for i in range(self.n)]
        return Factorization.blocks(
            state=dict.fromkeys(names, 4),
            action={"action": 2},
            noise={name: (2 * i, 2 * i + 1) for i, name in enumerate(names)},
            positions={
                **{name: (4 * i, 4 * i + 1) for i, name in enumerate(names)},
                "action": Position((0, 1), scale=0.5, offset=0.5),
            },
            types=dict.fromkeys(names, "sprite"),
        )

    @property
    def noise_owner(self) -> Ints:
        """The sprite that owns each noise column, (2n,)."""
        return self.factors.noise_owner

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw initial states, (B, 4n): centres U(0.05, 0.95), velocities U(−0.08, 0.08)."""
        check_draw(size, rng)
        sprites = np.empty((size, self.n, 4), self.dtype)
        sprites[..., :2] = rng.uniform(0.05, 0.95, (size, self.n, 2))
        sprites[..., 2:] = rng.uniform(-bounce.SPEED_LIMIT, bounce.SPEED_LIMIT, (size, self.n, 2))
        if self.separate:
            _separate(sprites, rng)
        return sprites.reshape(size, 4 * self.n)

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw velocity noise N(0, noise_std²), (B, 2n)."""
        check_draw(size, rng)
        return rng.normal(0.0, self.noise_std, (size, 2 * self.n)).astype(self.dtype)

    def step(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next states, (B, 4n), in the dtype of ``state``; without ``noise``, for zero noise."""
        return self.step_and_mask(state, action, noise)[0]

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return the local causal graphs, (B, n + 1, n); without ``noise``, with the ``noise_margin``."""
        reach = self.noise_margin * self.noise_std if noise is None else 0.0
        return self._run(*check_inputs(state, action, noise, self.factors), reach)[1]

    def step_and_mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> tuple[Floats, Bools]:
        """Return next states (B, 4n) and their exact local causal graphs (B, n + 1, n) from one pass."""
        return self._run(*check_inputs(state, action, noise, self.factors), 0.0)

    def _run(self, state: Array, action: Array, noise: Array, reach: float) -> tuple[Floats, Bools]:
        sprites = doubles(state).reshape(-1, self.n, 4)
        after = np.empty_like(sprites)
        mask = np.zeros((len(state), self.n + 1, self.n), bool)
        reverse = self.action_rule == "reverse"
        bounce.run(sprites, doubles(action), doubles(noise), float(reach), reverse, after, mask)
        return after.reshape(state.shape).astype(state.dtype, copy=False), mask


def _separate(sprites: Array, rng: np.random.Generator) -> None:
    """Redraw centres, one sprite after another, until each is at least 0.1 away from those before it."""
    for i in range(1, sprites.shape[1]):
        for _ in range(_TRIES):
            gaps = sprites[:, :i, :2].astype(np.float64) - sprites[:, i : i + 1, :2]
            close = (np.hypot(gaps[..., 0], gaps[..., 1]) < bounce.CONTACT).any(axis=1)
            if not close.any():
                break
            sprites[close, i, :2] = rng.uniform(0.05, 0.95, (int(close.sum()), 2))
        else:
            raise ValueError(
                f"separate: found no place for sprite {i} at distance {bounce.CONTACT} from the others "
                f"in {_TRIES} tries. The canvas is too full for n={sprites.shape[1]}: use fewer sprites, "
                "or separate=False."
            )
