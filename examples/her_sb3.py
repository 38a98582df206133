"""A robot that pushes a block: an agent of Stable-Baselines3 with hindsight and counterfactuals."""

import gymnasium
from stable_baselines3 import SAC

from counterpoint import Augmenter
from counterpoint.adapters.sb3 import CodaHerReplayBuffer, FutureActual, LogCounterfactuals
from counterpoint.goals import no_reward
from counterpoint.replay import Mixing
from counterpoint.worlds.fetch import PUSH

STEPS = 20_000

# Gripper and block, and the paper's mask: what is more than 10 cm apart is independent. Goals are not part of it.
augmenter = Augmenter(PUSH.observation_factors, PUSH.near(goal=False), no_reward, pairs=2000, samples_per_pair=2)
coda = {
    "augmenter": augmenter,
    "mixing": Mixing(every=250, max_fraction=0.75, sources=20_000),
    "goal_selection_strategy": FutureActual(2, 2, future_until=STEPS // 4),
}

if __name__ == "__main__":
    agent = SAC(
        "MultiInputPolicy",
        gymnasium.make("counterpoint/FetchPushDisentangled-v0"),
        replay_buffer_class=CodaHerReplayBuffer,
        replay_buffer_kwargs=coda,
        buffer_size=100_000,
        learning_starts=1000,
        gamma=0.95,
        verbose=1,
    )
    agent.learn(STEPS, callback=LogCounterfactuals())
