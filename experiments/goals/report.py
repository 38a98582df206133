"""The plot and the tables of goal-conditioned RL: success by step, and how many steps each arm takes.

Success at a step is the mean of five evaluations around it. An arm has reached a share when this mean is at least that;
the spread is the standard deviation over seeds.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import pages, rows
from experiments.goals.run import ARMS, LARGER, PILOT
from experiments.goals.tasks import TASKS

WINDOW = 2  # evaluations to either side
AIMED = ", aimed"  # what is added to the name of a task in which half of the random actions go for an object
SHARES = (0.5, 0.75, 0.9)
COLOURS = {
    "her": "tab:gray",
    "heuristic": "tab:blue",
    "contacts": "tab:green",
    "learned": "tab:orange",
    "larger": "black",
    "added": "tab:purple",
}
SHOWN = ARMS + LARGER
PUBLISHED = "half: about twice as sample efficient"  # what the paper says in words; its curves have no numbers
Lines = Iterator[tuple[str, ...]]


class Curve(NamedTuple):
    """One run: what was measured at which steps."""

    task: str  # with "aimed" where random actions are
    arm: str
    seed: int
    step: np.ndarray  # (K,)
    success: np.ndarray  # (K,)
    placed: np.ndarray  # (K,) share of the objects in place
    wide: np.ndarray  # (K,) the same at the test threshold, NaN where there is none
    last: rows.Row

    def smooth(self) -> np.ndarray:
        """Return the mean success around each step, (K,)."""
        number = np.arange(len(self.step))
        near = np.abs(number[:, None] - number) <= WINDOW
        return np.asarray(near @ self.success / near.sum(axis=1))

    def steps_to(self, share: float) -> float:
        """Return the first step at which the smoothed success is at least a share; NaN if it never is."""
        there = np.flatnonzero(self.smooth() >= share)
        return float(self.step[there[0]]) if len(there) else np.nan

    def final(self, values: np.ndarray) -> float:
        """Return the mean over the last evaluations."""
        return float(values[-2 * WINDOW - 1 :].mean())


def curves(folder: Path, *, unfinished: bool = False) -> list[Curve]:
    """Read the runs of all presets in a folder, those of pilots left out."""
    found = []
    for path in sorted([*folder.glob("*/*.jsonl"), *(folder.glob("*/*.jsonl.tmp") if unfinished else ())]):
        head, lines = rows.read(path)
        config = head["config"]
        if config["seed"] >= PILOT or not lines:
            continue
        found.append(
            Curve(
                task=config["task"] + AIMED * (config["recipe"].get("aims", 0) > 0),
                arm=config["arm"],
                seed=config["seed"],
                step=np.array([line["step"] for line in lines]),
                success=np.array([line["success"] for line in lines]),
                placed=np.array([line.get("placed", np.nan) for line in lines]),
                wide=np.array([line.get("placed_at_test_threshold", np.nan) for line in lines]),
                last=lines[-1],
            )
        )
    return found


def write(folder: Path, docs: Path = pages.DOCS, *, unfinished: bool = False) -> None:
    """Write ``goals.png``, and the tables into ``goals.md`` between its two marks; print them too."""
    found = curves(folder, unfinished=unfinished)
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.goals run")
    known = [task + aimed for task in TASKS for aimed in ("", AIMED)]
    tasks = [task for task in known if any(curve.task == task for curve in found)]
    plot(found, tasks, docs / "goals.png")
    tables = [pages.table(head, list(lines(found, tasks))) for lines, head in PARTS]
    pages.fill(docs / "goals.md", "\n\n".join(["![Success by environment steps](goals.png)", *tables]))


def plot(found: list[Curve], tasks: Sequence[str], path: Path) -> None:
    """Draw the mean success of each arm with a band of one standard deviation."""
    plt = pages.plotting()
    figure, panels = plt.subplots(1, len(tasks), figsize=(5.0 * len(tasks), 3.6), squeeze=False)
    for panel, task in zip(panels[0], tasks, strict=True):
        for arm in SHOWN:
            mine = [curve for curve in found if (curve.task, curve.arm) == (task, arm)]
            if mine:
                steps = min((curve.step for curve in mine), key=len)
                heights = np.array([curve.smooth()[: len(steps)] for curve in mine])
                mean, spread = heights.mean(axis=0), heights.std(axis=0)
                panel.plot(steps / 1000, mean, color=COLOURS[arm], label=f"{arm} ({len(mine)})")
                panel.fill_between(steps / 1000, mean - spread, mean + spread, color=COLOURS[arm], alpha=0.2)
        panel.set(title=task, xlabel="thousand environment steps", ylim=(-0.02, 1.02))
        panel.legend(frameon=False, fontsize=8)
    panels[0][0].set_ylabel("success on the last step")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _success(found: list[Curve], tasks: Sequence[str]) -> Lines:
    """Give final success and steps to shares, by task and arm."""
    for task in tasks:
        for arm in SHOWN:
            mine = [curve for curve in found if (curve.task, curve.arm) == (task, arm)]
            if mine:
                final = pages.spread([curve.final(curve.success) for curve in mine], ".2f")
                placed, wide = (
                    pages.spread([curve.final(getattr(curve, name)) for curve in mine], ".2f")
                    for name in ("placed", "wide")
                )
                steps = [_steps([curve.steps_to(share) for curve in mine]) for share in SHARES]
                yield task, arm, str(len(mine)), f"{mine[0].step.max() / 1000:.0f}k", final, placed, wide, *steps


def _efficiency(found: list[Curve], tasks: Sequence[str]) -> Lines:
    """Give how many steps each arm takes to the success that hindsight alone has at the end, seed by seed."""
    for task in tasks:
        plain = {c.seed: c for c in found if (c.task, c.arm) == (task, "her")}
        for arm in SHOWN[1:]:
            pairs = [(c, plain[c.seed]) for c in found if (c.task, c.arm) == (task, arm) and c.seed in plain]
            if pairs:
                ratios = [
                    mine.steps_to(her.final(her.success)) / her.steps_to(her.final(her.success)) for mine, her in pairs
                ]
                gaps = [mine.final(mine.success) - her.final(her.success) for mine, her in pairs]
                yield task, arm, PUBLISHED if arm in ARMS else "–", _ratios(ratios), pages.spread(gaps, "+.2f")


def _rows(found: list[Curve], tasks: Sequence[str]) -> Lines:
    """Give what the agents were trained on, at the end of each arm's runs."""
    for task in tasks:
        for arm in [arm for arm in SHOWN if arm not in ("her", "larger")]:
            last = [curve.last for curve in found if (curve.task, curve.arm) == (task, arm)]
            if last:
                time = [row["making"] / (row["seconds"] - row["evaluating"]) for row in last]
                cells = [[row.get(name, np.nan) for row in last] for name in ("share", "acceptance", "confirmed")]
                yield (
                    task,
                    arm,
                    f"{np.mean([row['counterfactuals'] for row in last]):,.0f}",
                    *map(_shares, (*cells, time)),
                )


def _steps(values: list[float]) -> str:
    known = [value / 1000 for value in values if not np.isnan(value)]
    missing = f", {len(values) - len(known)} never" if len(known) < len(values) else ""
    return "never" if not known else f"{pages.spread(known, '.0f')}{missing}"


def _ratios(values: list[float]) -> str:
    known = [value for value in values if not np.isnan(value)]
    missing = f"{len(values) - len(known)} of {len(values)} never" if len(known) < len(values) else ""
    return ", ".join(part for part in (pages.spread(known, ".2f") if known else "", missing) if part)


def _shares(values: list[float]) -> str:
    return pages.spread(values, ".2f")


PARTS = (  # the page's tables: what gives their lines, and their heads
    (
        _success,
        ("task", "arm", "seeds", "steps", "success at the end", "objects in place", "within the test threshold",
         *(f"thousand steps to {share:.0%}" for share in SHARES)),
    ),
    (_efficiency, ("task", "arm", "paper", "steps to HER's final success, relative to HER", "success above HER's")),
    (_rows, ("task", "arm", "counterfactual rows", "share in batches", "acceptance", "confirmed", "time making")),
)  # fmt: skip
