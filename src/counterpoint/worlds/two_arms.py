"""The two-armed robot of the paper's Figure 2: apart, its arms are two worlds; touching, they are one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from counterpoint.core.arrays import Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.worlds.world import check_draw, check_inputs, float_dtype

REACH = 0.15  # hands nearer than this touch
KEEP = 0.8  # share of its velocity that a hand keeps in one step
FORCE = 0.03  # change of velocity by a full action


@dataclass(frozen=True)
class TwoArms:
    """Two hands in the unit square, each moved by its own motor; while they touch they move as one.

    "Because the arms can touch, the global causal model between time steps is fully connected, even though
    left-to-right and right-to-left connections are rarely active" (paper, Figure 2). Touching hands share the
    mean of their velocities and motors, so that each one's motor moves both.

    Columns: ``x, y, vx, vy`` of ``left`` and of ``right``. Actions ``left motor`` and ``right motor``, 2 columns
    each. One step: velocity times 0.8 plus 0.03 times the action, both as means of the two hands where these are
    nearer than 0.15; each hand's own noise is added, and it moves, staying in the square.

    Attributes:
        noise_std: of the noise on each velocity.
        dtype: dtype of initial states and noise.

    Example:
        >>> import numpy as np
        >>> apart, touching = [0.1, 0.5, 0, 0, 0.9, 0.5, 0, 0], [0.5, 0.5, 0, 0, 0.55, 0.5, 0, 0]
        >>> TwoArms().mask(np.array([apart, touching]), np.zeros((2, 4))).astype(int)[:, :, 0]  # edges to the left hand
        array([[1, 0, 1, 0],
               [1, 1, 1, 1]])
    """

    noise_std: float = 0.0
    dtype: Any = np.float32

    noise_per_episode: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", float_dtype(self.dtype))
        if not 0 <= self.noise_std < np.inf:
            raise ValueError(f"noise_std: expected a finite number, 0 or more, got {self.noise_std!r}.")

    @cached_property
    def factors(self) -> Factorization:
        """The hands ``left`` and ``right`` with their positions, and a motor for each."""
        return Factorization.blocks(
            state={"left": 4, "right": 4},
            action={"left motor": 2, "right motor": 2},
            noise={"left": (0, 1), "right": (2, 3)},
            positions={"left": (0, 1), "right": (4, 5)},
            types={"left": "hand", "right": "hand", "left motor": "motor", "right motor": "motor"},
        )

    @property
    def noise_owner(self) -> Ints:
        """The hand that owns each noise column, (4,)."""
        return self.factors.noise_owner

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw initial states, (B, 8): hands anywhere, at rest."""
        check_draw(size, rng)
        hands = np.zeros((size, 2, 4))
        hands[..., :2] = rng.uniform(0.0, 1.0, (size, 2, 2))
        return hands.reshape(size, 8).astype(self.dtype)

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw the noise on the velocities, (B, 4)."""
        check_draw(size, rng)
        return (self.noise_std * rng.standard_normal((size, 4))).astype(self.dtype)

    def step(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next states, in the dtype of ``state``."""
        state, action, noise = check_inputs(state, action, noise, self.factors)
        hands = state.astype(np.float64).reshape(-1, 2, 4)
        velocity = KEEP * hands[..., 2:] + FORCE * action.astype(np.float64).reshape(-1, 2, 2)
        joint = np.broadcast_to(velocity.mean(axis=1, keepdims=True), velocity.shape)
        velocity = np.where(_touching(hands)[:, None, None], joint, velocity) + noise.astype(np.float64).reshape(
            -1, 2, 2
        )
        position = np.clip(hands[..., :2] + velocity, 0.0, 1.0)
        return np.concatenate([position, velocity], axis=2).reshape(-1, 8).astype(state.dtype)

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return the local causal graphs, (B, 4, 2): all edges where the hands touch, else two components."""
        state, _, _ = check_inputs(state, action, noise, self.factors)
        apart = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], np.bool_)
        return apart | _touching(state.astype(np.float64).reshape(-1, 2, 4))[:, None, None]


def _touching(hands: Floats) -> Bools:
    """Tell whether the hands of each row touch, (B,)."""
    between = hands[:, 0, :2] - hands[:, 1, :2]
    return np.asarray(np.square(between).sum(axis=1) < REACH**2)
