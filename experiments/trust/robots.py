"""The robots of the experiment on trust: verdicts on MuJoCo environments beside what the simulator says."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.adapters.mujoco import Simulator, derive, factorization
from counterpoint.core.arrays import Bools, Floats
from counterpoint.learn import Calibration, ResidualAttribution, TreeAttribution
from counterpoint.learn.calibration.calibrate import gather, judge
from counterpoint.learn.calibration.judging import Asked
from counterpoint.masks import Constant, Proximity, Supported
from experiments import rows
from experiments.exactness import no_reward
from experiments.mujoco_exactness import run as mujoco
from experiments.trust.run import chosen, figures, shares

RADII = (0.05, 0.1, 0.15)  # of masks by distance, in metres


@dataclass(frozen=True)
class Config:
    """One robot."""

    environment: str
    rows: int = 20_000  # for the verdict
    fitted: int = 20_000  # that a mask is learned from
    epochs: int = 30
    counterfactuals: int = 1_000  # that the simulator is asked about
    seed: int = 0
    plain: bool = True  # masks that are not learned, too
    trees: bool = False  # learned by trees, and not by a network

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"robot-{self.environment}"


PRESETS = {
    "smoke": [Config("FetchPush", rows=2_000, fitted=300, epochs=1, counterfactuals=30)],
    "laptop": [Config(name) for name in mujoco.ENVIRONMENTS],
    "foreign": [Config(name) for name in mujoco.ENVIRONMENTS],
    "novel": [Config(name, trees=True) for name in mujoco.ENVIRONMENTS],
    "repaired": [Config(name, plain=False, trees=True) for name in ("FetchPush", "FetchPickAndPlace", "Slide2")],
    "strangers": [Config(name, rows=8_000, fitted=8_000, counterfactuals=500) for name in mujoco.ENVIRONMENTS],
}


def masks(
    config: Config, data: Transitions, other: Transitions, factors: Factorization, rng: np.random.Generator
) -> Iterator[tuple[str, Any]]:
    """Yield the masks of a robot; learned ones to be judged at the threshold that the verdict chooses."""
    if config.plain:
        places = mujoco.PLACES.get(config.environment, {})
        for radius in RADII if places else ():
            near = Proximity(factors, places, radius, attached=(mujoco.ROBOT,))
            yield f"nearer than {radius}", near
            yield f"nearer than {radius}, supported", Supported(near, data, factors)
        yield "identity", Constant.identity(factors)
    if config.trees:
        yield "learned by trees", TreeAttribution(allow_constant=True).fit(other, factors, rng=rng, progress=False)
    else:
        fitted = ResidualAttribution(epochs=config.epochs, allow_constant=True)
        yield "learned", fitted.fit(other, factors, rng=rng, progress=False)


def judged(
    given: Iterator[tuple[str, Any]], ask: Callable[[Any], Calibration], data: Transitions, factors: Factorization
) -> Iterator[tuple[str, Calibration, Any]]:
    """Yield masks with what is said of them; what trees have learned once more with ``Supported``."""
    for name, mask in given:
        found, used = chosen(mask, ask(mask)) if hasattr(mask, "scores") else (ask(mask), mask)
        yield name, found, used
        if isinstance(mask, TreeAttribution):
            safe = Supported(used, data, factors)
            yield f"{name}, supported", ask(safe), safe


def work(config: Config, write: rows.Write) -> None:
    """Judge all masks of a robot, and ask its simulator."""
    rng = np.random.default_rng(config.seed)
    size = config.rows + config.fitted
    env, whole = mujoco.record(mujoco.Config(config.environment, transitions=size, seed=config.seed))
    factors, recompute = factorization(env), derive(env)
    first = np.asarray(whole.episode) < np.asarray(whole.episode)[config.rows]
    data, other = whole[first].replace(noise=None), whole[~first].replace(noise=None)
    simulator = Simulator(env, real=whole, sample=200, workers=1)
    witness, support = gather(data, factors, rng=rng)
    lively = np.append(~witness.alone.still, np.ones(factors.m, np.bool_))

    def ask(mask: Any) -> Calibration:
        return judge(Asked(mask, factors, recompute), witness, support, rng=rng)

    answers = judged(masks(config, data, other, factors, rng), ask, data, factors)
    for step, (name, found, used) in enumerate(answers):
        augmenter = Augmenter(factors, used, no_reward, _never, derive=recompute)
        try:
            made = augmenter.fill(whole[~first], config.counterfactuals, rng=rng)
        except ValueError as error:
            write(step=step, mask=name, truth=None, failed=str(error), relative_yield=0.0, **figures(found))
            continue
        moving = made.swapped[:, lively]
        real = moving.any(axis=1) & ~moving.all(axis=1)
        found_wrong = _shares(made.transitions[real], simulator, data)
        about = {"robot": config.environment, "made": int(real.sum()), "relative_yield": made.funnel.acceptance}
        write(step=step, mask=name, **found_wrong, **about, **figures(found))


def _shares(made: Transitions, simulator: Simulator, data: Transitions) -> dict[str, float | None]:
    """Return the share that is wrong at all, by more than the fine print, and by more than 1e-3 in any column."""
    if not len(made):
        return {"truth": None}
    off = np.abs(simulator(made.state, made.action, made.noise) - made.next_state)
    return {**shares(off, data), "far": float((off > 1e-3).any(axis=1).mean())}


def _never(state: Floats, action: Floats, after: Floats) -> Bools:  # noqa: ARG001
    return np.zeros(len(state), np.bool_)
