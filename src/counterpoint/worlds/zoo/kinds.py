"""The kinds of influence that worlds are drawn from, and their split: development, held out, strange, foreign, novel.

Methods are developed on ``DEVELOPMENT`` alone and then frozen; what is reported is reported on ``HELD_OUT``.
The kinds of ``STRANGE`` were written after the method, by somebody who had not read it; nothing was tuned on them.
Those of ``FOREIGN`` were written later still, in the same way, and those of ``NOVEL`` after these.
``KINDS`` is what a world is drawn from if nothing else is said; strange, foreign and novel kinds must be asked for.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from counterpoint.worlds.zoo.carriers import Hang, Rest, Ride
from counterpoint.worlds.zoo.contacts import Collide, Push, Touch
from counterpoint.worlds.zoo.draft import Blueprint, Draft
from counterpoint.worlds.zoo.forces import Click, Magnet, Soft, Spring
from counterpoint.worlds.zoo.foreign import ADD as ADD_FOREIGN
from counterpoint.worlds.zoo.gates import Drag, Fan, Flow, Latch, Press
from counterpoint.worlds.zoo.novel import ADD as ADD_NOVEL
from counterpoint.worlds.zoo.parts import Part
from counterpoint.worlds.zoo.strange import ADD as ADD_STRANGE

DEVELOPMENT = ("push", "elastic", "soft", "weak", "drag", "fan", "carrier", "arm")
HELD_OUT = ("inelastic", "spring", "magnet", "latch", "switch", "support", "delayed", "click", "tank")
STRANGE = ("rope", "wake", "stir", "heat", "bell", "shadow", "herd", "portal")
FOREIGN = ("conveyor", "turnstile", "charger", "catapult", "contagion", "scanner", "hinge", "heavy")
NOVEL = ("suction", "queue", "badge", "sweep", "circuit", "budget", "pulley", "friction")
KINDS = (*DEVELOPMENT, *HELD_OUT)


def draw(seed: int, kinds: tuple[str, ...]) -> Blueprint:
    """Draw a world with one to three of the given kinds of influence."""
    rng = np.random.default_rng([seed, *(ord(letter) for kind in kinds for letter in kind)])
    draft = Draft(rng)
    most = min(3, len(kinds))
    chosen = tuple(sorted(rng.choice(kinds, size=int(rng.integers(1, most + 1)), replace=False).tolist()))
    _people(draft, chosen)
    for kind in chosen:
        _ADD[kind](draft)
    if len(draft.actions) < 4 and draft.chance(0.15):
        draft.action("idle", 1)  # an action that does nothing
    return draft.finished(chosen)


def _people(draft: Draft, kinds: tuple[str, ...]) -> None:
    """Add what every world has: agents, bodies, and sometimes a goal."""
    grip = bool({"drag", "latch"} & set(kinds))
    for _ in range(draft.pick(1, 1, 2)):
        _agent(draft, grip=grip)
    hide = draft.chance(0.2)
    wound, warm = "delayed" in kinds, "heat" in kinds
    fields = ("x", "y", "vx", "vy", *(["level"] if wound or warm else []), *(["flag"] if "latch" in kinds else []))
    for name in ("puck", "disc")[: draft.pick(1, 1, 2)]:
        body = Part(
            name,
            fields,
            speed=draft.uniform(0.02, 0.05),
            keep=draft.pick(1.0, 0.98, 0.9, 0.7),
            walls=draft.pick("bounce", "bounce", "stick"),
            level_rule="decay" if wound or warm else "still",
            level_rate=0.3 if wound else 0.05 if warm else 0.0,
            kick=0.05 if wound else 0.0,
            **draft.noise(),
        )
        draft.bodies += draft.add(draft.look(body, hide=hide), draft.pick(1, 2, 2))
    if draft.chance(0.4):
        draft.add(Part("goal", (), (), attributes=draft.pick(1, 2, 3)))


def _agent(draft: Draft, *, grip: bool) -> None:
    fields = ("x", "y", "vx", "vy", *(["level"] if grip else []))
    agent = Part(
        "grip" if grip else "agent",
        fields,
        gain=draft.uniform(0.015, 0.03),
        keep=0.5,
        walls="stick",
        level_rule="follow" if grip else "still",
        level_rate=0.4,
        **draft.noise(),
    )
    seen = [part for part in draft.parts if part.name == agent.name]
    (node,) = draft.add(seen[0] if seen else draft.look(agent, hide=False))
    apart = grip and draft.chance(0.5) and len(draft.actions) < 3
    draft.drive(node, draft.action("move", 2 if apart or not grip else 3))
    if apart:
        draft.drive(node, draft.action("close", 1))
    draft.agents.append(node)


def _push(draft: Draft) -> None:
    direct = draft.chance(0.4)
    for agent in draft.agents:
        push = Push(draft.pairs([agent], draft.bodies), draft.uniform(0.08, 0.14), draft.uniform(0.5, 1.2))
        if direct:
            gain = 0.5 * draft.parts[agent].gain
            push = replace(push, action=draft.movers[agent][0], columns=draft.drives[agent][:2], gain=gain)
        draft.effects.append(push)


def _elastic(draft: Draft, bounce: float = 1.0) -> None:
    everyone = [*draft.bodies, *(draft.agents if draft.chance(0.5) else [])]
    if len(everyone) < 2:
        everyone = [*draft.bodies, *draft.agents]
    known = all("vx" in draft.parts[j].shown for j in everyone)
    pairs = draft.pairs(everyone, draft.bodies)
    draft.effects.append(Collide(pairs, draft.uniform(0.09, 0.16), bounce, known=known))


def _inelastic(draft: Draft) -> None:
    _elastic(draft, bounce=draft.uniform(0.0, 0.3))


def _soft(draft: Draft) -> None:
    pairs = draft.pairs([*draft.agents, *draft.bodies], draft.bodies)
    draft.effects.append(Soft(pairs, draft.uniform(0.12, 0.25), draft.uniform(0.01, 0.04), draft.pick(0.0, 0.3)))


def _weak(draft: Draft) -> None:
    noise = max(draft.parts[draft.bodies[0]].noise, 0.0005)
    pairs = draft.pairs(draft.agents, draft.bodies)
    draft.effects.append(Soft(pairs, draft.uniform(0.1, 0.2), noise * draft.uniform(1.0, 3.0), 0.5))


def _spring(draft: Draft) -> None:
    others = draft.bodies if len(draft.bodies) > 1 else [*draft.agents, *draft.bodies]
    reach = draft.uniform(0.2, 0.35)
    pairs = draft.pairs(others, draft.bodies)
    draft.effects.append(Spring(pairs, reach, 0.5 * reach, draft.uniform(0.05, 0.2)))


def _magnet(draft: Draft) -> None:
    magnet = Part("magnet", ("x", "y", "vx", "vy", "flag"), speed=draft.pick(0.0, 0.02), flip=0.1)
    magnets = draft.add(draft.look(magnet, hide=False), draft.pick(1, 2))
    pairs = draft.pairs(magnets, draft.bodies)
    draft.effects.append(Magnet(pairs, draft.uniform(0.2, 0.35), draft.uniform(0.01, 0.03)))


def _drag(draft: Draft) -> None:
    pairs = draft.pairs(draft.agents, draft.bodies)
    draft.effects.append(Drag(pairs, draft.uniform(0.1, 0.16), draft.uniform(0.4, 0.6), draft.pick(0.0, 0.2)))


def _latch(draft: Draft) -> None:
    draft.effects.append(Latch(draft.pairs(draft.agents, draft.bodies), draft.uniform(0.1, 0.16), 0.4))


def _fan(draft: Draft, switch: int = -1) -> None:
    fan = Part(
        "fan" if switch < 0 else "blower",
        ("x", "y", "level"),
        level_rule="turn",
        level_rate=draft.uniform(0.03, 0.2),
        noise=draft.pick(0.0, 0.01),
    )
    fans = draft.add(draft.look(fan, hide=False), draft.pick(1, 1, 2))
    wind = (0.0, draft.uniform(0.01, 0.03)) if draft.chance(0.5) else (draft.uniform(0.01, 0.03), 0.0)
    high = draft.uniform(0.4, 0.7)
    draft.effects.append(Fan(draft.pairs(fans, draft.bodies), draft.uniform(0.1, 0.25), high, wind, switch))


def _switch(draft: Draft) -> None:
    button = Part("button", ("x", "y", "flag"), flip=0.1)
    (node,) = draft.add(draft.look(button, hide=False))
    draft.effects.append(Press(draft.pairs([*draft.agents, *draft.bodies], [node]), draft.uniform(0.1, 0.18)))
    _fan(draft, switch=node)


def _carrier(draft: Draft) -> None:
    platform = Part("platform", speed=draft.uniform(0.015, 0.03), walls="bounce")
    platforms = draft.add(draft.look(platform, hide=False), draft.pick(1, 2))
    draft.effects.append(Ride(draft.pairs(platforms, draft.bodies), draft.uniform(0.1, 0.2), draft.pick(1.0, 0.8)))


def _support(draft: Draft) -> None:
    noise = draft.pick(0.0, 0.0005)
    block = Part("block", speed=0.0, keep=0.5, walls="stick", gravity=draft.uniform(0.01, 0.02), noise=noise)
    blocks = draft.add(draft.look(block, hide=draft.chance(0.3)), draft.pick(2, 3))
    half = draft.uniform(0.15, 0.25)
    draft.effects.append(Rest(draft.pairs(blocks, blocks), half, half))
    draft.effects.append(Push(draft.pairs(draft.agents, blocks), 0.1, 1.0))


def _delayed(draft: Draft) -> None:
    draft.effects.append(Touch(draft.pairs(draft.agents, draft.bodies), draft.uniform(0.1, 0.18)))


def _arm(draft: Draft) -> None:
    """Add an arm with a hand on it, which pushes only while the arm is stretched."""
    motion = {"gain": draft.uniform(0.01, 0.02), "keep": 0.5, "walls": "stick", **draft.noise()}
    arm = Part("arm", ("x", "y", "vx", "vy", "level"), level_rule="follow", level_rate=0.4, **motion)
    hand = Part("hand", **motion)
    (arm_node,) = draft.add(draft.look(arm, hide=False))
    draft.drive(arm_node, draft.action("bend", 3))
    (hand_node,) = draft.add(draft.look(hand, hide=False))
    if len(draft.actions) < 4 and draft.chance(0.5):
        draft.drive(hand_node, draft.action("turn", 2))
    draft.effects.append(Hang(((arm_node, hand_node),), draft.pick(1.0, 0.8)))
    helper = arm_node
    draft.effects.append(Push(draft.pairs([hand_node], draft.bodies), draft.uniform(0.1, 0.16), 1.0, helper=helper))


def _click(draft: Draft) -> None:
    node, columns = draft.action("click", 2)
    draft.points.append(list(draft.actions)[~node])
    pairs = tuple((node, j) for j in draft.bodies)
    draft.effects.append(Click(pairs, (columns[0], columns[1]), draft.uniform(0.15, 0.25), draft.uniform(0.015, 0.04)))


def _tank(draft: Draft) -> None:
    noise = draft.pick(0.0, 0.002, 0.01)
    tank = Part("tank", ("level",), level_rule="decay", level_rate=draft.pick(0.0, 0.02), noise=noise)
    tanks = draft.add(draft.look(tank, hide=False), draft.pick(2, 3))
    valve, columns = draft.action("valve", 1)
    for one, two in itertools.pairwise(tanks):
        pairs = ((one, two), (two, one))
        draft.effects.append(Flow(pairs, valve, columns[0], draft.uniform(0.1, 0.4), draft.uniform(-0.2, 0.6)))


_ADD: dict[str, Callable[[Draft], None]] = {
    "push": _push,
    "elastic": _elastic,
    "soft": _soft,
    "weak": _weak,
    "drag": _drag,
    "fan": _fan,
    "carrier": _carrier,
    "arm": _arm,
    "inelastic": _inelastic,
    "spring": _spring,
    "magnet": _magnet,
    "latch": _latch,
    "switch": _switch,
    "support": _support,
    "delayed": _delayed,
    "click": _click,
    "tank": _tank,
    **ADD_STRANGE,
    **ADD_FOREIGN,
    **ADD_NOVEL,
}
