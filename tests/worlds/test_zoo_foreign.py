"""The foreign kinds of influence: each comes and goes, leaves no edge out, and does what its name says."""

import numpy as np
import pytest

from counterpoint.worlds import Zoo, collect
from counterpoint.worlds.zoo import FOREIGN, KINDS, STRANGE
from counterpoint.worlds.zoo.beams import Hinge, RangeFinder
from counterpoint.worlds.zoo.encounters import Cure, Infect, Socket, Together
from counterpoint.worlds.zoo.machines import Catapult, Conveyor, Turnstile
from tests.worlds.test_zoo import keeps_all_promises
from tests.worlds.test_zoo_strange import acted, came_and_went, edges


def columns_of(world, node):
    """Return the columns of one factor in states, actions and noise, with its hidden fields."""
    factors, name = world.factors, world.factors.names[node]
    observation = world.blueprint.observation
    if node >= factors.n:
        return [], list(observation.actions[name]), []
    return list(observation.state_columns[name]), [], list(observation.noise_columns.get(name, ()))


def missed_edges(world, size=150):
    """Return how many targets differ in any bit after a swap of one factor that has no edge to them, then or before.

    Only one factor is taken from another row, so every edge is asked about alone, unlike in a counterfactual.
    """
    data = collect(world, world.policy, size, np.random.default_rng(world.seed))
    other = np.random.default_rng(1).permutation(size)
    before = world.step(data.state, data.action, data.noise)
    missed = 0
    for source in range(world.factors.n + world.factors.m):
        swapped = [data.state.copy(), data.action.copy(), data.noise.copy()]
        for array, columns in zip(swapped, columns_of(world, source), strict=True):
            array[:, columns] = array[other][:, columns]
        free = ~world.mask(data.state, data.action)[:, source] & ~world.mask(*swapped[:2])[:, source]
        after = world.step(*swapped)
        for target in range(world.factors.n):
            own = columns_of(world, target)[0]
            missed += int((free[:, target] & (before[:, own] != after[:, own]).any(axis=1)).sum())
    return missed


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_influence_is_there_in_part_of_the_transitions(kind):
    shares = np.array([came_and_went(Zoo(seed, kinds=(kind,))).mean() for seed in range(8)])
    assert np.mean((shares > 0.005) & (shares < 0.4)) > 0.7
    assert min(shares) > 0.0
    assert max(shares) < 0.75


@pytest.mark.parametrize("kind", FOREIGN)
def test_no_single_edge_is_missing(kind):
    assert sum(missed_edges(Zoo(seed, kinds=(kind,))) for seed in range(8)) == 0


def test_foreign_kinds_with_noise_and_hidden_velocities_keep_all_promises():
    worlds = [Zoo(seed, kinds=FOREIGN) for seed in range(100)]
    parts = [world.blueprint.observation.cast.parts for world in worlds]
    hard = [
        world
        for world, cast in zip(worlds, parts, strict=True)
        if any(p.hidden for p in cast) and any(p.noise for p in cast)
    ]
    assert {kind for world in hard for kind in world.drawn} == set(FOREIGN)
    assert sum(map(keeps_all_promises, hard[:15])) > 500


def test_foreign_kinds_appear_when_asked_for_alone_or_with_others():
    assert {kind for seed in range(40) for kind in Zoo(seed, kinds=FOREIGN).drawn} == set(FOREIGN)
    everything = (*KINDS, *STRANGE, *FOREIGN)
    assert {kind for seed in range(120) for kind in Zoo(seed, kinds=everything).drawn} == set(everything)


def test_no_world_has_foreign_kinds_unasked():
    assert not {*KINDS, *STRANGE} & set(FOREIGN)
    assert Zoo(0).kinds == KINDS
    assert not {kind for seed in range(60) for kind in Zoo(seed).drawn} & set(FOREIGN)


@pytest.mark.parametrize(("level", "carried"), [(1.0, 0.02), (0.5, 0.0), (0.0, -0.02)])
def test_a_belt_carries_what_lies_on_it_as_its_level_says(level, carried):
    belt, on = Conveyor(((0, 1),), (0.3, 0.1), (0.02, 0.0)), (0.5, 0.5, 0.0, 0.0, level, 1.0)
    change = acted(belt, on, (0.7, 0.55))
    assert np.allclose(change.shift[0, 1], [carried, 0.0])
    assert edges(change) == {(0, 1)}
    assert not change.velocity.any()
    for beside in [(0.9, 0.5), (0.5, 0.65)]:
        assert edges(acted(belt, on, beside)) == set()
    assert edges(acted(belt, (0.5, 0.5, 0.0, 0.0, level, 0.0), (0.7, 0.55))) == set()


