"""The runs of the experiment on trust: what ``calibrate`` says of several masks in a world, and what the world says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint import Augmenter, Transitions
from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.learn import Calibration, ResidualAttribution, TreeAttribution
from counterpoint.learn.calibration.calibrate import gather, judge
from counterpoint.learn.calibration.judging import Asked
from counterpoint.masks import Constant, Proximity, Supported, Threshold
from counterpoint.worlds import Zoo, collect
from counterpoint.worlds.zoo import FOREIGN, NOVEL, STRANGE
from experiments import rows
from experiments.exactness import no_reward

WRONG = 1e-6  # a counterfactual that is off by more, in any column, is wrong
FINE_PRINT = 0.01  # standard deviations of a column's change: what is less, even without noise, matters to nobody
RADII = (0.1, 0.2, 0.3)  # of masks by distance


@dataclass(frozen=True)
class Config:
    """One world."""

    seed: int
    rows: int = 20_000  # for the verdict
    fresh: int = 6_000  # for the truth
    pairs: int = 3_000
    kinds: tuple[str, ...] = STRANGE
    fitted: int = 0  # if any, learned masks alone are judged, and this many other rows are what they learn from
    epochs: int = 30  # of its training
    trees: bool = False  # learned by trees, too, and at no other thresholds
    network: bool = True  # learned by a network

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{'learned' if self.fitted else 'world'}-{self.seed}"


def _preset(seeds: range, some: range, fitted: int, **sizes: Any) -> list[Config]:
    """Return runs of all worlds, and runs of learned masks in some of them."""
    both = [Config(seed, **sizes) for seed in seeds] + [Config(seed, fitted=fitted, **sizes) for seed in some]
    return sorted(both, key=lambda config: config.seed)


PRESETS = {
    "smoke": _preset(range(1000, 1001), range(1000, 1001), 1_000, rows=3_000, fresh=1_500, pairs=500, epochs=2),
    "laptop": _preset(range(6000, 6060), range(6000, 6060), 40_000),
    "strangers": _preset(range(6000, 6060), range(6005, 6060, 10), 8_000, rows=8_000, fresh=4_000, pairs=2_000),
    "foreign": _preset(range(9000, 9060), range(9005, 9060, 10), 20_000, kinds=FOREIGN),
    "repaired": _preset(range(0), range(9105, 9160, 10), 20_000, kinds=FOREIGN, trees=True),
    "novel": _preset(range(9500, 9560), range(9501, 9560, 6), 20_000, kinds=NOVEL, trees=True, network=False),
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
    yield "exact, supported", Supported(world.mask, data, factors)
    yield "all forgotten", Constant(always)
    yield "half forgotten", Forgetful(world, always, 0.5)
    yield "a tenth forgotten", Forgetful(world, always, 0.1)
    yield "a thirtieth forgotten", Forgetful(world, always, 1 / 30)
    places = {name: place.columns for name, place in factors.positions.items() if name in factors.state}
    moved = {
        name: [other for j, other in enumerate(factors.state) if always[factors.n + k, j]]
        for k, name in enumerate(factors.action)
    }
    if len(places) > 1 and all(moved.values()):
        for radius in RADII:
            yield f"nearer than {radius}", Proximity(factors, places, radius, attached=moved)


def learned(config: Config, world: Zoo, data: Transitions, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield learned estimators, to be judged at the threshold that the verdict chooses, and one at two others."""
    other = collect(world, world.policy, config.fitted, rng, environments=256)
    if config.trees:
        yield (
            "learned by trees",
            TreeAttribution(allow_constant=True).fit(other, world.factors, rng=rng, progress=False),
        )
    if not config.network:
        return
    fitted = ResidualAttribution(epochs=config.epochs, allow_constant=True).fit(
        other, world.factors, rng=rng, progress=False
    )
    yield "learned", fitted
    if config.trees:
        return
    scores = np.sort(fitted.scores(data.state[:2_000], data.action[:2_000]), axis=None)
    edges = float(world.mask(data.state[:2_000], data.action[:2_000]).mean())
    for times in (0.7, 1.3):  # as many edges as the exact mask has, times this
        rank = int((1.0 - min(0.99, times * edges)) * len(scores))
        yield f"learned, {times} times the edges", Threshold(fitted, float(scores[rank]))


