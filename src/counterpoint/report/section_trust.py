"""Sections that answer the question: verdict, funnel, audit, calibration, and what the report is about."""

import platform
from importlib import metadata

import numpy as np

from counterpoint.checks import Audit
from counterpoint.core.arrays import counted, listed
from counterpoint.core.funnel import RARE
from counterpoint.report import figures, verdict
from counterpoint.report.distributions import column_names
from counterpoint.report.facts import MOST_PROVENANCE, MOST_ROWS, Facts
from counterpoint.report.markup import Html, beside, details, figure, join, number, section, share, table, tag

MEANING = {
    "pairs": "pairs of real rows looked at",
    "proposals": "swaps considered",
    "trivial": "nothing to exchange: the two graphs, laid over each other, form a single component",
    "duplicate": "would repeat another row, because both parents agree on what is swapped",
    "rejected": "an edge of the proposal's own graph crosses the swapped set",
    "no_evidence": "of the rejected: no recording is like them, and nothing else is against them",
    "accepted": "became counterfactuals",
    "static": "of the accepted: they exchange nothing but what never changes, such as a goal",
    "surplus": "valid, but static beyond their share",
    "ended": "windows that are valid, but terminal before their last row",
}


def answer(facts: Facts) -> Html:
    """Return the verdict: a word, a sentence, and the evidence behind it."""
    found = verdict.judge(facts)
    word = found.level.name.lower()
    evidence = [
        tag(
            "li",
            tag("span", finding.level.name.title(), class_=f"light {finding.level.name.lower()}"),
            tag("div", tag("strong", finding.topic), ": ", finding.sentence),
        )
        for finding in found.findings
    ]
    rules = (
        f"The worst finding decides. Simulator: green from {share(verdict.CONFIRMED)} confirmed, red below "
        f"{share(verdict.WRONG)}, amber without one. Amber: acceptance below {share(verdict.LOW_ACCEPTANCE)}; "
        f"fewer than {verdict.FEW_DONORS} donors, or one row behind more than {share(verdict.HEAVY)} of the "
        f"counterfactuals; interactions less than {number(verdict.SHRUNK)} times as frequent as in the data; "
        f"the distribution function of the reward or of a feature off by more than {number(verdict.MOVED)}; the best "
        f"reward less than {number(verdict.SHRUNK)} times as frequent as in the data."
    )
    return section(
        "verdict",
        "Can I trust this data?",
        tag(
            "p",
            tag("span", found.level.name.title(), class_=f"light big {word}"),
            " ",
            found.headline,
            class_="headline",
        ),
        tag("ul", *evidence, class_="evidence"),
        details("How the verdict is made", tag("p", rules)),
    )


def funnel(facts: Facts) -> Html:
    """Return what became of the proposals."""
    counts = facts.made.funnel
    rows = []
    for name, meaning in MEANING.items():
        value = getattr(counts, name)
        if not value and name in RARE:
            continue
        part = "–" if name == "pairs" or not counts.proposals else share(value / counts.proposals)
        rows.append([name.replace("_", " "), f"{value:,}", part, meaning])
    tried = counted(counts.tried, "proposal")
    told = f"Of {tried} that had something to exchange, {share(counts.acceptance)} were accepted."
    if counts.static:
        told += (
            f" Swaps of what never changes ({listed(facts.static_names)}) are valid whatever the rest does. They are "
            f"counted apart: {counts.static:,}."
        )
    if facts.made.window > 1:
        told += f" What is counted are windows of {facts.made.window} rows."
    return section(
        "funnel",
        "Funnel",
        tag("p", told),
        beside(
            figure("fig-funnel", figures.funnel("fig-funnel", counts), "What became of the proposals, in numbers."),
            table("The funnel in numbers", ["stage", "count", "share", "meaning"], rows),
        ),
    )


def audit(facts: Facts) -> Html:
    """Return what the simulator says, or that none was asked."""
    found = facts.audit
    if found is None:
        words = (
            "No simulator was given, so nothing on this page proves that a counterfactual is possible. If you have "
            "one, pass what counterpoint.checks.audit(made, step) returns."
        )
        return section("audit", "Simulator audit", tag("p", words))
    rows = [
        [f"{facts.noun}s put back", f"{len(found.moving.error):,}"],
        ["confirmed", share(found.confirmed)],
        ["wrong", f"{len(found.moving.wrong):,}"],
        *_apart(found),
        ["tolerance, in any column", number(found.atol)],
        ["largest difference", number(found.error.max(initial=0.0))],
    ]
    intro = "Each counterfactual's state and action were put into the simulator, and its next state was compared."
    if found.window > 1:
        intro = (
            f"The simulator was started once for each window, at the first of its {found.window} rows, and had to "
            "reproduce the whole window from its actions."
        )
    body = [tag("p", intro), table("What the simulator says", ["", "value"], rows)]
    return section("audit", "Simulator audit", *body, *_wrong(facts, found))


