import numpy as np
import pytest

from counterpoint.worlds import Place, Sprites, collect, place_policy, uniform_policy
from counterpoint.worlds.place import TARGETS, TASKS

PAPER_SETTING = {"episode_length": 50, "reset_probability": 0.0, "environments": 500}


def state_with(*placed):
    """One state in which exactly these sprites are on their targets, the others on the opposite ones."""
    state = np.zeros((1, 4, 4))
    for sprite in range(4):
        state[0, sprite, :2] = TARGETS[sprite] if sprite in placed else TARGETS[3 - sprite]
    return state.reshape(1, 16)


def reward(task, state):
    return float(task(np.zeros_like(state), np.zeros((len(state), 2)), state)[0])


def test_the_last_sprites_count():
    for count in (1, 2, 3, 4):
        for sprite in range(4):
            counts = sprite >= 4 - count
            assert reward(Place(count), state_with(sprite)) == pytest.approx(counts / count)
            assert reward(Place(count, sparse=True), state_with(sprite)) == (counts and count == 1)
        assert reward(Place(count, sparse=True), state_with(*range(4 - count, 4))) == 1.0


def test_the_tolerance_is_a_distance_and_exclusive():
    state = state_with(3)
    for gap, placed in ((0.2499, 1.0), (0.25, 0.0), (0.2501, 0.0)):
        state[0, 12:14] = 0.75 - gap, 0.75
        assert reward(Place(1), state) == placed
    state[0, 12:14] = 0.75 - 0.2, 0.75 - 0.2  # within 0.25 on each axis, but not as the crow flies
    assert reward(Place(1), state) == 0.0
    assert reward(Place(1, tolerance=0.3), state) == 1.0


def test_only_the_next_state_matters_and_its_dtype_is_kept():
    world, rng, task = Sprites(), np.random.default_rng(0), Place(3)
    states = [world.reset(200, rng) for _ in range(3)]
    actions = rng.uniform(-1, 1, (2, 200, 2))
    first, second = task(states[0], actions[0], states[2]), task(states[1], actions[1], states[2])
    np.testing.assert_array_equal(first, second)
    assert first.dtype == np.float32
    assert task(states[0], actions[0], states[2].astype(np.float64)).dtype == np.float64
    assert len(np.unique(first)) == 4


def test_a_random_policy_earns_what_it_did_in_the_original():
    world = Sprites()
    data = collect(world, uniform_policy(world), 100_000, np.random.default_rng(0), **PAPER_SETTING)
    means = {
        sparse: [Place(count, sparse)(data.state, data.action, data.next_state).mean() for count in (1, 2, 3, 4)]
        for sparse in (False, True)
    }
    np.testing.assert_allclose(means[False], [0.27, 0.27, 0.22, 0.19], atol=0.015)
    np.testing.assert_allclose(means[True][:2], [0.27, 0.07], atol=0.015)
    assert means[True][2] == pytest.approx(0.006, abs=0.002)
    assert means[True][3] == pytest.approx(0.001, abs=0.0008)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_scripted_policy_earns_twice_as_much_as_a_random_one(count):
    world, task = Sprites(), Place(count)
    random, scripted = (
        collect(world, policy, 5000, np.random.default_rng(0), reward_fn=task, **PAPER_SETTING | {"environments": 100})
        for policy in (uniform_policy(world), place_policy(world, task))
    )
    assert scripted.reward.mean() > 2 * random.reward.mean()
    assert np.abs(scripted.action).max() <= 1


def test_tasks_are_found_by_name():
    assert Place.named("place-1") == Place(1)
    assert Place.named("place-4-sparse") == Place(4, sparse=True)
    assert len({Place.named(name) for name in TASKS}) == 8
    for unknown in ("place-5", "place 1", "Place-1", "place-1-dense", ""):
        with pytest.raises(ValueError, match=r"no task is called .*; the tasks are place-1, .*place-4-sparse"):
            Place.named(unknown)


@pytest.mark.parametrize("count", [0, 5, -1, 1.5, True, "2"])
def test_a_count_out_of_range_is_refused(count):
    with pytest.raises(ValueError, match="count: expected the number of sprites that matter, 1 to 4, got"):
        Place(count)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan"), float("inf")])
def test_a_tolerance_must_be_a_distance(tolerance):
    with pytest.raises(ValueError, match="tolerance: expected a positive distance"):
        Place(1, tolerance=tolerance)


def test_states_of_another_world_are_refused():
    message = r"place: expected states of 4 sprites, shape \(B, 16\), .* Sprites\(n=4\)"
    for shape in ((3, 20), (16,)):
        with pytest.raises(ValueError, match=message):
            Place(1)(np.zeros(shape), np.zeros((3, 2)), np.zeros(shape))
    with pytest.raises(ValueError, match=r"world: expected Sprites\(n=4\), .* got n=5"):
        place_policy(Sprites(5), Place(1))


def test_an_empty_batch_has_no_rewards():
    empty = np.zeros((0, 16), np.float32)
    assert Place(2)(empty, np.zeros((0, 2)), empty).shape == (0,)
