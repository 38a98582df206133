"""The plot and the table of ``mask_calibration``: estimates of wrong counterfactuals against the truth."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import pages, rows

BAND = 0.03  # how far estimate and truth may be apart
LEAST_YIELD = 0.01  # accepted per pair; below it there is hardly anything to be wrong
COLOURS = {"blurred": "tab:blue", "noisy": "tab:green", "ResidualAttribution": "tab:orange"}
_OTHER = "tab:gray"


class Run(NamedTuple):
    """One run: the thresholds that were tried, and the verdict."""

    world: str
    estimator: str
    seed: int
    points: list[rows.Row]
    end: rows.Row

    @property
    def chosen(self) -> rows.Row:
        """The threshold that was chosen."""
        return next(point for point in self.points if point["chosen"])

    @property
    def gaps(self) -> list[float]:
        """How far estimate and truth are apart, threshold by threshold."""
        return [abs(point["estimate"] - point["truth"]) for point in self.points]


def read(folder: Path) -> list[Run]:
    """Read all finished runs of a folder; thresholds that accept hardly anything are left out."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        head, lines = rows.read(path)
        config = head["config"]
        known = [line for line in lines[:-1] if None not in (line["estimate"], line["truth"])]
        points = [line for line in known if line["accepted"] >= LEAST_YIELD or line["chosen"]]
        found.append(Run(config["world"], config["estimator"], config["seed"], points=points, end=lines[-1]))
    return found


def write(folder: Path, docs: Path = pages.DOCS) -> None:
    """Write ``calibration.png``, and the table into ``calibration.md`` between its two marks; print it too."""
    found = read(folder)
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.mask_calibration run")
    plot(found, docs / "calibration.png")
    text = "![Estimate against truth](calibration.png)\n\n" + table(found)
    pages.fill(docs / "calibration.md", text)


def table(found: list[Run]) -> str:
    """Return a table with one line for each world and estimator, over its seeds."""
    head = [
        "world", "estimator", "seeds", "thresholds", "within 3 points", "largest gap",
        "chosen: estimate", "truth", "of the exact yield", "fine",
    ]  # fmt: skip
    lines = []
    for world, estimator in dict.fromkeys((run.world, run.estimator) for run in found):
        mine = [run for run in found if (run.world, run.estimator) == (world, estimator)]
        gaps = [gap for run in mine for gap in run.gaps]
        counts = [len(mine), len(gaps), sum(gap <= BAND for gap in gaps)]
        chosen = [
            pages.spread([run.chosen[name] for run in mine], ".1%") for name in ("estimate", "truth", "relative_yield")
        ]
        fine = f"{sum(run.end['fine'] for run in mine)} of {len(mine)}"
        lines.append([world, estimator, *map(str, counts), f"{max(gaps):.1%}", *chosen, fine])
    return pages.table(head, lines)


def plot(found: list[Run], path: Path) -> None:
    """Draw every threshold as a point, for each world all of them and the corner that matters."""
    plt = pages.plotting()
    worlds = list(dict.fromkeys(run.world for run in found))
    figure, panels = plt.subplots(len(worlds), 2, figsize=(9.0, 4.2 * len(worlds)), squeeze=False)
    for pair, world in zip(panels, worlds, strict=True):
        for panel, limit in zip(pair, (1.0, 0.1), strict=True):
            line = np.array([0.0, limit])
            panel.fill_between(line, line - BAND, line + BAND, color="0.9", label="±3 points")
            panel.plot(line, line, color="0.6", linewidth=0.8)
            mine = [run for run in found if run.world == world]
            for estimator in dict.fromkeys(run.estimator for run in mine):
                points = [point for run in mine if run.estimator == estimator for point in run.points]
                truth, estimate = ([point[name] for point in points] for name in ("truth", "estimate"))
                colour = COLOURS.get(estimator, _OTHER)
                panel.plot(truth, estimate, "o", color=colour, markersize=4, alpha=0.7, label=estimator)
            panel.set(xlim=(-0.02 * limit, limit), ylim=(-0.02 * limit, limit), title=world)
            panel.set(xlabel="wrong, by the world", ylabel="wrong, estimated without labels")
    panels[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
