"""The compiled rules of the bouncing sprites: one pass gives the next state and the local mask.

Positions are boxes ``(x low, x high, y low, y high)``. In a step every box is a point and every test
has one answer. For the noise-blind mask the acted-on sprite's velocity is known only up to ``reach``
per axis; then its box has a size, a contact can be possible without being certain, and a sprite can be
in one of two places: where it was, or where it would have moved. All rounding is monotone, so the
edges found with a reach include those of every noise within it, to the last bit.
"""

import math

import numpy as np

from counterpoint.core.arrays import Array
from counterpoint.core.kernels import kernel

SPEED_LIMIT = 0.08  # per axis, applied whenever a velocity changes
CONTACT = 0.1  # centres nearer than this touch
HALF_SIDE = 0.075  # a sprite is a square of side 0.15
STAYED, MOVED = 0, 1  # the two places in which a sprite can be after its own move


@kernel
def limited(value: float, low: float, high: float) -> float:
    """Clip one number."""
    return min(max(value, low), high)


@kernel
def acted_on(sprites: Array, x: float, y: float, reverse: bool) -> int:
    """Return the sprite that a click at (x, y) acts on, or -1.

    Redirect: the nearest centre. Reverse: the first sprite whose square holds the click.
    """
    found, nearest = -1, math.inf
    for i in range(len(sprites)):
        dx, dy = sprites[i, 0] - x, sprites[i, 1] - y
        if reverse:
            if abs(dx) < HALF_SIDE and abs(dy) < HALF_SIDE:
                return i
        else:
            distance = math.sqrt(dx * dx + dy * dy)
            if distance < nearest:
                found, nearest = i, distance
    return found


@kernel
def pushed(sprite: Array, x: float, y: float, reverse: bool) -> tuple[float, float]:
    """Return the velocity that a click at (x, y) gives to a sprite, before noise.

    Redirect keeps the speed and blends two angles, with no regard to their wrap: the farther the
    click, the more the sprite turns to run away from it. A sprite at rest stays at rest.
    """
    vx, vy = sprite[2], sprite[3]
    if reverse:
        return -vx, -vy
    dx, dy = sprite[0] - x, sprite[1] - y
    z = math.sqrt(dx * dx + dy * dy)
    heading = (1.0 - z) * math.atan2(vy, vx) + z * math.atan2(dy, dx)
    speed = math.sqrt(vx * vx + vy * vy)
    return speed * math.cos(heading), speed * math.sin(heading)


@kernel
def launch(sprites: Array, click: Array, noise: Array, reach: float, reverse: bool, drift: Array) -> int:
    """Write each sprite's velocity after the action, a box, into ``drift`` (n, 4).

    Returns the acted-on sprite, or -1.
    """
    for i in range(len(sprites)):
        drift[i, 0] = drift[i, 1] = sprites[i, 2]
        drift[i, 2] = drift[i, 3] = sprites[i, 3]
    x, y = (click[0] + 1.0) / 2.0, (click[1] + 1.0) / 2.0
    k = acted_on(sprites, x, y, reverse)
    if k >= 0:
        vx, vy = pushed(sprites[k], x, y, reverse)
        vx += noise[2 * k]
        vy += noise[2 * k + 1]
        drift[k, 0] = limited(vx - reach, -SPEED_LIMIT, SPEED_LIMIT)
        drift[k, 1] = limited(vx + reach, -SPEED_LIMIT, SPEED_LIMIT)
        drift[k, 2] = limited(vy - reach, -SPEED_LIMIT, SPEED_LIMIT)
        drift[k, 3] = limited(vy + reach, -SPEED_LIMIT, SPEED_LIMIT)
    return k


@kernel
def touching(dx: float, dy: float) -> bool:
    """Tell whether a centre at this absolute offset touches: near the other's, or inside its square."""
    return math.sqrt(dx * dx + dy * dy) < CONTACT or (dx < HALF_SIDE and dy < HALF_SIDE)


