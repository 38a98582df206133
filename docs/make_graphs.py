"""Draw the global and the local graph of the two-armed robot for the documentation: python docs/make_graphs.py."""

from pathlib import Path

import numpy as np

from counterpoint.core.arrays import Bools
from counterpoint.worlds import TwoArms, as_scm
from counterpoint.worlds.causal_model import state_and_action

IMAGES = Path(__file__).parent / "images"
ROW, WIDTH = 56, 360


def picture(graph: Bools, sources: tuple[str, ...], targets: tuple[str, ...], own: Bools) -> str:
    """Return a graph as SVG: nodes at t on the left, at t+1 on the right; edges that are not in ``own`` are dashed."""
    height = ROW * len(sources) + 20
    shapes = []
    for i, j in np.argwhere(graph):
        style = 'stroke="#555"' if own[i, j] else 'stroke="#c33" stroke-dasharray="6 4"'
        shapes.append(f'<line x1="130" y1="{ROW * i + 38}" x2="230" y2="{ROW * j + 38}" {style} stroke-width="2"/>')
    for x, names, mark in ((10, sources, ""), (230, targets, " at t+1")):
        for row, name in enumerate(names):
            shapes.append(
                f'<rect x="{x}" y="{ROW * row + 20}" width="120" height="36" rx="8" fill="#e8eef7" stroke="#456"/>'
            )
            shapes.append(
                f'<text x="{x + 60}" y="{ROW * row + 43}" text-anchor="middle" font-family="sans-serif" '
                f'font-size="14" fill="#222">{name}{mark}</text>'
            )
    body = "\n".join(shapes)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">\n{body}\n</svg>\n'


def main() -> None:
    """Draw both pictures."""
    world = TwoArms()
    model = as_scm(world, values=8)
    local = model.restrict(lambda v: ~world.mask(*state_and_action(v, world.factors))[:, 0, 1])
    for name, found in (("global", model), ("local", local)):
        text = picture(found.graph, found.nodes, tuple(found.equations), local.graph)
        (IMAGES / f"two-arms-{name}.svg").write_text(text)


if __name__ == "__main__":
    main()
