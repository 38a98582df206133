"""A drawing of any transition whose factors have positions, for galleries without a drawing of their own."""

import colorsys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions
from counterpoint.report.options import DrawFn

SIZE, MARGIN, DOT = 320, 34, 9  # pixels
PAPER, INK, EDGE = (255, 255, 255), (40, 48, 60), (150, 158, 170)


def scene(data: Transitions, factors: Factorization) -> DrawFn | None:
    """Return a function that draws where the factors are and who influences whom; None if there are too few positions.

    The first two axes are drawn, seen from above; a single axis is drawn as a line. The picture shows what the data
    covers, with the same scale on both axes.
    """
    placed = {name: place for name, place in factors.positions.items() if name in factors.state}
    if len(placed) < 2 or not len(data):
        return None
    flat = np.concatenate([_plane(place.of(data.state)) for place in placed.values()])
    low, high = np.quantile(flat, [0.001, 0.999], axis=0)
    span = max(float((high - low).max()), 1e-9)
    centre = (low + high) / 2

    def pixels(points: Floats) -> Floats:
        spread = (points - centre) / span * (SIZE - 2 * MARGIN)
        return np.asarray(np.clip(SIZE / 2 + spread * np.array([1.0, -1.0]), DOT, SIZE - DOT))

    def draw(state: Floats, action: Floats, mask: Bools, /) -> Array:  # noqa: ARG001
        points = {name: pixels(_plane(place.of(state[None])))[0] for name, place in placed.items()}
        return _picture(points, factors, mask)

    return draw


def _plane(points: Floats) -> Floats:
    """Return the first two axes; a missing one is 0."""
    return points[:, :2] if points.shape[1] > 1 else np.hstack([points, np.zeros_like(points)])


def _picture(points: dict[str, Floats], factors: Factorization, mask: Bools) -> Array:
    image = Image.new("RGB", (SIZE, SIZE), PAPER)
    pen, font, order = ImageDraw.Draw(image), ImageFont.load_default(), list(factors.names)
    for source, start in points.items():
        for target, end in points.items():
            if source != target and mask[order.index(source), order.index(target)]:
                _arrow(pen, start, end)
    for name, (x, y) in points.items():
        hue = order.index(name) / factors.n
        colour = tuple(int(255 * part) for part in colorsys.hls_to_rgb(hue, 0.45, 0.6))
        pen.ellipse((x - DOT, y - DOT, x + DOT, y + DOT), fill=colour, outline=INK)
        words = _written(name, 16)
        pen.text((min(x + DOT + 3, SIZE - 7 * len(words)), y - 6), words, INK, font)
    moved = [order[node] for node in range(factors.n, len(order)) if mask[node].any()]
    targets = [[order[k] for k in np.flatnonzero(mask[order.index(name)])] for name in moved]
    for line, (name, acts) in enumerate(zip(moved, targets, strict=True)):
        pen.text((6, 5 + 12 * line), _written(f"{name} > {', '.join(acts)}", 48), INK, font)
    return np.asarray(image)


def _written(words: str, most: int) -> str:
    """Shorten words, and leave out what the font cannot write."""
    short = words if len(words) <= most else words[: most - 2] + ".."
    return short.encode("latin-1", "replace").decode("latin-1")


def _arrow(pen: ImageDraw.ImageDraw, start: Floats, end: Floats) -> None:
    """Draw an arrow from the rim of one dot to the rim of another."""
    along = end - start
    length = float(np.linalg.norm(along))
    if length <= 2 * DOT:
        return
    unit = along / length
    tail, head = start + unit * DOT, end - unit * DOT
    side = np.array([-unit[1], unit[0]])
    pen.line((*tail, *head), fill=EDGE, width=2)
    pen.polygon([tuple(head), tuple(head - 8 * unit + 4 * side), tuple(head - 8 * unit - 4 * side)], fill=EDGE)
