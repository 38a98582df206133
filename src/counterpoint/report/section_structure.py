"""Sections about structure: local causal graphs, selection, swapped sets, and coverage."""

import numpy as np

from counterpoint.core.arrays import NodeSet, counted, listed
from counterpoint.core.factors import Factorization
from counterpoint.report import figures
from counterpoint.report.coverage import MOST_NODES
from counterpoint.report.facts import Facts
from counterpoint.report.graphs import Graphs
from counterpoint.report.markup import Html, beside, details, figure, number, section, share, table, tag

MOST_LISTED = 100  # rows of a long table


def graph(facts: Facts) -> Html:
    """Return how often each edge is present."""
    factors = facts.factors
    wide = factors.n + factors.m > figures.ANNOTATED
    others = facts.real.edges[~np.eye(*facts.real.edges.shape, dtype=np.bool_)]
    top = 1.0 if others.max(initial=0.0) > 0.5 else float(max(0.01, others.max(initial=0.0)))
    scale = figures.Scale("cause at time t", "effect at time t + 1", "share of transitions with this edge", top)
    maps = [
        figure(
            f"fig-edges-{kind}",
            figures.heat_map(
                f"fig-edges-{kind}",
                f"Heat map of how often each edge is present in {noun}: {_busiest(found, factors)}.",
                found.edges, (factors.names, factors.names[: factors.n]), scale,
            ),
            f"How often each edge is present in {noun}. An edge of a factor to itself is always there.",
            wide=wide,
        )
        for kind, noun, found in (("real", "real data", facts.real), ("made", "counterfactuals", facts.synthetic))
        if found.rows
    ]  # fmt: skip
    intro = "The mask says who influences whom in each transition. Parts that are not connected can be swapped."
    layout = "grid single" if wide else "grid"
    return section("graphs", "Who influences whom", tag("p", intro), tag("div", *maps, class_=layout), _edges(facts))


def selection(facts: Facts) -> Html:
    """Return into how many components transitions fall, and how the share of factored ones changes."""
    real, made = facts.real, facts.synthetic
    rows = [
        _selected("real data", real.factored, real.interactions, real.mean_components),
        _selected("counterfactuals", made.factored, made.interactions, made.mean_components),
        _selected(
            "both together",
            facts.blend(real.factored, made.factored),
            facts.blend(real.interactions, made.interactions),
            facts.blend(real.mean_components, made.mean_components),
        ),
    ]
    intro = (
        "Only independent parts can be recombined, so interactions are rarer among counterfactuals than in the world. "
        "This bias is built in; keep real rows in every batch to limit it. Factored: two or more independent "
        "components. Interacting: one state factor acts on another."
    )
    before, after = (found.components / max(1, found.rows) for found in (real, made))
    chart = figures.component_counts("fig-components", before, after)
    histogram = figure("fig-components", chart, "Independent components per transition; a swap needs two or more.")
    head = ["transitions", "factored", "interacting", "mean components"]
    body = beside(histogram, table("Before: real data; after: both together", head, rows))
    return section("selection", "Components and selection bias", tag("p", intro), body)


def swaps(facts: Facts) -> Html:
    """Return which factor sets were swapped, and from how many donors."""
    found, total = facts.parents, max(1, facts.traced)
    intro = (
        f"{counted(facts.different_sets, 'different set')} of factors changed hands. The counterfactuals have "
        f"{counted(found.bases, 'different base')} and {counted(found.donors, 'different donor')} among "
        f"{counted(len(facts.data), 'real row')}; the busiest row contributes to {share(found.heaviest)} of them."
    )
    if facts.static_names:
        still = float(facts.made.static.mean()) if len(facts.made) else 0.0
        intro += f" {share(still)} exchange nothing but what never changes ({listed(facts.static_names)})."
    if not facts.sets:
        return section("swaps", "What was swapped", tag("p", "Nothing was swapped."))
    names = [set_name(item.nodes, facts.factors) for item in facts.sets]
    rows = [
        [name, f"{item.rows:,}", share(item.rows / total), f"{item.donors:,}", f"{item.bases:,}"]
        for name, item in zip(names, facts.sets, strict=True)
    ]
    chart = figures.sets("fig-sets", names, [item.rows for item in facts.sets])
    return section(
        "swaps",
        "What was swapped",
        tag("p", intro),
        beside(
            figure("fig-sets", chart, f"The {counted(len(names), 'set')} swapped most often."),
            table("Swapped sets and their parents", ["swapped set", "rows", "share", "donors", "bases"], rows),
        ),
    )