@pytest.mark.parametrize(("speed", "left"), [(0.03, 0.03), (-0.03, 0.015)])
def test_a_turnstile_holds_up_what_goes_the_wrong_way(speed, left):
    gate = Turnstile(((0, 1),), (0.05, 0.2), 0, 1.0, 1.5)
    change = acted(gate, (0.5, 0.5), (0.52, 0.6, speed, 0.01))
    assert np.allclose(speed + change.velocity[0, 1, 0], left)
    assert change.velocity[0, 1, 1] == 0.0
    assert edges(change) == ({(0, 1)} if speed < 0.0 else set())
    assert edges(acted(gate, (0.5, 0.5), (0.58, 0.5, speed))) == set()


def test_a_charger_charges_the_nearest_and_makes_rivals_wait():
    socket = Socket(0, (1, 2, 3), 0.2, 0.5)
    change = acted(socket, (0.5, 0.5), (0.6, 0.5, 0, 0, 0.2), (0.5, 0.35, 0, 0, 0.4), (0.9, 0.9, 0, 0, 0.1))
    assert np.allclose(change.level[0], [0.0, 0.4, 0.0, 0.0])
    assert edges(change) == {(0, 1), (0, 2), (1, 2), (2, 1)}
    assert edges(acted(socket, (0.5, 0.5), (0.1, 0.5), (0.5, 0.9), (0.9, 0.9))) == set()


@pytest.mark.parametrize(("level", "fires"), [(0.65, True), (0.55, False), (0.75, False)])
def test_a_catapult_fires_in_one_step(level, fires):
    catapult = Catapult(((0, 1), (0, 2)), 0.2, 0.7, 0.1, (0.05, 0.02), 0.5)
    change = acted(catapult, (0.5, 0.5, 0.0, 0.0, level), (0.6, 0.5), (0.9, 0.5))
    assert edges(change) == ({(0, 1), (1, 0)} if fires else set())
    assert np.allclose(change.velocity[0], fires * np.array([[-0.025, -0.01], [0.05, 0.02], [0.0, 0.0]]))


def test_an_infection_spreads_from_the_ill_and_is_cured_by_the_near():
    ill, well = (0.5, 0.5, 0.0, 0.0, 0.0, 1.0), (0.55, 0.5)
    change = acted(Infect(((0, 1), (1, 0)), 0.1), ill, well)
    assert edges(change) == {(0, 1)}
    assert change.set_on.tolist() == [[False, True]]
    assert edges(acted(Infect(((0, 1), (1, 0)), 0.1), ill, (0.7, 0.5))) == set()
    assert acted(Cure(((1, 0),), 0.1), ill, well).set_off.tolist() == [[True, False]]


def test_a_range_finder_reads_the_nearest_and_looks_at_all_in_its_beam():
    finder = RangeFinder(((1, 4), (2, 4), (3, 4)), 0, 0, 1.0, 0.5, 0.1, 0.8)
    change = acted(finder, (0.2, 0.5), (0.6, 0.5), (0.4, 0.55), (0.3, 0.8), (0.0,))
    assert np.allclose(change.level[0, 4], 0.8 * (1.0 - 0.75 * 0.4))
    assert edges(change) == {(0, 4), (1, 4), (2, 4)}
    assert edges(acted(finder, (0.2, 0.5), (0.1, 0.5), (0.8, 0.5), (0.3, 0.8), (0.0,))) == set()


@pytest.mark.parametrize(("y", "speed", "swing"), [(0.55, -0.04, -0.04), (0.45, 0.04, 0.04), (0.55, 0.04, 0.0)])
def test_a_bar_swings_away_from_what_comes_against_it(y, speed, swing):
    change = acted(Hinge(((0, 1),), 0.4, 0.1, 2.0, 1.0), (0.7, y, 0.01, speed), (0.5, 0.5))
    assert np.allclose(change.level[0, 1], swing)
    assert np.allclose(change.velocity[0, 0], [0.0, -speed if swing else 0.0])
    assert edges(change) == {(0, 1), (1, 0)}


def test_a_bar_at_a_level_of_one_points_up():
    upright = Hinge(((0, 1),), 0.4, 0.1, 2.0)
    assert edges(acted(upright, (0.5, 0.7), (0.5, 0.5, 0.0, 0.0, 1.0))) == {(0, 1)}
    assert edges(acted(upright, (0.7, 0.5), (0.5, 0.5, 0.0, 0.0, 1.0))) == set()


def test_a_heavy_box_needs_two():
    together = Together(((0, 3), (1, 3), (2, 3)), 0.2, 0.02, 0.5)
    far = (0.1, 0.1)
    assert edges(acted(together, (0.4, 0.5), far, far, (0.5, 0.5))) == set()
    change = acted(together, (0.4, 0.5, 0.04), (0.5, 0.4), far, (0.5, 0.5))
    assert edges(change) == {(0, 3), (1, 3)}
    assert np.allclose(change.velocity[0, 3], [0.02 + 0.02, 0.02])
