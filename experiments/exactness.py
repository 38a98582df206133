"""Are counterfactuals true? Every world, its exact mask, and the two ways to get it wrong.

Accepted counterfactuals are put back into the world with their swapped noise; the share whose next state
comes out as stored is printed. Beside the exact mask stand two mistakes that the audit must show: skipping
the third mask call of Algorithm 1 (the one on the proposal), and swapping without any mask.

    python -m experiments.exactness
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint import Augmenter, Transitions
from counterpoint.checks import Audit, audit
from counterpoint.core.coda import propose
from counterpoint.masks import Constant, Proximity
from counterpoint.worlds import NonstationaryMP, Pong, Room, Sprites, collect, pong_policy, uniform_policy
from experiments import machine, pages


@dataclass(frozen=True)
class Config:
    """How much to record and to make."""

    transitions: int = 50_000
    counterfactuals: int = 100_000
    atol: float = 1e-6
    seed: int = 0


def no_reward(state: np.ndarray, action: np.ndarray, next_state: np.ndarray) -> np.ndarray:  # noqa: ARG001
    """Return zeros; the audit does not look at rewards."""
    return np.zeros(len(state))


def record(world: Any, config: Config) -> Transitions:
    """Record transitions of a random policy, in Pong those of the scripted player."""
    policy = pong_policy if isinstance(world, Pong) else uniform_policy(world)
    return collect(world, policy, config.transitions, np.random.default_rng(config.seed))


def augmented(world: Any, mask: Callable[..., Any], config: Config) -> tuple[Audit, float]:
    """Audit counterfactuals made with a mask; also return how many were accepted per pair."""
    made = Augmenter(world.factors, mask, no_reward).fill(
        record(world, config), config.counterfactuals, rng=np.random.default_rng(config.seed + 1)
    )
    return audit(made, world.step, atol=config.atol), made.funnel.accepted / made.funnel.pairs


def unchecked(world: Any, config: Config) -> Audit:
    """Audit what comes out if the proposal's own mask is not asked."""
    data = record(world, config)
    rng = np.random.default_rng(config.seed + 1)
    base, donor = (data[rng.integers(len(data), size=config.counterfactuals)] for _ in range(2))
    overlaid = world.mask(base.state, base.action) | world.mask(donor.state, donor.action)
    proposal, nodes = propose(base, donor, overlaid, world.factors, rng=rng)
    return audit(proposal[nodes.any(axis=1)], world.step, atol=config.atol)


def near(world: Any, radius: float) -> Callable[..., Any]:
    """Return the mask by distance, with the action's rule taken as known."""
    positions = {name: columns[:2] for name, columns in world.factors.state.items()}
    close = Proximity(world.factors, positions, radius, attached=list(positions)[:1])

    def mask(state: Any, action: Any) -> Any:
        made = close(state, action)
        made[:, -1] = world.mask(state, action)[:, -1]
        return made

    return mask


def main(config: Config = Config()) -> None:  # noqa: B008
    """Print the table."""
    print(machine.describe())
    worlds: dict[str, Any] = {
        "Sprites, no noise": Sprites(noise_std=0.0),
        "Sprites, noise 0.01": Sprites(),
        "Sprites, noise 0.01, margin 0": Sprites(noise_margin=0.0),
        "Sprites, 8 of them, no noise": Sprites(8, noise_std=0.0),
        "Pong": Pong(),
        "NonstationaryMP": NonstationaryMP(),
        "Room, as context": Room(),
        "Room, hidden": Room(hidden=True),
    }
    rows: list[list[object]] = []

    def add(name: str, mask: str, found: Audit, per_pair: object) -> None:
        rows.append([name, mask, len(found.error), len(found.wrong), f"{found.confirmed:.3%}", per_pair])

    for name, world in worlds.items():
        add(name, "exact", *augmented(world, world.mask, config))
    for name in ("Sprites, no noise", "Pong"):
        add(name, "third call skipped", unchecked(worlds[name], config), "-")
        add(name, "identity", *augmented(worlds[name], Constant.identity(worlds[name].factors), config))
    sprites = worlds["Sprites, no noise"]
    for radius in (0.10, 0.15, 0.20):
        add("Sprites, no noise", f"distance < {radius:.2f}", *augmented(sprites, near(sprites, radius), config))
    pages.print_table(
        "Counterfactuals put back into the world", ["world", "mask", "made", "wrong", "confirmed", "per pair"], rows
    )


if __name__ == "__main__":
    main()
