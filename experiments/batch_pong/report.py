"""Tables and plot of batch RL on Pong: success beside the published one, and what the world says of added rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import pages, rows
from experiments.batch_pong.run import ARMS, LAST

RESAMPLES = 1000
SIZES = (25, 50, 75, 100, 150, 250)  # thousands of rows, of the published table
PUBLISHED = {  # success in percent by ratio of rows, one value for each size
    "real": (13.2, 22.8, 43.2, 63.0, 77.4, 78.2),
    "dyna": (12.2, 17.4, 23.3, 25.9, 34.1, 44.2),
    "mbpo": (18.5, 36.6, 46.0, 66.4, 72.6, 77.9),
    "1C": (43.8, 66.6, 73.4, 77.8, 82.2, 85.0),
    "2C": (41.6, 58.4, 71.6, 77.4, 84.0, 88.1),
    "3C": (40.9, 64.4, 76.7, 82.7, 85.8, 87.8),
    "5C": (38.4, 62.5, 75.0, 76.6, 84.2, 87.0),
    "3C1M": (46.8, 70.4, 74.6, 73.7, 79.7, 78.3),
}
PLOTTED = {
    "real": "tab:gray",
    "mbpo": "tab:red",
    "3D-diffusion": "tab:purple",
    "3C-identity": "tab:pink",
    "3C-transformer": "tab:orange",
    "3C-ours": "tab:green",
    "3C-exact": "tab:blue",
    "3C-classified": "tab:cyan",
}
CLAIMS = (  # what is said, the arm that should be as good, the other one, and how many times the rows it has
    ("counterfactuals above real data alone", "3C-exact", "real", 1),
    ("", "3C-classified", "real", 1),
    ("", "3C-ours", "real", 1),
    ("", "1C-ours", "real", 1),
    ("", "3C-transformer", "real", 1),
    ("counterfactuals of N at least real 2N", "3C-exact", "real", 2),
    ("", "3C-classified", "real", 2),
    ("", "3C-ours", "real", 2),
    ("", "3C-transformer", "real", 2),
    ("MBPO above real data", "mbpo", "real", 1),
    ("counterfactuals above MBPO", "3C-exact", "mbpo", 1),
    ("", "3C-ours", "mbpo", 1),
    ("three for one no worse than one for one", "3C-exact", "1C-exact", 1),
    ("three for one at least five for one", "3C-exact", "5C-exact", 1),
    ("our mask at least the transformer's", "3C-ours", "3C-transformer", 1),
    ("counterfactuals above the diffusion model", "3C-exact", "3D-diffusion", 1),
    ("", "3C-ours", "3D-diffusion", 1),
    ("true rewards above those of a classifier", "3C-exact", "3C-classified", 1),
    ("not because of more rows", "3C-exact", "3C-identity", 1),
    ("", "3C-ours", "3C-identity", 1),
)


class Run(NamedTuple):
    """One finished run."""

    size: int  # thousands of rows
    arm: str
    seed: int
    success: float  # percent, the mean of the last evaluations; NaN if no agent was trained
    origins: dict[str, rows.Row]  # what the world says of added rows


def finished(folder: Path) -> list[Run]:
    """Read all finished runs of a folder."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        head, lines = rows.read(path)
        config, source = head["config"], head["config"]["source"]
        played = [line["success"] for line in lines if "success" in line]
        origins = {line["origin"]: line for line in lines if "origin" in line}
        success = 100.0 * float(np.mean(played[-LAST:])) if played else np.nan
        found.append(Run(source["rows"] // 1000, config["arm"], source["seed"], success, origins))
    return found


def write(folder: Path, *, docs: Path = pages.DOCS) -> None:
    """Write ``batch.png``, and the tables into ``batch.md`` between its two marks; print them too.

    What the world says of added rows comes from runs with and without an agent: preset ``rows`` has none.
    """
    found = finished(folder)
    judged = {(run.size, run.arm, run.seed): run for run in [*finished(folder.parent / "rows"), *found]}
    if not judged:
        raise SystemExit(f"{folder}: there are no finished runs to report on.")
    heads = (
        "rows", "arm", "origin", "seeds", "added", "confirmed to the bit", "near", "median distance", "reward right",
        "wins, losses",
    )  # fmt: skip
    parts = [pages.table(heads, list(_truth(list(judged.values()))))]
    again = list(_again(found, finished(folder.parent / "again")))
    heads_again = "rows", "arm", "by seed", "other agents, the same rows", "all"
    if found:
        draw(found, docs / "batch.png")
        parts = [
            "![Success against the number of real rows](batch.png)",
            pages.table(("rows", "arm", "seeds", "published, %", "ours, %", "by seed"), list(_values(found))),
            pages.table(("claim", "arms", "rows", "published", "ours", "seeds above"), list(_claims(found))),
            *([pages.table(heads_again, again)] if again else []),
            *parts,
        ]
    pages.fill(docs / "batch.md", "\n\n".join(parts))


def standard_error(values: list[float]) -> float:
    """Return the standard deviation of means of values drawn anew, 1000 times, as the paper does."""
    drawn = np.random.default_rng(0).choice(values, (RESAMPLES, len(values)))
    return float(drawn.mean(axis=1).std())


def published(arm: str, size: int) -> float:
    """Return the published success, in percent, of any mask that looks at the data; NaN if there is none."""
    known = () if arm.endswith("identity") else PUBLISHED.get(arm.partition("-")[0], ())
    return known[SIZES.index(size)] if known and size in SIZES else np.nan


def _values(found: list[Run]) -> Iterator[tuple[str, ...]]:
    for size, arm, mine in _groups(found):
        values = [run.success for run in mine]
        each = ", ".join(f"{value:.1f}" for value in values)
        yield f"{size}k", arm, str(len(mine)), _percent(published(arm, size)), _spread(values), each


def _claims(found: list[Run]) -> Iterator[tuple[str, ...]]:
    """How far one arm is above another, seed by seed; the other may have twice the rows."""
    by = {(run.size, run.arm, run.seed): run.success for run in found}
    for claim, arm, other, times in CLAIMS:
        for size in sorted({run.size for run in found}):
            seeds = [s for n, a, s in by if (n, a) == (size, arm) and (times * size, other, s) in by]
            if not seeds:
                continue
            gaps = [by[size, arm, s] - by[times * size, other, s] for s in seeds]
            same = arm.partition("-")[0] == other.partition("-")[0]  # they had one mask and one way to label
            theirs = np.nan if same else published(arm, size) - published(other, times * size)
            arms = f"{arm} − {other}" + (f"({times}N)" if times > 1 else "")
            above = f"{sum(gap > 0 for gap in gaps)} of {len(gaps)}"
            yield claim, arms, f"{size}k", _percent(theirs, "+.1f"), _spread(gaps, "+.1f"), above


def _again(found: list[Run], others: list[Run]) -> Iterator[tuple[str, ...]]:
    """Put agents beside other agents that learned from the same rows."""
    first = {(size, arm): [run.success for run in mine] for size, arm, mine in _groups(found)}
    for size, arm, mine in _groups(others):
        both = first.get((size, arm), []), [run.success for run in mine]
        each = (", ".join(f"{value:.1f}" for value in values) for values in both)
        yield f"{size}k", arm, *each, _spread([value for values in both for value in values])


def _truth(found: list[Run]) -> Iterator[tuple[str, ...]]:
    for size, arm, mine in _groups(found):
        for origin in sorted({origin for run in mine for origin in run.origins}):
            told = [run.origins[origin] for run in mine if origin in run.origins]
            mean = {name: float(np.mean([line[name] for line in told])) for name in _FIGURES}
            shares = (f"{mean[name]:.2%}" for name in ("confirmed", "near"))
            distance = f"{mean['distance']:.3f}"
            added, right = f"{mean['made']:,.0f}", f"{mean['reward_right']:.2%}"
            scores = f"{mean['wins']:.1%}, {mean['losses']:.1%}"
            yield f"{size}k", arm, origin, str(len(told)), added, *shares, distance, right, scores


_FIGURES = ("made", "confirmed", "near", "distance", "reward_right", "wins", "losses")


def draw(found: list[Run], path: Path) -> None:
    """Draw success against the number of real rows, and real data of twice that number."""
    plt = pages.plotting()
    figure, axes = plt.subplots(figsize=(8, 5))
    for arm, colour in PLOTTED.items():
        groups = [(size, [run.success for run in mine]) for size, name, mine in _groups(found) if name == arm]
        if not groups:
            continue
        sizes, means = [size for size, _ in groups], [np.mean(values) for _, values in groups]
        errors = [standard_error(values) for _, values in groups]
        axes.errorbar(sizes, means, errors, marker="o", capsize=3, color=colour, label=arm)
        if arm == "real":
            halved = [size / 2 for size in sizes]
            axes.plot(halved, means, "--", marker="x", color=colour, label="real, twice the rows")
    for arm, colour in (("real", "tab:gray"), ("3C", "tab:orange")):
        axes.plot(SIZES, PUBLISHED[arm], ":", color=colour, alpha=0.6, label=f"published {arm}")
    axes.set(xscale="log", xlabel="real rows, thousands", ylabel="games won, %", ylim=(0, 100))
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _groups(found: list[Run]) -> Iterator[tuple[int, str, list[Run]]]:
    """Give the runs of each size and arm, in the order of arms."""
    for size in sorted({run.size for run in found}):
        for arm in ARMS:
            mine = sorted(run for run in found if (run.size, run.arm) == (size, arm))
            if mine:
                yield size, arm, mine


def _spread(values: list[float], form: str = ".1f") -> str:
    return f"{np.mean(values):{form}}" + (f" ± {standard_error(values):.1f}" if len(values) > 1 else "")


def _percent(value: float, form: str = ".1f") -> str:
    return "–" if np.isnan(value) else f"{value:{form}}"
