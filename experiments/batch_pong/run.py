"""The runs of batch RL on Pong: an enlarged dataset, what the world says of it, and an agent trained on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from stable_baselines3.common.utils import LinearSchedule

from counterpoint import Transitions
from experiments import rows
from experiments.batch_pong import data
from experiments.batch_pong.agent import Agents, Units, success, untrained
from experiments.batch_pong.data import Source
from experiments.batch_pong.peers import Diffusion
from experiments.batch_pong.truth import judged

# In the order in which they start: first what needs no model, last what needs the dearest ones.
FIRST = (
    "real", "3C-exact", "3C-identity", "1C-exact", "3C-transformer", "1C-transformer", "mbpo", "3C-ours", "1C-ours",
    "3C1M-ours", "3D-diffusion", "3C-classified",
)  # fmt: skip
REST = (
    "3N-noise", "dyna", "2C-transformer", "5C-transformer", "2C-ours", "5C-ours", "2C-exact", "5C-exact",
    "3C1M-transformer", "3C1M-exact",
)  # fmt: skip
ARMS = (*FIRST, *REST)
AGAIN = ("real", "3C-exact", "3C-identity", "3C-transformer", "3C-ours")
LAST = 20  # evaluations that the figure of a run is the mean of


@dataclass(frozen=True)
class Config:
    """One run; the defaults are the paper's."""

    arm: str = "real"
    source: Source = field(default_factory=Source)
    updates: int = 500_000
    batch_size: int = 1000
    width: int = 128  # of both hidden layers of actor and critics
    policy_delay: int = 1  # updates of the critics for one of actor and targets, as the code did; TD3's own is 2
    learning_rate: float = 3e-4
    falling: bool = False  # let the learning rate fall to zero, linearly
    target_rate: float = 0.005  # how far targets move at each update
    standardise: bool = False  # show networks the columns in standard deviations of the real rows
    evaluate_every: int = 1_000
    games: int = 10
    agent: int = 0  # which of several that learn from the same rows, each with a seed of its own

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.source.rows / 1000:g}k_{self.arm}_{self.source.seed}"

    @property
    def agent_seed(self) -> int:
        """The seed of networks, batches and games."""
        return self.source.seed + 1000 * self.agent


_TINY = Config(
    source=Source(
        length=60, mask_steps=20, mask_width=8, tau=0.5, reward_steps=20, model_steps=20, model_width=16,
        attribution_epochs=1, attribution_tau=0.9,
        diffusion=Diffusion(width=16, steps=50, sampling_steps=4),
    ),
    updates=60, batch_size=64, width=16, evaluate_every=20, games=5,
)  # fmt: skip
# What a pilot chose for machines without an hour per agent, see the page of results: fewer and smaller batches, larger
# steps that fall to zero, targets that follow faster, and columns in standard deviations.
_SHORT = Config(
    source=Source(rewards="world", diffusion=Diffusion(steps=30_000, sampling_steps=18)),
    updates=40_000, batch_size=256, policy_delay=2, learning_rate=3e-3, falling=True, target_rate=0.04,
    standardise=True, evaluate_every=200, games=25,
)  # fmt: skip
# Arms, sizes, seeds, settings.
PRESETS: dict[str, tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...], Config]] = {
    "smoke": (("real", "3C-exact", "mbpo", "3D-diffusion", "3C1M-ours"), (3_000,), (0,), _TINY),
    "pilot": (("3C-exact", "3C-classified", "real"), (25_000,), (900,), _SHORT),  # not reported
    "laptop": (FIRST, (25_000, 50_000, 100_000), (0, 1, 2), _SHORT),
    "again": (AGAIN, (100_000,), (0, 1, 2), replace(_SHORT, agent=1)),  # other agents on the same rows
    "rows": (ARMS, (25_000, 50_000, 100_000), (0, 1, 2), Config(updates=0)),  # what the world says, without any agent
    "paper": (ARMS, (25_000, 50_000, 75_000, 100_000, 150_000, 250_000), tuple(range(10)), Config()),
}


def runs(preset: str, arms: Sequence[str] = (), sizes: Sequence[int] = ()) -> Iterator[Config]:
    """Give the runs of a preset in the order in which they start: by seed, by size, by arm."""
    known, usual, seeds, base = PRESETS[preset]
    for seed in seeds:
        for size in sizes or usual:
            source = replace(base.source, rows=size, seed=seed)
            yield from (replace(base, arm=arm, source=source) for arm in arms or known)


def work(configs: Sequence[Config], writes: Sequence[rows.Write]) -> None:
    """Do runs of one preset in step: enlarge each dataset, ask the world about it, train, and play now and then."""
    torch.set_num_threads(1)
    tables = [prepared(config, write) for config, write in zip(configs, writes, strict=True)]
    usual = configs[0]
    if not usual.updates:
        return
    rate = LinearSchedule(usual.learning_rate, 0.0, 1.0) if usual.falling else usual.learning_rate
    settings = {"learning_rate": rate, "tau": usual.target_rate, "policy_delay": usual.policy_delay}
    seeds = [config.agent_seed for config in configs]
    units = [Units.of(data.real(config.source)) if config.standardise else Units() for config in configs]
    players = Agents([untrained(seed=seed, width=usual.width, **settings) for seed in seeds], tables, units)
    for update in range(usual.evaluate_every, usual.updates + 1, usual.evaluate_every):
        remaining = 1 - (update - usual.evaluate_every) / usual.updates
        players.train(usual.evaluate_every, usual.batch_size, remaining)
        rngs = [np.random.default_rng([seed, update]) for seed in seeds]
        won = success(players, usual.source.world, usual.games, rngs)
        for write, share in zip(writes, won, strict=True):
            write(step=update, success=share)


def prepared(config: Config, write: rows.Write) -> Transitions:
    """Return the rows that the agent of a run learns from, and write down what the world says of them."""
    source = config.source
    real = data.real(source)
    made = data.added(source, config.arm)
    usual = (real.next_state - real.state).std(axis=0, dtype=np.float64)
    write(step=0, real=len(real), wins=float((real.reward == 1).mean()), losses=float((real.reward == -1).mean()))
    for origin, part in made.items():
        scores = {"wins": float((part.reward == 1).mean()), "losses": float((part.reward == -1).mean())}
        write(step=0, origin=origin, made=len(part), **judged(part, source.world, usual), **scores)
    if config.arm.endswith("ours"):
        write(step=0, **data.ours(source)[1])
    return data.enlarged(source, made)
