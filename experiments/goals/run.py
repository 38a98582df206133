"""The runs of goal-conditioned RL: an agent, the buffer that makes its arm, and what is measured on the way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from counterpoint import Augmenter
from counterpoint.adapters.sb3 import CodaHerReplayBuffer, FutureActual
from counterpoint.goals import no_reward
from counterpoint.masks import Constant
from counterpoint.replay import CounterfactualRows, Mixing
from experiments import rows
from experiments.goals import masks
from experiments.goals.agent import Recipe, agent
from experiments.goals.simulated import HIDDEN, Contacts, Judge, Telling, observation_factors
from experiments.goals.tasks import TASKS, evaluate

ARMS = ("her", "heuristic", "contacts", "learned")
LARGER = ("larger", "added")  # with as many more rows in a batch as it takes to have all real ones of "her" in it
PILOT = 900  # seeds from here on are for trying out and are not reported


@dataclass(frozen=True)
class Config:
    """One run; the defaults are the paper's."""

    task: str = "push"
    arm: str = "her"
    seed: int = 0
    steps: int = 1_000_000  # decisions, as all numbers of steps here; rows count steps of the environment
    recipe: Recipe = field(default_factory=Recipe)
    future_until: int = 25_000  # steps until which all new goals of real rows are achieved later in their episode
    every: int = 250  # steps between rounds of making counterfactuals
    sources: int = 20_000  # real rows that a round looks at
    pairs: int = 2_000
    contact_pairs: int = 400  # of arm "contacts", whose mask has to simulate every proposal
    samples_per_pair: int = 2
    max_fraction: float = 0.75
    capacity: int = 3_000_000
    evaluate_every: int = 5_000
    episodes: int = 20
    audit_rows: int = 200  # counterfactuals that are put back into the simulator at each evaluation
    mask_rows: int = 50_000  # of play for the learned mask
    mask_epochs: int = 30

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.task}_{self.arm}_{self.seed}"


_TINY = Config(
    steps=400, future_until=150, every=100, sources=200, pairs=100, contact_pairs=20, evaluate_every=200, episodes=2,
    audit_rows=20, mask_rows=600, mask_epochs=1,
    recipe=Recipe(width=16, batch_size=32, buffer_size=1000, warm_up=150, random_until=200),
)  # fmt: skip
_SMALL = Recipe(
    width=128, batch_size=512, buffer_size=200_000, gamma=0.95, action_penalty=0.1, noise=0.2, target_every=1,
    update_every=1, warm_up=1_000, random_until=3_000, relative=True,
)  # fmt: skip
_LAPTOP = Config(
    steps=24_000, recipe=_SMALL, future_until=0, every=100, contact_pairs=100, max_fraction=0.5, capacity=150_000,
    evaluate_every=1_600, mask_rows=20_000,
)  # fmt: skip
_AIMED = replace(_LAPTOP, steps=12_000, recipe=replace(_SMALL, aims=0.5), evaluate_every=800)
_TWO_PUCKS = replace(_AIMED, steps=48_000, evaluate_every=1_600)
# Tasks, arms, seeds, settings. Those of laptops are frozen after pilot runs; see the page of results.
PRESETS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...], Config]] = {
    "smoke": (("push-held",), ARMS, (0,), _TINY),
    "laptop": (("push-held",), ARMS, (0, 1, 2, 3), _LAPTOP),
    "laptop-larger": (("push-held",), LARGER, (0, 1), _LAPTOP),
    "laptop-aimed": (("push-held",), ARMS, (0, 1, 2, 3), _AIMED),
    "laptop-slide2": (("slide2-one",), ("her", "heuristic"), (0, 1, 2), _TWO_PUCKS),
    "laptop-slippery": (("slide2-held",), ("her", "heuristic"), (0, 1), replace(_TWO_PUCKS, steps=24_000)),
    "paper": (("push", "slide2"), ARMS, (0, 1, 2, 3, 4), Config()),
}
PAPER_SLIDE2_STEPS = 10_000_000


