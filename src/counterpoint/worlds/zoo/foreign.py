"""How worlds get the foreign kinds of influence; the other kinds and the split are in ``kinds``."""

from collections.abc import Callable

from counterpoint.worlds.zoo.beams import Hinge, RangeFinder
from counterpoint.worlds.zoo.draft import Draft
from counterpoint.worlds.zoo.encounters import Cure, Infect, Socket, Together
from counterpoint.worlds.zoo.machines import Catapult, Conveyor, Turnstile
from counterpoint.worlds.zoo.parts import Part


def _conveyor(draft: Draft) -> None:
    """Put up belts, which stop and run by themselves; some also need an action that switches them on."""
    rate = draft.pick(0.0, 0.01, 0.05)
    flip = draft.uniform(0.03, 0.2)
    belt = Part("belt", ("x", "y", "level", "flag"), level_rule="turn", level_rate=rate, flip=flip)
    belts = draft.add(draft.look(belt, hide=False), draft.pick(1, 2))
    goods = [*draft.bodies, *(draft.agents if draft.chance(0.3) else [])]
    length, width = draft.uniform(0.2, 0.4), draft.uniform(0.08, 0.15)
    pace = 2.0 * draft.strength(draft.body_noise, 0.01, 0.04)  # at a usual level, a quarter or three quarters
    level = draft.chance(0.5)
    half, along = ((length, width), (pace, 0.0)) if level else ((width, length), (0.0, pace))
    conveyor = Conveyor(draft.pairs(belts, goods), half, along)
    if len(draft.actions) < 4 and draft.chance(0.4):
        power, columns = draft.action("power", 1)
        conveyor = Conveyor(conveyor.pairs, half, along, power, columns[0])
    draft.effects.append(conveyor)


def _turnstile(draft: Draft) -> None:
    walker = Part("walker", speed=draft.uniform(0.03, 0.06), noise=draft.pick(0.0, 0.001, 0.003))
    walkers = draft.add(draft.look(walker, hide=False), draft.pick(1, 2))
    gate = Part("gate", speed=draft.pick(0.0, 0.0, 0.01))
    gates = draft.add(draft.look(gate, hide=False), draft.pick(1, 2))
    crowd = [*walkers, *draft.bodies, *(draft.agents if draft.chance(0.5) else [])]
    known = all("vx" in draft.parts[j].shown for j in crowd)
    half = (draft.uniform(0.05, 0.1), draft.uniform(0.1, 0.3))
    share = draft.strength(max(walker.noise, draft.body_noise), 0.05, 0.08) / 0.04  # of a usual velocity
    way = draft.pick(-1.0, 1.0)
    draft.effects.append(Turnstile(draft.pairs(gates, crowd), half, draft.pick(0, 1), way, share, known))


def _charger(draft: Draft) -> None:
    """Put up chargers with one socket each, and robots that pass by."""
    fields, drain = ("x", "y", "vx", "vy", "level"), draft.uniform(0.01, 0.1)
    motion = {"speed": draft.uniform(0.02, 0.05), "walls": draft.pick("bounce", "wrap"), **draft.noise()}
    robot = Part("robot", fields, level_rule="decay", level_rate=drain, **motion)
    robots = draft.add(draft.look(robot, hide=draft.chance(0.2)), draft.pick(2, 2, 3))
    charger = Part("charger", speed=draft.pick(0.0, 0.0, 0.02))
    chargers = draft.add(draft.look(charger, hide=False), draft.pick(1, 1, 2))
    rate = 2.0 * draft.strength(robot.noise, 0.03, 0.15)  # for a battery that is half full
    reach = draft.uniform(0.1, 0.2)
    draft.effects += [Socket(charger, tuple(robots), reach, rate) for charger in chargers]


def _catapult(draft: Draft) -> None:
    rate, drift = draft.uniform(0.08, 0.25), draft.pick(0.0, 0.02)
    recoil = draft.pick(0.0, 0.0, 0.3)
    fields = ("x", "y", "vx", "vy", "level")
    motion = {"speed": drift, "keep": 0.8 if recoil else 1.0, "level_rule": "turn", "level_rate": rate}
    catapult = Part("catapult", fields, noise=draft.pick(0.0, 0.0, 0.002), **motion)
    catapults = draft.add(draft.look(catapult, hide=False), draft.pick(1, 2))
    loads = [*draft.bodies, *(draft.agents if draft.chance(0.3) else [])]
    size, slope = draft.strength(draft.body_noise, 0.04, 0.12), draft.uniform(0.3, 0.8)
    throw = (draft.pick(-1.0, 1.0) * size * slope, draft.pick(-1.0, 1.0) * size * (1.0 - slope))
    pairs = draft.pairs(catapults, loads)
    draft.effects.append(Catapult(pairs, draft.uniform(0.2, 0.32), draft.uniform(0.5, 0.9), rate, throw, recoil))


