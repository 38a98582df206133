"""Stable-Baselines3: replay buffers whose batches hold made rows too. The agent stays as it is.

``CodaReplayBuffer`` and ``DynaReplayBuffer`` are given to any off-policy agent (TD3, DDPG, SAC, and those of
SBX) as ``replay_buffer_class``, their keywords as ``replay_buffer_kwargs``. Real and made rows live in two
rings; a batch has rows of both in proportion, up to a cap.

Agents store actions scaled to [-1, 1]. Your functions never see those: they get actions as the environment did.

The made half has its own seed. The real half is drawn by Stable-Baselines3, from NumPy's global state, which
the agent's ``seed`` sets. While nothing is made yet, batches are those of the plain buffer, bit for bit.

Example:
    >>> from stable_baselines3 import TD3
    >>> import counterpoint.adapters.gymnasium
    >>> from counterpoint.worlds import Place, Sprites
    >>> world = Sprites()
    >>> agent = TD3(
    ...     "MlpPolicy",
    ...     "counterpoint/Place2-v0",
    ...     replay_buffer_class=CodaReplayBuffer,
    ...     replay_buffer_kwargs={"factors": world.factors, "mask_fn": world.mask, "reward_fn": Place(2), "every": 50},
    ...     buffer_size=1000,
    ...     device="cpu",
    ... ).learn(100)
    >>> agent.replay_buffer.made.rounds
    2
"""

import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from counterpoint.adapters.sb3_settings import CodaSettings, DynaSettings, split, take_mixing
from counterpoint.core.arrays import Array, Floats, listed
from counterpoint.core.augment import Augmenter
from counterpoint.core.factors import Factorization
from counterpoint.core.protocols import Mask, RewardFn, TerminalFn
from counterpoint.core.transitions import Transitions
from counterpoint.files.npz import read_arrays
from counterpoint.files.output import output
from counterpoint.files.recording import FileProblem
from counterpoint.files.scanning import reading
from counterpoint.replay import ActionScale, ForwardModel, Imagine, MadeRows, Recombine

try:
    import torch
    from gymnasium import spaces
    from stable_baselines3.common.buffers import ReplayBuffer
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
    from stable_baselines3.common.vec_env import VecNormalize
except ImportError as error:
    raise ImportError("This needs Stable-Baselines3: pip install counterpoint-rl[sb3]") from error

STORED = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")
MADE = "made_"  # begins the names of the made half's arrays in a file


