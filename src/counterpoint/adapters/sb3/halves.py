"""What replay buffers with a real and a counterfactual half have in common."""

import os
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any

from stable_baselines3.common.buffers import ReplayBuffer

from counterpoint.adapters.sb3 import doors, storage
from counterpoint.core.arrays import Array
from counterpoint.core.augment import Augmenter
from counterpoint.core.transitions import Transitions
from counterpoint.replay import CounterfactualRows, Mixing, Rollouts
from counterpoint.replay.rows import MakesRows


class TwoHalves(ReplayBuffer):
    """A replay buffer of Stable-Baselines3, whichever comes next in the order of base classes, with counterfactuals."""

    counterfactual: CounterfactualRows

    def _begin(
        self, augmenter: Augmenter | Rollouts | MakesRows, mixing: Mixing, noise_key: str | None, dtype: Any
    ) -> None:
        """Make room for the counterfactual half, once the real half is there; noise is stored with this dtype."""
        self.scale = doors.action_scale(self.action_space, self.actions.dtype)
        self.counterfactual = doors.counterfactual_rows(augmenter, mixing, self.scale)
        self.noise_key = noise_key
        self.noise = doors.empty_noise(augmenter, noise_key, (self.buffer_size, self.n_envs), dtype)

    def add(
        self, obs: Any, next_obs: Any, action: Array, reward: Array, done: Array, infos: list[dict[str, Any]]
    ) -> None:
        """Add one real transition per environment, and make counterfactuals if it is time."""
        augmenter = self.counterfactual.augmenter
        doors.require_terminal_fn(augmenter, done, infos, timeouts=self.handle_timeout_termination)
        if self.noise is not None and self.noise_key is not None:
            self.noise[self.pos] = doors.noise_of(infos, self.noise_key)
        super().add(obs, next_obs, action, reward, done, infos)
        self._grow()

    @abstractmethod
    def _grow(self) -> None:
        """Tell the counterfactual half that a row of each environment was added."""

    @abstractmethod
    def _real(self) -> dict[str, Array]:
        """Return the arrays of the real half by name, without noise."""

    def _places(self) -> list[int]:
        """Return the numbers that say where the next rows go."""
        return [self.pos]

    def _continue(self, filled: int, places: list[int]) -> None:
        """Go on behind the rows that were loaded."""
        self.pos, self.full = places[0], filled == self.buffer_size

    def _require(self, rows: CounterfactualRows, stored: Mapping[str, Array], room: int) -> None:
        """Raise if what was read, counterfactual rows and the arrays of a real half of so many, is not right."""

    def _stored(self) -> dict[str, Array]:
        return self._real() if self.noise is None else {**self._real(), "noise": self.noise}

    def counterfactual_transitions(self) -> Transitions:
        """Return a copy of all counterfactual rows, oldest first, with actions as the environment would get them.

        Rows for goal environments have neither goals nor rewards.
        """
        return self.counterfactual.ring.transitions()

    def reset(self) -> None:
        """Forget all rows, real and counterfactual; seed and settings stay."""
        super().reset()
        self.counterfactual = self.counterfactual.emptied()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all rows and the state of the generator to an ``.npz`` file, complete or not at all, no pickle."""
        storage.save(path, self._stored(), self._places(), self.counterfactual, size=self.size())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read what ``save`` wrote into this buffer, which must have the same spaces, sizes and settings.

        Raises:
            FileProblem: if the file is damaged or another buffer's; this one stays as it was.
        """
        rows = self.counterfactual.emptied()
        check = partial(self._require, rows)
        filled, places = storage.load(path, self._stored(), rows, check, count=len(self._places()))
        self._continue(filled, places)
        self.counterfactual = rows
