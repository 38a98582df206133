"""The plot and the table of ``trust``: every mask of every world a dot with its interval, against the truth."""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import pages, rows

BAND = 0.03  # three points
TARGET = 0.01
CLAIMS = (
    ("the interval covers the truth", "95%"),
    ("the estimate is within 3 points", "90%"),
    ("of the verdicts fine the truth is above 2%", "at most 2%"),
    ("the worst of these", "at most 5%"),
    ("good masks that are called fine", "70%"),
    ("the same, or fine with Supported", ""),
)


def read(folder: Path, *, robots: bool = False) -> list[rows.Row]:
    """Return the rows of all finished runs, of worlds or of robots."""
    found: list[rows.Row] = []
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem.startswith("robot-") != robots:
            continue
        config, lines = rows.read(path)
        found += [{**line, "seed": config["config"]["seed"] if "config" in config else path.stem} for line in lines]
    return [row for row in found if row["truth"] is not None and not np.isnan(row["truth"])]


def write(folder: Path, docs: Path = pages.DOCS) -> None:
    """Write ``trust.png``, and the table into ``trust.md`` between its two marks; print it too.

    Where learned masks alone were judged, the table is printed, and no more.
    """
    found = read(folder)
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.trust run")
    if all(row["mask"].startswith("learned") for row in found):
        print(learned_table(found + read(folder, robots=True)))
        return
    plot(_by_measure(found)[0], docs / "trust.png")
    parts = ["![Estimate against truth](trust.png)", claims(found), table(found)]
    robots = read(folder, robots=True)
    if robots:
        parts.append(robot_table(robots))
    pages.fill(docs / "trust.md", "\n\n".join(parts))


def claims(found: list[rows.Row]) -> str:
    """Return what was to be reached, and what was, by two measures of what is wrong."""
    fine = sum(row["fine"] for row in found)
    lines = [
        ["worlds", "60", *2 * [str(len({row["seed"] for row in found}))]],
        ["verdicts", "", *2 * [str(len(found))]],
        ["verdicts fine", "", *2 * [str(fine)]],
        *(
            [name, wanted, *both]
            for (name, wanted), *both in zip(CLAIMS, *map(_reached, _by_measure(found)), strict=True)
        ),
        *([f"{name}: 99% right at half of the exact yield", "80%", *both] for name, *both in _learned(found)),
    ]
    return pages.table(["claim", "to be reached", "wrong beyond the noise", "wrong at all"], lines)


def _by_measure(found: list[rows.Row]) -> tuple[list[rows.Row], list[rows.Row]]:
    """Return rows whose truth is what is wrong beyond the noise, and rows whose truth is what is wrong at all."""
    return [{**row, "truth": row.get("beyond_noise", row["truth"])} for row in found], found


def _reached(found: list[rows.Row]) -> list[str]:
    fine = [row for row in found if row["fine"]]
    good = [row for row in found if row["truth"] < TARGET and row["relative_yield"] >= 0.2]
    worst = max((row["truth"] for row in fine), default=float("nan"))
    return [
        _share([_covered(row) for row in found]),
        _share([abs(row["wrong_value"] - row["truth"]) <= BAND for row in found]),
        _share([row["truth"] > 2 * TARGET for row in fine]),
        "–" if np.isnan(worst) else f"{worst:.1%}",
        f"{_share([row['fine'] for row in good])} ({sum(row['fine'] for row in good)} of {len(good)})",
        _share([bool(row.get("fine_if_supported", row["fine"])) for row in good]),
    ]


def _covered(row: rows.Row) -> bool:
    return bool(row["wrong_low"] - 1e-9 <= row["truth"] <= row["wrong_high"] + 1e-9)


def _learned(found: list[rows.Row]) -> list[list[str]]:
    """Return how many masks of each estimator are good and useful at the threshold that the verdict chose."""
    names = dict.fromkeys(
        row["mask"] for row in found if row["mask"].startswith("learned") and "times" not in row["mask"]
    )
    lines = []
    for name in names:
        shares = []
        for measure in _by_measure(found):
            good = [row["truth"] <= TARGET and row["relative_yield"] >= 0.5 for row in measure if row["mask"] == name]
            shares.append(f"{_share(good)} ({sum(good)} of {len(good)})")
        lines.append([name, *shares])
    return lines


