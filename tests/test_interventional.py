import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Factorization
from counterpoint.checks import check_mask_fn
from counterpoint.masks import Interventional
from tests.examples import make_data, make_factors


@given(st.integers(1, 5), st.integers(0, 2), st.integers(0, 2**32))
def test_a_linear_world_shows_its_matrix(n, m, seed):
    """With s' = M s + K a the mask is where the blocks of M and K are not zero."""
    rng = np.random.default_rng(seed)
    factors = make_factors(n, m)
    blocks = rng.random((n + m, n)) < 0.4
    owner = np.concatenate([factors.state_owner, factors.action_owner])
    matrix = np.where(blocks[owner][:, factors.state_owner], rng.uniform(0.5, 1.5, (len(owner), 2 * n)), 0.0)
    data = make_data(factors, 6, rng)
    found = Interventional(lambda s, a: np.hstack([s, a]) @ matrix, factors)(data.state, data.action)
    expected = blocks | np.eye(n + m, n, dtype=bool)
    assert np.array_equal(found, np.broadcast_to(expected, found.shape))


def test_it_is_a_mask_and_respects_the_range_of_actions(rng):
    factors = make_factors(2, 1)
    data = make_data(factors, 20, rng)
    data.action[::2] = 1.0

    def step(state, action):
        assert (np.abs(action) <= 1).all()
        return state + np.hstack([action, action, action * 0, action * 0])

    mask = Interventional(step, factors, action_range=(-1.0, 1.0))
    check_mask_fn(mask, data, factors)
    assert mask(data.state, data.action)[:, 2].tolist() == [[True, False]] * 20
    with pytest.raises(AssertionError):
        Interventional(step, factors)(data.state, data.action)


def test_a_step_is_seen_only_by_a_nudge_that_crosses_it():
    factors = make_factors(2, 0, width=1)

    def step(state, action):
        return state * 1.0 + np.where(state[:, :1] > 0.5, [[0.0, 1.0]], 0.0)

    state = np.array([[0.49, 0.0]])
    assert not Interventional(step, factors)(state, np.zeros((1, 0)))[0, 0, 1]
    assert Interventional(step, factors, scale=0.1)(state, np.zeros((1, 0)))[0, 0, 1]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"scale": 0.0}, "scale: expected a positive number, or 5 of them"),
        ({"scale": np.ones(3)}, "or 5 of them"),
        ({"samples": 0}, "expected positive numbers"),
        ({"factors": Factorization({"a": (0,)}, derived=(1,))}, "derived columns cannot be set in a simulator"),
        ({"step": lambda s, a: a}, r"step: expected next states of shape \(3, 4\), got \(3, 1\)"),
    ],
)
def test_errors(others, message):
    parts = {"step": lambda s, a: s, "factors": make_factors(2, 1), **others}
    with pytest.raises(ValueError, match=message):
        Interventional(**parts)(np.zeros((3, 4)), np.zeros((3, 1)))
