"""One environment: record, make counterfactuals with each mask, and ask the simulator about every one."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import torch

import counterpoint.worlds.fetch  # noqa: F401  registers the environments
from counterpoint import Augmenter, Counterfactuals, Factorization, Transitions
from counterpoint.adapters.mujoco import Islands, Simulator, collect, derive, factorization
from counterpoint.checks import audit
from counterpoint.core.arrays import Ints
from counterpoint.learn import ResidualAttribution, calibrate
from counterpoint.masks import Constant, Proximity, Threshold, Union
from counterpoint.worlds.fetch import NEAR, PUSH, REACH, SLIDE2, Fallen
from experiments import rows
from experiments.exactness import no_reward

ENVIRONMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "FetchPush": ("counterpoint/FetchPushDisentangled-v0", {}),
    "Slide2": ("counterpoint/Slide2-v0", {}),
    "FetchPickAndPlace": ("FetchPickAndPlace-v4", {}),
    "FrankaKitchen": ("FrankaKitchen-v1", {"robot_noise_ratio": 0.0, "object_noise_ratio": 0.0}),
}
ROBOT = "robot0:base_link"
MASKS = ("islands", "islands, not strict", "near", "near or fallen", "reach or fallen", "identity", "learned")
SEEDS = (2,)  # rules were looked for on seed 0, and found wanting on seed 1
ENOUGH = 2_000  # rows to find a threshold with
PLACES = {  # columns of positions, where the 10 cm rule makes sense
    "FetchPush": {ROBOT: (0, 1, 2), "object0": (10, 11, 12)},
    "Slide2": {ROBOT: (0, 1, 2), "object0": (10, 11, 12), "object1": (22, 23, 24)},
    "FetchPickAndPlace": {ROBOT: (0, 1, 2), "object0": (3, 4, 5)},
}


@dataclass(frozen=True)
class Config:
    """One run."""

    environment: str
    transitions: int = 5_000
    counterfactuals: int = 5_000
    epochs: int = 30
    seed: int = SEEDS[0]
    masks: tuple[str, ...] = MASKS

    @property
    def name(self) -> str:
        """The name of the run's file; a run with some of the masks is named after the first of them."""
        part = "" if self.masks == MASKS else "-" + "".join(filter(str.isalpha, self.masks[0]))
        return f"{self.environment}-{self.seed}{part}"


PRESETS = {
    "smoke": Config("", transitions=300, counterfactuals=30, epochs=2),
    "laptop": Config(""),
}


def runs(
    preset: str, environments: Iterable[str], masks: tuple[str, ...] = MASKS, seeds: Iterable[int] = SEEDS
) -> Iterator[Config]:
    """Yield the runs of a preset."""
    for seed in seeds:
        for environment in environments:
            yield replace(PRESETS[preset], environment=environment, masks=masks, seed=seed)


class Scripted:
    """Pushes whatever is nearest for a while, and wanders for a while; so objects move, meet and fall."""

    def __init__(self, environment: str, width: int) -> None:
        self.places, self.width = PLACES.get(environment), width
        self.left, self.pushes, self.way = 0, False, np.zeros(width)

    def __call__(self, shown: Any, rng: np.random.Generator) -> np.ndarray:
        """Return an action."""
        if self.left == 0:
            self.left, self.pushes = int(rng.integers(5, 20)), rng.random() < 0.7
            self.way = rng.uniform(-1, 1, self.width)
        self.left -= 1
        action = self.way + 0.3 * rng.normal(size=self.width)
        if self.places is not None and self.pushes:
            seen = shown["observation"]
            hand, *things = (seen[list(columns)] for columns in self.places.values())
            apart = min((thing - hand for thing in things), key=lambda way: float(np.linalg.norm(way)))
            action[:3] = 12 * apart + 0.3 * rng.normal(size=3)
        return np.clip(action, -1, 1).astype(np.float32)


def record(config: Config) -> tuple[Any, Transitions]:
    """Make the environment and record it."""
    identifier, settings = ENVIRONMENTS[config.environment]
    env = gymnasium.make(identifier, disable_env_checker=True, **settings)
    policy = Scripted(config.environment, int(np.prod(env.action_space.shape or ())))
    return env, collect(env, policy, config.transitions, rng=np.random.default_rng(config.seed))


