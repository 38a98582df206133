"""The plot and the table of ``online_sprites``: our curves, and the published ones beside them.

A value at a step is the mean of the evaluations within two thousand steps of it, as the published curves are
smoothed too; the spread is the standard deviation over seeds.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import pages, rows

WINDOW = 2_000  # steps to either side
AT = (25_000, 50_000)
EARLY = (5_000, 25_000)  # from the first update to the first value that was read off
COLOURS = {
    "td3": "tab:gray",
    "coda": "tab:blue",
    "learned": "tab:orange",
    "dyna": "tab:red",
    "attribution": "tab:green",
}

# Read off the authors' saved figure, ±0.005, by task, arm and step.
PUBLISHED: dict[str, dict[str, tuple[float | None, float | None]]] = {
    "place-1": {"coda": (0.54, 0.64), "learned": (0.56, 0.65), "dyna": (0.39, 0.44), "td3": (0.47, 0.54)},
    "place-2": {"coda": (0.40, 0.51), "learned": (0.43, 0.52), "dyna": (0.34, 0.40), "td3": (0.38, 0.45)},
    "place-3": {"coda": (None, 0.39), "learned": (0.32, 0.38), "dyna": (0.27, 0.30), "td3": (0.29, 0.33)},
    "place-4": {"coda": (0.29, 0.33), "learned": (0.28, 0.32), "dyna": (0.23, 0.26), "td3": (0.24, 0.28)},
    "place-2-sparse": {"coda": (None, 0.29), "learned": (None, 0.28), "dyna": (None, 0.15), "td3": (None, 0.18)},
    "place-3-sparse": {"coda": (None, 0.05), "learned": (None, 0.03), "dyna": (None, 0.02), "td3": (None, 0.02)},
}


Lines = Iterator[tuple[str, ...]]


class Curve(NamedTuple):
    """One run: what was measured at which steps, and the last row's figures of counterfactual rows."""

    task: str
    arm: str
    seed: int
    step: np.ndarray  # (K,)
    reward: np.ndarray  # (K,)
    last: rows.Row
    least_confirmed: float  # smallest share of audited rows that the world confirmed

    def at(self, step: int) -> float:
        """Return the smoothed reward at a step, NaN if the run has not come so far."""
        near = np.abs(self.step - step) <= WINDOW
        return float(self.reward[near].mean()) if self.step.max() >= step else np.nan

    def early(self) -> float:
        """Return the mean reward of the first part of training, NaN if the run has not come so far."""
        first, last = EARLY
        within = (self.step > first) & (self.step <= last)
        return float(self.reward[within].mean()) if self.step.max() >= last else np.nan


def curves(folder: Path, *, unfinished: bool = False) -> list[Curve]:
    """Read all runs of a folder; on request, those that are still under way too."""
    found = []
    for path in sorted(folder.glob("*.jsonl*" if unfinished else "*.jsonl")):
        head, lines = rows.read(path)
        if not lines:
            continue
        config = head["config"]
        step, reward = (np.array([line[name] for line in lines], float) for name in ("step", "reward"))
        least = min((line["confirmed"] for line in lines if "confirmed" in line), default=np.nan)
        curve = Curve(
            task=config["task"],
            arm=config["arm"],
            seed=config["seed"],
            step=step,
            reward=reward,
            last=lines[-1],
            least_confirmed=least,
        )
        found.append(curve)
    return found


def write(folder: Path, arms: Sequence[str], *, unfinished: bool = False, docs: Path = pages.DOCS) -> None:
    """Write ``online.png``, and the tables into ``online.md`` between its two marks; print them too."""
    found = curves(folder, unfinished=unfinished)
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.online_sprites run")
    tasks = list(dict.fromkeys(sorted((c.task for c in found), key=lambda task: ("sparse" in task, task))))
    tables = (pages.table(head, list(part(found, tasks, arms))) for part, head in PARTS)
    text = "\n\n".join(["![Reward per step, by task and arm](online.png)", *tables])
    plot(found, tasks, arms, docs / "online.png")
    pages.fill(docs / "online.md", text)


