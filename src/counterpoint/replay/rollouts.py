"""Rows from a forward model instead of a mask: Dyna, to compare with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.protocols import RewardFn, TerminalFn, call_reward, call_terminal
from counterpoint.core.require import require_counts, require_functions
from counterpoint.core.transitions import Transitions

ForwardModel: TypeAlias = Callable[[Floats, Floats], Array]  # (state (B, S), action (B, A)) -> next_state (B, S)
DrawActions: TypeAlias = Callable[[int, np.random.Generator], Array]  # (B, rng) -> action (B, A)


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Short rollouts of a forward model, with random actions from real states (Dyna).

    Attributes:
        forward_model: ``(state, action) -> next_state (B, S)``.
        reward_fn: ``(state, action, next_state) -> float (B,)``.
        terminal_fn: ``(state, action, next_state) -> bool (B,)``; a rollout ends there.
        starts: how many rollouts a round has.
        steps: how many steps a rollout has.
        draw_actions: ``(B, rng) -> action (B, A)``. A replay buffer draws uniformly from its action space if this is
            None.
    """

    forward_model: ForwardModel
    reward_fn: RewardFn
    terminal_fn: TerminalFn | None = None
    starts: int = 1500
    steps: int = 5
    draw_actions: DrawActions | None = None

    def __post_init__(self) -> None:
        require_counts(self, "starts", "steps")
        require_functions(self, "forward_model", "reward_fn")

    def __call__(self, data: Transitions, *, rng: np.random.Generator) -> Transitions:
        """Roll out from random states of ``data`` and return all rows, first steps first."""
        if self.draw_actions is None:
            raise ValueError("draw_actions: expected a function (size, rng) -> action (B, A), got None.")
        state = data.state[rng.integers(len(data), size=self.starts)]
        parts: list[Transitions] = []
        while len(state) and len(parts) < self.steps:
            row = self._step(state, self.draw_actions(len(state), rng), data.reward.dtype)
            parts.append(row)
            state = row.next_state[~row.terminated]
        return Transitions.concat(*parts)

    def _step(self, state: Floats, action: Array, dtype: np.dtype[np.floating]) -> Transitions:
        after = np.asarray(self.forward_model(state, action))
        if after.shape != state.shape:
            raise ValueError(f"forward_model: expected next states of shape {state.shape}, got {after.shape}.")
        if not np.isfinite(after).all():
            raise ValueError("forward_model: its predictions hold NaN or infinity. Shorten the rollouts, or clip them.")
        never = np.zeros(len(state), np.bool_)
        row = Transitions.trusted(
            state=state, action=action, next_state=after.astype(state.dtype, copy=False), terminated=never
        )
        ends = never if self.terminal_fn is None else call_terminal(self.terminal_fn, row)
        return row.replace(reward=call_reward(self.reward_fn, row, dtype).astype(dtype), terminated=ends)
