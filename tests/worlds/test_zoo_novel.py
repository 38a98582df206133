"""The novel kinds of influence: each comes and goes, leaves no edge out, and does what its name says."""

import itertools

import numpy as np
import pytest

from counterpoint.worlds import Zoo
from counterpoint.worlds.zoo import FOREIGN, KINDS, NOVEL, STRANGE
from counterpoint.worlds.zoo.obstacles import Badge, Breakaway, Pulley, Queue, Sweep
from counterpoint.worlds.zoo.scene import Change, Scene
from counterpoint.worlds.zoo.supply import Budget, Circuit, Suction
from tests.worlds.test_zoo import keeps_all_promises
from tests.worlds.test_zoo_foreign import missed_edges
from tests.worlds.test_zoo_strange import acted, came_and_went, edges


def acted_with(effect, action, *bodies):
    """Apply an effect to one scene with one action factor of one column."""
    body = np.array([[*fields, *[0.0] * (6 - len(fields))] for fields in bodies])[None]
    change = Change.none(1, len(bodies), 1)
    effect(Scene(body, np.array([[action]])), change)
    return change


@pytest.mark.parametrize("kind", NOVEL)
def test_a_novel_influence_is_there_in_part_of_the_transitions(kind):
    shares = np.array([came_and_went(Zoo(seed, kinds=(kind,))).mean() for seed in range(8)])
    assert np.mean((shares > 0.005) & (shares < 0.4)) > 0.7
    assert min(shares) > 0.0
    assert max(shares) < 0.75


@pytest.mark.parametrize("kind", NOVEL)
def test_no_single_edge_is_missing(kind):
    assert sum(missed_edges(Zoo(seed, kinds=(kind,))) for seed in range(8)) == 0


def test_novel_kinds_with_noise_and_hidden_velocities_keep_all_promises():
    worlds = [Zoo(seed, kinds=NOVEL) for seed in range(100)]
    parts = [world.blueprint.observation.cast.parts for world in worlds]
    hard = [
        world
        for world, cast in zip(worlds, parts, strict=True)
        if any(p.hidden for p in cast) and any(p.noise for p in cast)
    ]
    assert {kind for world in hard for kind in world.drawn} == set(NOVEL)
    assert sum(map(keeps_all_promises, hard[:15])) > 500


def test_novel_kinds_appear_when_asked_for_alone_or_with_others():
    assert {kind for seed in range(40) for kind in Zoo(seed, kinds=NOVEL).drawn} == set(NOVEL)
    everything = (*KINDS, *STRANGE, *FOREIGN, *NOVEL)
    assert {kind for seed in range(160) for kind in Zoo(seed, kinds=everything).drawn} == set(everything)


def test_no_world_has_novel_kinds_unasked():
    assert not {*KINDS, *STRANGE, *FOREIGN} & set(NOVEL)
    assert not {kind for seed in range(60) for kind in Zoo(seed).drawn} & set(NOVEL)


def test_badges_are_worn_by_factors_of_several_widths():
    worlds = [Zoo(seed, kinds=("badge",)) for seed in range(20)]
    casts = [{part.name: part.width for part in world.blueprint.observation.cast.parts} for world in worlds]
    widths = [(cast["visitor"], cast["courier"]) for cast in casts if "courier" in cast]
    assert widths
    assert all(courier == visitor + 2 for visitor, courier in widths)


@pytest.mark.parametrize(("action", "pressure", "holds"), [(0.5, 0.8, True), (-0.5, 0.8, False), (0.5, 0.3, False)])
def test_a_suction_cup_needs_its_valve_and_its_pump(action, pressure, holds):
    suction = Suction(((0, 1),), 0.1, 0.2, 2, 0.5, ~0, 0, 0.5)
    pump = (0.0, 0.0, 0.0, 0.0, pressure)
    change = acted_with(suction, action, (0.5, 0.5, 0.04, 0.02), (0.55, 0.4), pump)
    assert edges(change) == ({(0, 1), (2, 1), (3, 1)} if holds else set())
    assert change.held.tolist() == [[False, holds, False]]
    assert np.allclose(change.velocity[0, 1], [holds * 0.02, holds * 0.01])


@pytest.mark.parametrize("elsewhere", [(0.5, 0.55), (0.5, 0.25), (0.65, 0.4)])
def test_a_suction_cup_holds_only_what_is_below(elsewhere):
    suction = Suction(((0, 1),), 0.1, 0.2, 2, 0.5, ~0, 0)
    assert edges(acted_with(suction, 1.0, (0.5, 0.5), elsewhere, (0.0, 0.0, 0.0, 0.0, 1.0))) == set()


@pytest.mark.parametrize(("gap", "left"), [(0.25, 0.04), (0.15, 0.02), (0.05, 0.0)])
def test_a_cart_stops_behind_the_one_ahead(gap, left):
    queue = Queue((0, 1), (), 0.1, 0.2)
    change = acted(queue, (0.5, 0.5, 0.04), (0.5 + gap, 0.45, 0.01))
    assert edges(change) == ({(1, 0)} if gap < 0.2 else set())
    assert np.allclose(0.04 + change.shift[0, 0, 0], left)
    assert not change.shift[0, 1].any()


def test_a_cart_looks_ahead_round_the_ring_in_its_lane_and_at_those_that_go_its_way():
    queue = Queue((0, 1), (), 0.1, 0.2)
    assert edges(acted(queue, (0.95, 0.5, 0.04), (0.1, 0.5, 0.04))) == {(1, 0)}
    assert edges(acted(queue, (0.95, 0.5, -0.04), (0.1, 0.5, -0.04))) == {(0, 1)}
    for other in [(0.1, 0.65, 0.04), (0.1, 0.5, -0.04), (0.2, 0.5, 0.04)]:
        assert edges(acted(queue, (0.95, 0.5, 0.04), other)) == set()


