"""A replay buffer whose batches hold counterfactual rows, too. The agent stays as it is.

``CodaReplayBuffer`` is given to any off-policy agent (TD3, DDPG, SAC, and those of SBX) as ``replay_buffer_class``, its
keywords as ``replay_buffer_kwargs``. Real and counterfactual rows live in two rings; a batch has rows of both in
proportion, up to a cap.

Agents store actions scaled to [-1, 1]. Your functions never see those: they get actions as the environment did.

The counterfactual half has its own seed. Stable-Baselines3 draws the real half from NumPy's global state, which the
agent's ``seed`` sets. Until the first counterfactual is made, batches are those of the plain buffer, bit for bit.

Example:
    >>> from stable_baselines3 import TD3
    >>> import counterpoint.adapters.gymnasium
    >>> from counterpoint import Augmenter
    >>> from counterpoint.replay import Mixing
    >>> from counterpoint.worlds import Place, Sprites
    >>> world = Sprites()
    >>> agent = TD3(
    ...     "MlpPolicy",
    ...     "counterpoint/Place2-v0",
    ...     replay_buffer_class=CodaReplayBuffer,
    ...     replay_buffer_kwargs={
    ...         "augmenter": Augmenter(world.factors, world.mask, Place(2)),
    ...         "mixing": Mixing(every=50),
    ...     },
    ...     buffer_size=1000,
    ...     device="cpu",
    ... ).learn(100)
    >>> agent.replay_buffer.counterfactual.rounds
    2
"""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from counterpoint.adapters.sb3 import doors
from counterpoint.adapters.sb3.halves import TwoHalves
from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.augment import Augmenter
from counterpoint.core.transitions import Transitions
from counterpoint.replay import Mixing, Rollouts
from counterpoint.replay.rows import MakesRows

STORED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


class CodaReplayBuffer(TwoHalves):
    """A replay buffer that adds counterfactuals of what it holds (paper, section 4.1).

    Args:
        buffer_size: as in ``ReplayBuffer``; the agent gives it.
        observation_space: likewise.
        action_space: likewise.
        augmenter: makes the counterfactuals. With ``Rollouts`` instead of an ``Augmenter``, this is Dyna.
        mixing: how often, how many, and how much of a batch. The defaults are those of the paper.
        noise_key: where ``info`` has the simulator's noise; rows then carry it, so that they can be audited.
        **given: what else ``ReplayBuffer`` takes.

    Attributes:
        counterfactual: the counterfactual rows and figures about them.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        *,
        augmenter: Augmenter | Rollouts | MakesRows,
        mixing: Mixing = Mixing(),  # noqa: B008 (frozen)
        noise_key: str | None = None,
        **given: Any,
    ) -> None:
        if given.get("optimize_memory_usage"):
            raise ValueError(
                "optimize_memory_usage: it stores each observation once and reads the next row as the next state. "
                "Counterfactuals are made row by row, and time limits must be told apart from terminal states, so "
                "leave it False; a smaller buffer_size saves memory too."
            )
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
            raise TypeError(
                f"observation_space: expected a flat Box, whose columns are split into factors, got "
                f"{observation_space}. For goal environments there is CodaHerReplayBuffer; for other dicts, "
                "gymnasium.wrappers.FlattenObservation makes one."
            )
        doors.require_action_space(action_space)
        super().__init__(buffer_size, observation_space, action_space, **given)
        self._begin(augmenter, mixing, noise_key, observation_space.dtype)
        if isinstance(augmenter, Augmenter):
            augmenter.factors.require_widths(self.observations.shape[-1], self.action_dim)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Draw a batch of real rows, then counterfactual ones, normalised like real ones."""
        drawn = self.counterfactual.draw(batch_size, self.size() * self.n_envs)
        if drawn is None:
            return super().sample(batch_size, env)
        real = super().sample(batch_size - len(drawn), env)
        columns = {
            "observations": self._normalize_obs(drawn.state, env),
            "actions": self.scale.stored(drawn.action),
            "next_observations": self._normalize_obs(drawn.next_state, env),
            "dones": drawn.terminated.astype(np.float32)[:, None],
            "rewards": self._normalize_reward(drawn.reward.astype(np.float32, copy=False)[:, None], env),
        }
        both = {
            name: torch.cat([getattr(real, name), self.to_torch(np.asarray(mine), copy=False)])
            for name, mine in columns.items()
        }
        return real._replace(**both)

    def real_transitions(self) -> Transitions:
        """Return all real rows, with actions as the environment got them; states are views, not copies."""
        rows = self.size()

        def flat(array: Array) -> Array:
            return array[:rows].reshape(rows * self.n_envs, *array.shape[2:])

        return Transitions.trusted(
            state=flat(self.observations),
            action=self.scale.real(flat(self.actions)),
            reward=flat(self.rewards),
            next_state=flat(self.next_observations),
            terminated=flat(self.dones[:rows] * (1 - self.timeouts[:rows]) > 0),
            noise=None if self.noise is None else flat(self.noise),
        )

    def counterfactual_rewards(self, most: int) -> Floats:
        """Return the rewards of up to so many counterfactual rows, evenly spaced, for the log."""
        ring = self.counterfactual.ring
        which: Ints = np.linspace(0, len(ring) - 1, min(len(ring), most)).astype(np.int64)
        return ring.take(which).reward if len(which) else np.zeros(0)

    def _grow(self) -> None:
        rows = self.counterfactual
        rows.grow(self.n_envs, lambda: self.size() * self.n_envs, lambda which: self.real_transitions()[which])

    def _real(self) -> dict[str, Array]:
        return {name: getattr(self, name) for name in STORED}
