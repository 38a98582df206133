"""The physics of Pong: one compiled pass over rows gives the next state and who touched whom.

Everything here is in metres and seconds, in joint coordinates: a body's position is its distance
from where it rests, and a body is a float64 row (x, y, vx, vy). Bodies are 0 agent, 1 opponent,
2 ball. An environment step is four substeps, and a substep is: motors, damping, contact, motion,
joint limits. After the fourth come the walls.

Contacts are found from the positions at the start of a substep, as Bullet finds them: nothing is
swept. A paddle with the ball's radius around it is 0.11 m thick, so a ball passes through one only
above 0.11 / 0.004125 = 26 m/s of relative speed, and is thrown out at the wrong side only above
half of that. The ball cannot touch both paddles: their faces are never less than 1.94 m apart.
"""

import math

import numpy as np

from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.factors import Factorization
from counterpoint.core.kernels import kernel
from counterpoint.core.positions import Position

DT = 0.0165 / 4  # seconds in a substep
REST = np.array([-1.3, 1.3, 0.0])  # where the bodies rest on the x axis; all rest at y = 0
LIMIT = np.array([[0.3, 1.1], [0.3, 1.1], [2.1, 1.1]])  # half-range of each joint, x and y
BODIES = ("agent", "opponent", "ball")
FACTORS = Factorization.blocks(
    state=dict.fromkeys(BODIES, 4),
    action={"action": 2},
    noise={"opponent": (0, 1)},
    positions={body: Position((4 * i, 4 * i + 1), LIMIT[i], (REST[i], 0.0)) for i, body in enumerate(BODIES)},
)
SCALE = np.column_stack([LIMIT, np.full((3, 2), 2.0)])  # metres, metres, m/s, m/s of a state column at 1
HALF_X, HALF_Y, RADIUS = 0.03, 0.15, 0.025  # of the paddles; of the ball
PADDLE_MASS, BALL_MASS = 0.848, 0.0654
AGENT_SPEED, AGENT_GAIN, AGENT_PUSH = 3.0, 0.05, 0.136  # m/s at full throttle; gain; largest change of v
SERVO_GAIN, SERVO_PUSH = 0.02, 0.0778  # of the opponent, for position and velocity alike
DAMPING, RECOVERY = 0.04, 0.9  # of all bodies; share of a penetration undone in one substep
ITERATIONS = 5  # of the contact solver
WALL, PARK = 1.0, 2.0  # where the ball turns back in y; where it stops for good in x
SLACK = 1e-9  # metres, far above rounding
FAST = 40.0  # m/s, opponent and ball together; see `_may_cross`


@kernel
def advance(state: Floats, action: Floats, target: Floats, after: Floats, touched: Bools) -> None:
    """Take one environment step in every row; fill ``after`` and ``touched``.

    Args:
        state: (B, 12) float64, scaled as in `Pong`.
        action: (B, 2) float64 within [-1, 1].
        target: (B, 2) float64, where the opponent's servo wants to be, in metres.
        after: (B, 12) float64, written.
        touched: (B, 2) bool, written: did the ball and the agent, the ball and the opponent push
            each other in any substep?
    """
    bodies = np.empty((3, 4))
    for row in range(len(state)):
        _load(state[row], bodies)
        agent, opponent, ball = bodies[0], bodies[1], bodies[2]
        hit_agent = hit_opponent = False
        for _ in range(4):
            _damp(ball)
            hit_agent |= _drive_agent(agent, ball, action[row])
            hit_opponent |= _drive_opponent(opponent, ball, target[row])
            for body in range(3):
                _move(bodies[body], LIMIT[body])
        _walls(ball)
        for body in range(3):
            for column in range(4):
                after[row, 4 * body + column] = bodies[body, column] / SCALE[body, column]
        touched[row, 0], touched[row, 1] = hit_agent, hit_opponent