def _said(row: rows.Row) -> tuple[str, str, str]:
    """Return the estimate with its interval, what is unknown, and the verdict's first words."""
    estimate = f"{row['wrong_value']:.1%} ({row['wrong_low']:.1%} to {row['wrong_high']:.1%})"
    return estimate, f"{row['unknown_value']:.1%}", "fine" if row["fine"] else row["verdict"].split(":")[0]


def learned_table(found: list[rows.Row]) -> str:
    """Return one line for each learned mask of each world or robot."""
    lines = [
        [
            row.get("robot", f"{row['seed']}: {', '.join(row.get('kinds', []))}"),
            row["mask"],
            f"{row['beyond_noise']:.1%} ({row['truth']:.1%})",
            f"{row['relative_yield']:.0%}",
            *_said(row),
        ]
        for row in found
    ]
    head = ["world or robot", "mask", "wrong beyond the noise (at all)", "yield", "estimate", "unknown", "verdict"]
    return pages.table(head, lines)


def robot_table(found: list[rows.Row]) -> str:
    """Return one line for each mask of each robot."""
    lines = [
        [
            row["robot"],
            row["mask"],
            str(row["made"]),
            f"{row['beyond_noise']:.1%}",
            f"{row['truth']:.1%} ({row['far']:.1%})",
            *_said(row),
        ]
        for row in found
    ]
    head = [
        "robot",
        "mask",
        "audited",
        "beyond the fine print",
        "wrong (by more than 1e-3)",
        "estimate",
        "unknown",
        "verdict",
    ]
    return pages.table(head, lines)


def table(found: list[rows.Row]) -> str:
    """Return one line for each kind of mask."""
    lines = []
    for mask in dict.fromkeys(row["mask"] for row in found):
        mine = [row for row in found if row["mask"] == mask]
        beyond = _by_measure(mine)[0]
        columns = (beyond, "truth"), (mine, "truth"), (mine, "wrong_value"), (mine, "unknown_value")
        figures = [pages.spread([row[name] for row in some], ".1%") for some, name in columns]
        inside = [_covered(row) for row in beyond]
        answers = [sum(row["verdict"].startswith(word) for row in mine) for word in ("about", "cannot", "do not")]
        lines.append([mask, str(len(mine)), *figures, f"{np.mean(inside):.0%}", *map(str, answers)])
    head = [
        "mask",
        "worlds",
        "beyond the noise",
        "at all",
        "estimate",
        "unknown",
        "covered",
        "fine",
        "cannot tell",
        "do not augment",
    ]
    return pages.table(head, lines)


def plot(found: list[rows.Row], path: Path) -> None:
    """Draw every mask of every world as a dot with its interval."""
    plt = pages.plotting()
    figure, panels = plt.subplots(1, 2, figsize=(10.0, 4.8))
    for panel, limit in zip(panels, (1.0, 0.15), strict=True):
        line = np.array([0.0, limit])
        panel.fill_between(line, line - BAND, line + BAND, color="0.9", label="±3 points")
        panel.plot(line, line, color="0.6", linewidth=0.8)
        for number, mask in enumerate(dict.fromkeys(row["mask"] for row in found)):
            _dots(panel, [row for row in found if row["mask"] == mask], mask, f"C{number}")
        panel.set(xlim=(-0.02 * limit, limit), ylim=(-0.02 * limit, limit))
        panel.set(xlabel="wrong beyond the noise, by the world", ylabel="wrong, estimated without labels")
    panels[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _dots(panel: Any, mine: list[rows.Row], label: str, colour: str) -> None:
    truth, value, low, high = (
        np.array([row[name] for row in mine], float) for name in ("truth", "wrong_value", "wrong_low", "wrong_high")
    )
    bars = [np.maximum(value - low, 0.0), np.maximum(high - value, 0.0)]
    panel.errorbar(truth, value, bars, fmt="o", color=colour, markersize=3, elinewidth=0.5, alpha=0.6, label=label)


def _share(rows_: list[bool]) -> str:
    return f"{np.mean(rows_):.1%}" if rows_ else "–"
