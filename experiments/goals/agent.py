"""The paper's agent: DDPG of Stable-Baselines3 with what it lacks. All arms have the same one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from stable_baselines3 import DDPG
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn
from torch.nn import functional

from counterpoint.worlds.fetch.tasks import NEAR
from experiments.goals.tasks import Task, aim


@dataclass(frozen=True)
class Recipe:
    """Settings of the agent; the defaults are the paper's."""

    width: int = 512  # of the three hidden layers of actor and critic
    batch_size: int = 2000
    buffer_size: int = 1_000_000
    learning_rate: float = 1e-3
    gamma: float = 0.98
    lowest_target: float = -50.0  # the highest is 0: no reward is positive
    action_penalty: float = 0.01
    target_every: int = 10  # updates between those of the targets
    tau: float = 0.05
    update_every: int = 2  # environment steps for one update
    warm_up: int = 5_000  # steps before the first update
    random_until: int = 10_000  # steps of random actions at the beginning
    relative: bool = False  # networks also see how far objects are from the gripper and from their goals
    epsilon: float = 0.2  # share of random actions later
    aims: float = 0.0  # share of random actions that go for the nearest object instead
    noise: float = 0.1
    clip_observations: float = 5.0  # standard deviations, or units of ``Sight``


class Normed(nn.Module):
    """Layer norm, then ReLU; stands where Stable-Baselines3 builds an activation after each hidden layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the next layer sees."""
        return functional.relu(self.norm(x))


class Sight(BaseFeaturesExtractor):
    """What networks see of a task in fixed units, with the distances that the disentangled observation leaves out.

    They are computed from the positions that a row has, after all swaps, and so are true of counterfactuals, too.
    """

    def __init__(self, space: Any, *, task: Task, clip: float) -> None:
        width, goals = space["observation"].shape[0], space["desired_goal"].shape[0]
        super().__init__(space, width + 2 * goals)
        self.clip, self.objects = clip, torch.tensor(task.objects)
        self.centre, self.unit = (torch.tensor(row, dtype=torch.float32) for row in task.units)

    def forward(self, shown: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return observation, objects relative to the gripper, and goals relative to objects."""
        seen, goals = shown["observation"], shown["desired_goal"]
        places = seen[:, self.objects]  # (B, objects, 3)
        reach, way = places - seen[:, None, :3], goals.view(places.shape) - places
        parts = (seen - self.centre) / self.unit, reach.flatten(1) / NEAR, way.flatten(1) / NEAR
        return torch.cat(parts, dim=1).clamp(-self.clip, self.clip)


class PaperDDPG(DDPG):
    """DDPG with clipped targets, a penalty on actions, slow targets, and random actions now and then."""

    def __init__(self, *given: Any, task: Task, recipe: Recipe, **settings: Any) -> None:
        self.task, self.recipe = task, recipe
        super().__init__(*given, **settings)

    def train(self, gradient_steps: int, batch_size: int = 100) -> None:
        """Take gradient steps."""
        self.policy.set_training_mode(True)
        for _ in range(gradient_steps):
            self._n_updates += 1
            batch: Any = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)  # type: ignore[union-attr]
            _minimise(self.critic.optimizer, self._critic_loss(batch))
            _minimise(self.actor.optimizer, self._actor_loss(batch))
            if self._n_updates % self.recipe.target_every == 0:
                polyak_update(self.critic.parameters(), self.critic_target.parameters(), self.tau)
                polyak_update(self.actor.parameters(), self.actor_target.parameters(), self.tau)

    def _critic_loss(self, batch: Any) -> torch.Tensor:
        with torch.no_grad():
            (after,) = self.critic_target(batch.next_observations, self.actor_target(batch.next_observations))
            target = batch.rewards + (1 - batch.dones) * self.gamma * after
            target = target.clamp(self.recipe.lowest_target, 0.0)
        (value,) = self.critic(batch.observations, batch.actions)
        return functional.mse_loss(value, target)

    def _actor_loss(self, batch: Any) -> torch.Tensor:
        action = self.actor(batch.observations)
        penalty = self.recipe.action_penalty * action.square().mean()
        with _held(self.critic):
            return penalty - self.critic.q1_forward(batch.observations, action).mean()

    def _sample_action(
        self,
        learning_starts: int,  # noqa: ARG002
        action_noise: ActionNoise | None = None,
        n_envs: int = 1,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return actions, some of them random, as the environment gets them and as they are stored."""
        early = self.num_timesteps < self.recipe.random_until
        _, stored = super()._sample_action(self.recipe.random_until, action_noise, n_envs)
        drawn = np.random.random(n_envs) < self.recipe.epsilon  # noqa: NPY002 (by the agent's seed)
        if drawn.any():
            stored[drawn] = np.random.uniform(-1, 1, stored[drawn].shape)  # noqa: NPY002
        if self.recipe.aims:
            aimed = (drawn | early) & (np.random.random(n_envs) < self.recipe.aims)  # noqa: NPY002
            stored[aimed, :3] = self._toward_objects()[aimed]
        return self.policy.unscale_action(stored), stored

    def _toward_objects(self) -> np.ndarray:
        """Return moves of the grippers to the nearest objects, and on, (B, 3)."""
        normaliser = self._vec_normalize_env
        shown: Any = normaliser.get_original_obs() if normaliser else self._last_obs
        seen = shown["observation"]
        ways = seen[:, np.array(self.task.objects)] - seen[:, None, :3]  # (B, objects, 3)
        nearest = ways[np.arange(len(ways)), np.linalg.norm(ways, axis=2).argmin(axis=1)]
        return aim(nearest, np.random.normal(size=nearest.shape))  # noqa: NPY002


@contextmanager
def _held(network: nn.Module) -> Iterator[None]:
    """Build a graph through a network without asking for gradients of its weights: a third of its backward pass."""
    network.requires_grad_(False)
    yield
    network.requires_grad_(True)


def _minimise(optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()


def agent(task: Task, make: Callable[[], Any], recipe: Recipe, seed: int, **buffer: Any) -> PaperDDPG:
    """Return the agent with a buffer, in one environment, normalised as it comes or in fixed units."""
    from stable_baselines3.common.env_util import make_vec_env  # noqa: PLC0415

    env: Any = make_vec_env(make, 1, seed=seed)
    sight: dict[str, Any] = {}
    if recipe.relative:
        given = {"task": task, "clip": recipe.clip_observations}
        sight = {"features_extractor_class": Sight, "features_extractor_kwargs": given}
    else:
        env = VecNormalize(env, norm_reward=False, clip_obs=recipe.clip_observations)
    width = env.action_space.shape[0]
    return PaperDDPG(
        "MultiInputPolicy",
        env,
        task=task,
        recipe=recipe,
        learning_rate=recipe.learning_rate,
        buffer_size=recipe.buffer_size,
        learning_starts=recipe.warm_up,
        batch_size=recipe.batch_size,
        tau=recipe.tau,
        gamma=recipe.gamma,
        train_freq=recipe.update_every,
        gradient_steps=1,
        action_noise=NormalActionNoise(np.zeros(width), np.full(width, recipe.noise)),
        policy_kwargs={
            "net_arch": [recipe.width] * 3,
            "activation_fn": partial(Normed, recipe.width),
            "optimizer_kwargs": {"fused": True},
            **sight,
        },
        seed=seed,
        device="cpu",
        **buffer,
    )