def runs(
    preset: str, arms: Sequence[str] = (), tasks: Sequence[str] = (), seeds: Sequence[int] = ()
) -> Iterator[Config]:
    """Give the runs of a preset in the order in which they start: by task, by seed, by arm."""
    known_tasks, known_arms, known_seeds, base = PRESETS[preset]
    for task in tasks or known_tasks:
        long = preset == "paper" and task == "slide2"
        steps = PAPER_SLIDE2_STEPS if long else base.steps
        for seed in seeds or known_seeds:
            for arm in arms or known_arms:
                yield replace(base, task=task, arm=arm, seed=seed, steps=steps)


def buffer(config: Config) -> dict[str, Any]:
    """Return what makes an arm: the mask of the buffer; batches of ``her`` and ``larger`` have no counterfactuals."""
    task = TASKS[config.task]
    factors = observation_factors(task)
    mask: Any = {
        "her": lambda: Constant.full(factors),
        "larger": lambda: Constant.full(factors),
        "heuristic": lambda: masks.heuristic(task),
        "added": lambda: masks.heuristic(task),
        "contacts": lambda: Contacts(task),
        "learned": lambda: masks.learned(config.task, config.mask_rows, config.mask_epochs),
    }[config.arm]()
    alone, pairs = config.arm in ("her", "larger"), config.contact_pairs if config.arm == "contacts" else config.pairs
    augmenter = Augmenter(factors, mask, no_reward, pairs=pairs, samples_per_pair=config.samples_per_pair)
    mixing = Mixing(
        every=config.steps + 1 if alone else config.every,
        capacity=config.capacity,
        max_fraction=config.max_fraction,
        seed=config.seed,
        sources=config.sources,
    )
    strategy = FutureActual(2, 2, future_until=config.future_until)
    given = {"augmenter": augmenter, "mixing": mixing, "goal_selection_strategy": strategy, "noise_key": HIDDEN}
    return {"replay_buffer_class": CodaHerReplayBuffer, "replay_buffer_kwargs": given}


class Measure(BaseCallback):
    """Evaluate now and then and write a row about it, and about counterfactual rows; steps are the environment's."""

    def __init__(self, config: Config, write: rows.Write) -> None:
        super().__init__()
        self.config, self.write, self.evaluating, self.start = config, write, 0.0, perf_counter()
        self.task = TASKS[config.task]
        self.env, self.judge = self.task.make(), Judge(self.task)

    def _on_step(self) -> bool:
        if self.num_timesteps % self.config.evaluate_every == 0:
            self._row(self.num_timesteps * self.task.held)
        return True

    def _row(self, step: int) -> None:
        start = perf_counter()
        first = 1_000_000 * (1 + self.config.seed) + step  # goals that no other seed or step has
        seeds = [first + episode for episode in range(self.config.episodes)]
        found = evaluate(self.model, self.task, self.env, seeds)
        made: CounterfactualRows = self.model.replay_buffer.counterfactual  # type: ignore[attr-defined]
        found |= {"share": made.share, "counterfactuals": len(made.ring)}
        found |= {"acceptance": made.acceptance, "making": made.seconds}
        if len(made.ring):
            rng = np.random.default_rng([self.config.seed, step])
            some = made.ring.take(rng.integers(len(made.ring), size=self.config.audit_rows))
            found["confirmed"] = self.judge.confirmed(some)
        now = perf_counter()
        self.evaluating += now - start
        self.write(step=step, **found, seconds=now - self.start, evaluating=self.evaluating)


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    torch.set_num_threads(1)
    task = TASKS[config.task]

    def make() -> Any:
        return Telling(task.make(), islands=config.arm == "contacts")

    recipe = config.recipe
    if config.arm in LARGER:
        recipe = replace(recipe, batch_size=round(recipe.batch_size / (1.0 - config.max_fraction)))
    learner = agent(task, make, recipe, config.seed, **buffer(config))
    learner.learn(config.steps, callback=Measure(config, write))
