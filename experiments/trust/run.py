"""The runs of the experiment on trust: what ``calibrate`` says of several masks in a world, and what the world says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint import Augmenter, Transitions
from counterpoint.checks import audit
from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.learn.calibration.calibrate import gather, judge
from counterpoint.learn.calibration.judging import Asked
from counterpoint.masks import Constant, Proximity, Supported
from counterpoint.worlds import Zoo, collect
from counterpoint.worlds.zoo import HELD_OUT
from experiments import rows


@dataclass(frozen=True)
class Config:
    """One world."""

    seed: int
    rows: int = 20_000  # for the verdict
    fresh: int = 6_000  # for the truth
    pairs: int = 3_000
    kinds: tuple[str, ...] = HELD_OUT

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"world-{self.seed}"


PRESETS = {
    "smoke": [Config(1000, rows=3_000, fresh=1_500, pairs=500)],
    "laptop": [Config(seed) for seed in range(1000, 1060)],
    "small": [Config(seed, rows=8_000, fresh=4_000, pairs=2_000) for seed in range(1000, 1060)],
}


@dataclass(frozen=True, eq=False)
class Forgetful:
    """The exact mask without some of the edges that come and go, chosen by a hash of the row."""

    world: Zoo
    always: Bools  # (N, n)
    share: float

    def __call__(self, state: Floats, action: Floats) -> Bools:
        """Return what is left of the edges, (B, N, n)."""
        exact = self.world.mask(state, action)
        mixed = np.abs(np.sin(state.astype(np.float64).sum(axis=1) * 12_345.678))[:, None, None] * 1e4
        each = 0.618034 * np.arange(exact[0].size).reshape(exact.shape[1:])
        lost = (mixed + each) % 1.0 < self.share
        return np.asarray(np.where(lost, exact & self.always, exact))


def masks(world: Zoo, data: Transitions) -> Iterator[tuple[str, Any]]:
    """Yield the masks of a world, good and bad."""
    factors = world.factors
    always = world.mask(data.state, data.action).mean(axis=0) > 0.999
    yield "exact", world.mask
    yield "all forgotten", Constant(always)
    yield "half forgotten", Forgetful(world, always, 0.5)
    yield "a tenth forgotten", Forgetful(world, always, 0.1)
    places = {name: place.columns for name, place in factors.positions.items() if name in factors.state}
    moved = {
        name: [other for j, other in enumerate(factors.state) if always[factors.n + k, j]]
        for k, name in enumerate(factors.action)
    }
    if len(places) > 1 and all(moved.values()):
        near = Proximity(factors, places, 0.2, attached=moved)
        yield "nearer than 0.2", near
        yield "nearer than 0.2, supported", Supported(near, data, factors)


def work(config: Config, write: rows.Write) -> None:
    """Judge all masks of a world, and ask the world."""
    world, rng = Zoo(config.seed, kinds=config.kinds), np.random.default_rng(config.seed)
    data, fresh = (collect(world, world.policy, size, rng, environments=256) for size in (config.rows, config.fresh))
    factors, derive = world.factors, world.derive if world.factors.derived else None
    witness, support = gather(data, factors, rng=rng)
    lively = np.append(~witness.alone.still, np.ones(factors.m, np.bool_))
    exact = 0.0
    for step, (name, mask) in enumerate(masks(world, data)):
        found = judge(Asked(mask, factors, derive), witness, support, rng=rng)
        truth, made = _truth(config, world, mask, fresh, lively, rng)
        exact = made if name == "exact" else exact
        figures = {
            f"{part}_{end}": getattr(getattr(found, part), end)
            for part in ("wrong", "unknown", "contradicted")
            for end in ("value", "low", "high")
        }
        write(
            step=step, mask=name, truth=truth, relative_yield=made / max(1.0, exact), fine=found.fine,
            verdict=found.verdict, kinds=list(world.drawn), policy=world.blueprint.behaviour.style, **figures,
        )  # fmt: skip


def _truth(
    config: Config, world: Zoo, mask: Any, fresh: Transitions, lively: Array, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the share of wrong counterfactuals, and how many were made; static-only swaps left out."""

    def no_reward(state: Floats, action: Floats, after: Floats) -> Floats:  # noqa: ARG001
        return np.zeros(len(state))

    derive = world.derive if world.factors.derived else None
    augmenter = Augmenter(world.factors, mask, no_reward, pairs=config.pairs, samples_per_pair=1, derive=derive)
    made = augmenter(fresh, rng=rng)
    moving = made.swapped[:, lively]
    real = moving.any(axis=1) & ~moving.all(axis=1)
    wrong = audit(made, world.step).error[real] > 1e-6
    return float(wrong.mean()) if real.any() else float("nan"), float(real.sum())
