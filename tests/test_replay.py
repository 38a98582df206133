"""The library-free half of online augmentation: when, how many, from where, and always the same again."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Transitions
from counterpoint.checks import audit
from counterpoint.masks import Constant
from counterpoint.replay import ActionScale, CounterfactualRows, Mixing, Ring, Rollouts
from counterpoint.worlds import Place, Sprites, collect, uniform_policy

WORLD = Sprites(noise_std=0.0)
TASK = Place(2)


def recorded(rows, seed=0):
    rng = np.random.default_rng(seed)
    return collect(WORLD, uniform_policy(WORLD), rows, rng, reward_fn=TASK, episode_length=50)


def numbered(first, count):
    """Rows that can be told apart by their reward."""
    number = np.arange(first, first + count, dtype=np.float32)
    column = number[:, None]
    return Transitions(column, column, number, column, np.zeros(count, bool))


def clicks(size, rng):
    return rng.uniform(-1, 1, (size, 2)).astype(np.float32)


def coda_half(**mixing):
    return CounterfactualRows(Augmenter(WORLD.factors, WORLD.mask, TASK, pairs=50), Mixing(**mixing))


def grown(half, added, data):
    half.grow(added, lambda: len(data), lambda which: data[which])


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 25))
def test_rounds_do_not_depend_on_how_rows_arrive(arrivals, every):
    mixing, before, rounds = Mixing(every=every), 0, 0
    for added in arrivals:
        rounds += mixing.rounds(before, added)
        before += added
    assert rounds == before // every


@given(st.integers(1, 1000), st.integers(1, 10**6), st.integers(0, 10**7), st.floats(0, 1))
def test_batches_are_proportional_and_capped(batch, real, made, cap):
    count = Mixing(max_fraction=cap).counterfactuals(batch, real, made)
    assert 0 <= count <= cap * batch
    proportional = batch * made / (real + made)
    if count < int(cap * batch):
        assert proportional <= count < proportional + 1  # the real share is rounded down, as in the original
    assert not (made == 0 and count)


def test_the_papers_proportion():
    assert Mixing().counterfactuals(1000, 1000, 7000) == 875
    assert Mixing(max_fraction=0.5).counterfactuals(1000, 1000, 7000) == 500


@given(st.integers(1, 12), st.lists(st.integers(0, 30), max_size=8))
def test_a_ring_holds_the_newest_rows(capacity, sizes):
    ring, first = Ring(capacity), 0
    for size in sizes:
        ring.extend(numbered(first, size))
        first += size
    assert len(ring) == min(capacity, first)
    if first:
        np.testing.assert_array_equal(ring.transitions().reward, np.arange(first)[-capacity:])


def test_a_ring_takes_no_more_memory_than_twice_its_rows():
    ring = Ring(10**9)
    for first in range(0, 5000, 100):
        ring.extend(numbered(first, 100))
        assert len(ring._rows) <= 2 * len(ring)


def test_an_empty_ring_says_so():
    with pytest.raises(ValueError, match="holds no rows yet"):
        Ring(3).take(np.arange(1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"every": 0}, "every"), ({"capacity": 0}, "capacity"), ({"max_fraction": 1.5}, "max_fraction.*between 0 and 1")],
)
def test_wrong_mixing_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Mixing(**settings)


@given(st.floats(-50, 50), st.floats(0.1, 100), st.integers(0, 2**32 - 1))
def test_actions_are_scaled_and_back(low, width, seed):
    scale = ActionScale(np.float32([low]), np.float32([low + width]), np.dtype(np.float32))
    real = scale.draw(100, np.random.default_rng(seed))
    stored = scale.stored(real)
    assert np.abs(stored).max() <= 1 + 1e-4 * (1 + abs(low) / width)
    np.testing.assert_allclose(scale.real(stored), real, atol=1e-5 * (width + abs(low)))


def test_in_the_unit_box_scaling_loses_nothing_more(rng):
    """What the environment got is stored and unscaled again to the same bits."""
    scale = ActionScale(np.float32([-1, -1]), np.float32([1, 1]), np.dtype(np.float32))
    got = scale.real(clicks(1000, rng))
    np.testing.assert_array_equal(scale.real(scale.stored(got)), got)


def test_whole_numbers_are_not_scaled(rng):
    scale = ActionScale(np.array([2]), np.array([4]), np.dtype(np.int64))
    drawn = scale.draw(100, rng)
    assert set(drawn[:, 0]) == {2, 3, 4}
    assert scale.real(drawn) is drawn
    assert scale.stored(drawn) is drawn


def test_rollouts_of_a_true_model_are_true(rng):
    made = Rollouts(WORLD.step, TASK, starts=30, steps=4, draw_actions=clicks)(recorded(100), rng=rng)
    assert len(made) == 120
    assert audit(made, WORLD.step, atol=0).confirmed == 1
    np.testing.assert_array_equal(made.state[30:], made.next_state[:-30])  # each step goes on from the last
    np.testing.assert_array_equal(made.reward, TASK(made.state, made.action, made.next_state))


def test_rollouts_end_where_the_task_does(rng):
    def right_half(state, action, next_state):
        return next_state[:, 0] > 0.5

    made = Rollouts(WORLD.step, TASK, right_half, starts=40, steps=3, draw_actions=clicks)(recorded(100), rng=rng)
    first = made[:40]
    assert 0 < first.terminated.sum() < 40
    np.testing.assert_array_equal(made.terminated, right_half(None, None, made.next_state))
    going = first.next_state[~first.terminated]
    np.testing.assert_array_equal(made.state[40 : 40 + len(going)], going)


@pytest.mark.parametrize(
    ("model", "message"),
    [(lambda s, a: s[:, :3], "expected next states of shape"), (lambda s, a: s * np.nan, "NaN or infinity")],
)
def test_a_broken_model_is_refused(model, message, rng):
    with pytest.raises(ValueError, match=message):
        Rollouts(model, TASK, draw_actions=clicks)(recorded(20), rng=rng)


def test_a_model_must_be_a_function():
    with pytest.raises(TypeError, match="forward_model: expected a function"):
        Rollouts("model", TASK)


def test_rows_are_made_when_it_is_time_and_are_true():
    half, data = coda_half(every=100), recorded(250)
    for row in range(250):
        half.grow(1, lambda seen=row + 1: seen, lambda which, seen=row + 1: data[:seen][which])
    assert (half.rounds, half.added) == (2, 250)
    made = half.ring.transitions()
    assert len(made) > 50
    assert made.episode is None
    assert audit(made, WORLD.step).confirmed == 1
    assert half.seconds > 0
    assert 0 < half.acceptance <= 1


def test_the_same_seed_makes_and_draws_the_same():
    data, drawn = recorded(300), {}
    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        half = coda_half(every=100, seed=seed)
        grown(half, 300, data)
        drawn[name] = half.draw(200, 300).state
    np.testing.assert_array_equal(drawn["one"], drawn["again"])
    assert not np.array_equal(drawn["one"], drawn["other"])


@pytest.mark.parametrize("capacity", [10_000, 70])
def test_a_stored_half_goes_on_as_if_nothing_had_happened(capacity):
    half, data = coda_half(every=100, capacity=capacity), recorded(300)
    grown(half, 250, data)
    other = coda_half(every=100, capacity=capacity, seed=9)
    other.restore(half.arrays())
    for each in (half, other):
        grown(each, 60, data)
    assert (half.added, half.rounds) == (other.added, other.rounds)
    np.testing.assert_array_equal(half.draw(100, 300).state, other.draw(100, 300).state)


def test_a_half_of_another_capacity_is_refused():
    with pytest.raises(ValueError, match="room for 70 counterfactual rows, this buffer has room for 71"):
        coda_half(capacity=71).restore(coda_half(capacity=70).arrays())


def test_it_can_be_pickled_by_those_who_pickle():
    half = coda_half(every=10)
    grown(half, 50, recorded(50))
    again = pickle.loads(pickle.dumps(half))
    np.testing.assert_array_equal(again.draw(20, 50).state, half.draw(20, 50).state)


def test_a_mask_that_ties_all_together_is_mentioned_once():
    half = CounterfactualRows(Augmenter(WORLD.factors, Constant.full(WORLD.factors), TASK), Mixing(every=100))
    with pytest.warns(UserWarning, match="not a single counterfactual") as seen:
        grown(half, 300, recorded(300))
    assert len(seen) == 1
    assert half.draw(10, 300) is None


def test_any_function_can_make_rows():
    half = CounterfactualRows(lambda data, rng: data[:3], Mixing(every=1, max_fraction=0.25))
    grown(half, 1, numbered(0, 5))
    drawn = half.draw(8, 5)
    assert len(drawn) == 2
    assert half.share == 0.25
    assert set(drawn.reward) <= {0, 1, 2}


def test_a_round_looks_at_so_many_real_rows():
    seen = []

    def copies(data, *, rng):
        seen.append(data.reward)
        return data

    half = CounterfactualRows(copies, Mixing(every=10, sources=4))
    grown(half, 30, numbered(0, 30))
    assert [len(set(rewards)) for rewards in seen] == [4, 4, 4]
    assert len({tuple(sorted(rewards)) for rewards in seen}) > 1  # drawn anew each time


def test_a_round_without_real_rows_waits():
    half = coda_half(every=10)
    half.grow(10, lambda: 0, lambda which: pytest.fail("nothing to take"))
    assert (half.rounds, half.added, len(half.ring)) == (0, 10, 0)


def test_columns_without_bounds_are_not_scaled():
    scale = ActionScale(np.float32([-np.inf, 0]), np.float32([np.inf, 4]), np.dtype(np.float32))
    stored = scale.stored(np.float32([[7, 3]]))
    np.testing.assert_array_equal(stored, [[7, 0.5]])
    np.testing.assert_array_equal(scale.real(stored), [[7, 3]])


def test_rollouts_need_actions(rng):
    with pytest.raises(ValueError, match="draw_actions: expected a function"):
        Rollouts(WORLD.step, TASK)(recorded(20), rng=rng)