def _contagion(draft: Draft) -> None:
    """Add cells that infect each other; in half of the worlds the agents cure them."""
    fields, flip = ("x", "y", "vx", "vy", "flag"), draft.uniform(0.02, 0.15)
    motion = {"speed": draft.uniform(0.02, 0.05), "walls": draft.pick("bounce", "wrap"), **draft.noise()}
    cell = Part("cell", fields, flip=flip, **motion)
    cells = draft.add(draft.look(cell, hide=draft.chance(0.2)), draft.pick(2, 3, 3))
    draft.effects.append(Infect(draft.pairs(cells, cells), draft.uniform(0.08, 0.16)))
    if draft.chance(0.5):
        draft.effects.append(Cure(draft.pairs(draft.agents, cells), draft.uniform(0.08, 0.16)))


def _scanner(draft: Draft) -> None:
    """Fix a range finder to an agent or to a mast."""
    noise = draft.pick(0.0, 0.002, 0.01)
    reading = Part("reading", ("level",), level_rule="decay", level_rate=draft.pick(1.0, 1.0, 0.5), noise=noise)
    readings = draft.add(draft.look(reading, hide=False))
    mount = draft.agents[0]
    if draft.chance(0.4):
        (mount,) = draft.add(draft.look(Part("mast", speed=draft.pick(0.0, 0.02)), hide=False))
    others = [*draft.bodies, *(agent for agent in draft.agents if agent != mount)]
    reach, half, gain = draft.uniform(0.3, 0.7), draft.uniform(0.05, 0.12), draft.strength(noise, 0.1, 1.0)
    axis, way = draft.pick(0, 1), draft.pick(-1.0, 1.0)
    draft.effects.append(RangeFinder(draft.pairs(others, readings), mount, axis, way, reach, half, gain))


def _hinge(draft: Draft) -> None:
    noise = draft.pick(0.0, 0.001, 0.005)
    bar = Part("bar", ("x", "y", "level"), level_rule="decay", level_rate=draft.pick(0.0, 0.02, 0.1), noise=noise)
    bars = draft.add(draft.look(bar, hide=False), draft.pick(1, 1, 2))
    turn = draft.strength(noise, 0.05, 0.2) / 0.04  # at a usual speed
    brake = draft.pick(0.0, 0.0, 0.5, 1.0)
    length, half = draft.uniform(0.2, 0.4), draft.uniform(0.05, 0.09)
    draft.effects.append(Hinge(draft.pairs([*draft.agents, *draft.bodies], bars), length, half, turn, brake))


def _heavy(draft: Draft) -> None:
    """Add boxes that one alone cannot move, and porters who help."""
    porter = Part("porter", speed=draft.uniform(0.02, 0.05), noise=draft.pick(0.0, 0.001))
    porters = draft.add(draft.look(porter, hide=False), draft.pick(1, 2))
    box = Part("box", speed=0.0, keep=draft.pick(0.5, 0.8), walls=draft.pick("bounce", "stick"), **draft.noise())
    boxes = draft.add(draft.look(box, hide=draft.chance(0.2)), draft.pick(1, 1, 2))
    hands = [*porters, *draft.agents, *(draft.bodies if draft.chance(0.5) else [])]
    radius, share = draft.uniform(0.2, 0.32), draft.pick(0.0, 0.5)
    shove = draft.strength(box.noise, 0.01, 0.04)
    draft.effects += [Together(draft.pairs(hands, [one]), radius, shove, share) for one in boxes]


ADD: dict[str, Callable[[Draft], None]] = {
    "conveyor": _conveyor,
    "turnstile": _turnstile,
    "charger": _charger,
    "catapult": _catapult,
    "contagion": _contagion,
    "scanner": _scanner,
    "hinge": _hinge,
    "heavy": _heavy,
}
