"""Figures and tables of forward models: rollouts beside the truth, and learning curves beside the published ones."""

from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.worlds.draw import draw_sprites
from experiments import pages, rows
from experiments.dynamics.models import NAMES
from experiments.dynamics.run import CURVES

SHOWN = range(0, 30, 2)  # frames of a rollout that are drawn
COLOURS = {"none": "tab:gray", "identity": "tab:red", "learned": "tab:green", "exact": "tab:blue"}
PUBLISHED = {"none": (36.0, 123.0), "identity": (42.0, 110.0), "exact": (48.0, 64.0)}  # of epoch 99, times 1e-5

FORWARD = ("model", "seeds", "error", "free sprites", "in contact", "follows, steps", "moving", "turns", "outside")
CURVE = ("rows", "seeds", "published, train / validation", "best", "last, train", "last", "relative", "confirmed")

Found = dict[tuple[str, str], list[list[rows.Row]]]  # measurements of each seed, by kind and arm


def read(folder: Path) -> Found:
    """Read all finished runs of a folder."""
    found: Found = {}
    for path in sorted(folder.glob("*.jsonl")):
        head, lines = rows.read(path)
        found.setdefault((head["config"]["kind"], head["config"]["arm"]), []).append(lines)
    return found


def write(folder: Path, *, docs: Path = pages.DOCS) -> None:
    """Write two figures, and the tables into ``dynamics.md`` between its two marks; print them too."""
    found = read(folder)
    if not found:
        raise SystemExit(f"{folder}: there are no finished runs to report on.")
    parts: list[str] = []
    if any(kind == "forward" for kind, _ in found):
        draw_rollouts(found, docs / "dynamics-rollouts.png")
        lines = [_forward(name, found) for name in NAMES if ("forward", name) in found]
        parts += ["![Rollouts beside the truth](dynamics-rollouts.png)", pages.table(FORWARD, lines)]
    if any(kind == "curve" for kind, _ in found):
        draw_curves(found, docs / "dynamics-curves.png")
        lines = [_curve(arm, found) for arm in CURVES if ("curve", arm) in found]
        parts += ["![Learning curves](dynamics-curves.png)", pages.table(CURVE, lines)]
    pages.fill(docs / "dynamics.md", "\n\n".join(parts))


def _forward(name: str, found: Found) -> list[str]:
    first = [lines[0] for lines in found["forward", name]]

    def mean(column: str, form: str) -> str:
        return pages.spread([line[column] for line in first], form)

    errors = [mean(column, ".3f") for column in ("error", "error_free", "error_touched")]
    ratios = [mean(column, ".2f") for column in ("moving", "collisions")]
    return [name, str(len(first)), *errors, mean("follows", ".0f"), *ratios, mean("outside", ".3f")]


def _curve(arm: str, found: Found) -> list[str]:
    seeds = found["curve", arm]
    alone = found.get(("curve", "none"), [])
    last = [lines[-1] for lines in seeds]
    best = [min(line["validation"] for line in lines[1:]) for lines in seeds]
    relative = [mine["validation"] / theirs[-1]["validation"] for mine, theirs in zip(last, alone, strict=False)]
    theirs = PUBLISHED.get(arm)
    shown = "–" if theirs is None else f"{theirs[0]:.0f} / {theirs[1]:.0f}, {theirs[1] / PUBLISHED['none'][1]:.2f}"
    confirmed = [lines[0]["confirmed"] for lines in seeds if "confirmed" in lines[0]]
    return [
        arm,
        str(len(seeds)),
        shown,
        pages.spread(best),
        pages.spread([line["train"] for line in last]),
        pages.spread([line["validation"] for line in last]),
        pages.spread(relative, ".2f"),
        f"{np.mean(confirmed):.2%}" if confirmed else "–",
    ]


def draw_rollouts(found: Found, path: Path) -> None:
    """Draw the first rollout of each model below the truth, frame by frame."""
    plt = pages.plotting()
    lines: dict[str, list[rows.Row]] = {name: found["forward", name][0] for name in NAMES if ("forward", name) in found}
    some = next(iter(lines.values()))
    shown: dict[str, list[Any]] = {"truth": _frames(some, "truth")}
    shown |= {name: _frames(mine, "state") for name, mine in lines.items()}
    figure, axes = plt.subplots(len(shown), len(SHOWN), figsize=(15, 1.1 * len(shown)), squeeze=False)
    for row, (name, frames) in zip(axes, shown.items(), strict=True):
        for place, frame in zip(row, frames, strict=False):
            place.imshow(draw_sprites(np.array(frame), size=96))
        for place in row:
            place.set_axis_off()
        row[0].set_title(name, loc="left", fontsize=9)
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _frames(lines: list[rows.Row], column: str) -> list[Any]:
    states = {line["step"]: line[column] for line in lines if column in line}
    return [states[frame] for frame in SHOWN if frame in states]


def draw_curves(found: Found, path: Path) -> None:
    """Draw errors by epoch, of training dotted and of validation solid, every seed."""
    plt = pages.plotting()
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for arm in CURVES:
        for number, lines in enumerate(found.get(("curve", arm), [])):
            told = [line for line in lines if "validation" in line]
            for column, style in (("train", ":"), ("validation", "-")):
                label = arm if (column, number) == ("validation", 0) else None
                axes.plot([line[column] for line in told], style, color=COLOURS[arm], label=label, linewidth=1.2)
    axes.set(xlabel="epoch", ylabel="mean squared error, in variances of the change", ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
