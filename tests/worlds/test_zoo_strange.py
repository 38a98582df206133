"""The strange kinds of influence: each comes and goes, and does what its name says."""

import numpy as np
import pytest

from counterpoint.worlds import Zoo, collect
from counterpoint.worlds.zoo import KINDS, STRANGE
from counterpoint.worlds.zoo.events import Cross, Flee, Portal, Warm
from counterpoint.worlds.zoo.pulls import Light, Rope, Slipstream, Whirl
from counterpoint.worlds.zoo.scene import Change, Scene


def acted(effect, *bodies):
    """Apply an effect to one scene; a body is x, y, vx, vy, level and flag, with zeros left out at the end."""
    body = np.array([[*fields, *[0.0] * (6 - len(fields))] for fields in bodies])[None]
    change = Change.none(1, len(bodies), 0)
    effect(Scene(body, np.zeros((1, 0))), change)
    return change


def edges(change):
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(change.mask[0]), strict=True) if i != j}


def came_and_went(world, size=500):
    """Return which rows have an edge besides those of factors to themselves and of actions that always act."""
    data = collect(world, world.policy, size, np.random.default_rng(world.seed))
    mask = world.mask(data.state, data.action)
    mask[:, np.arange(world.factors.n), np.arange(world.factors.n)] = False
    for node, actions in enumerate(world.blueprint.movers):
        mask[:, [world.factors.n + ~action for action in actions], node] = False
    return mask.any(axis=(1, 2))


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_influence_is_there_in_part_of_the_transitions(kind):
    shares = [came_and_went(Zoo(seed, kinds=(kind,))).mean() for seed in range(8)]
    assert 0.01 < np.mean(shares) < 0.6
    assert min(shares) > 0.0
    assert max(shares) < 0.75


def test_strange_kinds_appear_when_asked_for_alone_or_with_others():
    assert {kind for seed in range(40) for kind in Zoo(seed, kinds=STRANGE).drawn} == set(STRANGE)
    mixed = {kind for seed in range(120) for kind in Zoo(seed, kinds=(*KINDS, *STRANGE)).drawn}
    assert mixed == {*KINDS, *STRANGE}


def test_no_world_has_strange_kinds_unasked():
    assert not set(KINDS) & set(STRANGE)
    assert not {kind for seed in range(60) for kind in Zoo(seed).drawn} & set(STRANGE)


def test_a_rope_pulls_only_while_it_is_taut():
    rope = Rope(((0, 1),), 0.4, 0.1, 1.0)
    assert edges(acted(rope, (0.1, 0.5), (0.4, 0.5, 0.02))) == set()
    taut = acted(rope, (0.1, 0.5), (0.6, 0.5, 0.02))
    assert edges(taut) == {(0, 1)}
    assert np.allclose(taut.velocity[0, 1], [-0.1 * 0.1 - 0.02, 0.0])


def test_a_slipstream_is_behind_a_moving_source():
    wake = Slipstream(((0, 1),), 0.3, 0.8, 0.5)
    boat = (0.5, 0.5, 0.04, 0.0)
    assert np.allclose(acted(wake, boat, (0.4, 0.5)).velocity[0, 1], [0.02, 0.0])
    for elsewhere in [(0.6, 0.5), (0.5, 0.6), (0.1, 0.5)]:
        assert edges(acted(wake, boat, elsewhere)) == set()
    assert edges(acted(wake, (0.5, 0.5), (0.4, 0.5))) == set()


@pytest.mark.parametrize(("level", "sideways"), [(1.0, 0.02), (0.0, -0.02), (0.5, 0.0)])
def test_a_whirl_drags_sideways_as_its_level_says(level, sideways):
    change = acted(Whirl(((0, 1),), 0.3, 0.02), (0.5, 0.5, 0.0, 0.0, level), (0.6, 0.5))
    assert np.allclose(change.velocity[0, 1], [0.0, sideways])
    assert edges(change) == {(0, 1)}


def test_a_lamp_asks_all_screens_before_it_shines():
    light = Light(((0, 1),), 0.5, 0.02, (2,), 0.1)
    assert edges(acted(light, (0.2, 0.5), (0.6, 0.5), (0.4, 0.55))) == set()
    for beside in [(0.4, 0.7), (0.1, 0.5), (0.7, 0.5)]:
        lit = acted(light, (0.2, 0.5), (0.6, 0.5), beside)
        assert edges(lit) == {(0, 1), (2, 1)}
        assert np.allclose(lit.velocity[0, 1], [0.02, 0.0])


def test_heat_evens_out_levels_and_moves_nothing():
    change = acted(Warm(((0, 1), (1, 0)), 0.2, 0.5), (0.5, 0.5, 0.0, 0.0, 1.0), (0.6, 0.5))
    assert np.allclose(change.level, [[-0.5, 0.5]])
    assert not change.velocity.any()
    assert not change.shift.any()


@pytest.mark.parametrize(("x", "speed", "rings"), [(0.48, 0.03, True), (0.48, 0.01, False), (0.52, -0.03, True)])
def test_a_bell_rings_in_the_step_that_crosses_the_wire(x, speed, rings):
    change = acted(Cross(((0, 1),), 2, 0.7), (x, 0.1, speed), (0.0,), (0.5, 0.9))
    assert edges(change) == ({(0, 1), (2, 1)} if rings else set())
    assert change.level[0, 1] == (0.7 if rings else 0.0)


def test_a_sheep_runs_from_the_nearest_and_looks_at_all_in_sight():
    flee = Flee(((0, 3), (1, 3), (2, 3)), 0.3, 0.02)
    change = acted(flee, (0.3, 0.5), (0.5, 0.6), (0.5, 0.9), (0.5, 0.5))
    assert edges(change) == {(0, 3), (1, 3)}
    assert np.allclose(change.velocity[0, 3], [0.0, -0.02])


def test_a_portal_leads_from_one_door_to_the_other():
    change = acted(Portal(((0, 1),), 2, 0.1), (0.2, 0.2), (0.25, 0.2), (0.8, 0.6))
    assert np.allclose(change.shift[0, 1], [0.6, 0.4])
    assert edges(change) == {(0, 1), (2, 1)}
    assert edges(acted(Portal(((0, 1),), 2, 0.1), (0.2, 0.2), (0.5, 0.2), (0.8, 0.6))) == set()
