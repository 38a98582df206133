"""Pong, after the paper's batch-RL experiment (appendix "Batch RL"), with an exact mask.

The original is RoboschoolPong on a Bullet engine of 2017. This world computes the same rules in
closed form, batch first and pure, so that every counterfactual can be put back and checked. Deviations:
states are not clipped, columns follow the paper (x, y, vx, vy) and not its code (x, vx, y, vy), actions
beyond [-1, 1] are refused unless asked for, and contact is a simplified reading of Bullet's solver.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats, Ints
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_count
from counterpoint.worlds.pong_physics import FACTORS, LIMIT, REST, SCALE, advance, reach
from counterpoint.worlds.pong_player import pong_policy
from counterpoint.worlds.world import check_action, check_draw, check_noise, check_state, doubles, float_dtype

__all__ = ["CODE_LENGTH", "PAPER_LENGTH", "Pong", "pong_policy"]

PAPER_LENGTH, CODE_LENGTH = 150, 250  # steps in an episode, as the paper says and as its code does
TARGET = 0.9  # metres; the opponent's target is uniform in a square of this half-width

_COLUMNS = ("x", "y", "vx", "vy")


@dataclass(frozen=True)
class Pong:
    """Two paddles and a ball; the agent plays the left one, the right one swings about a target.

    A state has three factors, ``agent``, ``opponent`` and ``ball``, each x, y, vx, vy. Positions are
    divided by the half-range of their joint (0.3 and 1.1 m, the ball 2.1 and 1.1 m), velocities by
    2 m/s. Paddles rest at x = -1.3 and +1.3 m. Unlike the paper's observation, a state is not
    clipped: the speed of every serve would be lost, and with it the Markov property. `observe` clips.

    The action is the velocity that the agent wants, in units of 3 m/s. The noise is the opponent's
    hidden target in metres, drawn once per episode; it belongs to the opponent and travels with it.

    A step is computed in float64 and returned in the dtype of the state that came in, so a stored
    transition can be recomputed bit for bit.

    Attributes:
        dtype: of the states and the noise that `reset` and `noise` make.
        clip_actions: clip actions to [-1, 1], as the original does, instead of refusing others.
        length: number of steps after which an episode is cut off; the paper's code has 250.
        points: number of steps with a reward after which it is cut off; they need not be consecutive.

    Example:
        >>> world, rng = Pong(), np.random.default_rng(0)
        >>> state, noise = world.reset(5, rng), world.noise(5, rng)
        >>> after, mask = world.step_and_mask(state, pong_policy(state, rng), noise)
        >>> after.shape, after.dtype, mask.shape, world.factors.names
        ((5, 12), dtype('float32'), (5, 4, 3), ('agent', 'opponent', 'ball', 'action'))
    """

    dtype: Any = np.float32
    clip_actions: bool = False
    length: int = PAPER_LENGTH
    points: int = 10

    noise_per_episode: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", float_dtype(self.dtype))
        for name in ("length", "points"):
            require_count(name, getattr(self, name), noun="number of steps")

    @property
    def factors(self) -> Factorization:
        """Columns of the factors: three state factors, one action factor, noise of the opponent."""
        return FACTORS

    @property
    def noise_owner(self) -> Ints:
        """The state factor that owns each noise column, (U,): the opponent owns both."""
        return FACTORS.noise_owner

    def reset(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw ``size`` first states, (B, 12): paddles still, the ball served towards the agent."""
        check_draw(size, rng)
        state = np.zeros((size, 3, 4))
        state[:, :, 1] = rng.uniform(-0.9, 0.9, (size, 3))
        state[:, 2, 2] = -rng.uniform(2.0, 2.5, size)
        state[:, 2, 3] = rng.uniform(-2.0, 2.0, size)
        scaled: Floats = (state / SCALE).reshape(size, 12).astype(self.dtype)
        return scaled

    def noise(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw the opponent's targets for ``size`` episodes, (B, 2) in metres."""
        check_draw(size, rng)
        return rng.uniform(-TARGET, TARGET, (size, 2)).astype(self.dtype)

    def step(self, state: Floats, action: Floats, noise: Floats | None = None) -> Floats:
        """Return the next state, (B, 12).

        Args:
            state: (B, 12).
            action: (B, 2) within [-1, 1].
            noise: (B, 2) the opponent's targets; without it all are 0, the middle.
        """
        return self._advance(state, action, noise)[0]

    def step_and_mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> tuple[Floats, Bools]:
        """Return what `step` returns and the exact mask, (B, 4, 3), from one pass."""
        after, touched = self._advance(state, action, noise)
        return after, _mask(touched)

    def mask(self, state: Floats, action: Floats, noise: Floats | None = None) -> Bools:
        """Return who influences whom, (B, 4, 3): rows agent, opponent, ball, action.

        Every body moves itself and the action always moves the agent. The ball and a paddle influence
        each other where one pushes the other in any of the four substeps, and there only; a push by
        the agent's paddle carries the action over to the ball within the same step.

        The mask is exact: if no edge of base, donor and proposal crosses a node set, the assembled next
        state is the true one, bit for bit. *Why:* a paddle and a ball that do not push each other take
        the very steps that each would take alone. Those on one side of the cut pushed nothing on the
        other in their parent, nor do they in the proposal, so they do there what they did in the parent.

        Without noise the opponent's target is unknown, not zero. Then the ball and the opponent are tied
        wherever they would meet for *some* target, so the argument holds whatever the noise was. That
        ties them in 17 instead of 12 of 10,000 steps of `pong_policy` at noise level 0.5.
        """
        if noise is not None:
            return _mask(self._advance(state, action, noise)[1])
        before, wanted = self._checked(state, action)
        touched = np.empty((len(before), 2), np.bool_)
        reach(doubles(before), wanted, touched)
        return _mask(touched)

    @staticmethod
    def observe(state: Floats) -> Floats:
        """Return the paper's observation, (B, 12): the state clipped to [-1, 1]. Fast balls look alike."""
        clipped: Floats = np.clip(check_state(state, FACTORS), -1.0, 1.0)
        return clipped

    @staticmethod
    def reward(state: Floats, action: Floats, next_state: Floats) -> Floats:
        """Return +1 where the ball has reached the opponent's x, -1 where the agent's, (B,); y is ignored."""
        del state, action
        after = check_state(next_state, FACTORS)
        agent, opponent, ball = (after[:, ::4].astype(np.float64) * LIMIT[:, 0] + REST).T
        reward: Floats = (1.0 * (ball >= opponent) - (ball <= agent)).astype(after.dtype)
        return reward

    def ends(self, steps: Ints, scored: Ints) -> Bools:
        """Tell which episodes are cut off, (B,) bool. It is always a truncation, never a termination.

        Args:
            steps: (B,) how many steps each episode has taken.
            scored: (B,) how many of them had a reward that is not 0.
        """
        return (np.asarray(steps) >= self.length) | (np.asarray(scored) >= self.points)

    @staticmethod
    def success(reward: Floats) -> Bools:
        """Tell which episodes were won, (B,) bool, from the reward of their last step, (B,)."""
        won: Bools = np.asarray(reward) == 1.0
        return won

    def _advance(self, state: Floats, action: Floats, noise: Floats | None) -> tuple[Floats, Bools]:
        before, wanted = self._checked(state, action)
        target = doubles(check_noise(noise, FACTORS, len(before)))
        after, touched = np.empty(before.shape), np.empty((len(before), 2), np.bool_)
        advance(doubles(before), wanted, target, after, touched)
        return after.astype(before.dtype, copy=False), touched

    def _checked(self, state: object, action: object) -> tuple[Array, Array]:
        """Return the state in its own dtype and the action in float64, or say what is wrong with them."""
        before = check_state(state, FACTORS)
        _require_in_range(before)
        wanted = np.clip(np.asarray(action), -1.0, 1.0) if self.clip_actions else action
        return before, doubles(check_action(wanted, FACTORS, len(before)))


def _mask(touched: Bools) -> Bools:
    mask = np.zeros((len(touched), 4, 3), np.bool_)
    mask[:, (0, 1, 2, 3), (0, 1, 2, 0)] = True
    mask[:, :2, 2] = mask[:, 2, :2] = touched
    mask[:, 3, 2] = touched[:, 0]
    return mask


def _require_in_range(state: Floats) -> None:
    """Joints have limits: a position outside them is a sign of other units or another column order."""
    position = np.abs(state.reshape(-1, 3, 4)[:, :, :2])
    if not position.size or position.max() <= 1.001:
        return
    row, factor, column = np.unravel_index(int(position.argmax()), position.shape)
    came = state[row, 4 * factor + column]
    raise ValueError(
        f"state: expected positions within [-1, 1], got {_COLUMNS[column]} = {came:.6g} for the "
        f"{FACTORS.names[factor]} in row {row}. Positions are divided by the half-range of their joint, "
        "and columns are x, y, vx, vy; the paper's code has x, vx, y, vy. Reorder, rescale or clip them first."
    )