def work(config: Config, write: rows.Write) -> None:
    """Judge all masks of a world, and ask the world."""
    world, rng = Zoo(config.seed, kinds=config.kinds), np.random.default_rng(config.seed)
    data, fresh = (collect(world, world.policy, size, rng, environments=256) for size in (config.rows, config.fresh))
    factors, derive = world.factors, world.derive if world.factors.derived else None
    witness, support = gather(data, factors, rng=rng)
    lively, noise = np.append(~witness.alone.still, np.ones(factors.m, np.bool_)), usual_noise(world, data)
    exact = _truth(config, world, world.mask, fresh, lively, noise, rng)["made"]
    judged = learned(config, world, data, rng) if config.fitted else masks(world, data)
    for step, (name, mask) in enumerate(judged):
        found = judge(Asked(mask, factors, derive), witness, support, rng=rng)
        found, used = chosen(mask, found) if hasattr(mask, "scores") else (found, mask)
        truth = _truth(config, world, used, fresh, lively, noise, rng)
        about: dict[str, Any] = {"kinds": list(world.drawn), "policy": world.blueprint.behaviour.style}
        about["relative_yield"] = truth["made"] / max(1.0, exact)
        write(step=step, mask=name, **truth, **about, **figures(found))


def chosen(estimator: Any, found: Calibration) -> tuple[Calibration, Threshold]:
    """Return the best figures of an estimator, and the mask they are about."""
    best = found.by_kind or found
    return best, Threshold(estimator, best.tau if best.thresholds is None else best.thresholds)


def figures(found: Calibration) -> dict[str, Any]:
    """Return what a verdict says, by names."""
    shares = {
        f"{part}_{end}": getattr(getattr(found, part), end)
        for part in ("wrong", "unknown", "contradicted")
        for end in ("value", "low", "high")
    }
    words = {"fine": found.fine, "fine_if_supported": found.fine_if_supported, "verdict": found.verdict}
    return {**words, "thresholds": max(1, len(set(found.taus.values()))), "accepted": found.accepted, **shares}


def usual_noise(world: Zoo, data: Transitions) -> Floats:
    """Return what noise does to each column of the next state, as a standard deviation, (S,); rare kicks cut off.

    Hidden velocities, which the world keeps beside its noise, stay as they are.
    """
    some, observation = data[:2000], world.blueprint.observation
    after = []
    for seed in range(2):
        noise, fresh = some.noise.copy(), world.noise(len(some), np.random.default_rng(seed))  # type: ignore[union-attr]
        for name, part in zip(observation.names, observation.cast.parts, strict=True):
            columns = list(observation.noise_columns.get(name, ()))[: len(part.noisy)]
            noise[:, columns] = fresh[:, columns]
        after.append(world.step(some.state, some.action, noise).astype(np.float64))
    apart = np.abs(after[0] - after[1])
    return np.asarray(np.sqrt(np.square(np.minimum(apart, np.quantile(apart, 0.99, axis=0))).mean(axis=0) / 2))


def shares(off: Floats, data: Transitions, noise: Floats | float = 0.0) -> dict[str, float]:
    """Return the share of rows that are wrong at all, and by more than noise, and not only in the fine print.

    Args:
        off: (B, S) differences.
        data: recorded transitions.
        noise: (S,) standard deviations of what noise does to each column.
    """
    change = (data.next_state.astype(np.float64) - data.state).std(axis=0)
    limits = {"truth": WRONG, "beyond_noise": np.maximum(np.maximum(noise, FINE_PRINT * change), WRONG)}
    return {name: float((off > limit).any(axis=1).mean()) for name, limit in limits.items()}


def _truth(
    config: Config, world: Zoo, mask: Any, fresh: Transitions, lively: Array, noise: Floats, rng: np.random.Generator
) -> dict[str, float]:
    """Return shares of wrong counterfactuals, at all and beyond the noise, and how many were made.

    Static-only swaps are left out.
    """
    derive = world.derive if world.factors.derived else None
    augmenter = Augmenter(world.factors, mask, no_reward, pairs=config.pairs, samples_per_pair=1, derive=derive)
    made = augmenter(fresh, rng=rng)
    moving = made.swapped[:, lively]
    real = made.transitions[moving.any(axis=1) & ~moving.all(axis=1)]
    if not len(real):
        return {"truth": float("nan"), "beyond_noise": float("nan"), "made": 0.0}
    off = np.abs(world.step(real.state, real.action, real.noise).astype(np.float64) - real.next_state)
    return {**shares(off, fresh, noise), "made": float(len(real))}