class MixedReplayBuffer(ReplayBuffer):
    """A replay buffer with made rows beside the real ones; not for direct use."""

    made: MadeRows
    noise: Array | None = None  # (buffer_size, n_envs, U)
    noise_key: str | None = None
    terminal_fn: TerminalFn | None = None

    def __init__(self, buffer_size: int, observation_space: Any, action_space: Any, **settings: Any) -> None:
        if settings.get("optimize_memory_usage"):
            raise ValueError(
                "optimize_memory_usage: it stores each observation once and reads the next row as the next state. "
                "Rows are recombined one by one, and time limits must be told apart from terminal states, so leave it "
                "False; a smaller buffer_size saves memory too."
            )
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
            raise TypeError(
                f"observation_space: expected a flat Box, whose columns are split into factors, got "
                f"{observation_space}. gymnasium.wrappers.FlattenObservation makes one."
            )
        if not isinstance(action_space, spaces.Box | spaces.Discrete):
            raise TypeError(f"action_space: expected a Box or Discrete, got {action_space}.")
        super().__init__(buffer_size, observation_space, action_space, **settings)
        self.scale = _scale(action_space, self.actions.dtype)

    def add(
        self, obs: Array, next_obs: Array, action: Array, reward: Array, done: Array, infos: list[dict[str, Any]]
    ) -> None:
        """Add one real transition per environment, and make rows if it is time."""
        self._require_terminal_fn(done, infos)
        if self.noise is not None and self.noise_key is not None:
            self.noise[self.pos] = [_noise_of(info, self.noise_key) for info in infos]
        super().add(obs, next_obs, action, reward, done, infos)
        self.made.grow(self.n_envs, self.real_transitions)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """Draw a batch of real rows, then made rows, normalised like real ones."""
        made = self.made.draw(batch_size, self.size() * self.n_envs)
        if made is None:
            return super().sample(batch_size, env)
        real = super().sample(batch_size - len(made), env)
        columns = {
            "observations": self._normalize_obs(made.state, env),
            "actions": self.scale.stored(made.action),
            "next_observations": self._normalize_obs(made.next_state, env),
            "dones": made.terminated.astype(np.float32)[:, None],
            "rewards": self._normalize_reward(made.reward.astype(np.float32, copy=False)[:, None], env),
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

    def made_transitions(self) -> Transitions:
        """Return a copy of all made rows, oldest first, with actions as the environment would get them."""
        return self.made.ring.transitions()

    def reset(self) -> None:
        """Forget all rows, real and made; seed and settings stay."""
        super().reset()
        self.made = MadeRows(self.made.make, self.made.mixing)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write both rings and the state of the generator to an ``.npz`` file, whole or not at all, no pickle."""
        arrays: dict[str, Array] = {name: getattr(self, name)[: self.size()] for name in self._stored()}
        arrays |= {f"{MADE}{name}": array for name, array in self.made.arrays().items()}
        with output(Path(path), force=True) as file:
            np.savez(file, allow_pickle=False, position=np.array([self.pos, self.buffer_size]), **arrays)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read what ``save`` wrote into this buffer, which must have the same spaces, sizes and settings.

        Raises:
            FileProblem: if the file is damaged or another buffer's; this one stays as it was.
        """
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: there is no such file.")
        made = MadeRows(self.made.make, self.made.mixing)
        with reading(str(path)):
            stored = read_arrays(Path(path))
            position, buffer_size = (int(value) for value in stored.pop("position"))
            made.restore({name.removeprefix(MADE): stored.pop(name) for name in list(stored) if name.startswith(MADE)})
            if set(stored) != set(self._stored()):
                raise FileProblem(f"it has {listed([*stored])}; this buffer has {listed(self._stored())}.")
            for name, rows in stored.items():
                there, here = (buffer_size, *rows.shape[1:]), getattr(self, name).shape
                if there != here:
                    raise FileProblem(f"{name} has room for {there}, this buffer for {here}.")
        for name, rows in stored.items():
            getattr(self, name)[: len(rows)] = rows
        self.pos, self.full, self.made = position, len(stored["rewards"]) == buffer_size, made

    def _stored(self) -> tuple[str, ...]:
        """Return the names of the real half's arrays."""
        return STORED if self.noise is None else (*STORED, "noise")

    def _require_terminal_fn(self, done: Array, infos: list[dict[str, Any]]) -> None:
        """Raise if an episode terminates and nobody could say whether a made row does."""
        if self.terminal_fn is not None or not np.any(done):
            return
        for over, info in zip(done, infos, strict=True):
            if over and not (self.handle_timeout_termination and info.get("TimeLimit.truncated", False)):
                raise ValueError(
                    "terminal_fn: an episode terminated, and whether a made row is terminal cannot be copied from real "
                    "ones. Add terminal_fn(state, action, next_state) -> bool (B,) to replay_buffer_kwargs. If it was "
                    "only a time limit, the environment must return it as truncated."
                )


class CodaReplayBuffer(MixedReplayBuffer):
    """A replay buffer that recombines what it holds into counterfactual rows (paper, section 4.1).

    Args:
        buffer_size: as in ``ReplayBuffer``; the agent gives it.
        observation_space: likewise.
        action_space: likewise.
        factors: how observation and action columns split into factors.
        mask_fn: ``(state, action) -> bool (B, N, n)``.
        reward_fn: ``(state, action, next_state) -> float (B,)``, the task's own reward.
        **settings: see ``sb3_settings.CodaSettings``. The defaults are those of the paper.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        *,
        factors: Factorization,
        mask_fn: Mask,
        reward_fn: RewardFn,
        **settings: Unpack[CodaSettings],
    ) -> None:
        own, given = split(settings, CodaSettings)
        super().__init__(buffer_size, observation_space, action_space, **given)
        factors.require_widths(self.observations.shape[-1], self.action_dim)
        mixing = take_mixing(own, "coda")
        self.terminal_fn, self.noise_key = own.pop("terminal_fn", None), own.pop("noise_key", None)
        if self.noise_key is not None:
            self.noise = np.zeros((self.buffer_size, self.n_envs, factors.noise_width), observation_space.dtype)
        augmenter = Augmenter(factors, mask_fn, reward_fn, self.terminal_fn, **own)
        self.made = MadeRows(Recombine(augmenter), mixing)


class DynaReplayBuffer(MixedReplayBuffer):
    """A replay buffer that adds short rollouts of a forward model, with random actions from stored states.

    Args:
        buffer_size: as in ``ReplayBuffer``; the agent gives it.
        observation_space: likewise.
        action_space: likewise.
        forward_model: ``(state, action) -> next_state (B, S)``.
        reward_fn: ``(state, action, next_state) -> float (B,)``, the task's own reward.
        **settings: see ``sb3_settings.DynaSettings``. The defaults are those of the paper.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        *,
        forward_model: ForwardModel,
        reward_fn: RewardFn,
        **settings: Unpack[DynaSettings],
    ) -> None:
        own, given = split(settings, DynaSettings)
        super().__init__(buffer_size, observation_space, action_space, **given)
        mixing = take_mixing(own, "dyna")
        self.terminal_fn = own.get("terminal_fn")
        self.made = MadeRows(Imagine(forward_model, self.scale.draw, reward_fn, **own), mixing)


def _scale(space: Any, dtype: np.dtype[Any]) -> ActionScale:
    if isinstance(space, spaces.Box):
        return ActionScale(space.low.reshape(-1), space.high.reshape(-1), dtype)
    return ActionScale(np.array([space.start]), np.array([space.start + space.n - 1]), dtype)


def _noise_of(info: dict[str, Any], key: str) -> Floats:
    if key not in info:
        raise ValueError(
            f"noise_key: the environment's info has no {key!r}, only {', '.join(map(repr, info)) or 'nothing'}."
        )
    return np.asarray(info[key])