def _apart(found: Audit) -> list[list[str]]:
    """Return what the simulator says of swaps that exchange only what never changes."""
    apart = found.still
    if not len(apart.error):
        return []
    return [
        ["apart: only what never changes", f"{len(apart.error):,}"],
        ["wrong among these", f"{len(apart.wrong):,}"],
    ]


def _wrong(facts: Facts, found: Audit) -> list[Html]:
    """Return where the simulator disagrees: by column, and by swapped set."""
    if not len(found.wrong):
        return []
    names = column_names(facts.factors, facts.extras.labels)
    worst = [k for k in np.argsort(-found.columns, kind="stable")[:8].tolist() if not found.columns[k] <= found.atol]
    out = [
        table("Columns that differ most", ["column", "largest difference"],
              [[names[k], number(found.columns[k])] for k in worst])
    ]  # fmt: skip
    sets = [one for one in found.by_set(facts.factors)[:8] if one[2]]
    if sets:
        rows = [[listed(names), f"{tried:,}", f"{wrong:,}", share(1 - wrong / tried)] for names, tried, wrong in sets]
        out.append(table("Sets behind the wrong rows", ["swapped set", "tried", "wrong", "confirmed"], rows))
    out.append(tag("p", "The usual reason is an edge that the mask misses: widen a radius or lower a threshold."))
    return out


def calibration(facts: Facts) -> Html | None:
    """Return how well the mask's scores match the shares of edges, if that is known."""
    found = facts.extras.reliability
    if found is None:
        return None
    zipped = zip(found.predicted.tolist(), found.observed.tolist(), found.entries.tolist(), strict=True)
    rows = [[number(p), share(o), f"{int(e):,}"] for p, o, e in zipped]
    intro = (
        f"Expected calibration error: {number(found.error)}. Points below the dashed line mean too many edges, which "
        "costs yield. Points above it mean missed edges, which make wrong counterfactuals."
    )
    chart = figures.reliability("fig-calibration", found)
    return section(
        "calibration",
        "Calibration of the mask",
        tag("p", intro),
        figure("fig-calibration", chart, "Predicted score against the share of entries that are edges."),
        details("Calibration in numbers", table("Calibration", ["mean score", "share of edges", "entries"], rows)),
    )


def about(facts: Facts) -> Html:
    """Return versions, seed, command, and how the page was measured."""
    given = {str(name): value for name, value in facts.extras.about.items()}
    rows: dict[str, object] = {"seed": "not recorded", "command": "not recorded", **given}
    rows |= {
        "counterpoint": _version(),
        "NumPy": np.__version__,
        "Python": platform.python_version(),
        "mask": facts.mask_name,
        "factors": f"{facts.factors.n} of state, {facts.factors.m} of action",
        "real transitions": f"{len(facts.data):,}",
        "counterfactuals": _amount(facts),
    }
    origins = facts.data.origins()
    if origins:
        rows["parents by origin"] = ", ".join(f"{number:,} {name}" for name, number in origins.items())
    notes = (
        f"Graphs, coverage and distributions were measured on {facts.real.rows:,} real rows and "
        f"{facts.synthetic.rows:,} counterfactuals (at most {MOST_ROWS:,} of each, drawn at random), parents and "
        f"swapped sets on {facts.traced:,} (at most {MOST_PROVENANCE:,}). An augmenter does not keep rejected swaps: "
        f"those in the gallery come from a small round of {facts.rejections.tried:,} swaps made for this page."
    )
    body = [[name, tag("code", value) if name == "command" else value] for name, value in rows.items()]
    return section(
        "about", "About this report", table("Versions, seed and command", ["", "value"], body), tag("p", notes)
    )


def _version() -> str:
    try:
        return metadata.version("counterpoint-rl")
    except metadata.PackageNotFoundError:  # run from its source, without being installed
        return "not installed"


def _amount(facts: Facts) -> str:
    windows = counted(len(facts.made.windows), facts.noun)
    return windows if facts.made.window == 1 else f"{windows} of {facts.made.window} rows"


def summary(facts: Facts) -> Html:
    """Return one line that says what the page is about."""
    return join(
        [_amount(facts), " made from ", counted(len(facts.data), "real transition"), " with ",
         counted(facts.factors.n + facts.factors.m, "factor"), "; mask ", tag("code", facts.mask_name), "."]
    )  # fmt: skip
