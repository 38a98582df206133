"""How worlds get the strange kinds of influence; the other kinds and the split are in ``kinds``."""

from collections.abc import Callable

from counterpoint.worlds.zoo.draft import Draft
from counterpoint.worlds.zoo.events import Cross, Flee, Portal, Warm
from counterpoint.worlds.zoo.parts import Part
from counterpoint.worlds.zoo.pulls import Light, Rope, Slipstream, Whirl


def _rope(draft: Draft) -> None:
    """Tie a body to an agent or to a buoy."""
    body = draft.bodies[-1]
    source, both = draft.agents[0], draft.chance(0.3)
    if draft.chance(0.5):
        buoy = Part("buoy", speed=draft.uniform(0.01, 0.03), **draft.noise())
        (source,) = draft.add(draft.look(buoy, hide=False))
    pairs = ((source, body), (body, source)) if both else ((source, body),)
    stiffness = 10.0 * draft.strength(draft.body_noise, 0.005, 0.03)  # at a stretch of a tenth
    draft.effects.append(Rope(pairs, draft.uniform(0.35, 0.6), stiffness, draft.pick(0.0, 0.5, 1.0)))


def _wake(draft: Draft) -> None:
    boat = Part("boat", speed=draft.uniform(0.03, 0.05), noise=draft.pick(0.0, 0.001))
    boats = draft.add(draft.look(boat, hide=False), draft.pick(1, 2))
    leaders = [*boats, *(draft.agents if draft.chance(0.5) else [])]
    share = draft.strength(draft.body_noise, 0.005, 0.03) / 0.05  # of a usual difference of velocities
    reach, narrow = draft.uniform(0.25, 0.45), draft.pick(0.7, 0.8, 0.9)
    draft.effects.append(Slipstream(draft.pairs(leaders, draft.bodies), reach, narrow, min(share, 0.8)))


def _stir(draft: Draft) -> None:
    rate = draft.uniform(0.01, 0.1)
    whisk = Part(
        "whisk", ("x", "y", "vx", "vy", "level"), speed=draft.pick(0.0, 0.02), level_rule="turn", level_rate=rate
    )
    whisks = draft.add(draft.look(whisk, hide=False), draft.pick(1, 2))
    strength = draft.strength(draft.body_noise, 0.01, 0.04)
    draft.effects.append(Whirl(draft.pairs(whisks, draft.bodies), draft.uniform(0.12, 0.24), strength))


def _heat(draft: Draft) -> None:
    """Put stoves between the bodies, whose levels are their warmth."""
    stove = Part("stove", ("x", "y", "level"), level_rule="turn", level_rate=draft.uniform(0.005, 0.03))
    stoves = draft.add(draft.look(stove, hide=False), draft.pick(1, 2))
    rate = 2.0 * draft.strength(draft.body_noise, 0.05, 0.2)  # at a difference of one half
    draft.effects.append(Warm(draft.pairs([*stoves, *draft.bodies], draft.bodies), draft.uniform(0.12, 0.22), rate))


def _bell(draft: Draft) -> None:
    runner = Part("runner", speed=draft.uniform(0.03, 0.06), noise=draft.pick(0.0, 0.001))
    runners = draft.add(draft.look(runner, hide=False), draft.pick(1, 2))
    (wire,) = draft.add(draft.look(Part("wire", ("x", "y")), hide=False))
    noise = draft.pick(0.0, 0.002, 0.01)
    bell = Part("bell", ("level",), level_rule="decay", level_rate=draft.uniform(0.1, 0.5), noise=noise)
    bells = draft.add(draft.look(bell, hide=False))
    ring = draft.strength(noise, 0.1, 1.0)
    draft.effects.append(Cross(draft.pairs([*runners, *draft.agents], bells), wire, ring))


def _shadow(draft: Draft) -> None:
    (lamp,) = draft.add(draft.look(Part("lamp", speed=draft.pick(0.0, 0.02)), hide=False))
    screen = Part("screen", speed=draft.uniform(0.01, 0.04), noise=draft.pick(0.0, 0.001))
    screens = draft.add(draft.look(screen, hide=False), draft.pick(1, 2))
    strength = draft.strength(draft.body_noise, 0.01, 0.03)
    reach, half = draft.uniform(0.2, 0.35), draft.uniform(0.06, 0.15)
    draft.effects.append(Light(draft.pairs([lamp], draft.bodies), reach, strength, tuple(screens), half))


def _herd(draft: Draft) -> None:
    sheep = Part("sheep", speed=0.01, keep=draft.pick(0.7, 0.9), walls=draft.pick("bounce", "wrap"), **draft.noise())
    flock = draft.add(draft.look(sheep, hide=draft.chance(0.2)), draft.pick(1, 2))
    others = [*draft.agents, *draft.bodies]
    fright = draft.strength(sheep.noise, 0.01, 0.04)
    draft.effects.append(Flee(draft.pairs(others, flock), draft.uniform(0.1, 0.2), fright))


def _portal(draft: Draft) -> None:
    drift = draft.pick(0.0, 0.01)
    (door,) = draft.add(draft.look(Part("door", speed=drift), hide=False))
    (way_out,) = draft.add(draft.look(Part("exit", speed=drift), hide=False))
    guests = [*draft.bodies, *(draft.agents if draft.chance(0.5) else [])]
    draft.effects.append(Portal(draft.pairs([door], guests), way_out, draft.uniform(0.1, 0.16)))


ADD: dict[str, Callable[[Draft], None]] = {
    "rope": _rope,
    "wake": _wake,
    "stir": _stir,
    "heat": _heat,
    "bell": _bell,
    "shadow": _shadow,
    "herd": _herd,
    "portal": _portal,
}
