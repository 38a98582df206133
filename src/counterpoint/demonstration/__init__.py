"""The main job on embedded data, end to end: record, learn a mask, augment, audit, train agents, and report.

One mask is learned from a log of transitions without rewards. It then serves three small sets of transitions, and
on each of them four agents learn offline to place sprites: without counterfactuals, and with those of three masks.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from counterpoint.checks import audit
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.protocols import Mask
from counterpoint.core.transitions import Transitions
from counterpoint.demonstration.agents import Units, play, train
from counterpoint.learn import ResidualAttribution, calibrate
from counterpoint.masks import Constant, Threshold
from counterpoint.report import Extras, write_report
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites

Say: TypeAlias = Callable[[str], None]

WORLD, TASK = Sprites(), Place(2)
TAU = 0.05  # an edge wherever its probability is larger, as in the paper: a missed one hurts, an extra one costs yield
NONE, IDENTITY, LEARNED, EXACT = ARMS = ("none", "identity", "learned", "exact")
_HEAD = ("mask", "transitions", "confirmed", "reward per step", "of the way", "seed by seed")
_WIDTHS = (10, 12, 12, 18, 12, 24)


@dataclass(frozen=True)
class Size:
    """How much to record, to make, to train and to play."""

    log: int = 40_000  # transitions without rewards, to learn the mask from
    held: int = 10_000  # others, to judge it by
    epochs: int = 30  # of the mask's training
    real: int = 5_000  # transitions with rewards that an agent has
    counterfactuals: int = 100_000  # that it gets on top
    seeds: int = 3  # sets of such transitions, and agents of each arm
    steps: int = 4_000  # minibatches of an agent's training
    episodes: int = 1_500  # that each agent then plays


@dataclass(frozen=True)
class Arm:
    """What came of one mask: what the world says of its counterfactuals, and how well agents do, seed by seed."""

    name: str
    transitions: int
    confirmed: float | None
    rewards: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean reward per step."""
        return float(np.mean(self.rewards))


@dataclass(frozen=True)
class Exercise:
    """One set of transitions, and all that an agent needs besides a mask."""

    data: Transitions
    units: Units
    size: Size
    seed: int  # of the counterfactuals and of the agent
    exam: int  # the seed of the episodes in which agents are compared, the same for all


@dataclass(frozen=True)
class Outcome:
    """What came of one mask and one set of transitions."""

    reward: float  # per step
    confirmed: float | None  # share of the counterfactuals that the world agrees with


def run(folder: str | Path, seed: int = 0, size: Size = Size(), say: Say = print) -> Path:  # noqa: B008
    """Run the demonstration and return the path of its report.

    Args:
        folder: where the report goes, as ``report.html``.
        seed: of all randomness.
        size: how much of everything.
        say: takes what it has to say, line by line.
    """
    rng, policy = np.random.default_rng(seed), uniform_policy(WORLD)
    say(f"1/4  Recording {size.log:,} transitions of bouncing sprites, and {size.seeds} small sets with rewards ...")
    log, held = (collect(WORLD, policy, rows, rng) for rows in (size.log, size.held))
    sets = [collect(WORLD, policy, size.real, rng, reward_fn=TASK) for _ in range(size.seeds)]
    exam, units = int(rng.integers(2**31)), Units(log)
    exercises = [Exercise(data, units, size, int(rng.integers(2**31)), exam) for data in sets]
    masks: dict[str, Mask | None] = {NONE: None, IDENTITY: Constant.identity(WORLD.factors), EXACT: WORLD.mask}
    with processes() as pool:
        say(f"2/4  Learning who influences whom; meanwhile {3 * size.seeds} agents learn to place two sprites ...")
        waiting = {name: start(pool, mask, exercises) for name, mask in masks.items()}
        learned = learned_mask(log, size.epochs, rng)
        waiting[LEARNED] = start(pool, learned, exercises)
        opinion = judged(learned, held, rng)
        say(f"     {opinion}")
        say(f"3/4  Training {size.seeds} agents with the learned mask's counterfactuals ...\n")
        outcomes = {name: [each.result() for each in waiting[name]] for name in ARMS}
    chance = play(None, WORLD, TASK, units, episodes=size.episodes, seed=exam)
    for line in table([arm(name, found, size) for name, found in outcomes.items()], chance):
        say(line)
    say("\n4/4  Writing the report on the learned mask's counterfactuals of the first seed ...")
    about = {"command": "counterpoint demo", "seed": seed, "world": repr(WORLD), "learned mask": opinion}
    return report(Path(folder) / "report.html", learned, exercises[0], about)


