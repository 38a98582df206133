"""The figures of a report, drawn with matplotlib: the one file that needs it."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.funnel import RARE, Funnel
from counterpoint.report.distributions import MOST_VALUES, Comparison
from counterpoint.report.markup import Html, number, plain, share
from counterpoint.report.options import Reliability
from counterpoint.report.svg import INK, MADE, REAL, inline

try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator, PercentFormatter
except ImportError as error:
    raise ImportError("Reports need matplotlib and Pillow: pip install counterpoint-rl[report]") from error

BEFORE, AFTER = "before: real data", "after: counterfactuals"
ANNOTATED = 9  # nodes up to which a heat map has its numbers written into it
LABELLED = 40  # nodes up to which a heat map names every row
_HEAT = ListedColormap(np.column_stack([np.tile([0.16, 0.47, 0.84], (64, 1)), np.linspace(0.0, 0.72, 64)]).tolist())
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "counterpoint",
    "text.parse_math": False,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": 9,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


@dataclass(frozen=True)
class Scale:
    """What the axes and the shades of a heat map stand for."""

    rows: str
    columns: str
    shades: str
    top: float = 1.0  # the share that has the darkest shade


def funnel(slug: str, counts: Funnel) -> Html:
    """Draw what became of the proposals."""
    names = ["proposals", "trivial", "duplicate", "rejected", *(name for name in RARE if getattr(counts, name))]
    names = [*(name for name in names if name != "static"), "accepted", *(["static"] if counts.static else [])]
    values = [getattr(counts, name) for name in names]
    with _canvas(4.0, 1.0 + 0.3 * len(names)) as (drawing, axes):
        _across(axes, names, values, [MADE if name in ("accepted", "static") else REAL for name in names])
        axes.set_xlabel("proposals")
        told = ", ".join(f"{value:,} {name}" for name, value in zip(names, values, strict=True))
        return _finish(drawing, slug, f"Bar chart of the funnel: {told}.")


def sets(slug: str, names: Sequence[str], rows: Sequence[int]) -> Html:
    """Draw how often each set of factors was swapped."""
    with _canvas(4.0, 1.0 + 0.3 * len(names)) as (drawing, axes):
        _across(axes, short_names(names, 26), rows, [MADE] * len(names))
        axes.set_xlabel("counterfactuals")
        return _finish(drawing, slug, f"Bar chart of the sets swapped most often; first {names[0]}, {rows[0]:,} rows.")


def heat_map(slug: str, title: str, values: Floats, names: tuple[Sequence[str], Sequence[str]], scale: Scale) -> Html:
    """Draw shares (rows, columns) as shades.

    Args:
        slug: the name of the figure.
        title: what it shows, in words.
        values: shares, NaN where there is nothing to say.
        names: of the rows and of the columns.
        scale: what axes and shades stand for.
    """
    (rows, columns), most = names, max(map(len, names))
    side = 4.0 if most <= ANNOTATED else float(np.clip(0.24 * most, 5.5, 10.5))
    height = (side - 0.4) * (len(rows) + 0.6) / (len(columns) + 1.2) + 1.1
    with _canvas(side, height, small=most > 16) as (drawing, axes):
        axes.imshow(
            np.ma.masked_invalid(values), cmap=_HEAT, vmin=0, vmax=scale.top, interpolation="none", aspect="auto"
        )
        _name(axes, rows, columns)
        axes.set(ylabel=scale.rows, xlabel=scale.columns)
        axes.spines[:].set_visible(True)
        if most <= ANNOTATED:
            for (i, j), value in np.ndenumerate(values):
                written = "–" if np.isnan(value) else _percent(float(value))
                axes.text(j, i, written, ha="center", va="center", fontsize=9)
        _legend_of_shades(drawing, axes, scale)
        return _finish(drawing, slug, title)


def component_counts(slug: str, before: Floats, after: Floats) -> Html:
    """Draw the share of transitions with each number of components; ``before`` and ``after`` are (N + 1,)."""
    with _canvas(4.0, 2.9) as (drawing, axes):
        used = np.flatnonzero(before + after)
        first, last = int(used.min(initial=1)), int(used.max(initial=1))
        x = np.arange(first, last + 1)
        if len(x) <= MOST_VALUES:
            _pair(axes, x, before[x], after[x])
        else:
            _steps(axes, np.append(x, last + 1) - 0.5, before[x], after[x])
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        _legend(axes)
        axes.set(
            xlabel="independent components in a transition",
            ylabel="share of transitions",
            xlim=(first - 0.6, last + 0.6),
        )
        told = f"most often {int(before.argmax())} before and {int(after.argmax())} after"
        return _finish(drawing, slug, f"Bar chart of the number of independent components: {told}.")


def survival(slug: str, uncrossed: Floats) -> Html:
    """Draw the share of proposed windows that no edge has crossed up to each step, (H,)."""
    with _canvas(4.0, 2.7) as (drawing, axes):
        steps = np.arange(1, len(uncrossed) + 1)
        axes.bar(steps, uncrossed, 0.72, color=MADE)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.set(xlabel="rows of the window", ylabel="windows still valid", ylim=(0, 1), xlim=(0.4, len(steps) + 0.6))
        told = f"{share(float(uncrossed[0]))} after one row, {share(float(uncrossed[-1]))} after {len(steps)}"
        return _finish(drawing, slug, f"Bar chart of the proposed windows that are still valid: {told}.")


def histogram(slug: str, found: Comparison, *, small: bool = False) -> Html:
    """Draw the distribution of one quantity before and after."""
    with _canvas(*((3.3, 2.2) if small else (4.0, 2.7))) as (drawing, axes):
        if found.discrete:
            x = np.arange(len(found.bounds))
            _pair(axes, x, found.before, found.after)
            axes.set_xticks(x, [number(value) for value in found.bounds], rotation=45 if len(x) > 6 else 0)
            axes.set_xlim(-0.7, len(x) - 0.3)
        else:
            _steps(axes, found.bounds, found.before, found.after)
            axes.xaxis.set_major_locator(MaxNLocator(5))
        if not small:
            _legend(axes)
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
        axes.set(xlabel=_short(plain(found.label), 34), ylabel="share of rows")
        told = f"mean {number(found.real.mean)} before and {number(found.made.mean)} after"
        return _finish(drawing, slug, f"Histogram of {found.label}: {told}; largest gap {number(found.gap)}.")


def reliability(slug: str, found: Reliability) -> Html:
    """Draw predicted scores against observed shares of edges."""
    with _canvas(4.0, 3.4) as (drawing, axes):
        axes.plot([0, 1], [0, 1], color=INK, alpha=0.5, linestyle="--", label="perfectly calibrated")
        axes.plot(found.predicted, found.observed, color=MADE, marker="o", label="this mask")
        axes.set(
            xlabel="mean predicted score", ylabel="observed share of edges", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03)
        )
        axes.legend()
        return _finish(drawing, slug, f"Reliability curve; expected calibration error {number(found.error)}.")


@contextmanager
def _canvas(width: float, height: float, *, small: bool = False) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of so many inches with its axes, in the style of the page, whatever the user's own is."""
    mine = {**_STYLE, **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 7.5 if small else 9)}
    with style.context(["default", cast(Any, mine)]):
        drawing = Figure(figsize=(width, height), layout="constrained")
        yield drawing, drawing.add_subplot()


