"""Pictures of the worlds as pixels: what is where, where it goes, and who acts on whom.

Pictures are drawn with Pillow, three times too large, and then shrunk, which makes edges smooth. A picture
shows *one* state: arrays come without the batch letter, ``state[0]`` of a batch. Shape letters are those of
``counterpoint.core.arrays``; H and W are pixels.

The local causal graph is drawn as arrows in black ink, from each cause to the body it acts on. Every body also
acts on itself; those edges would say nothing and are left out. So the graph of bodies that keep to themselves
is the picture without a graph.
"""

import math
from typing import Any, TypeAlias

import numpy as np

from counterpoint.core.arrays import Array, Bools, Floats
from counterpoint.core.require import require_count
from counterpoint.worlds.bounce import HALF_SIDE
from counterpoint.worlds.pong_physics import HALF_X, HALF_Y, LIMIT, RADIUS, REST, SCALE, WALL

Colour: TypeAlias = tuple[int, ...]  # red, green, blue and, perhaps, opacity
XY: TypeAlias = tuple[float, float]  # x to the right, y up, in the world's own units
Edge: TypeAlias = tuple[int, int]  # source and target; bodies first, then the action

OVERSAMPLE = 3
PAPER, COURT, LINE, INK = (244, 244, 240), (255, 255, 255), (205, 205, 200), (32, 33, 42)
COLOURS: tuple[Colour, ...] = ((49, 110, 189), (233, 151, 36), (28, 150, 118), (205, 83, 120))
COLOURS += ((122, 90, 180), (90, 160, 210), (150, 110, 70), (110, 120, 130))  # for sprites beyond the paper's four
GLOW = (255, 205, 60)
AGENT, OPPONENT, BALL = COLOURS[0], COLOURS[3], (222, 120, 20)
MARGIN = 0.1  # of paper around the canvas of the sprites
STRIP = 0.45  # metres below the Pong court, for the action
STICK: XY = (-1.9, -1.29)  # where the action of Pong is shown, a joystick seen from above
BALL_SIZE = 0.04  # metres; drawn a little larger than it is, to be seen


def draw_sprites(
    state: Floats,
    *,
    targets: Floats | None = None,
    mask: Bools | None = None,
    action: Floats | None = None,
    size: int = 256,
    tolerance: float = 0.25,
) -> Array:
    """Return a picture of bouncing sprites, (H, W, 3) uint8 with H = W = ``size``.

    Sprites are squares with an arrow for their velocity, twice its length. The click is a cross.

    Args:
        state: (4n,) one state of ``Sprites``.
        targets: (k, 2) where the last k sprites should be, drawn as rings; filled once the sprite is there.
        mask: (n + 1, n) bool, the local causal graph to draw. Arrows from the action need ``action``.
        action: (2,) within [-1, 1], the click that led to this state.
        size: height and width in pixels.
        tolerance: the radius of the rings.

    Example:
        >>> import numpy as np
        >>> draw_sprites(np.full(16, 0.5), size=64).shape
        (64, 64, 3)
    """
    sprites = bodies(state, None)
    n = len(sprites)
    nodes: list[XY] = [(float(x), float(y)) for x, y in sprites[:, :2]]
    canvas = Canvas((-MARGIN, -MARGIN), (1 + MARGIN, 1 + MARGIN), size)
    canvas.box((0.5, 0.5), 0.5, 0.5, COURT, LINE)
    goals = np.zeros((0, 2)) if targets is None else np.asarray(targets, np.float64)
    if goals.ndim != 2 or goals.shape[1] != 2 or len(goals) > n:
        raise ValueError(f"targets: expected shape (k, 2) with k at most {n}, got {goals.shape}.")
    for i, goal in zip(range(n - len(goals), n), goals.tolist(), strict=True):
        colour, there = COLOURS[i % len(COLOURS)], math.dist(nodes[i], goal) < tolerance
        canvas.disc((goal[0], goal[1]), tolerance, (*colour, 60 if there else 12), (*colour, 255 if there else 110))
    edges = _edges(mask, n)
    canvas.glow(nodes, edges, 0.17)
    for i, body in enumerate(sprites.tolist()):
        colour = COLOURS[i % len(COLOURS)]
        canvas.box(nodes[i], HALF_SIDE, HALF_SIDE, (*colour, 225), dark(colour), 0.02)
        canvas.velocity(nodes[i], (2 * body[2], 2 * body[3]), dark(colour))
    if action is not None:
        x, y = _pair(action)
        nodes.append(((x + 1) / 2, (y + 1) / 2))
        canvas.cross(nodes[-1], 0.022)
    canvas.graph(nodes, edges, rim=HALF_SIDE, loop=0.14)
    return canvas.pixels()


