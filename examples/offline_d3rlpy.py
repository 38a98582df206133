"""Train an agent of d3rlpy on a file of transitions from Pong, then let it play.

    python examples/offline_d3rlpy.py pong.parquet --agent iql --steps 10000
    python examples/offline_d3rlpy.py pong3.parquet --agent iql --steps 10000

Needs d3rlpy, in an environment of its own; see docs/how-to/d3rlpy.md.
"""

import argparse

import d3rlpy
import numpy as np

from counterpoint import files
from counterpoint.adapters.d3rlpy import to_d3rlpy
from counterpoint.worlds import Pong, collect

AGENTS = {"iql": d3rlpy.algos.IQLConfig, "td3+bc": d3rlpy.algos.TD3PlusBCConfig}
LENGTH, POINTS = 250, 10  # of a game: steps, and steps with a score


def games_won(agent: d3rlpy.algos.QLearningAlgoBase, games: int, rng: np.random.Generator) -> float:
    """Return the share of games that the agent wins: the last reward is +1."""

    def policy(state: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # noqa: ARG001
        return np.asarray(agent.predict(state)).clip(-1.0, 1.0)

    world = Pong(length=LENGTH)
    rows = collect(
        world, policy, games * LENGTH, rng, reward_fn=world.reward, environments=games,
        episode_length=LENGTH, points=POINTS, reset_probability=0.0,
    )  # fmt: skip
    episode = np.cumsum(rows.step == 0)
    first = episode[::LENGTH]  # the first game of each environment; later ones may be cut short
    last = np.searchsorted(episode, first, side="right") - 1
    return float((rows.reward[last] == 1).mean())


def main() -> None:
    """Train and play."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--agent", choices=tuple(AGENTS), default="iql")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--games", type=int, default=200)
    given = parser.parse_args()
    d3rlpy.seed(given.seed)
    dataset = d3rlpy.dataset.MDPDataset(**to_d3rlpy(files.read(given.file)))
    agent = AGENTS[given.agent](batch_size=256, gamma=0.98).create(device=False)
    quiet = {"logger_adapter": d3rlpy.logging.NoopAdapterFactory(), "show_progress": False}
    epoch = max(1, given.steps // 4)
    for epoch_number, _ in agent.fitter(dataset, n_steps=given.steps, n_steps_per_epoch=epoch, **quiet):
        won = games_won(agent, given.games, np.random.default_rng([given.seed, epoch_number]))
        print(f"{given.file}: {given.agent} after {epoch_number * epoch:,} steps wins {won:.1%} of games", flush=True)


if __name__ == "__main__":
    main()