def masks(config: Config, env: Any, data: Transitions) -> dict[str, Callable[[], tuple[Any, dict[str, Any]]]]:
    """Return what makes each mask, by its name, with what is expected of it."""
    factors, places = factorization(env), PLACES.get(config.environment)
    made: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
        "islands": lambda: (Islands(env, workers=1), {}),
        "islands, not strict": lambda: (Islands(env, workers=1, strict=False), {}),
    }
    if places is not None:
        near = Proximity(factors, places, NEAR, attached=(ROBOT,))
        made["near"] = lambda: (near, {})
        things = {name: columns for name, columns in places.items() if name != ROBOT}
        fallen = Fallen(factors, ROBOT, things, *on_table(config))
        made["near or fallen"] = lambda: (Union(near, fallen), {})
        reach = Proximity(factors, places, REACH, attached=(ROBOT,))
        made["reach or fallen"] = lambda: (Union(reach, fallen), {})
    made["identity"] = lambda: (Constant.identity(factors), {})
    made["learned"] = lambda: learned(config, env, data, factors)
    return {name: make for name, make in made.items() if name in config.masks}


def learned(config: Config, env: Any, data: Transitions, factors: Factorization) -> tuple[Any, dict[str, Any]]:
    """Fit a mask to half of the episodes, and find its threshold on the others."""
    torch.set_num_threads(1)
    rng, plain = np.random.default_rng(config.seed), data.replace(noise=None)
    episode = np.asarray(data.episode)
    half = episode <= np.median(episode)
    fitted = ResidualAttribution(epochs=config.epochs, allow_constant=True).fit(
        plain[half], factors, rng=rng, progress=False
    )
    if len(plain[~half]) < ENOUGH:
        return Threshold(fitted, 0.5), {"tau": 0.5}
    found = calibrate(fitted, plain[~half], factors, rng=rng, derive=derive(env), progress=False)
    said = {"expected": found.wrong.value, "low": found.wrong.low, "high": found.wrong.high, "fine": found.fine}
    return Threshold(fitted, found.tau), {**said, "tau": found.tau, "verdict": found.verdict}


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    start = time.perf_counter()
    env, data = record(config)
    factors = factorization(env)
    simulator = Simulator(env, real=data, sample=500, workers=1)
    replay = simulator.replay(data)
    islands = Islands(env, workers=1)
    write(
        step=0,
        replayed=replay.rows,
        same=replay.same,
        near=replay.near,
        exact=islands.exact,
        remarks=list(islands.remarks),
    )
    for step, (name, make) in enumerate(masks(config, env, data).items(), start=1):
        mask, expected = make()
        found = judged(config, data, factors, (mask, derive(env)), simulator)
        write(step=step, mask=name, **found, **expected, seconds=time.perf_counter() - start)


def judged(
    config: Config,
    data: Transitions,
    factors: Factorization,
    rule: tuple[Any, Callable[..., Any] | None],
    simulator: Any,
) -> dict[str, Any]:
    """Make counterfactuals with a mask and put them back."""
    mask, recompute = rule
    never = lambda state, action, after: np.zeros(len(state), np.bool_)  # noqa: ARG005, E731
    augmenter = Augmenter(factors, mask, no_reward, never, derive=recompute, static_share=0.0)  # goals alone: no news
    try:
        made = augmenter.fill(data, config.counterfactuals, rng=np.random.default_rng(config.seed + 1))
    except ValueError as error:
        return {"failed": str(error)}
    found = audit(made, simulator)
    funnel = made.funnel
    return {
        "made": len(made),
        "same": found.exact,
        "wrong": len(found.wrong),
        "far": int((found.error > 1e-3).sum()),
        "fallen": fallen(config, data, made, found.wrong),
        "pairs": funnel.pairs,
        "accepted": funnel.acceptance,
        "share": funnel.accepted / max(1, funnel.proposals),
    }


def on_table(config: Config) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return the least and the greatest position of an object that is on the table, and between its rails."""
    task = SLIDE2 if config.environment == "Slide2" else PUSH
    return task.low, task.high


def fallen(config: Config, data: Transitions, made: Counterfactuals, wrong: Ints) -> int | None:
    """Count the wrong ones where something is off the table in the counterfactual or in one of its parents."""
    things = [columns for name, columns in PLACES.get(config.environment, {}).items() if name != ROBOT]
    if not things:
        return None
    low, high = on_table(config)
    rows = (made.transitions[wrong], data[made.base[wrong]], data[made.donor[wrong]])
    places = [state[:, list(columns)] for each in rows for state in (each.state, each.next_state) for columns in things]
    return int(np.logical_or.reduce([((at < low) | (at > high)).any(axis=1) for at in places]).sum())
