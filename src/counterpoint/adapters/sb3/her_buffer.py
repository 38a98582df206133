"""Hindsight experience replay whose batches hold counterfactual rows, too, for goal environments.

Real rows are those of Stable-Baselines3's ``HerReplayBuffer``. Counterfactuals are made from finished episodes without
their goals, stored without goals, and given goals whenever they are drawn: half of them desired goals, half achieved
goals of random rows. Rewards are computed in this process, one call for each half of a batch.

A goal is a factor that stays as it is, so giving a row another goal is itself a counterfactual: what hindsight does is
swapping the goal alone. That is why counterfactuals need no goals until they are used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from counterpoint.adapters.sb3 import doors, goal_doors, storage
from counterpoint.adapters.sb3.goal_doors import AchievedFn, FutureActual, RewardsHere
from counterpoint.adapters.sb3.halves import TwoHalves
from counterpoint.core.arrays import Array, Floats, Ints
from counterpoint.core.augment import Augmenter
from counterpoint.core.transitions import Transitions
from counterpoint.goals import ACHIEVED, DESIRED, OBSERVATION
from counterpoint.replay import CounterfactualRows, Mixing, Rollouts
from counterpoint.replay.rows import MakesRows

ROWS = ("actions", "rewards", "dones", "timeouts", "ep_start", "ep_length")
LOOKED_AT = 20_000  # rows in which to look for the columns of the achieved goal
PAPER = Mixing(every=250, capacity=3_000_000, max_fraction=0.75, sources=20_000)


class CodaHerReplayBuffer(TwoHalves, HerReplayBuffer):
    """Hindsight experience replay with counterfactual rows (paper, section 5, goal-conditioned RL).

    Give it to an off-policy agent as ``replay_buffer_class``, and the keywords as ``replay_buffer_kwargs``.

    Args:
        buffer_size: as in ``HerReplayBuffer``; the agent gives it.
        observation_space: likewise.
        action_space: likewise.
        augmenter: makes the counterfactuals; it sees observations without goals. Its rewards are not used.
        mixing: how often, how many, and how much of a batch. The defaults are those of the paper.
        achieved: the columns of the observation that the achieved goal copies, or a function of observations; found
            by itself if the achieved goal is part of the observation.
        noise_key: where ``info`` has the simulator's noise; rows then carry it, so that they can be audited.
        **given: what else ``HerReplayBuffer`` takes. ``goal_selection_strategy`` may also be "futureactual_2_2" (of
            five real rows, two get a goal achieved later, two the desired goal of another row), or ``FutureActual``.

    Attributes:
        counterfactual: the counterfactual rows, without goals, and figures about them.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        *,
        augmenter: Augmenter | Rollouts | MakesRows,
        mixing: Mixing = PAPER,
        achieved: Sequence[int] | AchievedFn | None = None,
        noise_key: str | None = None,
        **given: Any,
    ) -> None:
        goal_doors.require_goal_space(observation_space)
        doors.require_action_space(action_space)
        if given.get("copy_info_dict"):
            raise ValueError("copy_info_dict: a counterfactual has no info of its own. Leave it False.")
        self.strategy = FutureActual.named(given.get("goal_selection_strategy"))
        if self.strategy is not None:
            given |= {"goal_selection_strategy": "future", "n_sampled_goal": self.strategy.goals}
        given["env"] = RewardsHere(given["env"])
        super().__init__(buffer_size, observation_space, action_space, **given)
        self._begin(augmenter, mixing, noise_key, observation_space[OBSERVATION].dtype)
        if isinstance(augmenter, Augmenter):
            goal_doors.require_factors(augmenter.factors, observation_space, self.action_dim)
        self.achieved = (
            achieved if achieved is None or callable(achieved) else goal_doors.AchievedColumns(tuple(achieved))
        )
        self._found: goal_doors.AchievedColumns | None = None
        self._last_rewards: Floats = np.zeros(0)

    def set_env(self, env: Any) -> None:
        """Take rewards from these environments, after loading a pickled buffer."""
        super().set_env(RewardsHere(env))  # type: ignore[arg-type]

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> DictReplayBufferSamples:  # type: ignore[override]
        """Draw a batch of real rows with hindsight, then counterfactual ones with random goals."""
        if self.strategy is not None:
            early = self.counterfactual.added < self.strategy.future_until
            self.her_ratio = 1.0 if early else self.strategy.goals / (self.strategy.goals + 1)
        drawn = self.counterfactual.draw(batch_size, self.size() * self.n_envs)
        if drawn is None:
            return super().sample(batch_size, env)
        real = super().sample(batch_size - len(drawn), env)
        mine = self._with_goals(drawn, self._random_goals(len(drawn)), env)
        observations, next_observations = (
            {key: torch.cat([getattr(real, name)[key], getattr(mine, name)[key]]) for key in self.observations}
            for name in ("observations", "next_observations")
        )
        rest = {name: torch.cat([getattr(real, name), getattr(mine, name)]) for name in ("actions", "dones", "rewards")}
        return real._replace(observations=observations, next_observations=next_observations, **rest)

    def real_transitions(self, which: Ints | slice = slice(None)) -> Transitions:
        """Return rows of finished episodes without goals, with actions as the environment got them."""
        at = self._finished(which)
        return Transitions.trusted(
            state=self.observations[OBSERVATION][at],
            action=self.scale.real(self.actions[at]),
            reward=self.rewards[at],
            next_state=self.next_observations[OBSERVATION][at],
            terminated=self.dones[at] * (1 - self.timeouts[at]) > 0,
            noise=None if self.noise is None else self.noise[at],
        )

    def counterfactual_rewards(self, most: int) -> Floats:
        """Return the rewards of up to so many counterfactual rows of the last batch, for the log."""
        return self._last_rewards[:most]

    def reset(self) -> None:
        """Forget all rows, real and counterfactual; seed and settings stay."""
        super().reset()
        self.ep_length[:], self._current_ep_start[:] = 0, 0

    def _grow(self) -> None:
        with goal_doors.about_goals(self.obs_shape[OBSERVATION][0]):
            self.counterfactual.grow(self.n_envs, lambda: int(np.count_nonzero(self.ep_length)), self._sources)

    def _real(self) -> dict[str, Array]:
        arrays = {name: getattr(self, name) for name in ROWS}
        arrays |= {f"now_{key}": array for key, array in self.observations.items()}
        return arrays | {f"next_{key}": array for key, array in self.next_observations.items()}

    def _places(self) -> list[int]:
        return [self.pos, *self._current_ep_start.tolist()]

    def _continue(self, filled: int, places: list[int]) -> None:
        super()._continue(filled, places)
        self.ep_length[filled:], self._current_ep_start[:] = 0, places[1:]

    def _require(self, rows: CounterfactualRows, stored: Mapping[str, Array], room: int) -> None:
        storage.require_episodes(stored, room)
        at = np.nonzero(stored["ep_length"])
        if len(rows.ring) and len(at[0]):  # counterfactuals are made only if it is known what rows achieve
            seen, recorded = (stored[f"next_{key}"][at] for key in (OBSERVATION, ACHIEVED))
            found = self.achieved or goal_doors.achieved_columns(seen[:LOOKED_AT], recorded[:LOOKED_AT])
            goal_doors.require_achieved(found, seen, recorded)

    def _sources(self, which: Ints | slice) -> Transitions:
        """Return some rows of finished episodes, after a look at what they achieve."""
        at = self._finished(which)
        seen, recorded = (self.next_observations[key][at] for key in (OBSERVATION, ACHIEVED))
        if self._found is not None and not np.array_equal(self._found(seen), recorded):
            self._found = goal_doors.achieved_columns(seen, recorded)  # columns that were alike are no longer
        goal_doors.require_achieved(self._achieved(), seen, recorded)
        return self.real_transitions(which)

    def _achieved(self) -> AchievedFn:
        """Return what tells the achieved goals of observations; found in the rows there are, if it was not given."""
        if self.achieved is not None:
            return self.achieved
        if self._found is None:
            at = self._finished(slice(LOOKED_AT))
            self._found = goal_doors.achieved_columns(
                *(self.next_observations[key][at] for key in (OBSERVATION, ACHIEVED))
            )
        return self._found

    def _finished(self, which: Ints | slice) -> tuple[Ints, ...]:
        """Return where some rows of finished episodes are: their places and environments."""
        return np.unravel_index(np.flatnonzero(self.ep_length)[which], self.ep_length.shape)

    def _sample_goals(self, batch_indices: Ints, env_indices: Ints) -> Floats:
        """Return goals for real rows, achieved later, the last of them desired by others if the strategy says so."""
        goals = super()._sample_goals(batch_indices, env_indices)
        strategy = self.strategy
        if strategy is not None and self.counterfactual.added >= strategy.future_until:
            count = round(len(goals) * strategy.actual / strategy.goals)
            rows, envs = (np.random.randint(most, size=count) for most in (self.size(), self.n_envs))  # noqa: NPY002
            goals[len(goals) - count :] = self.observations[DESIRED][rows, envs]  # drawn as SB3 draws, by its seed
        return goals

    def _random_goals(self, count: int) -> Floats:
        """Return goals for counterfactual rows: half desired, half achieved ones of random real rows."""
        rng, half = self.counterfactual.rng, count // 2
        rows, envs = rng.integers(self.size(), size=count), rng.integers(self.n_envs, size=count)
        desired = self.observations[DESIRED][rows[:half], envs[:half]]
        return np.concatenate([desired, self.next_observations[ACHIEVED][rows[half:], envs[half:]]])

    def _with_goals(self, rows: Transitions, goals: Floats, env: VecNormalize | None) -> DictReplayBufferSamples:
        """Return counterfactual rows with goals and their rewards, as a batch."""
        achieved = self._achieved()
        now, after = (
            {OBSERVATION: seen, ACHIEVED: achieved(seen), DESIRED: goals} for seen in (rows.state, rows.next_state)
        )
        found = self.env.env_method("compute_reward", after[ACHIEVED], goals, [{}] * len(goals))[0]  # type: ignore[union-attr]
        self._last_rewards = np.asarray(found, np.float32)

        def tensors(part: dict[str, Array]) -> dict[str, torch.Tensor]:
            return {key: self.to_torch(value) for key, value in dict(self._normalize_obs(part, env)).items()}

        return DictReplayBufferSamples(
            observations=tensors(now),
            actions=self.to_torch(self.scale.stored(rows.action)),
            next_observations=tensors(after),
            dones=self.to_torch(rows.terminated.astype(np.float32)[:, None]),
            rewards=self.to_torch(self._normalize_reward(self._last_rewards[:, None], env)),
        )
