"""Slow and literal: one step of the sprites in plain Python floats, and Algorithm 1 pair by pair."""

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.sparse.csgraph import connected_components


@dataclass
class Sprite:
    x: float
    y: float
    vx: float
    vy: float


@dataclass
class Report:
    """What happened in one step: the new sprites, and which rules were used."""

    sprites: list[Sprite]
    acted: int | None
    hits: dict[int, int] = field(default_factory=dict)  # mover -> the sprite that it hit
    corners: set[int] = field(default_factory=set)  # movers that only the square stopped
    walls: set[int] = field(default_factory=set)

    @property
    def state(self):
        return [value for s in self.sprites for value in (s.x, s.y, s.vx, s.vy)]

    @property
    def mask(self):
        n = len(self.sprites)
        rows = [[source == target for target in range(n)] for source in range(n + 1)]
        for mover, other in self.hits.items():
            rows[other][mover] = True
        if self.acted is not None:
            rows[n][self.acted] = True
        return rows


def clip(value, low, high):
    return low if value < low else high if value > high else value


def distance(ax, ay, bx, by):
    return math.sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by))


def inside_square(x, y, sprite):
    return abs(x - sprite.x) < 0.075 and abs(y - sprite.y) < 0.075


def find_acted(sprites, cx, cy, rule):
    if rule == "reverse":
        return next((i for i, s in enumerate(sprites) if inside_square(cx, cy, s)), None)
    distances = [distance(s.x, s.y, cx, cy) for s in sprites]
    return distances.index(min(distances))


def scalar_step(state, action, noise, rule="redirect"):
    """One step of one row, by rules 1 to 8 of the original."""
    sprites = [Sprite(*map(float, state[i : i + 4])) for i in range(0, len(state), 4)]
    cx, cy = (float(action[0]) + 1) / 2, (float(action[1]) + 1) / 2
    acted = find_acted(sprites, cx, cy, rule)
    if acted is not None:
        s = sprites[acted]
        if rule == "redirect":
            z = distance(s.x, s.y, cx, cy)
            new = (1 - z) * math.atan2(s.vy, s.vx) + z * math.atan2(s.y - cy, s.x - cx)
            speed = math.sqrt(s.vx * s.vx + s.vy * s.vy)
            s.vx, s.vy = speed * math.cos(new), speed * math.sin(new)
        else:
            s.vx, s.vy = -s.vx, -s.vy
        s.vx = clip(s.vx + float(noise[2 * acted]), -0.08, 0.08)
        s.vy = clip(s.vy + float(noise[2 * acted + 1]), -0.08, 0.08)
    report = Report(sprites, acted)
    for i in range(len(sprites)):
        move(i, report)
    return report


def move(i, report):
    s = report.sprites[i]
    old = s.x, s.y
    s.x, s.y = s.x + s.vx, s.y + s.vy
    if s.x >= 1 or s.x <= 0 or s.y >= 1 or s.y <= 0:
        report.walls.add(i)
        flip(s)
        s.x, s.y = clip(s.x, 0.0, 1.0), clip(s.y, 0.0, 1.0)
    if (s.x, s.y) == old and s.vx == 0 and s.vy == 0:
        return
    for j, other in enumerate(report.sprites):
        if j == i:
            continue
        near = distance(s.x, s.y, other.x, other.y) < 0.1
        if near or inside_square(s.x, s.y, other):
            report.hits[i] = j
            if not near:
                report.corners.add(i)
            s.x, s.y = old
            flip(s)
            return


def flip(s):
    s.vx, s.vy = clip(-s.vx, -0.08, 0.08), clip(-s.vy, -0.08, 0.08)


@dataclass
class Outcome:
    nontrivial: int  # proposals that are neither base nor donor
    accepted: int
    agreed: int  # of the accepted ones, how many the world confirms, bit for bit

    @property
    def agreement(self):
        return self.agreed / self.accepted


@cache  # few graphs are different
def components(nodes, edges):
    """Label the nodes of an adjacency matrix, given as bytes, by their component."""
    graph = np.frombuffer(edges, bool).reshape(nodes, nodes)
    return connected_components(graph, directed=False)[1]


def literal_coda(world, data, pairs, rng, *, told_noise=True, validate=True):
    """Algorithm 1 for random pairs, then every accepted proposal is put back with its swapped noise.

    Context factors must agree, are never swapped, and their edges tie nothing together.
    """
    f = world.factors
    N, context = f.n + f.m, f.nodes(*f.context)
    mask = world.mask(data.state, data.action, data.noise if told_noise else None)
    base, donor = rng.integers(len(data), size=(2, pairs))
    for name in f.context:
        own = list(f.state[name])
        agree = (data.state[base][:, own] == data.state[donor][:, own]).all(axis=1)
        base, donor = base[agree], donor[agree]
    chosen = np.zeros((len(base), N), bool)
    for p in range(len(base)):
        edges = np.zeros((N, N), bool)
        edges[:, : f.n] = mask[base[p]] | mask[donor[p]]
        edges[context] = False
        chosen[p] = rng.integers(2, size=N).astype(bool)[components(N, edges.tobytes())] & ~context
    kept = chosen.any(axis=1) & ~chosen[:, ~context].all(axis=1)
    base, donor, chosen = base[kept], donor[kept], chosen[kept]

    def mix(column, owner):
        return np.where(chosen[:, owner], column[donor], column[base])

    state, after = mix(data.state, f.state_owner), mix(data.next_state, f.state_owner)
    action, noise = mix(data.action, f.action_owner), mix(data.noise, world.noise_owner)
    found = world.mask(state, action, noise if told_noise else None)
    found[:, context] = False
    crossed = (found & (chosen[:, :, None] != chosen[:, None, : f.n])).any(axis=(1, 2))
    valid = ~crossed if validate else np.ones(len(base), bool)
    right = (world.step(state, action, noise) == after).all(axis=1)
    return Outcome(len(base), int(valid.sum()), int((valid & right).sum()))
