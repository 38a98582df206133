"""The main job on embedded data, end to end: record, learn a mask, augment, audit, train agents, and report.

One mask is learned from a log of transitions without rewards. It then serves three small sets of transitions, and
on each of them four agents learn offline to place sprites: without counterfactuals, and with those of three masks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from counterpoint.checks import Audit, audit
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
NONE, IDENTITY, LEARNED, EXACT = ARMS = ("none", "identity", "learned", "exact")
_HEAD = ("mask", "transitions", "confirmed", "reward per step", "of the way", "seed by seed")
_WIDTHS = (10, 12, 12, 18, 12, 24)


@dataclass(frozen=True)
class Size:
    """How much to record, to make, to train and to play."""

    log: int = 40_000  # transitions without rewards, to learn the mask from
    held: int = 10_000  # others, to choose its threshold by
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


def run(folder: str | Path, seed: int = 0, size: Size = Size(), say: Say = print) -> Path:  # noqa: B008
    """Run the demonstration and return the path of its report.

    Args:
        folder: where the report goes, as ``report.html``.
        seed: of all randomness.
        size: how much of everything.
        say: takes what it has to say, line by line.
    """
    rng, policy = np.random.default_rng(seed), uniform_policy(WORLD)
    say(f"1/4  Learning who influences whom, from {size.log:,} transitions of four bouncing sprites, no rewards ...")
    log, held = (collect(WORLD, policy, rows, rng) for rows in (size.log, size.held))
    learned, verdict = learned_mask(log, held, size.epochs, rng)
    say(f"     Its own verdict, without labels: {verdict.partition('. ')[0].rstrip('.')}.")
    made_of = f"{size.counterfactuals:,} counterfactuals of each by three masks"
    say(f"2/4  Recording {size.seeds} sets of {size.real:,} transitions, and making {made_of} ...")
    sets = [collect(WORLD, policy, size.real, rng, reward_fn=TASK) for _ in range(size.seeds)]
    masks: dict[str, Mask] = {IDENTITY: Constant.identity(WORLD.factors), LEARNED: learned, EXACT: WORLD.mask}
    made = {name: [augmented(mask, data, size, rng) for data in sets] for name, mask in masks.items()}
    audits = {name: [audit(one, WORLD.step) for one in each] for name, each in made.items()}
    say(f"3/4  Training {len(ARMS) * len(sets)} agents offline to place two sprites, then letting them play ...\n")
    rewards, chance = compare(sets, made, Units(log), size, rng)
    arms = [Arm(NONE, size.real, None, rewards[NONE])]
    for name, found in audits.items():
        confirmed = float(np.mean([one.confirmed for one in found]))
        arms.append(Arm(name, size.real + size.counterfactuals, confirmed, rewards[name]))
    for line in table(arms, chance):
        say(line)
    say("\n4/4  Writing the report on the learned mask's counterfactuals of the first seed ...")
    about = {"command": "counterpoint demo", "seed": seed, "world": repr(WORLD), "learned mask": verdict}
    return report(Path(folder) / "report.html", sets[0], made[LEARNED][0], audits[LEARNED][0], learned, about)


def learned_mask(log: Transitions, held: Transitions, epochs: int, rng: np.random.Generator) -> tuple[Threshold, str]:
    """Fit a mask and choose its threshold by other transitions, without labels; also return the verdict in words."""
    estimator = ResidualAttribution(epochs=epochs).fit(log, WORLD.factors, rng=rng)
    found = calibrate(estimator, held, WORLD.factors, rng=rng)
    return Threshold(estimator, found.tau), found.verdict


def augmented(mask: Mask, data: Transitions, size: Size, rng: np.random.Generator) -> Counterfactuals:
    """Make the counterfactuals of one set of transitions."""
    return Augmenter(WORLD.factors, mask, TASK).fill(data, size.counterfactuals, rng=rng)


def compare(
    sets: Sequence[Transitions],
    made: Mapping[str, Sequence[Counterfactuals]],
    units: Units,
    size: Size,
    rng: np.random.Generator,
) -> tuple[dict[str, tuple[float, ...]], float]:
    """Train an agent for each arm and set, and let it play.

    Returns:
        The agents' rewards per step, arm by arm and seed by seed, and that of random clicks.
    """
    data = {NONE: list(sets)}
    for name, each in made.items():
        data[name] = [Transitions.concat(real, more.transitions) for real, more in zip(sets, each, strict=True)]
    seeds = [int(seed) for seed in rng.integers(2**31, size=len(sets))]
    values = train([rows for each in data.values() for rows in each], seeds * len(data), units, steps=size.steps)
    exam = int(rng.integers(2**31))  # the same for all
    agents = [None, *(values.one(agent) for agent in range(len(data) * len(sets)))]
    rewards = [play(agent, WORLD, TASK, units, episodes=size.episodes, seed=exam) for agent in agents]
    found = iter(rewards[1:])
    return {name: tuple(next(found) for _ in sets) for name in data}, rewards[0]


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


def report(
    path: Path,
    data: Transitions,
    made: Counterfactuals,
    found: Audit,
    mask: Mask,
    about: Mapping[str, object],
) -> Path:
    """Write the report on the counterfactuals of one set."""
    return write_report(
        path,
        data,
        made,
        Augmenter(WORLD.factors, mask, TASK),
        rng=np.random.default_rng(0),
        audit=found,
        extras=Extras(draw=lambda state, action, mask: draw_sprites(state, action=action, mask=mask), about=about),
    )


def _line(first: str, *cells: str) -> str:
    return first.ljust(_WIDTHS[0]) + "".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS[1:], strict=True))