def draw_pong(
    state: Floats,
    *,
    mask: Bools | None = None,
    action: Floats | None = None,
    size: int = 256,
) -> Array:
    """Return a picture of Pong, (H, W, 3) uint8 with H = ``size`` and W about 1.6 times that.

    The agent's paddle is on the left. The zones behind the paddles are where the ball scores. Arrows are
    velocities, the way of a tenth of a second. The action is shown below the court, as a joystick.

    Args:
        state: (12,) one state of ``Pong``.
        mask: (4, 3) bool, the local causal graph to draw. Arrows from the action need ``action``.
        action: (2,) within [-1, 1], the action that led to this state.
        size: height in pixels.

    Example:
        >>> import numpy as np
        >>> draw_pong(np.zeros(12), size=100).shape
        (100, 160, 3)
    """
    agent, opponent, ball = (bodies(state, 3) * SCALE + np.outer(REST, (1, 0, 0, 0))).tolist()
    nodes: list[XY] = [(body[0], body[1]) for body in (agent, opponent, ball)]
    side, top = float(LIMIT[2, 0]), WALL + RADIUS
    canvas = Canvas((-side - 0.1, -top - STRIP), (side + 0.1, top + 0.25), size)
    canvas.box((0, 0), side, top, COURT)
    for paddle, wall, colour in ((agent, -side, AGENT), (opponent, side, OPPONENT)):
        canvas.box(((wall + paddle[0]) / 2, 0), abs(wall - paddle[0]) / 2, top, (*colour, 28))
    edges = _edges(mask, 3)
    canvas.glow(nodes, edges, 0.3)
    for y in np.arange(-0.95, 1.0, 0.2).tolist():
        canvas.line([(0, y), (0, y + 0.1)], LINE, 0.02)
    for y in (-top, top):
        canvas.line([(-side, y), (side, y)], INK, 0.03)
    for body, colour in ((agent, AGENT), (opponent, OPPONENT)):
        canvas.box((body[0], body[1]), HALF_X, HALF_Y, colour, dark(colour), 0.02)
    for body, colour in ((agent, AGENT), (opponent, OPPONENT), (ball, BALL)):
        canvas.velocity((body[0], body[1]), (body[2] / 10, body[3] / 10), dark(colour))
    canvas.disc(nodes[2], BALL_SIZE, BALL, dark(BALL))
    if action is not None:
        nodes.append(STICK)
    canvas.graph(nodes, edges, rim=0.07, loop=0.28)
    if action is not None:
        canvas.stick(STICK, _pair(action))
    return canvas.pixels()


class Canvas:
    """A sheet of paper in world coordinates, between a lower left and an upper right corner."""

    def __init__(self, low: XY, high: XY, size: int) -> None:
        require_count("size", size, 16, "number of pixels")
        image, draw = _pillow()
        self.left, self.top = low[0], high[1]
        self.scale = OVERSAMPLE * int(size) / (high[1] - low[1])  # pixels in one unit of the world
        self.hair = OVERSAMPLE * int(size) / 256  # one pixel of a picture of the default size
        width = round((high[0] - low[0]) / (high[1] - low[1]) * int(size))
        self.image = image.new("RGB", (width * OVERSAMPLE, int(size) * OVERSAMPLE), PAPER)
        self.pen = draw.Draw(self.image, "RGBA")

    def pixels(self) -> Array:
        """Return the finished picture, (H, W, 3) uint8."""
        return np.array(self.image.reduce(OVERSAMPLE), np.uint8)

    def box(
        self, at: XY, half_x: float, half_y: float, fill: Colour, edge: Colour | None = None, round_by: float = 0.0
    ) -> None:
        """Draw a rectangle around a point."""
        x, y = self._at(at)
        corners = (x - half_x * self.scale, y - half_y * self.scale, x + half_x * self.scale, y + half_y * self.scale)
        self.pen.rounded_rectangle(corners, round_by * self.scale, fill, edge, round(1.3 * self.hair))

    def disc(self, at: XY, radius: float, fill: Colour, edge: Colour | None = None) -> None:
        """Draw a filled circle."""
        self.pen.circle(self._at(at), radius * self.scale, fill, edge, round(1.5 * self.hair))

    def line(self, points: list[XY], colour: Colour, width: float) -> None:
        """Draw a line through points; its width is in units of the world."""
        self.pen.line([self._at(point) for point in points], colour, max(1, round(width * self.scale)), "curve")

    def cross(self, at: XY, reach: float) -> None:
        """Mark a point."""
        for sign in (-1, 1):
            ends = [(at[0] - reach, at[1] - sign * reach), (at[0] + reach, at[1] + sign * reach)]
            self.line(ends, INK, 2.2 * self.hair / self.scale)

    def stick(self, at: XY, tilt: XY) -> None:
        """Draw a joystick seen from above, tilted by an action."""
        self.disc(at, 0.16, COURT, LINE)
        tip = (at[0] + 0.11 * tilt[0], at[1] + 0.11 * tilt[1])
        self.line([at, tip], LINE, 0.03)
        self.disc(tip, 0.05, INK)

    def velocity(self, at: XY, way: XY, colour: Colour) -> None:
        """Draw a thin arrow from a point."""
        if math.hypot(*way) * self.scale > 3 * self.hair:
            self._arrow([at, (at[0] + way[0], at[1] + way[1])], colour, 1.5, 5.0)

    def glow(self, nodes: list[XY], edges: list[Edge], radius: float) -> None:
        """Shade the places where bodies that are close act on each other."""
        for source, target in edges:
            if source < len(nodes) and math.dist(nodes[source], nodes[target]) < 2 * radius:
                (a, b), (c, d) = nodes[source], nodes[target]
                self.disc(((a + c) / 2, (b + d) / 2), radius, (*GLOW, 90))

    def graph(self, nodes: list[XY], edges: list[Edge], rim: float, loop: float) -> None:
        """Draw an arrow for each edge from a node that is there, up to ``rim`` from the middle of its target."""
        for source, target in edges:
            if source < len(nodes):
                way = _path(nodes[source], nodes[target], rim, loop)
                self._arrow(way, (*COURT, 210), 5.5, 12.0)
                self._arrow(way, INK, 2.4, 9.0)

    def _arrow(self, way: list[XY], colour: Colour, width: float, head: float) -> None:
        """Draw a line with a head at its end; width and head are in pixels of the default size."""
        *rest, (x, y) = [self._at(point) for point in way]
        along = next((p for p in reversed(rest) if math.dist(p, (x, y)) >= head * self.hair), rest[0])
        angle, reach = math.atan2(y - along[1], x - along[0]), head * self.hair
        stem = [p for p in rest if math.dist(p, (x, y)) > 0.8 * reach] or rest[:1]
        stem.append((x - 0.8 * reach * math.cos(angle), y - 0.8 * reach * math.sin(angle)))
        self.pen.line(stem, colour, round(width * self.hair), "curve")
        wings = [(x - reach * math.cos(angle + a), y - reach * math.sin(angle + a)) for a in (-0.45, 0.45)]
        self.pen.polygon([(x, y), *wings], colour)

    def _at(self, point: XY) -> XY:
        return (point[0] - self.left) * self.scale, (self.top - point[1]) * self.scale


