"""The simulator behind a task: what it hides, who touched whom, and whether a counterfactual would happen.

The replay buffer keeps goals apart, while MuJoCo's adapter has them in the state. No goal moves anything, so any will
do: here they are put in as zeros and cut off again.
"""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

from counterpoint import Factorization, Transitions
from counterpoint.adapters.mujoco import Islands, Recorder, Simulator, factorization
from counterpoint.checks import audit
from experiments.goals.tasks import Task

HIDDEN = "hidden"  # where info holds what the simulator hides


class Telling(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose ``info`` tells the hidden state from which each step was taken."""

    def __init__(self, env: gymnasium.Env[Any, Any], *, islands: bool) -> None:
        super().__init__(Recorder(env, islands=islands))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step."""
        shown, reward, terminated, truncated, info = self.env.step(action)
        return shown, reward, terminated, truncated, {**info, HIDDEN: self.env.rows.pop()[-1]}  # type: ignore[attr-defined]


def observation_factors(task: Task) -> Factorization:
    """Return the factors of observations without goals, each with its hidden columns."""
    noise = factorization(task.make(), task.fetch.factors).noise
    return replace(task.fetch.observation_factors, noise={name: noise[name] for name in noise if name != "goal"})


class Contacts:
    """The exact mask of observations without goals: who shared a contact with whom."""

    uses_noise = True

    def __init__(self, task: Task) -> None:
        self.factors, self.goal = task.fetch.factors, task.fetch.goals.G
        self.islands = Islands(task.make(), factorization(task.make(), self.factors), workers=1)
        self.rows_at_once = self.islands.rows_at_once

    def __call__(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return edges, (B, N, n)."""
        mask = self.islands(_with_goal(state, self.goal), action, noise)
        kept = ~self.factors.nodes("goal")
        return np.asarray(mask[:, kept][:, :, kept[: self.factors.n]])


class Judge:
    """Puts rows, observations without goals, back into the simulator."""

    def __init__(self, task: Task) -> None:
        self.simulator, self.goal = Simulator(task.make(), workers=1), task.fetch.goals.G

    def step(self, state: np.ndarray, action: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Return the next observations, (B, O)."""
        return self.simulator(_with_goal(state, self.goal), action, noise)[:, : state.shape[1]]

    def confirmed(self, rows: Transitions, atol: float = 1e-6) -> float:
        """Return the share of rows that the simulator repeats."""
        return audit(rows, self.step, atol=atol).confirmed


def _with_goal(state: np.ndarray, width: int) -> np.ndarray:
    return np.hstack([state, np.zeros((len(state), width))])