def coverage(facts: Facts) -> Html:
    """Return the share of combinations that occur, before and after, for each pair of factors."""
    found = facts.coverage
    if len(found.names) < 2:
        return section("coverage", "Coverage", tag("p", "There is only one factor, so there are no combinations."))
    before, after = found.means
    left = facts.factors.n + facts.factors.m - len(found.names)
    intro = (
        f"On average over pairs of factors, {share(before)} of the combinations of their values occur in the data and "
        f"{share(after)} once counterfactuals are added. Each factor's values are cut into cells (its position, "
        "or else its first two columns, at quantiles of the data); a combination is one cell of each factor."
        + (f" This covers only the first {MOST_NODES} factors; {left} are left out." if left else "")
    )
    wide = len(found.names) > figures.ANNOTATED
    scale = figures.Scale("factor", "factor", "share of combinations that occur")
    maps = [
        figure(
            f"fig-coverage-{kind}",
            figures.heat_map(
                f"fig-coverage-{kind}", f"Heat map of coverage {kind}, {share(mean)} on average.",
                values, (found.names, found.names), scale,
            ),
            f"Coverage {kind}: {noun}.",
            wide=wide,
        )
        for kind, noun, values, mean in (
            ("before", "real data", found.before, before),
            ("after", "real data and counterfactuals", found.after, after),
        )
    ]  # fmt: skip
    layout = "grid single" if wide else "grid"
    return section("coverage", "Coverage", tag("p", intro), tag("div", *maps, class_=layout), _pairs(facts))


def set_name(nodes: NodeSet, factors: Factorization) -> str:
    """Write a set of factors: its names, or what it leaves out if that is shorter."""
    inside = [name for name, chosen in zip(factors.names, nodes, strict=True) if chosen]
    outside = [name for name, chosen in zip(factors.names, nodes, strict=True) if not chosen]
    if len(outside) < len(inside) and len(outside) < 3:
        return f"all but {listed(outside)}"
    return listed(inside, 4)


def _selected(name: str, factored: float, interactions: float, components: float) -> list[str]:
    return [name, share(factored), share(interactions), number(round(components, 2))]


def _edges(facts: Facts) -> Html:
    """Return the edges between different nodes, the most frequent ones first."""
    real, made, names = facts.real.edges, facts.synthetic.edges, facts.factors.names
    off = np.argwhere(~np.eye(*real.shape, dtype=np.bool_))
    order = np.argsort(-real[tuple(off.T)], kind="stable")[:MOST_LISTED]
    rows = [[names[i], names[j], share(real[i, j]), share(made[i, j])] for i, j in off[order].tolist()]
    head = ["cause", "effect", "before: real data", "after: counterfactuals"]
    return details("Edges in numbers", table(f"The {len(rows)} most frequent edges", head, rows))


def _pairs(facts: Facts) -> Html:
    """Return the pairs of factors, those that gained most first."""
    found = facts.coverage
    i, j = found.pairs()
    before, after = found.before[i, j], found.after[i, j]
    rows = [
        [
            found.names[i[k]],
            found.names[j[k]],
            share(before[k]),
            share(after[k]),
            f"{found.cells[i[k]] * found.cells[j[k]]:,}",
        ]
        for k in np.argsort(before - after, kind="stable")[:MOST_LISTED].tolist()
    ]
    head = ["factor", "other factor", "before", "after", "combinations"]
    return details("Coverage in numbers", table(f"The {len(rows)} pairs that gained most", head, rows))


def _busiest(found: Graphs, factors: Factorization) -> str:
    """Say which edge between different nodes is the most frequent one."""
    edges = np.where(np.eye(*found.edges.shape, dtype=np.bool_), -1.0, found.edges)
    source, target = (int(k) for k in np.unravel_index(int(edges.argmax()), edges.shape))
    if edges[source, target] <= 0:
        return "there are none between different factors"
    return f"most often {factors.names[source]} to {factors.names[target]}, {share(edges[source, target])}"
