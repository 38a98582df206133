"""Sections about values: rewards, features, and the gallery of swaps."""

import numpy as np

from counterpoint.core.arrays import counted
from counterpoint.report import figures
from counterpoint.report.distributions import Comparison
from counterpoint.report.facts import Facts
from counterpoint.report.gallery import card
from counterpoint.report.markup import Html, beside, details, figure, join, number, section, share, table, tag

MOST_DRAWN = 12  # features with a histogram
MOST_LISTED = 100  # features in the table
HEAD = ["quantity", "rows", "mean", "std. deviation", "minimum", "median", "maximum"]


def rewards(facts: Facts) -> Html:
    """Return the distribution of rewards before and after."""
    found = facts.reward
    intro = "The reward function relabels every counterfactual. Rewards are never copied, so they may shift."
    return section(
        "rewards",
        "Rewards",
        tag("p", intro),
        beside(
            figure("fig-reward", figures.histogram("fig-reward", found), _gap(found)),
            table("Reward per step", ["", "before", "after"], _upright(found)),
        ),
    )


def features(facts: Facts) -> Html:
    """Return the distributions of single features before and after, those that moved most first."""
    shown = facts.features[:MOST_DRAWN]
    charts = [
        figure(f"fig-feature-{k}", figures.histogram(f"fig-feature-{k}", found, small=True), _gap(found))
        for k, found in enumerate(shown)
    ]
    left = len(facts.features) - len(shown)
    intro = (
        f"Every value{_except_derived(facts)} is bit-identical to a recorded one, so the distribution of a single "
        "feature shifts only because some rows are accepted more often than others. "
        + (f"The figures show the {len(shown)} of {len(facts.features)} features that shifted most. " if left else "")
        + "Features are those of state and action at time t. The gap is the largest difference between the two "
        "distribution functions, from 0 (the same) to 1."
    )
    key = tag(
        "p",
        tag("span", "before: real data", class_="key real"),
        tag("span", "after: counterfactuals", class_="key made"),
        class_="keys",
    )
    rows = [row for found in facts.features[:MOST_LISTED] for row in _summaries(found, gap=True)]
    numbers = details("Features in numbers", table("Features, those that moved most first", [*HEAD, "gap"], rows))
    return section("features", "Features", tag("p", intro), key, tag("div", *charts, class_="grid many"), numbers)


def windows(facts: Facts) -> Html | None:
    """Return how the yield falls with each row of a window, if there are windows."""
    length, found = facts.made.window, facts.rejections
    if length == 1:
        return None
    intro = (
        f"A window of {length} rows is valid only if no edge crosses the swapped set in any of them, so every row "
        f"costs some yield. Of {counted(found.tried, 'window')} proposed for this page, "
        f"{share(float(found.uncrossed[0]))} are valid in their first row and "
        f"{share(float(found.uncrossed[-1]))} throughout."
    )
    before = np.concatenate([[1.0], found.uncrossed[:-1]])
    rows = [
        [str(step + 1), share(float(now)), share(float(then - now))]
        for step, (now, then) in enumerate(zip(found.uncrossed, before, strict=True))
    ]
    chart = figures.survival("fig-windows", found.uncrossed)
    return section(
        "windows",
        "Yield by step",
        tag("p", intro),
        beside(
            figure("fig-windows", chart, "Proposed windows that no edge has crossed so far."),
            table("Yield by step", ["rows of the window", "still valid", "rejected by this row"], rows),
        ),
    )


def gallery(facts: Facts) -> Html:
    """Return concrete swaps, accepted and rejected."""
    draw, tried = facts.extras.draw, facts.rejections
    good = [card(f"accepted-{k}", example, facts.factors, draw) for k, example in enumerate(facts.accepted)]
    bad = [card(f"rejected-{k}", example, facts.factors, draw) for k, example in enumerate(tried.examples)]
    told = (
        f"Rejected swaps come from a round of {counted(tried.tried, 'swap')} made for this page, of which "
        f"{tried.rejected:,} were rejected."
    )
    film = "" if facts.made.window == 1 else " Each is a window: a film strip runs from its first row to its last."
    none = tag("p", "There are none to show.")
    return section(
        "gallery",
        "Gallery of swaps",
        tag("p", f"Examples of swaps: the base, the donor, and the result.{film}"),
        tag("h3", "Accepted"),
        tag("div", *good, class_="cards") if good else none,
        tag("h3", "Rejected"),
        tag("p", told),
        tag("div", *bad, class_="cards") if bad else none,
    )


def _except_derived(facts: Facts) -> str:
    return " outside the derived columns" if facts.factors.derived else ""


def _gap(found: Comparison) -> Html:
    return join([tag("strong", found.label), f", gap\N{NO-BREAK SPACE}{found.gap:.3f}"])


def _upright(found: Comparison) -> list[list[object]]:
    """Return the numbers of one quantity, before and after in columns."""
    before, after = _summaries(found)
    return [list(row) for row in zip(HEAD[2:], before[2:], after[2:], strict=True)]


def _summaries(found: Comparison, *, gap: bool = False) -> list[list[object]]:
    """Return one row of numbers before and one after."""
    rows: list[list[object]] = []
    for name, part in (("before", found.real), ("after", found.made)):
        values = (part.mean, part.deviation, part.low, part.median, part.high)
        row: list[object] = [found.label, name, *("–" if value != value else number(value) for value in values)]  # noqa: PLR0124
        rows.append([*row, number(found.gap)] if gap else row)
    return rows
