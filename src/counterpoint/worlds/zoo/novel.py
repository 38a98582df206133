"""How worlds get the novel kinds of influence; the other kinds and the split are in ``kinds``."""

from collections.abc import Callable

from counterpoint.worlds.zoo.draft import Draft
from counterpoint.worlds.zoo.obstacles import Badge, Breakaway, Pulley, Queue, Sweep
from counterpoint.worlds.zoo.parts import Part
from counterpoint.worlds.zoo.supply import Budget, Circuit, Suction


def _suction(draft: Draft) -> None:
    """Give an agent or a gantry a suction cup, and its pump a pressure that comes and goes."""
    cup = draft.agents[0]
    if draft.chance(0.4):
        gantry = Part("gantry", speed=draft.uniform(0.02, 0.04), noise=draft.pick(0.0, 0.001))
        (cup,) = draft.add(draft.look(gantry, hide=False))
    noise = draft.pick(0.0, 0.002, 0.01)
    pump = Part("pump", ("level",), level_rule="turn", level_rate=draft.uniform(0.02, 0.1), noise=noise)
    (pump_node,) = draft.add(draft.look(pump, hide=False))
    valve, columns = draft.action("suck", 1)
    half, depth = draft.uniform(0.1, 0.16), draft.uniform(0.15, 0.3)
    least, slip = draft.uniform(0.2, 0.6), draft.pick(0.0, 0.0, 0.2)
    pairs = draft.pairs([cup], draft.bodies)
    draft.effects.append(Suction(pairs, half, depth, pump_node, least, valve, columns[0], slip))


def _queue(draft: Draft) -> None:
    """Add carts, which only know forwards and backwards on their ring, and in most worlds a light."""
    cart = Part("cart", ("x", "y", "vx"), speed=draft.uniform(0.03, 0.06), walls="wrap", **draft.noise())
    carts = draft.add(draft.look(cart, hide=False), draft.pick(2, 2, 3))
    lights: list[int] = []
    if draft.chance(0.7):
        light = Part("light", ("x", "y", "flag"), flip=draft.uniform(0.03, 0.15))
        lights = draft.add(draft.look(light, hide=False))
    lane, gap = draft.uniform(0.06, 0.15), draft.uniform(0.1, 0.18)
    draft.effects.append(Queue(tuple(carts), tuple(lights), lane, gap))


def _badge(draft: Draft) -> None:
    """Put up doors, and let visitors and couriers with badges walk about; couriers have more columns."""
    door = Part("entry", ("x", "y", "flag"), flip=draft.pick(0.0, 0.05, 0.1))
    doors = draft.add(draft.look(door, hide=False), draft.pick(1, 2))
    fields = ("x", "y", "vx", "vy", "flag")
    motion = {"speed": draft.uniform(0.02, 0.05), "walls": draft.pick("bounce", "wrap"), **draft.noise()}
    visitor = draft.look(Part("visitor", fields, **motion), hide=draft.chance(0.2))
    guests = draft.add(visitor, draft.pick(1, 2))
    courier = Part("courier", fields, visitor.shown, visitor.scale, visitor.attributes + 2, **motion)
    guests += draft.add(courier, draft.pick(0, 1, 1))
    half = (draft.uniform(0.06, 0.12), draft.uniform(0.15, 0.35))
    strength = draft.strength(visitor.noise, 0.02, 0.06)
    draft.effects.append(Badge(draft.pairs(doors, guests), half, strength))


def _sweep(draft: Draft) -> None:
    rate, drift = draft.uniform(0.03, 0.09), draft.pick(0.0, 0.0, 0.02)
    noise = draft.pick(0.0, 0.0, 0.003)
    fields = ("x", "y", "vx", "vy", "level") if drift else ("x", "y", "level")
    rotor = Part("rotor", fields, speed=drift, level_rule="turn", level_rate=rate, noise=noise)
    rotors = draft.add(draft.look(rotor, hide=False), draft.pick(1, 1, 2))
    hit = [*draft.bodies, *(draft.agents if draft.chance(0.5) else [])]
    strength, brake = draft.strength(draft.body_noise, 0.03, 0.08), draft.pick(0.0, 0.0, 0.5)
    pairs = draft.pairs(rotors, hit)
    draft.effects.append(Sweep(pairs, draft.uniform(0.22, 0.38), rate, strength, brake * rate))