def _path(start: XY, end: XY, rim: float, loop: float) -> list[XY]:
    """Return the way of an arrow: straight between distant nodes, and round in a loop between close ones.

    The loop bends to the left, so that the way back is another one.
    """
    gap = math.dist(start, end)
    x, y = ((end[0] - start[0]) / gap, (end[1] - start[1]) / gap) if gap > 0 else (1.0, 0.0)
    near, far = gap / 2, max(gap / 2, loop)
    way = []
    for turn in np.linspace(0, math.pi, 49).tolist():
        bow = 0.0 if gap > 1.3 * loop else math.sin(turn)
        along, aside = -math.cos(turn) * (near + (far - near) * bow), bow * (near + (far - near) * bow)
        way.append(((start[0] + end[0]) / 2 + along * x - aside * y, (start[1] + end[1]) / 2 + along * y + aside * x))
    return [point for point in way if math.dist(point, end) >= rim]


def bodies(state: Floats, count: int | None) -> Array:
    """Return one state as rows x, y, vx, vy, (bodies, 4) float64, or say what is wrong with it."""
    array = np.asarray(state)
    width = "4n" if count is None else str(4 * count)
    if array.ndim != 1 or not array.size or array.size % 4 or (count is not None and array.size != 4 * count):
        raise ValueError(
            f"state: expected one state, shape ({width},), got {array.shape}. "
            "A picture shows one row of a batch: use state[0]."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"state: expected finite numbers, got {array[~np.isfinite(array)][0]}; it cannot be drawn.")
    return array.astype(np.float64).reshape(-1, 4)


def _pair(action: Floats) -> XY:
    array = np.asarray(action, np.float64)
    if array.shape != (2,) or not np.isfinite(array).all():
        raise ValueError(f"action: expected a pair of numbers, shape (2,), got {array.tolist()}.")
    return float(array[0]), float(array[1])


def _edges(mask: Bools | None, n: int) -> list[Edge]:
    """Return the edges (source, target) of a mask (n + 1, n), without those from a body to itself."""
    if mask is None:
        return []
    array = np.asarray(mask)
    if array.shape != (n + 1, n) or array.dtype != np.bool_:
        raise ValueError(
            f"mask: expected bool of shape {(n + 1, n)}, the graph of one transition, got {array.dtype} of shape "
            f"{array.shape}. Use mask[0] of what the world's mask returns."
        )
    return [(int(source), int(target)) for source, target in np.argwhere(array & ~np.eye(n + 1, n, dtype=bool))]


def dark(colour: Colour) -> Colour:
    """Return a darker shade of a colour."""
    return tuple(round(0.62 * value) for value in colour[:3])


def _pillow() -> tuple[Any, Any]:
    """Return Pillow's ``Image`` and ``ImageDraw``; it is needed for pictures only."""
    try:
        from PIL import Image, ImageDraw  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("Pictures of worlds need Pillow: pip install counterpoint-rl[gymnasium]") from error
    return Image, ImageDraw
