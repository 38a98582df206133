"""Drawings become part of the page: their colours follow its colours, their names do not clash, nothing is fetched."""

import re

from counterpoint.report.markup import Html, tag

# Colours that stand for something else: what is drawn in one of these takes its colour from the page.
INK, REAL, MADE, DONOR = "#010203", "#010204", "#010205", "#010206"
_COLOURS = {INK: "currentColor", REAL: "var(--real)", MADE: "var(--made)", DONOR: "var(--donor)"}


def inline(drawing: str, slug: str, title: str) -> Html:
    """Return an SVG document as an element of the page.

    Args:
        drawing: the whole document, as matplotlib writes it.
        slug: the name of the figure; every name inside begins with it.
        title: what the drawing shows, for those who cannot see it.
    """
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)
    if size is None:
        raise ValueError("drawing: expected an SVG document with a viewBox that starts at 0 0.")
    body = drawing[drawing.index(">", drawing.index("<svg")) + 1 : drawing.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->|<defs>\s*</defs>", "", body, flags=re.DOTALL)
    body = body.replace("xlink:href", "href")
    body = re.sub(r' id="([^"]*)"', rf' id="{slug}-\1"', body)
    body = re.sub(r'(url\(|href=")#', rf"\1#{slug}-", body)
    for colour, meaning in _COLOURS.items():
        body = body.replace(colour, meaning)
    body = re.sub(r"font: ([\d.]+)px[^;\"]*", r"font-size: \1px", body)
    body = re.sub(r"\n\s*", "\n", body).strip()
    width, height = size.groups()
    return tag(
        "svg",
        tag("title", title, id=f"{slug}-name"),
        Html(body),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_labelledby=f"{slug}-name",
    )
