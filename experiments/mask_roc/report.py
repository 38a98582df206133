"""The plots and tables of ``mask_roc``, with the paper's figures beside ours."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import pages, rows

TARGET = 0.01  # share of missed edges at which masks are compared
PAPER = {  # pooled AUC with self-edges, as published; the last one is from the log of the model used for RL
    ("stationary", "SandyMixture"): "0.96",
    ("nonstationary", "SandyMixture"): "0.91",
    ("sprites", "SandyTransformer"): "0.973",
}
COLOURS = ("tab:gray", "tab:olive", "tab:blue", "tab:orange", "tab:green", "tab:red")
DRAWN = ("SandyTransformer", "ResidualAttribution")  # in the figure of a trajectory


class Run:
    """One finished run: its rows by what they are about."""

    def __init__(self, path: Path) -> None:
        head, lines = rows.read(path)
        self.world, self.estimator = head["config"]["world"], head["config"]["estimator"]
        self.kinds = {line["kind"]: line for line in lines if "kind" in line}
        self.misses = {line["missed"]: line for line in lines if "missed" in line}
        self.fit = next(line for line in lines if "fit_seconds" in line)
        self.free = next((line for line in lines if "calibrated" in line), {})
        self.trajectory = next((line for line in lines if "trajectory" in line), None)

    def figure(self, kind: str, name: str) -> float:
        """Return a figure about a kind of edge, NaN if there is none."""
        value = self.kinds.get(kind, {}).get(name)
        return float("nan") if value is None else float(value)


def write(folder: Path, worlds: Sequence[str], estimators: Sequence[str], docs: Path = pages.DOCS) -> None:
    """Write ``masks-roc.png`` and ``masks-trajectory.png``, and the tables into ``masks.md``; print them too."""
    found = [Run(path) for path in sorted(folder.glob("*.jsonl"))]
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.mask_roc run")
    groups = {
        (world, estimator): mine
        for world in worlds
        for estimator in estimators
        if (mine := [run for run in found if (run.world, run.estimator) == (world, estimator)])
    }
    text = ["![ROC curves by world and estimator](masks-roc.png)", _areas(groups), _audits(groups), _label_free(groups)]
    draw_curves(groups, docs / "masks-roc.png")
    if draw_trajectory(groups, docs / "masks-trajectory.png"):
        text.append("![Scores along one trajectory, beside the true edges](masks-trajectory.png)")
    pages.fill(docs / "masks.md", "\n\n".join(text))


Groups = dict[tuple[str, str], list[Run]]


def _areas(groups: Groups) -> str:
    """AUC and average precision by kind of edge."""
    head = (
        "world", "estimator", "runs", "AUC pooled, paper", "AUC pooled by columns", "AUC pooled", "AUC off-diagonal",
        "AP off-diagonal", "AUC object to object", "AUC action to object", "fit, s",
    )  # fmt: skip
    lines = []
    for (world, estimator), mine in groups.items():
        figures = [("columns", "auc"), ("all", "auc"), ("off-diagonal", "auc"), ("off-diagonal", "average_precision")]
        figures += [("object-object", "auc"), ("action-object", "auc")]
        shown = [pages.spread([run.figure(kind, name) for run in mine], ".4f") for kind, name in figures]
        seconds = np.mean([run.fit["fit_seconds"] for run in mine])
        lines.append((world, estimator, str(len(mine)), PAPER.get((world, estimator), "–"), *shown, f"{seconds:.0f}"))
    return pages.table(head, lines)


def _audits(groups: Groups) -> str:
    """What becomes of counterfactuals if the threshold is chosen with labels."""
    head = ("world", "estimator", f"confirmed, {TARGET:.0%} of edges missed", "yield relative to the exact mask")
    lines = []
    for (world, estimator), mine in groups.items():
        at = [run.misses[TARGET] for run in mine if TARGET in run.misses]
        shown = [pages.spread([row[name] for row in at], ".1%") for name in ("confirmed", "relative_yield")]
        lines.append((world, estimator, *shown))
    return pages.table(head, lines)


def _label_free(groups: Groups) -> str:
    """What becomes of them if it is chosen without."""
    head = ("world", "estimator", "said fine", "wrong, estimated", "wrong, true", "relative yield", "verdict of run 0")
    lines = []
    for (world, estimator), mine in groups.items():
        free = [run.free for run in mine if run.free]
        if not free:
            continue
        known = [row for row in free if row["calibrated"]]
        wrong = [1 - row["confirmed"] for row in known if row["confirmed"] is not None]
        shown = [
            pages.spread([row["wrong"] for row in known if row["wrong"] is not None], ".1%"),
            pages.spread(wrong, ".1%"),
            pages.spread([row["relative_yield"] for row in known], ".0%"),
        ]
        fine = f"{sum(bool(row.get('fine')) for row in free)} of {len(free)}"
        lines.append((world, estimator, fine, *shown, free[0]["verdict"]))
    return pages.table(head, lines)


def draw_curves(groups: Groups, path: Path) -> None:
    """Draw ROC curves with bands of one standard deviation: pooled above, off-diagonal below."""
    plt = pages.plotting()
    worlds = [world for world in dict.fromkeys(world for world, _ in groups) if world != "sprites-8"]
    names = list(dict.fromkeys(estimator for _, estimator in groups))
    figure, panels = plt.subplots(2, len(worlds), figsize=(3.6 * len(worlds), 6.8), squeeze=False, sharey=True)
    for row, kind in enumerate(("all", "off-diagonal")):
        for panel, world in zip(panels[row], worlds, strict=True):
            for name, colour in zip(names, COLOURS, strict=False):
                heights = [run.kinds[kind]["roc"] for run in groups.get((world, name), []) if "roc" in run.kinds[kind]]
                if heights:
                    mean, spread = np.mean(heights, axis=0), np.std(heights, axis=0)
                    x = np.linspace(0, 1, len(mean))
                    panel.plot(x, mean, color=colour, label=name, linewidth=1.2)
                    panel.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
            panel.set(title=f"{world}: {'all entries' if kind == 'all' else kind}", xlabel="false-positive rate")
            panel.set_ylim(0, 1.02)
        panels[row][0].set_ylabel("true-positive rate")
    lines = {line.get_label(): line for panel in panels.flat for line in panel.get_lines()}
    figure.legend(lines.values(), lines.keys(), loc="lower center", ncols=len(lines), frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_trajectory(groups: Groups, path: Path) -> bool:
    """Draw the true edges along one trajectory and the scores of two estimators, as far as there are any."""
    found = [run for name in DRAWN for run in groups.get(("sprites", name), []) if run.trajectory is not None]
    if not found:
        return False
    plt = pages.plotting()
    panels: list[tuple[str, Any]] = [("truth", found[0].trajectory["truth"])]  # type: ignore[index]
    panels += [(run.estimator, run.trajectory["trajectory"]) for run in found]  # type: ignore[index]
    figure, axes = plt.subplots(len(panels), 1, figsize=(8.5, 2.6 * len(panels)), sharex=True)
    for axis, (title, values) in zip(axes, panels, strict=True):
        strength = np.array(values, float)  # (T, N, n)
        labels, heights = zip(*_rows_of(strength), strict=True)
        axis.imshow(np.array(heights), aspect="auto", cmap="Greys", vmin=0, interpolation="nearest")
        axis.set(title=title, yticks=range(len(labels)))
        axis.set_yticklabels(labels, fontsize=6)
    axes[-1].set_xlabel("step of the trajectory")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return True


def _rows_of(strength: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Give each off-diagonal edge by name with its strength along the trajectory, (T,)."""
    _, nodes, n = strength.shape
    names = [f"sprite {i}" for i in range(n)] + ["action"] * (nodes - n)
    for i in range(nodes):
        for j in range(n):
            if i != j:
                yield f"{names[i]} → {names[j]}", strength[:, i, j]