def _finish(drawing: Figure, slug: str, title: str) -> Html:
    """Write a figure as SVG; glyphs that matplotlib's font lacks are the browser's business."""
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
        drawing.savefig(out, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator")))
    return inline(out.getvalue(), slug, title)


def _across(axes: Axes, names: Sequence[str], values: Sequence[int], colours: Sequence[str]) -> None:
    """Draw bars that lie, the first on top, with their values at the end."""
    y = np.arange(len(names))
    bars = axes.barh(y, values, color=colours, height=0.72)
    axes.bar_label(bars, [f"{value:,}" for value in values], fontsize=9, padding=3)
    axes.set_yticks(y, names)
    axes.set_xlim(0, 1.3 * max(1, *values))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _pair(axes: Axes, x: Array, before: Array, after: Array) -> None:
    """Draw pairs of bars: filled before, outlined after."""
    axes.bar(x - 0.2, before, 0.38, color=REAL, alpha=0.6)
    axes.bar(x + 0.2, after, 0.36, facecolor="none", edgecolor=MADE, linewidth=np.where(after > 0, 1.8, 0.0))


def _steps(axes: Axes, bounds: Array, before: Array, after: Array) -> None:
    """Draw two histograms over each other: filled before, outlined after."""
    axes.stairs(before, bounds, fill=True, color=REAL, alpha=0.6)
    axes.stairs(after, bounds, color=MADE, linewidth=1.8)


def _legend(axes: Axes) -> None:
    """Say above the axes what is filled and what is outlined."""
    handles = [Patch(color=REAL, alpha=0.6, label=BEFORE), Patch(facecolor="none", edgecolor=MADE, lw=1.8, label=AFTER)]
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, borderaxespad=0.3, columnspacing=1.2
    )


def _name(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Name rows and columns, every so many if there are too many."""
    for axis, names in ((axes.yaxis, rows), (axes.xaxis, columns)):
        every = -(-len(names) // LABELLED)
        axis.set_ticks(range(0, len(names), every), short_names(names, 16)[::every])
    longest = max(map(len, columns))
    if len(columns) * min(longest, 16) > 44:
        axes.tick_params(axis="x", labelrotation=90)
    axes.tick_params(length=0)


def _legend_of_shades(drawing: Figure, axes: Axes, scale: Scale) -> None:
    """Say below the axes what the shades stand for."""
    strip = drawing.colorbar(axes.images[0], ax=axes, orientation="horizontal", fraction=0.05, aspect=30, shrink=0.8)
    if strip.solids is not None:
        strip.solids.set_rasterized(True)
    last = f"{100 * scale.top:.3g}%" + (" or more" if scale.top < 1 else "")
    strip.set_ticks([0, scale.top / 2, scale.top], labels=["0%", f"{50 * scale.top:.3g}%", last])
    strip.set_label(scale.shades)


def _percent(value: float) -> str:
    """Write a share into a cell: short, and never rounded to none or to all."""
    return f"{value:.0%}" if value in (0.0, 1.0) or 0.01 <= value < 0.995 else share(value).replace(".0%", "%")


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Cut names to so many characters; if some then look alike, all that were cut begin with their number.

    >>> short_names(["left arm", "hand", "left ankle"], 6)
    ['0 lef…', 'hand', '2 lef…']
    """
    names = [plain(name) for name in names]
    short = [_short(name, most) for name in names]
    if len(set(short)) == len(short):
        return short
    return [_short(f"{k} {name}" if len(name) > most else name, most) for k, name in enumerate(names)]


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