@kernel
def reach(state: Floats, action: Floats, touched: Bools) -> None:
    """Fill ``touched`` as `advance` does, but for the worst of all targets of the opponent.

    Whatever its target, the servo changes the opponent's velocity by at most ``SERVO_PUSH`` in a
    substep, so an interval for each of its coordinates, a few millimetres wide, holds the truth.
    Where the ball meets that swept paddle, they are said to touch. All else is as in `advance`.
    """
    bodies, span = np.empty((3, 4)), np.empty((2, 4))
    for row in range(len(state)):
        _load(state[row], bodies)
        agent, opponent, ball = bodies[0], bodies[1], bodies[2]
        for axis in range(2):
            span[axis, :2], span[axis, 2:] = opponent[axis], opponent[axis + 2]
        hit_agent = hit_opponent = False
        for _ in range(4):
            hit_opponent |= _may_touch(span, ball)
            _widen(span)
            _damp(ball)
            hit_agent |= _drive_agent(agent, ball, action[row])
            _move(agent, LIMIT[0])
            _move(ball, LIMIT[2])
        touched[row, 0] = hit_agent or (hit_opponent and _may_cross(state[row]))
        touched[row, 1] = hit_opponent


@kernel
def _load(row: Floats, bodies: Floats) -> None:
    for body in range(3):
        for column in range(4):
            bodies[body, column] = row[4 * body + column] * SCALE[body, column]


@kernel
def _damp(body: Floats) -> None:
    """Bullet's damping of every body: dv/dt = -0.04 v - 0.04 v |v|."""
    keep = max(0.0, 1.0 - DT * DAMPING * (1.0 + math.hypot(body[2], body[3])))
    body[2] *= keep
    body[3] *= keep


@kernel
def _move(body: Floats, limit: Floats) -> None:
    """Move by one substep; a joint at its limit stops there."""
    for axis in range(2):
        body[axis] += body[axis + 2] * DT
        if abs(body[axis]) > limit[axis]:
            body[axis] = math.copysign(limit[axis], body[axis])
            body[axis + 2] = 0.0


@kernel
def _walls(ball: Floats) -> None:
    """Turn the ball back at the sides, park it behind the paddles; once per environment step."""
    if abs(ball[1]) > WALL and ball[1] * ball[3] > 0.0:
        ball[3] = -ball[3]
    if abs(ball[0]) > PARK and ball[0] * ball[2] > 0.0:
        ball[2] = ball[3] = 0.0


@kernel
def _drive_agent(agent: Floats, ball: Floats, action: Floats) -> bool:
    """Velocity motor: towards ``AGENT_SPEED`` times the action."""
    want_x = AGENT_GAIN * (AGENT_SPEED * action[0] - agent[2])
    want_y = AGENT_GAIN * (AGENT_SPEED * action[1] - agent[3])
    return _drive(agent, ball, REST[0], (want_x, want_y), AGENT_PUSH)


@kernel
def _drive_opponent(opponent: Floats, ball: Floats, target: Floats) -> bool:
    """Position servo: towards the target, hardly damped, blind to the ball."""
    want_x = SERVO_GAIN * ((target[0] - opponent[0]) / DT - opponent[2])
    want_y = SERVO_GAIN * ((target[1] - opponent[1]) / DT - opponent[3])
    return _drive(opponent, ball, REST[1], (want_x, want_y), SERVO_PUSH)


@kernel
def _drive(paddle: Floats, ball: Floats, rest: float, want: tuple[float, float], most: float) -> bool:
    """Let the motor and the ball act on a paddle's velocity; tell whether the ball did."""
    motor_x = min(max(want[0], -most), most)
    motor_y = min(max(want[1], -most), most)
    paddle[2] += motor_x
    paddle[3] += motor_y
    _damp(paddle)
    contact = _overlap(ball[0] - paddle[0] - rest, ball[1] - paddle[1])
    return contact[0] > 0.0 and _push(paddle, ball, contact, (motor_x, motor_y), most)


@kernel
def _overlap(x: float, y: float) -> tuple[float, float, float]:
    """Return depth and normal (paddle to ball) of a ball at (x, y) from the middle of a paddle.

    In the plane the paddle is a rectangle and the ball a circle. The normal points from the
    rectangle's nearest point to the circle's middle; if that is inside, out of the nearest side.
    """
    out_x, out_y = abs(x) - HALF_X, abs(y) - HALF_Y
    if out_x <= 0.0 and out_y <= 0.0:
        if out_x >= out_y:
            return RADIUS - out_x, math.copysign(1.0, x), 0.0
        return RADIUS - out_y, 0.0, math.copysign(1.0, y)
    near_x, near_y = max(out_x, 0.0), max(out_y, 0.0)
    away = math.hypot(near_x, near_y)
    return RADIUS - away, math.copysign(near_x / away, x), math.copysign(near_y / away, y)