@kernel
def offset(a_low: float, a_high: float, b_low: float, b_high: float) -> tuple[float, float]:
    """Return the smallest and the largest absolute difference of a number in [a] and one in [b]."""
    low, high = a_low - b_high, a_high - b_low
    far = max(abs(low), abs(high))
    return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high))), far


@kernel
def contact(where: Array, may: Array, i: int, j: int) -> tuple[bool, bool]:
    """Tell whether sprite i, where it wants to move, possibly and certainly touches sprite j."""
    possible, certain = False, True
    for place in (STAYED, MOVED):
        if may[j, place]:
            near_x, far_x = offset(where[i, MOVED, 0], where[i, MOVED, 1], where[j, place, 0], where[j, place, 1])
            near_y, far_y = offset(where[i, MOVED, 2], where[i, MOVED, 3], where[j, place, 2], where[j, place, 3])
            if near_x >= CONTACT or near_y >= CONTACT:  # the usual case, without a root
                certain = False
            else:
                possible |= touching(near_x, near_y)
                certain &= touching(far_x, far_y)
    return possible, certain


@kernel
def move(where: Array, may: Array, drift: Array, i: int, edges: Array) -> bool:
    """Move sprite i: wall, then the others in index order up to the first that is certainly hit.

    Marks the column of i in ``edges`` and where i may now be. Returns whether it was stopped.
    """
    at_rest = True
    for side in range(4):
        where[i, MOVED, side] = limited(where[i, STAYED, side] + drift[i, side], 0.0, 1.0)
        at_rest &= drift[i, side] == 0.0 and where[i, MOVED, side] == where[i, STAYED, side]
    possible, certain = False, False
    for j in range(0 if at_rest else len(where)):
        if j != i:
            some, every = contact(where, may, i, j)
            edges[j, i] = some
            possible |= some
            if every:
                certain = True
                break
    may[i, STAYED] = possible
    may[i, MOVED] = not certain
    return certain


@kernel
def beyond(x: float, y: float) -> bool:
    """Tell whether a centre has reached the edge of the canvas."""
    return x >= 1.0 or x <= 0.0 or y >= 1.0 or y <= 0.0


@kernel
def bounced(velocity: float, wall: bool, stopped: bool) -> float:
    """Return one velocity component after the wall rule, then the collision rule; each flips it."""
    for flip in (wall, stopped):
        if flip:
            velocity = limited(-velocity, -SPEED_LIMIT, SPEED_LIMIT)
    return velocity


@kernel
def run(state: Array, action: Array, noise: Array, reach: float, reverse: bool, after: Array, mask: Array) -> None:
    """Advance every row of ``state`` (B, n, 4), writing ``after`` (B, n, 4) and ``mask`` (B, n + 1, n).

    ``after`` has a meaning only where ``reach`` is 0. ``mask`` must come filled with False.
    """
    n = state.shape[1]
    where, may, drift = np.empty((n, 2, 4)), np.empty((n, 2), np.bool_), np.empty((n, 4))
    for row in range(len(state)):
        k = launch(state[row], action[row], noise[row], reach, reverse, drift)
        if k >= 0:
            mask[row, n, k] = True
        for i in range(n):
            mask[row, i, i] = True
            may[i, STAYED], may[i, MOVED] = True, False
            where[i, STAYED, 0] = where[i, STAYED, 1] = state[row, i, 0]
            where[i, STAYED, 2] = where[i, STAYED, 3] = state[row, i, 1]
        for i in range(n):
            stopped = move(where, may, drift, i, mask[row])
            place = STAYED if stopped else MOVED
            wall = beyond(state[row, i, 0] + drift[i, 0], state[row, i, 1] + drift[i, 2])
            after[row, i, 0], after[row, i, 1] = where[i, place, 0], where[i, place, 2]
            after[row, i, 2] = bounced(drift[i, 0], wall, stopped)
            after[row, i, 3] = bounced(drift[i, 2], wall, stopped)
