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


def card(slug: str, example: Example, factors: Factorization, draw: DrawFn | None) -> Html:
    """Return one swap as a card: what was swapped, pictures if they can be drawn, and the values."""
    names = listed([factors.names[node] for node in np.flatnonzero(example.swapped)], MOST_FACTORS)
    base, donor = example.rows
    head = tag("h4", f"Swapped: {names}", id=f"{slug}-title")
    rows = tag("p", f"From real row {donor:,} (donor) into real row {base:,} (base).")
    words, values = tag("div", head, rows, tag("p", _fate(example, factors))), _values(example, factors)
    body = [values] if draw is None else [_pictures(slug, example, draw), details("Values", values)]
    kind = ("rejected" if example.edge else "accepted") + (" drawn" if draw is not None else "")
    return tag("article", words, *body, id=slug, class_=f"card {kind}", aria_labelledby=f"{slug}-title")


def edge_name(edge: tuple[int, int], factors: Factorization) -> str:
    """Write an edge in words."""
    return f"{factors.names[edge[0]]} → {factors.names[edge[1]]}"


def _fate(example: Example, factors: Factorization) -> Html:
    if example.edge is None:
        return join([tag("strong", "Accepted"), ": no edge of the result's own graph crosses the swapped set."])
    source, target = example.edge
    sides = [
        f"{factors.names[node]} is the {'donor' if example.swapped[node] else 'base'}’s" for node in (source, target)
    ]
    edge = tag("strong", edge_name(example.edge, factors))
    return join(
        [tag("strong", "Rejected"), " by the edge ", edge, " of the result’s own graph, which neither parent has: ",
         f"{sides[0]}, {sides[1]}."]
    )  # fmt: skip


def _pictures(slug: str, example: Example, draw: DrawFn) -> Html:
    parts = (("base", "Base", example.base), ("donor", "Donor", example.donor), ("result", "Result", example.result))
    shown = [
        figure(
            f"{slug}-{kind}",
            picture(draw, row, mask, f"Drawing of the {kind} with its local causal graph"),
            tag("strong", title),
        )
        for (kind, title, row), mask in zip(parts, example.masks, strict=True)
    ]
    return tag("div", *shown, class_="trio")


def _values(example: Example, factors: Factorization) -> Html:
    """Return the values of base, donor and result, factor by factor, with the origin of each in words and colour."""
    nodes = _telling(example)
    rows = []
    for node in nodes:
        origin = "donor" if example.swapped[node] else "base"
        base, donor, result = (_written(row, factors, node) for row in (example.base, example.donor, example.result))
        chip = tag("span", f"from {origin}", class_=f"chip {origin}")
        rows.append([text(factors.names[node]), chip, base, donor, tag("div", result, class_=f"value {origin}")])
    left = factors.n + factors.m - len(nodes)
    caption = "State → next state of each factor" + (f"; {left} more factors are not shown" if left else "")
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
