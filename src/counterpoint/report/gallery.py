"""Concrete swaps, side by side: base, donor and result."""

import numpy as np

from counterpoint.core.arrays import Array, listed
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.report.examples import Example
from counterpoint.report.markup import Html, details, figure, join, number, table, tag, text
from counterpoint.report.options import DrawFn
from counterpoint.report.pictures import picture

MOST_FACTORS = 8  # of an example, in tables and lists
MOST_COLUMNS = 4  # of a factor
MOST_FRAMES = 8  # of a film strip
FRAME_PIXELS = 200


def card(slug: str, example: Example, factors: Factorization, draw: DrawFn | None) -> Html:
    """Return one swap as a card: what was swapped, pictures if they can be drawn, and the values."""
    names = listed([factors.names[node] for node in np.flatnonzero(example.swapped)], MOST_FACTORS)
    base, donor = example.rows
    head = tag("h4", f"Swapped: {names}", id=f"{slug}-title")
    length = len(example.base)
    both = f"the {length} real rows from {{}} on" if length > 1 else "real row {}"
    rows = tag("p", f"From {both.format(f'{donor:,}')} (donor) into {both.format(f'{base:,}')} (base).")
    words, values = tag("div", head, rows, tag("p", _fate(example, factors))), _values(example, factors)
    film = len(example.base) > 1
    if draw is None:
        body = [values]
    elif film:
        body = [_film(slug, example, draw), details("Values", values)]
    else:
        body = [_pictures(slug, example, draw), details("Values", values)]
    kind = ("rejected" if example.edge else "accepted") + (" drawn" if draw is not None and not film else "")
    return tag("article", words, *body, id=slug, class_=f"card {kind}", aria_labelledby=f"{slug}-title")


def edge_name(edge: tuple[int, int], factors: Factorization) -> str:
    """Write an edge in words."""
    return f"{factors.names[edge[0]]} → {factors.names[edge[1]]}"


def _fate(example: Example, factors: Factorization) -> Html:
    if example.edge is None:
        where = "" if len(example.base) == 1 else ", in any row"
        return join([tag("strong", "Accepted"), f": no edge of the result's own graph crosses the swapped set{where}."])
    source, target = example.edge
    sides = [
        f"{factors.names[node]} is the {'donor' if example.swapped[node] else 'base'}’s" for node in (source, target)
    ]
    edge = tag("strong", edge_name(example.edge, factors))
    where = "" if len(example.base) == 1 else f" It is there in row {example.step + 1} of {len(example.base)}."
    return join(
        [tag("strong", "Rejected"), " by the edge ", edge, " of the result’s own graph, which neither parent has: ",
         f"{sides[0]}, {sides[1]}.", where]
    )  # fmt: skip


def _pictures(slug: str, example: Example, draw: DrawFn) -> Html:
    parts = (("base", "Base", example.base), ("donor", "Donor", example.donor), ("result", "Result", example.result))
    shown = [
        figure(
            f"{slug}-{kind}",
            picture(draw, row, mask, f"Drawing of the {kind} with its local causal graph"),
            tag("strong", title),
        )
        for (kind, title, row), mask in zip(parts, example.masks[0], strict=True)
    ]
    return tag("div", *shown, class_="trio")


def frames(length: int, step: int) -> list[int]:
    """Return which rows of a window to show: the first, the last, the one that matters, and others spread evenly.

    >>> frames(3, 1), frames(20, 4)
    ([0, 1, 2], [0, 4, 5, 8, 11, 14, 16, 19])
    """
    even = np.linspace(0, length - 1, min(length, MOST_FRAMES)).round().astype(int).tolist()
    if step not in even:
        even[min(range(1, len(even) - 1), key=lambda k: abs(even[k] - step))] = step
    return sorted(even)


def _film(slug: str, example: Example, draw: DrawFn) -> Html:
    """Return base, donor and result of a window as three strips of pictures, one below the other."""
    shown = frames(len(example.base), example.step if example.edge else 0)
    cells = [tag("span", "")]
    for row in shown:
        marked = "marked" if example.edge and row == example.step else None
        cells.append(tag("span", f"row {row + 1}", class_=marked))
    for part, (kind, rows) in enumerate((("base", example.base), ("donor", example.donor), ("result", example.result))):
        cells.append(tag("strong", kind.title()))
        cells += [
            picture(draw, rows[row], example.masks[row, part], f"Row {row + 1} of the {kind}", FRAME_PIXELS)
            for row in shown
        ]
    label = "film strip: base, donor and result, row by row"
    grid = tag("div", *cells, class_="film", style=f"--frames: {len(shown)}")
    return tag("div", grid, id=f"{slug}-film", class_="scroll", role="group", aria_label=label, tabindex="0")


def _values(example: Example, factors: Factorization) -> Html:
    """Return the values of base, donor and result, factor by factor, with the origin of each in words and colour."""
    nodes = _telling(example)
    rows = []
    for node in nodes:
        origin = "donor" if example.swapped[node] else "base"
        parts = (part[example.step] for part in (example.base, example.donor, example.result))
        base, donor, result = (_written(row, factors, node) for row in parts)
        chip = tag("span", f"from {origin}", class_=f"chip {origin}")
        rows.append([text(factors.names[node]), chip, base, donor, tag("div", result, class_=f"value {origin}")])
    left = factors.n + factors.m - len(nodes)
    place = "" if len(example.base) == 1 else f", row {example.step + 1} of {len(example.base)}"
    caption = f"State → next state of each factor{place}" + (f"; {left} more factors are not shown" if left else "")
    return table(caption, ["factor", "origin", "base", "donor", "result"], rows)


def _telling(example: Example) -> list[int]:
    """Return the factors to show: both ends of the rejecting edge, some that were swapped, some that were not."""
    swapped, stayed = np.flatnonzero(example.swapped).tolist(), np.flatnonzero(~example.swapped).tolist()
    half = MOST_FACTORS // 2
    spare = max(0, half - len(stayed))
    chosen = [*(example.edge or ()), *swapped[: half + spare], *stayed]
    return sorted(list(dict.fromkeys(chosen))[:MOST_FACTORS])


def _written(row: Transitions, factors: Factorization, node: int) -> Html:
    """Return a factor's values, those at t + 1 below those at t."""
    name = factors.names[node]
    if node >= factors.n:
        return text(_tuple(row.action[0, list(factors.action[name])]))
    columns = list(factors.state[name])
    return Html(f"{_tuple(row.state[0, columns])}<br>→ {_tuple(row.next_state[0, columns])}")


def _brief(value: float) -> str:
    """Write a value with three decimals, or with one digit that matters if that would leave nothing of it."""
    return number(round(value, 3) if abs(value) >= 0.0005 or not value else float(f"{value:.1g}"))


def _tuple(values: Array) -> str:
    shown = ", ".join(_brief(value) for value in values[:MOST_COLUMNS].tolist())
    more = ", …" if len(values) > MOST_COLUMNS else ""
    return shown if len(values) == 1 else f"({shown}{more})"