def processes() -> ProcessPoolExecutor:
    """Return processes for agents, one for each core; the mask is learned beside them."""
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), initializer=_prepare)


def start(pool: ProcessPoolExecutor, mask: Mask | None, exercises: Sequence[Exercise]) -> list["Future[Outcome]"]:
    """Begin to train and examine an agent for each set of transitions."""
    return [pool.submit(outcome, mask, exercise) for exercise in exercises]


def outcome(mask: Mask | None, exercise: Exercise) -> Outcome:
    """Make counterfactuals, ask the world about them, train an agent on them and on the real rows, and let it play."""
    data, confirmed = exercise.data, None
    if mask is not None:
        made = augmented(mask, exercise)
        data, confirmed = Transitions.concat(data, made.transitions), audit(made, WORLD.step).confirmed
    values = train(data, exercise.units, steps=exercise.size.steps, seed=exercise.seed)
    reward = play(values, WORLD, TASK, exercise.units, episodes=exercise.size.episodes, seed=exercise.exam)
    return Outcome(reward, confirmed)


def learned_mask(log: Transitions, epochs: int, rng: np.random.Generator) -> Threshold:
    """Fit a mask without labels."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # agents learn meanwhile: a second thread would wait for its turn at every step
    mask = Threshold(ResidualAttribution(epochs=epochs).fit(log, WORLD.factors, rng=rng), TAU)
    torch.set_num_threads(threads)
    return mask


def augmented(mask: Mask, exercise: Exercise) -> Counterfactuals:
    """Make the counterfactuals of one set of transitions; the same ones each time."""
    rng = np.random.default_rng(exercise.seed)
    return Augmenter(WORLD.factors, mask, TASK).fill(exercise.data, exercise.size.counterfactuals, rng=rng)


def arm(name: str, outcomes: Sequence[Outcome], size: Size) -> Arm:
    """Put the outcomes of one mask together."""
    confirmed = [each.confirmed for each in outcomes if each.confirmed is not None]
    rows = size.real + (size.counterfactuals if confirmed else 0)
    return Arm(name, rows, float(np.mean(confirmed)) if confirmed else None, tuple(each.reward for each in outcomes))


def table(arms: Sequence[Arm], chance: float) -> Iterator[str]:
    """Put the arms into a table, and explain it in two lines."""
    worst, best = arms[0].mean, arms[-1].mean
    yield _line(*_HEAD)
    for arm in arms:
        yield _line(
            arm.name,
            f"{arm.transitions:,}",
            "" if arm.confirmed is None else f"{arm.confirmed:.1%}",
            f"{arm.mean:.3f} ± {np.std(arm.rewards, ddof=1):.3f}",
            f"{(arm.mean - worst) / (best - worst):.0%}",
            "  ".join(f"{reward:.3f}" for reward in arm.rewards),
        )
    yield (
        "\nconfirmed: share of the counterfactuals that the world agrees with. reward per step: of agents that play, "
        f"mean ± spread\nover {len(arms[0].rewards)} seeds; random clicks get {chance:.3f}. of the way: from no "
        "counterfactuals to those of the exact mask."
    )


def report(path: Path, mask: Mask, exercise: Exercise, about: Mapping[str, object]) -> Path:
    """Write the report on the counterfactuals of one set."""
    made = augmented(mask, exercise)
    return write_report(
        path,
        exercise.data,
        made,
        Augmenter(WORLD.factors, mask, TASK),
        rng=np.random.default_rng(0),
        audit=audit(made, WORLD.step),
        extras=Extras(draw=lambda state, action, mask: draw_sprites(state, action=action, mask=mask), about=about),
    )


def judged(mask: Mask, held: Transitions, rng: np.random.Generator) -> str:
    """Return what `calibrate` says of a mask, by transitions that it has not seen and without labels."""
    found = calibrate(mask, held, WORLD.factors, rng=rng)
    estimate = f"Without labels it expects {found.wrong.value:.1%} of its counterfactuals to be wrong"
    if found.fine:
        return f"{estimate} and is sure that it is no more than {found.wrong.high:.1%}: good enough to augment."
    return (
        f"{estimate}, but cannot rule out {found.wrong.high:.1%}.\n     On your own data it would ask for more "
        "transitions. Here we can ask the world: see `confirmed` below."
    )


def _prepare() -> None:
    """Get a process ready: one thread each, and an interrupt ends it without a word."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _line(first: str, *cells: str) -> str:
    return first.ljust(_WIDTHS[0]) + "".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS[1:], strict=True))
