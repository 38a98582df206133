"""The runs of the experiment on calibration: at every threshold, what ``calibrate`` says and what the world says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

import counterpoint.learn
from counterpoint import Transitions
from counterpoint.learn import calibrate
from counterpoint.masks import Threshold
from counterpoint.metrics import swap_quality
from counterpoint.worlds import Pong, Sprites, collect, pong_policy, uniform_policy
from experiments import rows
from experiments.mask_calibration.estimators import HAND_MADE

WORLDS: dict[str, Any] = {
    "sprites": Sprites(noise_std=0.0),
    "sprites-noise": Sprites(),
    "pong": Pong(),
    "sprites8": Sprites(n=8, noise_std=0.0),
}
FIRST = ("sprites", "sprites-noise", "pong")
LEARNED = ("ResidualAttribution",)  # of others see mask_roc
LATER = ("TreeAttribution", *LEARNED)
MADE = ("blurred", "noisy")
BROKEN = ("random", "transposed", "identity")


@dataclass(frozen=True)
class Config:
    """One run."""

    world: str = "sprites"
    estimator: str = "blurred"
    seed: int = 100
    rows: int = 20_000  # for calibrate
    training_rows: int = 40_000  # for learned estimators
    pairs: int = 20_000  # for the truth at each threshold

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.world}_{self.estimator}_{self.seed}"


PRESETS: dict[str, tuple[tuple[str, ...], tuple[int, ...], Config, tuple[str, ...]]] = {
    # estimators, data seeds, settings, worlds
    "smoke": (("blurred", "identity"), (100,), Config(rows=2000, pairs=1000), FIRST),
    "laptop": ((*MADE, *BROKEN, *LEARNED), (100, 101, 102), Config(), FIRST),
    "again": (LATER, (103,), Config(), FIRST),  # with later versions of calibrate
    "eight": (LATER, (104,), Config(), ("sprites", "sprites8", "pong")),  # with still later ones
}


def runs(preset: str, estimators: Sequence[str] = ()) -> Iterator[Config]:
    """Give the runs of a preset, in the order in which they start."""
    known, seeds, base, worlds = PRESETS[preset]
    for estimator in estimators or known:
        for world in worlds:
            yield from (replace(base, world=world, estimator=estimator, seed=seed) for seed in seeds)


def record(config: Config, part: int, size: int) -> Transitions:
    """Record transitions: part 0 to calibrate with, 1 for the truth, 2 to learn from."""
    world, rng = WORLDS[config.world], np.random.default_rng([config.seed, part])
    if config.world != "pong":
        return collect(world, uniform_policy(world), size, rng)
    policy = partial(pong_policy, noise_level=0.5)
    length = {"episode_length": world.length, "points": world.points, "reset_probability": 0.0}
    return collect(world, policy, size, rng, reward_fn=world.reward, **length)


def estimator(config: Config) -> Any:
    """Return the estimator of a run, fitted to data of its own if it is a learned one."""
    world = WORLDS[config.world]
    if config.estimator in HAND_MADE:
        return HAND_MADE[config.estimator](world)
    data = record(config, 2, config.training_rows)
    kind = getattr(counterpoint.learn, config.estimator)
    return kind().fit(data, world.factors, rng=np.random.default_rng(config.seed), progress=False)


def work(config: Config, write: rows.Write) -> None:
    """Do one run: calibrate, then ask the world about every threshold that was tried."""
    torch.set_num_threads(1)
    world, fitted, rng = WORLDS[config.world], estimator(config), np.random.default_rng(config.seed)
    found = calibrate(fitted, record(config, 0, config.rows), world.factors, rng=rng, progress=False)
    fresh = record(config, 1, config.rows)
    for step, (tau, wrong, accepted, _) in enumerate(found.curve):
        quality = swap_quality(
            Threshold(fitted, tau), world.mask, fresh, world.factors, step=world.step, rng=rng, pairs=config.pairs
        )
        truth = {"truth": 1.0 - quality.confirmed, "relative_yield": quality.relative_yield}
        write(step=step, tau=tau, estimate=wrong, accepted=accepted, chosen=tau == found.tau, **truth)
    write(
        step=len(found.curve), verdict=found.verdict, fine=found.fine, low=found.wrong.low, high=found.wrong.high,
        unknown=found.unknown.value, contradicted=found.contradicted.value,
    )  # fmt: skip