def _circuit(draft: Draft) -> None:
    """Put up two contacts and a motor that is nowhere; sliders pass by and help to close the circuit."""
    contact = Part("contact", ("x", "y"))
    one, two = draft.add(draft.look(contact, hide=False), 2)
    slider = Part("slider", speed=draft.uniform(0.03, 0.06), noise=draft.pick(0.0, 0.001))
    sliders = draft.add(draft.look(slider, hide=draft.chance(0.2)), draft.pick(1, 2))
    noise = draft.pick(0.0, 0.002, 0.01)
    motor = Part("motor", ("level",), level_rule="decay", level_rate=draft.uniform(0.05, 0.4), noise=noise)
    (motor_node,) = draft.add(draft.look(motor, hide=False))
    bodies = (*sliders, *draft.agents, *draft.bodies)
    radius, current = draft.uniform(0.14, 0.2), draft.strength(noise, 0.1, 0.6)
    draft.effects.append(Circuit(bodies, (one, two), motor_node, radius, current))


def _budget(draft: Draft) -> None:
    """Add machines that share the power of a generator; in some worlds an action uses power as well."""
    fields, rate = ("x", "y", "vx", "vy", "level"), draft.uniform(0.02, 0.12)
    motion = {"speed": draft.uniform(0.03, 0.06), "level_rule": "turn", "level_rate": rate, **draft.noise()}
    machine = Part("machine", fields, **motion)
    machines = draft.add(draft.look(machine, hide=draft.chance(0.3)), draft.pick(2, 3, 3))
    generator = Part("generator", ("flag",), flip=draft.uniform(0.03, 0.15))
    (node,) = draft.add(draft.look(generator, hide=False))
    users = len(machines)
    heater, column = None, 0
    if len(draft.actions) < 4 and draft.chance(0.4):
        heater, (column,) = draft.action("heat", 1)
        users += 1
    power, less = users * draft.uniform(0.68, 0.8), draft.uniform(0.2, 0.5)
    loss = draft.strength(machine.noise, 0.02, 0.04) / 0.04  # at a usual speed
    draft.effects.append(Budget(tuple(machines), node, power, less, min(loss, 1.0), heater, column))


def _pulley(draft: Draft) -> None:
    """Run a band over a peg, from an agent or a weight to a body; it pulls weakly."""
    peg = Part("peg", speed=draft.pick(0.0, 0.01))
    (peg_node,) = draft.add(draft.look(peg, hide=False))
    one, firm = draft.agents[0], draft.chance(0.5)
    if draft.chance(0.6):
        weight = Part("weight", speed=draft.uniform(0.02, 0.04), **draft.noise())
        (one,) = draft.add(draft.look(weight, hide=draft.chance(0.5)))
    two = draft.bodies[-1]
    pull = max(draft.parts[two].noise, 0.0005) * draft.uniform(1.0, 3.0)
    draft.effects.append(Pulley((one, two), peg_node, draft.uniform(1.15, 1.45), pull, firm))


def _friction(draft: Draft) -> None:
    """Add crates that stick to the floor, and trucks that hit them."""
    truck = Part("truck", speed=draft.uniform(0.03, 0.06), noise=draft.pick(0.0, 0.001, 0.003))
    trucks = draft.add(draft.look(truck, hide=False), draft.pick(1, 2))
    crate = Part("crate", speed=0.0, keep=draft.pick(0.3, 0.6), walls="stick", **draft.noise())
    crates = draft.add(draft.look(crate, hide=draft.chance(0.3)), draft.pick(1, 2))
    known = [body for body in draft.bodies if "vx" in draft.parts[body].shown]
    radius, limit = draft.uniform(0.1, 0.16), draft.uniform(0.008, 0.02)
    transfer = draft.strength(crate.noise, 0.02, 0.04) / 0.03  # at a usual speed
    pairs = draft.pairs([*trucks, *draft.agents, *known], crates)
    draft.effects.append(Breakaway(pairs, radius, limit, transfer))


ADD: dict[str, Callable[[Draft], None]] = {
    "suction": _suction,
    "queue": _queue,
    "badge": _badge,
    "sweep": _sweep,
    "circuit": _circuit,
    "budget": _budget,
    "pulley": _pulley,
    "friction": _friction,
}
