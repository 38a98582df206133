"""The whole page, and how it gets to the disk."""

import os
from pathlib import Path

import numpy as np

from counterpoint.checks import Audit
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.transitions import Transitions
from counterpoint.files.output import output
from counterpoint.report import section_structure, section_trust, section_values
from counterpoint.report.facts import Facts, measure
from counterpoint.report.markup import Html, join, tag
from counterpoint.report.options import Extras

STYLE = Path(__file__).with_name("style.css")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # the browser itself keeps the page offline
TITLE = "Counterpoint report"

SECTIONS = (
    ("verdict", "Verdict", section_trust.answer),
    ("funnel", "Funnel", section_trust.funnel),
    ("audit", "Simulator audit", section_trust.audit),
    ("graphs", "Who influences whom", section_structure.graph),
    ("selection", "Selection bias", section_structure.selection),
    ("swaps", "What was swapped", section_structure.swaps),
    ("coverage", "Coverage", section_structure.coverage),
    ("rewards", "Rewards", section_values.rewards),
    ("features", "Features", section_values.features),
    ("windows", "Yield by step", section_values.windows),
    ("gallery", "Gallery of swaps", section_values.gallery),
    ("calibration", "Calibration", section_trust.calibration),
    ("about", "About", section_trust.about),
)


def write_report(
    path: str | os.PathLike[str],
    data: Transitions,
    made: Counterfactuals,
    augmenter: Augmenter,
    *,
    rng: np.random.Generator,
    audit: Audit | None = None,
    extras: Extras = Extras(),  # noqa: B008 (frozen)
) -> Path:
    """Write one self-contained HTML page that answers "can I trust this data?".

    Same arguments and same state of ``rng``, same bytes. The file appears whole or not at all.

    Args:
        path: where to write it; folders are made.
        data: the real transitions, those that the augmenter was given.
        made: the counterfactuals.
        augmenter: what they were made with.
        rng: chooses which rows are looked at, and the examples.
        audit: what a simulator says of the counterfactuals (``counterpoint.checks.audit``).
        extras: pictures for the gallery, labels with units, what to put on record.

    Returns:
        The path of the page.

    Time and memory: statistics look at 20,000 rows of data and of counterfactuals at the most.
    """
    facts = measure(data, made, augmenter, rng=rng, audit=audit, extras=extras)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = page(facts)
    with output(path, force=extras.force) as file:
        file.write(text.encode())
    return path


def page(facts: Facts) -> str:
    """Return the page as text."""
    made = [(slug, name, build(facts)) for slug, name, build in SECTIONS]
    shown = [(slug, name, body) for slug, name, body in made if body is not None]
    links = [tag("li", tag("a", name, href=f"#{slug}")) for slug, name, _ in shown]
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'),
            tag("title", TITLE),
            tag("style", Html(STYLE.read_text(encoding="utf-8"))),
        ]
    )
    body = join(
        [
            tag("a", "Skip to the verdict", href="#verdict", class_="skip"),
            tag("header", tag("h1", TITLE), tag("p", section_trust.summary(facts))),
            tag("nav", tag("ul", *links), aria_label="Sections"),
            tag("main", *(part for _, _, part in shown), id="main"),
        ]
    )
    return "<!doctype html>\n" + tag("html", tag("head", head), tag("body", body), lang="en") + "\n"
