"""Can a mask be judged without labels? What ``calibrate`` says, beside what the world says.

    python -m experiments.mask_calibration run --preset laptop [--estimators blurred,random] [--processes 2]
    python -m experiments.mask_calibration report

``calibrate`` sees recorded transitions and scores, nothing else. At each threshold it tries, its estimate of the
share of wrong counterfactuals is written down beside the truth: counterfactuals made with that threshold from
other recordings, put back into the world. Estimators are learned ones; two made from the exact mask, so that their
quality is known (``blurred`` is unsure near the borders of contacts, ``noisy`` everywhere); and three broken ones
that must be refused. The method was developed on data seeds below 10; the presets use others.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import counterpoint.learn
from counterpoint import Transitions
from counterpoint.learn import calibrate
from counterpoint.masks import Threshold
from counterpoint.metrics import swap_quality
from counterpoint.worlds import Pong, Sprites, collect, pong_policy, uniform_policy
from experiments import mask_calibration_report, rows

FOLDER = Path(__file__).parent / "results" / "mask_calibration"
WORLDS: dict[str, Any] = {"sprites": Sprites(noise_std=0.0), "sprites-noise": Sprites(), "pong": Pong()}
LEARNED = ("ResidualAttribution",)  # of others see mask_roc
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


PRESETS: dict[str, tuple[tuple[str, ...], tuple[int, ...], Config]] = {  # estimators, data seeds, settings
    "smoke": (("blurred", "identity"), (100,), Config(rows=2000, pairs=1000)),
    "laptop": ((*MADE, *BROKEN, *LEARNED), (100, 101, 102), Config()),
}


def runs(preset: str, estimators: Sequence[str] = ()) -> Iterator[Config]:
    """Give the runs of a preset, in the order in which they start."""
    known, seeds, base = PRESETS[preset]
    for estimator in estimators or known:
        for world in WORLDS:
            yield from (replace(base, world=world, estimator=estimator, seed=seed) for seed in seeds)


def record(config: Config, part: int, size: int) -> Transitions:
    """Record transitions: part 0 to calibrate with, 1 for the truth, 2 to learn from."""
    world, rng = WORLDS[config.world], np.random.default_rng([config.seed, part])
    if config.world != "pong":
        return collect(world, uniform_policy(world), size, rng)
    policy = partial(pong_policy, noise_level=0.5)
    length = {"episode_length": world.length, "points": world.points, "reset_probability": 0.0}
    return collect(world, policy, size, rng, reward_fn=world.reward, **length)  # type: ignore[arg-type]


class Blurred:
    """The exact mask, averaged over copies of each transition that are jittered a little."""

    def __init__(self, world: Any, jitter: float = 0.02, copies: int = 30) -> None:
        rng = np.random.default_rng(0)
        self.world, self.copies = world, copies
        self.state, self.action = (
            jitter * rng.normal(size=(copies, width))
            for width in (world.factors.state_width, world.factors.action_width)
        )

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the share of the copies that have each edge."""
        total = np.zeros((len(state), self.world.factors.n + self.world.factors.m, self.world.factors.n))
        for by_state, by_action in zip(self.state, self.action, strict=True):
            moved = np.clip(state + by_state, np.minimum(state, -1.0), np.maximum(state, 1.0)).astype(state.dtype)
            total += self.world.mask(moved, np.clip(action + by_action, -1.0, 1.0))
        return total / self.copies


class Noisy:
    """The exact mask's log odds with noise on top, which is a function of the transition."""

    def __init__(self, world: Any, strength: float = 4.0) -> None:
        self.world, self.strength = world, strength

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return ±strength for edges and others, plus logistic noise."""
        mask = self.world.mask(state, action)
        return np.where(mask, self.strength, -self.strength) + hashed(state, action, mask.shape)


def hashed(state: np.ndarray, action: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers that look logistically distributed and random, but are a function of each transition."""
    flat = np.concatenate([state, action], axis=1).astype(np.float64)
    mixing = np.random.default_rng(1).uniform(1e3, 1e4, (flat.shape[1], int(np.prod(shape[1:]))))
    uniform = np.clip((flat @ mixing) % 1.0, 1e-9, 1.0 - 1e-9)
    return np.log(uniform / (1.0 - uniform)).reshape(shape)


class Random(Noisy):
    """Noise alone."""

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return logistic noise."""
        return hashed(state, action, self.world.mask(state, action).shape)


class Transposed(Blurred):
    """Sources and targets confused; what the actions do is lost, since actions are no targets."""

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return the scores of the reverse edges."""
        scores = super().scores(state, action)
        n = scores.shape[2]
        return np.concatenate([scores[:, :n].transpose(0, 2, 1), np.zeros_like(scores[:, n:])], axis=1)


class Identity(Blurred):
    """Self-edges alone."""

    def scores(self, state: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Return 1 for self-edges, 0 for others."""
        return np.repeat(np.eye(*self.world.mask(state[:1], action[:1]).shape[1:])[None], len(state), axis=0)


HAND_MADE = {kind.__name__.lower(): kind for kind in (Blurred, Noisy, Random, Transposed, Identity)}


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
    for step, (tau, wrong, accepted) in enumerate(found.curve):
        quality = swap_quality(
            Threshold(fitted, tau), world.mask, fresh, world.factors, step=world.step, rng=rng, pairs=config.pairs
        )
        truth = {"truth": 1.0 - quality.confirmed, "relative_yield": quality.relative_yield}
        write(step=step, tau=tau, estimate=wrong, accepted=accepted, chosen=tau == found.tau, **truth)
    write(
        step=len(found.curve), verdict=found.verdict, fine=found.fine, low=found.wrong.low, high=found.wrong.high,
        implausible=found.implausible.value, false_edges=found.false_edges, missed=found.missed,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--preset", choices=PRESETS, default="laptop")
    parser.add_argument("--estimators", type=rows.some_of((*MADE, *BROKEN, *LEARNED)), default=())
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args(arguments)
    folder = given.folder / given.preset
    if given.command == "report":
        mask_calibration_report.write(folder)
        return
    todo = {config.name: config for config in runs(given.preset, given.estimators)}
    rows.run_all(work, todo, folder, processes=given.processes, steps=16)


if __name__ == "__main__":
    main()
