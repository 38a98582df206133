"""Pong one row at a time, from its rules, in plain Python floats: slow, and obviously right.

Positions here are absolute, not joint coordinates. Besides the next state and the mask, a step
reports what happened, so that a test can show that every rule was exercised.
"""

import math
from dataclasses import dataclass, field

STEP = 0.0165
H = STEP / 4
REST_X = {"agent": -1.3, "opponent": 1.3, "ball": 0.0}
RANGE = {"agent": (0.3, 1.1), "opponent": (0.3, 1.1), "ball": (2.1, 1.1)}
MASS = {"agent": 0.848, "opponent": 0.848, "ball": 0.0654}
LARGEST_PUSH = {"agent": 0.136, "opponent": 0.0778}
NAMES = ("agent", "opponent", "ball")


@dataclass
class Report:
    after: list[float]
    mask: list[list[bool]]
    contacts: list[tuple[str, int, str]] = field(default_factory=list)  # paddle, substep, where on it
    events: set[str] = field(default_factory=set)  # "agent limit", "wall", "parked", "overlap without push"


def clip(value: float, most: float) -> float:
    return -most if value < -most else most if value > most else value


def dot(a: list[float], b: list[float]) -> float:
    return a[0] * b[0] + a[1] * b[1]


def step(state: list[float], action: list[float], target: list[float]) -> Report:
    place, speed = {}, {}
    for i, name in enumerate(NAMES):
        x, y, vx, vy = state[4 * i : 4 * i + 4]
        place[name] = [REST_X[name] + x * RANGE[name][0], y * RANGE[name][1]]
        speed[name] = [vx * 2.0, vy * 2.0]
    report = Report([], [])
    for substep in range(4):
        found = {paddle: penetration(place[paddle], place["ball"]) for paddle in NAMES[:2]}
        motor = {
            "agent": agent_motor(speed["agent"], action),
            "opponent": opponent_motor(place["opponent"], speed["opponent"], target),
        }
        for paddle, push in motor.items():
            speed[paddle] = [speed[paddle][0] + push[0], speed[paddle][1] + push[1]]
        for name in NAMES:
            v = math.sqrt(dot(speed[name], speed[name]))
            speed[name] = [u - H * (0.04 * u + 0.04 * u * v) for u in speed[name]]
        for paddle, hit in found.items():
            if hit is None:
                continue
            depth, normal, where = hit
            if bounce(paddle, speed, depth, normal, motor[paddle]):
                report.contacts.append((paddle, substep, where))
            else:
                report.events.add("overlap without push")
        for name in NAMES:
            move(name, place[name], speed[name], report)
    walls(place["ball"], speed["ball"], report)
    for name in NAMES:
        report.after += [(place[name][0] - REST_X[name]) / RANGE[name][0], place[name][1] / RANGE[name][1]]
        report.after += [speed[name][0] / 2.0, speed[name][1] / 2.0]
    touched = {paddle for paddle, _, _ in report.contacts}
    agent, opponent = "agent" in touched, "opponent" in touched
    report.mask = [
        [True, False, agent],
        [False, True, opponent],
        [agent, opponent, True],
        [True, False, agent],
    ]
    return report


def agent_motor(speed: list[float], action: list[float]) -> list[float]:
    return [clip(0.05 * (3.0 * a - v), LARGEST_PUSH["agent"]) for a, v in zip(action, speed, strict=True)]


def opponent_motor(place: list[float], speed: list[float], target: list[float]) -> list[float]:
    aim = [REST_X["opponent"] + target[0], target[1]]
    return [
        clip(-0.02 * v + 0.02 * (goal - at) / H, LARGEST_PUSH["opponent"])
        for goal, at, v in zip(aim, place, speed, strict=True)
    ]


def penetration(paddle: list[float], ball: list[float]) -> tuple[float, list[float], str] | None:
    """Return depth, normal and place of the overlap of a circle with a 0.06 by 0.30 rectangle."""
    offset = [ball[0] - paddle[0], ball[1] - paddle[1]]
    nearest = [clip(offset[0], 0.03), clip(offset[1], 0.15)]
    away = [offset[0] - nearest[0], offset[1] - nearest[1]]
    distance = math.sqrt(dot(away, away))
    if distance >= 0.025:
        return None
    if distance > 0.0:
        where = "corner" if away[0] and away[1] else "face" if away[0] else "end"
        return 0.025 - distance, [away[0] / distance, away[1] / distance], where
    through_face, through_end = 0.03 - abs(offset[0]), 0.15 - abs(offset[1])
    if through_face <= through_end:
        return 0.025 + through_face, [1.0 if offset[0] >= 0 else -1.0, 0.0], "inside, by the face"
    return 0.025 + through_end, [0.0, 1.0 if offset[1] >= 0 else -1.0], "inside, by the end"


def bounce(paddle: str, speed: dict[str, list[float]], depth: float, normal: list[float], motor: list[float]) -> bool:
    """Push ball and paddle apart, motor and contact in turn; tell whether a push was needed."""
    wanted = 0.9 * depth / H

    def separation() -> float:
        return dot(speed["ball"], normal) - dot(speed[paddle], normal)

    if separation() >= wanted:
        return False
    undisturbed, used, most = list(speed[paddle]), list(motor), LARGEST_PUSH[paddle]
    shared = 1.0 / (1.0 / MASS["ball"] + 1.0 / MASS[paddle])
    for round_ in range(5):
        for axis in (0, 1) if round_ else ():
            total = clip(used[axis] + (undisturbed[axis] - speed[paddle][axis]), most)
            speed[paddle][axis] += total - used[axis]
            used[axis] = total
        impulse = (wanted - separation()) * shared
        for axis in (0, 1):
            speed["ball"][axis] += impulse * normal[axis] / MASS["ball"]
            speed[paddle][axis] -= impulse * normal[axis] / MASS[paddle]
    return True


def move(name: str, place: list[float], speed: list[float], report: Report) -> None:
    for axis in (0, 1):
        rest = REST_X[name] if axis == 0 else 0.0
        reach = place[axis] + H * speed[axis] - rest
        if reach > RANGE[name][axis] or reach < -RANGE[name][axis]:
            report.events.add(f"{name} limit {'xy'[axis]}")
            speed[axis] = 0.0
        place[axis] = rest + clip(reach, RANGE[name][axis])


def walls(place: list[float], speed: list[float], report: Report) -> None:
    if (place[1] > 1.0 and speed[1] > 0.0) or (place[1] < -1.0 and speed[1] < 0.0):
        speed[1] = -speed[1]
        report.events.add("wall")
    if (place[0] > 2.0 and speed[0] > 0.0) or (place[0] < -2.0 and speed[0] < 0.0):
        speed[0] = speed[1] = 0.0
        report.events.add("parked")
