"""Pictures of the two-armed robot, in the colour that its state says: see ``counterpoint.worlds.draw``."""

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.worlds.draw import COURT, INK, LINE, MARGIN, XY, Canvas, Colour, Edge, bodies, dark
from counterpoint.worlds.two_arms import REACH

SHOULDERS: tuple[XY, XY] = ((0.0, 0.5), (1.0, 0.5))
ARM, HAND, PUSH = 0.035, 0.05, 0.12  # width of an arm, radius of a hand, length of a motor's full push
GREY = (0.45, 0.5, 0.55)


def draw_two_arms(
    state: Floats,
    *,
    goal: Floats | None = None,
    colour: Floats | None = None,
    mask: Bools | None = None,
    action: Floats | None = None,
    size: int = 256,
) -> Array:
    """Return a picture of the two-armed robot, (H, W, 3) uint8 with H = W = ``size``.

    Arms reach from the sides of the square to the hands; thin arrows are velocities, ten times their length.

    Args:
        state: (8,) one state of ``TwoArms``.
        goal: (2,) a place to be reached, drawn as a cross.
        colour: (3,) red, green and blue of the robot, from 0 to 1.
        mask: (4, 2) bool, the local causal graph; arrows between the hands are drawn.
        action: (4,) what both motors are told, drawn as arrows at the shoulders.
        size: height and width in pixels.

    Example:
        >>> import numpy as np
        >>> draw_two_arms(np.full(8, 0.5), colour=np.array([1.0, 0.0, 0.0]), size=64).shape
        (64, 64, 3)
    """
    hands = bodies(state, 2)
    paint = _paint(GREY if colour is None else colour)
    nodes: list[XY] = [(float(x), float(y)) for x, y in hands[:, :2]]
    canvas = Canvas((-MARGIN, -MARGIN), (1 + MARGIN, 1 + MARGIN), size)
    canvas.box((0.5, 0.5), 0.5, 0.5, COURT, LINE)
    if goal is not None:
        x, y = np.asarray(goal, np.float64).tolist()
        canvas.cross((x, y), 0.04)
    edges = _between(mask)
    canvas.glow(nodes, edges, REACH / 2 + HAND)
    for shoulder, hand, (_, _, vx, vy) in zip(SHOULDERS, nodes, hands.tolist(), strict=True):
        canvas.line([shoulder, hand], (*paint, 150), ARM)
        canvas.disc(shoulder, 0.7 * HAND, (*paint, 150))
        canvas.disc(hand, HAND, (*paint, 235), dark(paint))
        canvas.velocity(hand, (10 * vx, 10 * vy), dark(paint))
    if action is not None:
        for shoulder, push in zip(SHOULDERS, np.asarray(action, np.float64).reshape(2, 2).tolist(), strict=True):
            canvas.velocity(shoulder, (PUSH * push[0], PUSH * push[1]), INK)
    canvas.graph(nodes, edges, rim=HAND, loop=0.16)
    return canvas.pixels()


def _paint(colour: Floats | tuple[float, ...]) -> Colour:
    """Return a colour as bytes."""
    values = np.asarray(colour, np.float64)
    if values.shape != (3,) or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"colour: expected red, green and blue between 0 and 1, got {values.tolist()}.")
    return tuple(int(value) for value in (255 * values).round())


def _between(mask: Bools | None) -> list[Edge]:
    """Return the edges from one hand to the other."""
    if mask is None:
        return []
    array = np.asarray(mask)
    if array.shape != (4, 2) or array.dtype != np.bool_:
        raise ValueError(f"mask: expected bool of shape (4, 2), one graph, got {array.dtype} of {array.shape}.")
    return [(source, 1 - source) for source in (0, 1) if array[source, 1 - source]]