def plot(found: list[Curve], tasks: Sequence[str], arms: Sequence[str], path: Path) -> None:
    """Draw seeds in faint lines and their smoothed means, one panel per task."""
    plt = pages.plotting()
    figure, panels = plt.subplots(1, len(tasks), figsize=(4.2 * len(tasks), 3.4), squeeze=False)
    for panel, task in zip(panels[0], tasks, strict=True):
        for arm in arms:
            mine = [c for c in found if (c.task, c.arm) == (task, arm)]
            for curve in mine:
                panel.plot(curve.step / 1000, curve.reward, color=COLOURS[arm], alpha=0.2, linewidth=0.7)
            if mine:
                steps = min((c.step for c in mine), key=len)
                mean = np.mean([[c.at(step) for step in steps] for c in mine], axis=0)
                panel.plot(steps / 1000, mean, color=COLOURS[arm], label=f"{arm} ({len(mine)})")
        for arm, points in PUBLISHED.get(task, {}).items():
            shown = [(at / 1000, y) for at, y in zip(AT, points, strict=True) if y is not None]
            panel.plot(*zip(*shown, strict=True), "x", color=COLOURS[arm], markersize=5)
        panel.set(title=task, xlabel="thousand steps")
        panel.legend(frameon=False, fontsize=8)  # of each: the number of seeds may differ
    panels[0][0].set_ylabel("reward per step")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _values(found: list[Curve], tasks: Sequence[str], arms: Sequence[str]) -> Lines:
    """Our values beside the published ones."""
    for task in tasks:
        for arm in arms:
            for at, published in zip(AT, PUBLISHED.get(task, {}).get(arm, (None, None)), strict=True):
                ours = [value for c in found if (c.task, c.arm) == (task, arm) and not np.isnan(value := c.at(at))]
                if ours:
                    theirs, gap = "–", "–"
                    if published is not None:
                        theirs, gap = f"{published:.2f}", f"{np.mean(ours) - published:+.3f}"
                    yield task, arm, str(len(ours)), f"{at // 1000}k", theirs, pages.spread(ours), gap


def _claims(found: list[Curve], tasks: Sequence[str], arms: Sequence[str]) -> Lines:
    """How far each arm is above TD3, seed by seed: what the paper claims."""
    by = {(c.task, c.arm, c.seed): c for c in found}
    early = "mean, {}k to {}k".format(*(step // 1000 for step in EARLY))
    measures: list[tuple[str, Callable[[Curve], float]]]
    measures = [(early, Curve.early), *((f"{at // 1000}k", partial(Curve.at, step=at)) for at in AT)]
    for task in tasks:
        for index, (when, measure) in enumerate(measures):
            for arm in (arm for arm in arms if arm != "td3"):
                seeds = [s for t, a, s in by if (t, a) == (task, arm) and (task, "td3", s) in by]
                gaps = [measure(by[task, arm, s]) - measure(by[task, "td3", s]) for s in seeds]
                gaps = [gap for gap in gaps if not np.isnan(gap)]
                mine, plain = ((None, *PUBLISHED.get(task, {}).get(name, (None, None)))[index] for name in (arm, "td3"))
                shown = "–" if mine is None or plain is None else f"{mine - plain:+.2f}"
                if gaps:
                    above = sum(gap > 0 for gap in gaps)
                    yield task, when, arm, shown, pages.spread(gaps, "+.3f"), f"{above} of {len(gaps)}"


def _made(found: list[Curve], tasks: Sequence[str], arms: Sequence[str]) -> Lines:
    """What the agents were trained on, at the end of each arm's runs."""
    for task in tasks:
        for arm in arms:
            mine = [c for c in found if (c.task, c.arm) == (task, arm) and c.last.get("made")]
            if mine:
                cells = [np.mean([c.last.get(name, np.nan) for c in mine]) for name in ("made", "share", "acceptance")]
                error = np.mean([c.last.get("model_error", np.nan) for c in mine])
                least = min(c.least_confirmed for c in mine)
                time = np.mean([c.last["making"] / (c.last["seconds"] - c.last["evaluating"]) for c in mine])
                yield task, arm, f"{cells[0]:,.0f}", *map(_share, (*cells[1:], least)), _number(error), _share(time)


def _share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2%}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}"


PARTS = (  # the page's tables: what gives their lines, and their heads
    (_values, ("task", "arm", "seeds", "at", "published", "ours", "difference")),
    (_claims, ("task", "at", "arm minus td3", "published", "ours", "seeds above")),
    (
        _made,
        (
            "task",
            "arm",
            "counterfactual rows",
            "share in batches",
            "acceptance",
            "least confirmed",
            "model error",
            "time making",
        ),
    ),
)
