from dataclasses import replace

import numpy as np
import pytest

from counterpoint.worlds import Room, check_world, collect, uniform_policy
from tests.worlds.scalar_sprites import literal_coda


def experience(world, seed=0):
    return collect(world, uniform_policy(world), 6000, np.random.default_rng(seed), episode_length=20)


def scalar_step(room, puck, ball, push):
    """The rules, body by body and axis by axis."""
    result = []
    for body, force in ((puck, push), (ball, (0.0, 0.0))):
        position, velocity = list(body[:2]), list(body[2:])
        for axis in (0, 1):
            velocity[axis] = velocity[axis] * (1.0 if room == 1 else 0.5) + 0.02 * force[axis]
            position[axis] += velocity[axis]
            if position[axis] < 0 or position[axis] > 1:
                velocity[axis] = -velocity[axis]
                position[axis] = min(max(position[axis], 0.0), 1.0)
        result += position + velocity
    return result


def test_the_step_is_that_of_the_rules_hidden_or_not():
    world, hidden, rng = Room(dtype=np.float64), Room(hidden=True), np.random.default_rng(0)
    state, action = world.reset(500, rng), rng.uniform(-1, 1, (500, 2))
    state[:50, 1:3] = rng.integers(2, size=(50, 2))  # some pucks at a wall
    after = world.step(state, action)
    expected = [scalar_step(s[0], s[1:5], s[5:], a) for s, a in zip(state, action, strict=True)]
    np.testing.assert_allclose(after[:, 1:], expected, atol=1e-15)
    np.testing.assert_array_equal(after[:, 0], state[:, 0])
    np.testing.assert_array_equal(hidden.step(state[:, 1:], action, state[:, :1]), after[:, 1:])
    assert set(state[:, 0]) == {0.0, 1.0}
    assert (np.sign(after[:, 3]) != np.sign(state[:, 3])).any()


@pytest.mark.parametrize("hidden", [False, True])
def test_the_world_keeps_the_contract(hidden):
    check_world(Room(hidden=hidden), np.random.default_rng(0))


def test_the_visible_graph_is_what_a_perturbation_shows():
    world, rng = Room(dtype=np.float64), np.random.default_rng(0)
    state, action = world.reset(300, rng), rng.uniform(-0.9, 0.9, (300, 2))
    before, mask = world.step(state, action), world.mask(state, action)
    groups = {"room": slice(0, 1), "puck": slice(1, 5), "ball": slice(5, 9)}
    for source, columns in groups.items():
        moved = state.copy()
        moved[:, columns] = 1 - state[:, columns] if source == "room" else state[:, columns] + 1e-4
        changed = world.step(moved, action) != before
        for column, target in enumerate(groups.values()):
            row = list(groups).index(source)
            np.testing.assert_array_equal(changed[:, target].any(axis=1), mask[:, row, column])
    changed = world.step(state, action + 0.05) != before
    np.testing.assert_array_equal(
        np.stack([changed[:, target].any(axis=1) for target in groups.values()], axis=1), mask[:, 3]
    )


def test_with_the_room_as_context_every_swap_is_right():
    world = Room()
    outcome = literal_coda(world, experience(world), 2000, np.random.default_rng(1))
    assert outcome.accepted > 300
    assert outcome.agreed == outcome.accepted


def test_with_the_room_hidden_half_of_the_swaps_are_wrong():
    world = Room(hidden=True)
    outcome = literal_coda(world, experience(world), 2000, np.random.default_rng(1))
    assert outcome.accepted == outcome.nontrivial > 300  # the mask sees nothing wrong
    assert outcome.agreement == pytest.approx(0.5, abs=0.05)


def test_the_wrong_share_is_the_share_of_pairs_from_different_rooms():
    world = Room(hidden=True, icy=0.1)
    outcome = literal_coda(world, experience(world), 3000, np.random.default_rng(1))
    icy = experience(world).noise.mean()
    assert outcome.agreement == pytest.approx(1 - 2 * icy * (1 - icy), abs=0.03)


def test_a_visible_room_that_is_not_declared_leaves_nothing_to_swap():
    world = Room()
    object.__setattr__(world, "factors", replace(world.factors, context=()))
    outcome = literal_coda(world, experience(Room()), 500, np.random.default_rng(1))
    assert outcome.accepted == 0


def test_a_hidden_room_lasts_for_an_episode():
    data = experience(Room(hidden=True))
    same = data.episode[1:] == data.episode[:-1]
    assert (data.noise[1:] == data.noise[:-1])[same].all()
    assert 0.4 < (data.noise[1:] == data.noise[:-1])[~same].mean() < 0.6


def test_settings_are_checked():
    for icy in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="icy: expected a share between 0 and 1, got"):
            Room(icy=icy)
    with pytest.raises(ValueError, match=r"dtype: expected np.float32 or np.float64, got int64"):
        Room(dtype=int)
    with pytest.raises(ValueError, match=r"state: expected 8 columns \(puck, ball\), got 9"):
        Room(hidden=True).mask(np.zeros((1, 9)), np.zeros((1, 2)))
