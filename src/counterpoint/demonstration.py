"""The main job on embedded data, end to end: record, fit a mask, augment, audit, train, and report.

It is the paper's figure of training a forward model, in small: 2,000 transitions of bouncing sprites, 35,000
counterfactuals, and the same network trained with and without them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from counterpoint.checks import Audit, audit
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.protocols import MaskFn
from counterpoint.core.transitions import Transitions
from counterpoint.learn import ResidualAttribution, calibrate
from counterpoint.learn.estimators.learning_curve import LearningCurve, learning_curve
from counterpoint.masks import Constant, Threshold
from counterpoint.report import Extras, write_report
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites

Say: TypeAlias = Callable[[str], None]

WORLD, TASK = Sprites(noise_std=0.0), Place(4)
_HEAD = ("mask", "rows", "confirmed", "made a second", "best error", "last error", "ratio")
_WIDTHS = (10, 9, 12, 15, 12, 12, 8)


@dataclass(frozen=True)
class Size:
    """How much to record, to make and to train; the paper's, except for epochs (100)."""

    real: int = 2_000
    made: int = 35_000
    held: int = 2_000  # other transitions, to find a threshold by
    test: int = 5_000
    epochs: int = 60


def run(folder: str | Path, seed: int = 0, size: Size = Size(), say: Say = print) -> Path:  # noqa: B008
    """Run the demonstration and return the path of its report.

    Args:
        folder: where the report goes, as ``report.html``.
        seed: of all randomness.
        size: how much of everything.
        say: takes what it has to say, line by line.
    """
    rng, policy = np.random.default_rng(seed), uniform_policy(WORLD)
    data, held, test = (collect(WORLD, policy, rows, rng, reward_fn=TASK) for rows in (size.real, size.held, size.test))
    say(f"{size.real:,} transitions of four bouncing sprites. Learning from them who influences whom ...")
    learned, verdict = learned_mask(data, held, rng)
    say(f"Learned without labels: {verdict}.\nTraining the same forward model with and without counterfactuals ...\n")

    def curve(rows: Transitions) -> LearningCurve:
        return learning_curve(rows, test, rng=rng, epochs=size.epochs)

    again = data[np.arange(size.real + size.made) % size.real]  # as many steps of training as with counterfactuals
    alone = curve(again)
    say(_line(*_HEAD))
    say(_line("none", f"{size.real:,}", "", "", *_errors(alone, alone)))
    looked_at: dict[str, tuple[Counterfactuals, Audit]] = {}
    for name, mask in (("identity", Constant.identity(WORLD.factors)), ("learned", learned), ("exact", WORLD.mask)):
        made, rate = augmented(mask, data, size.made, rng)
        rows = Transitions.concat(data, made.transitions)
        found = audit(made, WORLD.step)
        looked_at[name] = made, found
        say(
            _line(
                name,
                f"{len(rows):,}",
                f"{found.confirmed:.2%}",
                f"{rate:,.0f}",
                *_errors(curve(rows), alone),
            )
        )
    say(
        "\nconfirmed: share of the counterfactuals that the world says are true. Errors: of predicted changes in "
        f"{size.test:,} other\ntransitions, mean square over variance, at the best epoch and at the last; ratio: to no "
        "counterfactuals, last epoch."
    )
    return report(Path(folder) / "report.html", data, *looked_at["learned"], learned, verdict, seed)


def learned_mask(data: Transitions, held: Transitions, rng: np.random.Generator) -> tuple[Threshold, str]:
    """Fit a mask and choose its threshold by other transitions, without labels; also return the verdict in words."""
    estimator = ResidualAttribution(epochs=100, patience=15, batch_size=128)  # few rows: more often, and fewer at once
    estimator = estimator.fit(data, WORLD.factors, rng=rng)
    found = calibrate(estimator, held, WORLD.factors, rng=rng)
    return Threshold(estimator, found.tau), found.verdict


def augmented(mask: MaskFn, data: Transitions, size: int, rng: np.random.Generator) -> tuple[Counterfactuals, float]:
    """Make counterfactuals; also return how many a second."""
    augmenter = Augmenter(WORLD.factors, mask, TASK)
    augmenter(data[:100], rng=rng)  # compiles, or loads what was compiled
    start = time.perf_counter()
    made = augmenter.fill(data, size, rng=rng)
    return made, size / (time.perf_counter() - start)


def report(
    path: Path, data: Transitions, made: Counterfactuals, found: Audit, mask: MaskFn, verdict: str, seed: int
) -> Path:
    """Write the report on the counterfactuals of the learned mask."""
    about = {"command": "counterpoint demo", "seed": seed, "world": repr(WORLD), "learned mask": verdict}
    return write_report(
        path,
        data,
        made,
        Augmenter(WORLD.factors, mask, TASK),
        rng=np.random.default_rng(seed),
        audit=found,
        extras=Extras(draw=lambda state, action, mask: draw_sprites(state, action=action, mask=mask), about=about),
    )


def _errors(curve: LearningCurve, alone: LearningCurve) -> tuple[str, str, str]:
    last = curve.validation[-1]
    return f"{min(curve.validation):.3f}", f"{last:.3f}", f"{last / alone.validation[-1]:.2f}"


def _line(first: str, *cells: str) -> str:
    return first.ljust(_WIDTHS[0]) + "".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS[1:], strict=True))
