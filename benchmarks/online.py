"""What counterfactual rows cost an agent: TD3 with the plain buffer and with ours, step by step in turns.

Settings are the paper's: 256-256, batch 1000, one update per step, and each 1,000 steps 2,000 pairs of which
up to 5 counterfactuals are made. The agents take turns of 100 steps, so both meet the same machine, and processor
time is counted, not the clock's. "Free mask" answers at once; "exact mask" is the one of the sprites.

    python -m benchmarks.online [steps]
"""

import sys
import time
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import TD3
from stable_baselines3.common.noise import NormalActionNoise

import counterpoint.adapters.gymnasium
from counterpoint import Augmenter
from counterpoint.adapters.sb3 import CodaReplayBuffer
from counterpoint.masks import Constant
from counterpoint.worlds import Place, Sprites
from experiments import machine, pages

STEPS, TURN, ROWS = 1000, 100, 20_000
WORLD = Sprites()
LIMIT = 0.10


class Watched:
    """Count the processor time of a method of an object."""

    def __init__(self, owner: Any, name: str) -> None:
        self.method, self.seconds = getattr(owner, name), 0.0
        setattr(owner, name, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method and count its time."""
        start = time.process_time()
        result = self.method(*args, **kwargs)
        self.seconds += time.process_time() - start
        return result


def agent(**buffer: Any) -> TD3:
    """Return the paper's TD3, with 20,000 rows of random play in its buffer."""
    assert counterpoint.adapters.gymnasium.IDS  # noqa: S101 (importing it registers the environment)
    made = TD3(
        "MlpPolicy",
        gymnasium.make("counterpoint/Place2-v0", disable_env_checker=True),
        learning_rate=3e-4,
        learning_starts=ROWS,
        batch_size=1000,
        action_noise=NormalActionNoise(np.zeros(2), np.full(2, 0.1)),
        policy_kwargs={"net_arch": [256, 256]},
        seed=0,
        device="cpu",
        **buffer,
    )
    return made.learn(ROWS)


def coda(mask_fn: Any) -> dict[str, Any]:
    """Return the keywords that give an agent our buffer."""
    augmenter = Augmenter(WORLD.factors, mask_fn, Place(2))
    return {"replay_buffer_class": CodaReplayBuffer, "replay_buffer_kwargs": {"augmenter": augmenter}}


def compared(agents: dict[str, Any], steps: int) -> list[list[object]]:
    """Let agents learn in turns; return a line of a table for each, the first one being what others are compared to."""
    seconds, samples = dict.fromkeys(agents, 0.0), {n: Watched(a.replay_buffer, "sample") for n, a in agents.items()}
    adds = {name: Watched(each.replay_buffer, "add") for name, each in agents.items()}
    for _ in range(steps // TURN):
        for name, each in agents.items():
            start = time.process_time()
            each.learn(TURN, reset_num_timesteps=False)
            seconds[name] += time.process_time() - start
    own = {
        name: [value / steps * 1e3 for value in (seconds[name], samples[name].seconds, adds[name].seconds)]
        for name in agents
    }
    whole, sample, add = next(iter(own.values()))
    return [
        [name, *mine, f"{(mine[1] + mine[2] - sample - add) / whole:+.1%}", f"{mine[0] / whole - 1:+.1%}"]
        for name, mine in own.items()
    ]


HEAD = ["buffer", "ms per step", "of these: sample", "add and augment", "buffer's overhead", "whole step's"]


def main() -> None:
    """Print the table."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else STEPS
    torch.set_num_threads(1)
    print(machine.describe())
    free = Constant.identity(WORLD.factors)
    agents = {"plain": agent(), "coda, free mask": agent(**coda(free)), "coda, exact mask": agent(**coda(WORLD.mask))}
    title = f"TD3 256-256, batch 1000, {steps} steps, 1 thread; at most {LIMIT:.0%} wanted"
    pages.print_table(title, HEAD, compared(agents, steps))


if __name__ == "__main__":
    main()
