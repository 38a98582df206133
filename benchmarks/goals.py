"""What counterfactual rows cost an agent with hindsight: the paper's DDPG on FetchPush, with plain HER and with ours.

Settings are the paper's: 3 x 512, batch 2000, one update for two steps, and each 250 steps 2,000 pairs of 20,000 rows.
The agents take turns, so both meet the same machine, and processor time is counted, not the clock's.

    python -m benchmarks.goals [steps]
"""

import sys
from typing import Any

import torch
from stable_baselines3 import HerReplayBuffer

from benchmarks.online import HEAD, LIMIT, compared
from experiments import machine, pages
from experiments.goals.agent import Recipe, agent
from experiments.goals.run import Config, buffer
from experiments.goals.simulated import Telling
from experiments.goals.tasks import TASKS

STEPS, ROWS = 300, 2_000


def filled(**buffer: Any) -> Any:
    """Return the agent with some thousand rows of random play in its buffer."""
    recipe = Recipe(warm_up=ROWS, random_until=ROWS, buffer_size=200_000)
    task = TASKS["push"]
    return agent(task, lambda: Telling(task.make(), islands=False), recipe, 0, **buffer).learn(ROWS)


def main() -> None:
    """Print the table."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else STEPS
    torch.set_num_threads(1)
    print(machine.describe())
    plain = {"replay_buffer_class": HerReplayBuffer, "replay_buffer_kwargs": {"n_sampled_goal": 4}}
    agents = {"plain HER": filled(**plain), "HER and CoDA, 10 cm": filled(**buffer(Config(arm="heuristic")))}
    title = f"DDPG 3 x 512, batch 2000, {steps} steps of FetchPush, 1 thread; at most {LIMIT:.0%} wanted"
    pages.print_table(title, HEAD, compared(agents, steps))


if __name__ == "__main__":
    main()
