"""Small pieces of HTML. What is not markup already is escaped on its way into the page."""

import html
import re
from collections.abc import Iterable, Sequence

_FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")  # no page may hold these characters
LONG = 32  # characters from which on a column is given room
_NUMERIC = re.compile(r"[<>−]?[\d,]*\.?\d+(e[−+]?\d+)?%?|–")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as markup: escaped, unless it is ``Html``.

    >>> text("a < b"), text(Html("<b>a</b>"))
    ('a &lt; b', '<b>a</b>')
    """
    return value if isinstance(value, Html) else Html(html.escape(plain(value)))


def plain(value: object) -> str:
    """Return a value as text without characters that a page must not hold."""
    return _FORBIDDEN.sub("\ufffd", str(value))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Return an element; ``class_`` and ``aria_label`` become ``class`` and ``aria-label``, None is left out.

    >>> tag("p", "1 < 2", class_="note", id=None)
    '<p class="note">1 &lt; 2</p>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[object]) -> Html:
    """Put pieces one after another."""
    return Html("".join(map(text, children)))


def table(caption: str, head: Sequence[object], rows: Sequence[Sequence[object]]) -> Html:
    """Return a table in a container of its own, in which it scrolls sideways if it must.

    The first cell of a row is its heading. Columns of numbers are set flush right.
    """
    kind = [_kind([row[k] for row in rows]) for k in range(len(head))]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row", class_=kind[0]),
            *(tag("td", cell, class_=name) for cell, name in zip(row[1:], kind[1:], strict=True)),
        )
        for row in rows
    ]
    top = tag("tr", *(tag("th", cell, scope="col", class_=name) for cell, name in zip(head, kind, strict=True)))
    whole = tag("table", tag("caption", caption), tag("thead", top), tag("tbody", *body))
    return tag("div", whole, class_="scroll", role="group", aria_label=caption, tabindex="0")


def _kind(cells: list[object]) -> str | None:
    """Say how to set a column: numbers flush right, long texts with room."""
    if cells and all(_NUMERIC.fullmatch(str(cell)) for cell in cells):
        return "number"
    return "long" if any(not isinstance(cell, Html) and len(str(cell)) > LONG for cell in cells) else None


def figure(slug: str, drawing: Html, caption: object, *, wide: bool = False) -> Html:
    """Return a drawing with its caption; a wide one scrolls in its own container on small screens."""
    if wide:
        drawing = tag("div", drawing, class_="scroll", role="group", aria_label="wide figure", tabindex="0")
    return tag("figure", drawing, tag("figcaption", caption), id=slug, class_="wide" if wide else None)


def beside(*children: object) -> Html:
    """Put a figure and its table next to each other, where there is room."""
    return tag("div", *children, class_="beside")


def details(summary: str, *children: object) -> Html:
    """Return something long, folded away behind its summary."""
    return tag("details", tag("summary", summary), *children)


def section(slug: str, title: str, *children: object) -> Html:
    """Return a section that the navigation can reach."""
    return tag("section", tag("h2", title, id=f"{slug}-title"), *children, id=slug, aria_labelledby=f"{slug}-title")


def number(value: float) -> str:
    """Write a number for people: four digits that matter, thousands apart.

    >>> number(1234567), number(0.123456), number(-2.5), number(1e-9), number(3.0)
    ('1,234,567', '0.1235', '−2.5', '1e−9', '3')
    """
    value = float(value)
    if abs(value) < 1e15 and value == int(value):
        written = f"{int(value):,}"
    else:
        written = f"{value:,.1f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return re.sub(r"e([-+])0?", r"e\1", written).replace("e+", "e").replace("-", "−")


def share(value: float) -> str:
    """Write a share as a percentage that never rounds to none or to all.

    >>> share(0.5), share(0.0), share(0.00001), share(0.99999), share(1.0)
    ('50.0%', '0%', '<0.1%', '>99.9%', '100%')
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}"
    if value < 0.0005:
        return "<0.1%"
    return ">99.9%" if value > 0.9995 else f"{value:.1%}"