def test_a_queue_goes_as_fast_as_the_nearest_lets_it_and_asks_all_in_the_gap():
    queue = Queue((0, 1), (2,), 0.1, 0.2)
    cart, ahead, red = (0.5, 0.5, 0.04), (0.68, 0.5, 0.04), (0.65, 0.9, 0.0, 0.0, 0.0, 1.0)
    change = acted(queue, cart, ahead, red)
    assert edges(change) == {(1, 0), (2, 0)}
    assert np.allclose(change.shift[0], [[-0.02, 0.0], [0.0, 0.0], [0.0, 0.0]])
    assert edges(acted(queue, cart, ahead, red[:5])) == {(1, 0)}


@pytest.mark.parametrize(("colour", "badge", "x", "push"), [(1, 0, 0.55, 0.03), (0, 1, 0.45, -0.03), (1, 1, 0.55, 0.0)])
def test_a_door_drives_back_the_wrong_badge(colour, badge, x, push):
    door = Badge(((0, 1),), (0.1, 0.2), 0.03)
    change = acted(door, (0.5, 0.5, 0.0, 0.0, 0.0, colour), (x, 0.6, 0.0, 0.0, 0.0, badge))
    assert edges(change) == ({(0, 1)} if push else set())
    assert np.allclose(change.velocity[0, 1], [push, 0.0])
    for outside in [(0.65, 0.5), (0.5, 0.75)]:
        assert edges(acted(door, (0.5, 0.5, 0.0, 0.0, 0.0, 1.0), outside)) == set()


@pytest.mark.parametrize(
    ("level", "place", "hit"),
    [
        (0.95, (0.6, 0.5), (0.0, 0.02)),
        (0.2, (0.5, 0.7), (-0.04, 0.0)),
        (0.45, (0.4, 0.5), (0.0, -0.02)),
        (0.7, (0.5, 0.4), (0.02, 0.0)),
        (0.85, (0.6, 0.5), None),
        (0.05, (0.6, 0.5), None),
        (0.95, (0.8, 0.5), None),
    ],
)
def test_an_arm_hits_what_is_in_its_sweep(level, place, hit):
    sweep = Sweep(((0, 1),), 0.25, 0.1, 0.05, 0.03)
    change = acted(sweep, (0.5, 0.5, 0.0, 0.0, level), place)
    assert edges(change) == ({(0, 1), (1, 0)} if hit else set())
    assert np.allclose(change.velocity[0, 1], hit or 0.0)
    assert np.allclose(change.level[0, 0], -0.03 if hit else 0.0)


def test_a_circuit_needs_something_on_both_contacts():
    circuit = Circuit((2, 3, 4), (0, 1), 5, 0.1, 0.3)
    contacts, motor = [(0.2, 0.5), (0.8, 0.5)], (0.0,)
    left, right, away = (0.25, 0.5), (0.8, 0.55), (0.5, 0.5)
    change = acted(circuit, *contacts, left, right, away, motor)
    assert edges(change) == {(0, 5), (1, 5), (2, 5), (3, 5)}
    assert np.allclose(change.level[0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.3])
    for bodies in [(left, left, away), (away, away, away), (right, away, right)]:
        assert edges(acted(circuit, *contacts, *bodies, motor)) == set()


@pytest.mark.parametrize(("on", "action", "short"), [(1.0, -1.0, False), (0.0, -1.0, True), (1.0, 0.5, True)])
def test_power_is_short_for_all_or_for_none(on, action, short):
    budget = Budget((0, 1), 2, 1.5, 0.3, 0.5, ~0, 0)
    machines = [(0.1, 0.1, 0.04, 0.0, 0.9), (0.9, 0.9, 0.0, 0.02, 0.5)]
    change = acted_with(budget, action, *machines, (0.0, 0.0, 0.0, 0.0, 0.0, on))
    everyone = {(source, target) for source, target in itertools.product(range(4), (0, 1)) if source != target}
    assert edges(change) == (everyone if short else set())
    assert np.allclose(change.shift[0], short * np.array([[-0.02, 0.0], [0.0, -0.01], [0.0, 0.0]]))


@pytest.mark.parametrize("firm", [True, False])
def test_a_band_over_a_peg_pulls_while_its_two_parts_are_too_long(firm):
    pulley, peg = Pulley((0, 1), 2, 1.0, 0.01, firm), (0.5, 0.5)
    assert edges(acted(pulley, (0.1, 0.5), (0.5, 0.9), peg)) == set()
    assert edges(acted(pulley, (0.45, 0.5), (0.5, 0.9), peg)) == set()
    change = acted(pulley, (0.0, 0.5), (0.5, 1.01), peg)
    assert edges(change) == {(0, 1), (2, 1)} | (set() if firm else {(1, 0), (2, 0)})
    assert np.allclose(change.velocity[0], [[0.0 if firm else 0.01, 0.0], [0.0, -0.01], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("x", "speed", "moved"), [(0.4, 0.03, 0.015), (0.4, 0.01, 0.0), (0.4, -0.03, 0.0), (0.2, 0.03, 0.0)]
)
def test_a_crate_sticks_unless_it_is_hit_hard(x, speed, moved):
    change = acted(Breakaway(((0, 1),), 0.15, 0.02, 0.5), (x, 0.5, speed, 0.04), (0.5, 0.5))
    assert edges(change) == ({(0, 1)} if moved else set())
    assert np.allclose(change.velocity[0, 1], [moved, 0.0])
