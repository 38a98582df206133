"""How fast the worlds run, masks included, and whether the cost per transition grows with the batch."""

from typing import Any

import gymnasium
import numpy as np

import counterpoint.adapters.gymnasium  # noqa: F401 (registers the environments)
from benchmarks import measure
from counterpoint.worlds import Pong, Sprites, pong_policy, uniform_policy
from experiments import pages


def main() -> None:
    """Print the tables."""
    rows = []
    for name, world, goal in (("Sprites", Sprites(), 300_000), ("Pong", Pong(), 100_000)):
        for batch in (1_000, 10_000, 100_000):
            rng = np.random.default_rng(0)
            state, noise = world.reset(batch, rng), world.noise(batch, rng)
            action = pong_policy(state, rng) if name == "Pong" else uniform_policy(world)(state, rng)
            calls = max(1, 200_000 // batch)

            def steps(world: Any = world, given: Any = (state, action, noise), calls: int = calls) -> None:
                for _ in range(calls):
                    world.step_and_mask(*given)

            seconds = measure.best(steps)
            rows.append([name, batch, batch * calls / seconds, goal, seconds / batch / calls * 1e9])
    pages.print_table("Worlds, next state and mask", ["world", "batch", "transitions/s", "at least", "ns each"], rows)
    rows = []
    for name in ("counterpoint/Place4-v0", "counterpoint/Pong-v0"):
        for wrapped in (True, False):
            made = gymnasium.make(name, disable_env_checker=True)
            env = made if wrapped else made.unwrapped
            env.reset(seed=0)
            action = np.zeros(2, np.float32)

            def play(env: Any = env, action: Any = action) -> None:
                for _ in range(1000):
                    if env.step(action)[3]:
                        env.reset()

            rows.append([name, "with wrappers" if wrapped else "bare", measure.best(play) / 1000 * 1e6, "100"])
    pages.print_table("Gymnasium, one environment", ["id", "environment", "microseconds a step", "at most"], rows)


if __name__ == "__main__":
    main()