@kernel
def _push(
    paddle: Floats,
    ball: Floats,
    contact: tuple[float, float, float],
    motor: tuple[float, float],
    most: float,
) -> bool:
    """Make the ball leave at 0.9 depth / dt along the normal; tell whether anything had to change.

    There is no restitution: the bounce comes from undoing the penetration. Momentum is shared by
    the masses, and the paddle's motor resists the kick with what is left of its force. That is
    Bullet's solver, a few rounds of contact and motor in turn, the contact last.
    """
    depth, normal_x, normal_y = contact
    leave = RECOVERY * depth / DT
    speed = (ball[2] - paddle[2]) * normal_x + (ball[3] - paddle[3]) * normal_y
    if speed >= leave:
        return False
    free_x, free_y, (motor_x, motor_y) = paddle[2], paddle[3], motor
    for turn in range(ITERATIONS):
        if turn > 0:
            held_x = min(max(motor_x + free_x - paddle[2], -most), most)
            held_y = min(max(motor_y + free_y - paddle[3], -most), most)
            paddle[2] += held_x - motor_x
            paddle[3] += held_y - motor_y
            motor_x, motor_y = held_x, held_y
        speed = (ball[2] - paddle[2]) * normal_x + (ball[3] - paddle[3]) * normal_y
        impulse = (leave - speed) / (1.0 / BALL_MASS + 1.0 / PADDLE_MASS)
        ball[2] += impulse / BALL_MASS * normal_x
        ball[3] += impulse / BALL_MASS * normal_y
        paddle[2] -= impulse / PADDLE_MASS * normal_x
        paddle[3] -= impulse / PADDLE_MASS * normal_y
    return True


# --- the opponent when its target is unknown -----------------------------------------------------


@kernel
def _may_touch(span: Floats, ball: Floats) -> bool:
    """Does the ball meet the paddle anywhere in its span (per axis: x low, x high, v low, v high)?"""
    x, y = ball[0] - REST[1], ball[1]
    near_x = max(span[0, 0] - HALF_X - x, x - span[0, 1] - HALF_X, 0.0)
    near_y = max(span[1, 0] - HALF_Y - y, y - span[1, 1] - HALF_Y, 0.0)
    return math.hypot(near_x, near_y) < RADIUS + SLACK


@kernel
def _widen(span: Floats) -> None:
    """Let the span take a substep: its bounds hold for every target if they did before."""
    top = max(-span[0, 2], span[0, 3]) + max(-span[1, 2], span[1, 3]) + 2.0 * SERVO_PUSH
    keep = max(0.0, 1.0 - DT * DAMPING * (1.0 + top))  # damping multiplies by something in [keep, 1]
    for axis in range(2):
        low, high = span[axis, 2] - SERVO_PUSH, span[axis, 3] + SERVO_PUSH
        span[axis, 2] = min(low, low * keep)
        span[axis, 3] = max(high, high * keep)
        span[axis, 0] += span[axis, 2] * DT
        span[axis, 1] += span[axis, 3] * DT
        limit = LIMIT[1, axis]
        if span[axis, 1] > limit:  # some targets stop the joint: zero is a possible velocity
            span[axis, 2] = min(span[axis, 2], 0.0)
        if span[axis, 0] < -limit:
            span[axis, 3] = max(span[axis, 3], 0.0)
        span[axis, 0] = min(max(span[axis, 0], -limit), limit)
        span[axis, 1] = min(max(span[axis, 1], -limit), limit)


@kernel
def _may_cross(row: Floats) -> bool:
    """Could a ball that the opponent returns reach the agent within the same step?

    It would need 1.89 m in three substeps, 150 m/s. A contact adds at most 0.9 * 0.055 / DT = 12 m/s
    and the paddle's speed, so bodies below ``FAST`` cannot, not even with a contact in each substep:
    adding up the worst case gives 1.6 m. Games stay below 25 m/s.
    """
    total = 0.0
    for column in (6, 7, 10, 11):
        total += abs(row[column]) * 2.0
    return total > FAST
