import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Factorization
from counterpoint.masks import Constant, Proximity, Threshold, Union
from tests.examples import HashedMask, make_data, make_factors


@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 2**32),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
)
def test_proximity_equals_the_plain_distance(n, axes, seed, ahead, dtype):
    rng = np.random.default_rng(seed)
    factors = make_factors(n, 1, width=2 * axes)
    data = make_data(factors, 20, rng, dtype)
    positions = {name: columns[:axes] for name, columns in factors.state.items()}
    velocities = {name: columns[axes:] for name, columns in factors.state.items()} if ahead else None
    mask = Proximity(factors, positions, 0.5, attached=("s0",), velocities=velocities)(data.state, data.action)
    state = data.state.reshape(20, n, 2, axes).astype(float)
    near = np.zeros((20, n, n), bool)
    for where in [state[:, :, 0], state[:, :, 0] + state[:, :, 1]] if ahead else [state[:, :, 0]]:
        near |= np.linalg.norm(where[:, :, None] - where[:, None], axis=-1) < 0.5
    assert np.array_equal(mask[:, :n] | np.eye(n, dtype=bool), near | np.eye(n, dtype=bool))
    assert mask[:, range(n), range(n)].all()
    assert mask[:, n, 0].all()
    assert not mask[:, n, 1:].any()


def test_a_radius_for_each_pair_and_factors_without_position():
    factors = Factorization.blocks(state={"hand": 1, "cup": 1, "goal": 1}, action={"x": 1, "y": 1})
    mask = Proximity(
        factors, {"hand": (0,), "cup": (1,)}, {("hand", "cup"): 0.2}, attached={"x": ["hand"], "y": ["hand", "cup"]}
    )
    near, far = mask(np.array([[0.0, 0.1, 0.0], [0.0, 0.3, 0.0]]), np.zeros((2, 2)))
    assert near.astype(int).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]]
    assert far.astype(int).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0]]


def test_threshold_and_union(rng):
    factors = make_factors(3, 1)
    data = make_data(factors, 30, rng)

    def scores(state, action):
        return np.broadcast_to(state[:, :1, None], (len(state), 4, 3))

    class Estimator:
        uses_next_state = True

        def scores(self, state, action, next_state):
            return np.broadcast_to(next_state[:, :1, None], (len(state), 4, 3))

    one, two = Threshold(scores, 0.5), Threshold(Estimator(), 0.5)
    assert (one.uses_next_state, two.uses_next_state) == (False, True)
    both = Union(one, two, Constant.identity(factors))
    assert both.uses_next_state
    assert not Union(one).uses_next_state
    expected = (data.state[:, 0] > 0.5) | (data.next_state[:, 0] > 0.5)
    made = both(data.state, data.action, data.next_state)
    assert np.array_equal(made.all(axis=(1, 2)), expected)
    assert made[:, range(3), range(3)].all()
    assert np.array_equal(
        one(data.state, data.action), np.broadcast_to((data.state[:, 0] > 0.5)[:, None, None], (30, 4, 3))
    )


FACTORS = make_factors(2, 1)
WIDE = make_factors(2, 2)
POSITIONS = {"s0": (0,), "s1": (2,)}
STATE, ACTION = np.zeros((3, 4)), np.zeros((3, 1))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Constant(np.ones((2, 2))), ValueError, r"expected booleans \(N, n\), got float64"),
        (lambda: Constant.edges(FACTORS, [("s0", "a0")]), ValueError, "'a0' is an action; only state factors"),
        (lambda: Constant.edges(FACTORS, [("s9", "s0")]), ValueError, "no factor is called s9"),
        (
            lambda: Proximity(FACTORS, {"s9": (0,)}, 1.0, ("s0",)),
            ValueError,
            "'s9' is not a state factor; these are: s0, s1",
        ),
        (lambda: Proximity(FACTORS, {"s0": (2,)}, 1.0, ("s0",)), ValueError, r"'s0' owns the columns \(0, 1\)"),
        (lambda: Proximity(FACTORS, {"s0": ()}, 1.0, ("s0",)), ValueError, "expected some of these"),
        (lambda: Proximity(FACTORS, {"s0": (0, 1), "s1": (2,)}, 1.0, ("s0",)), ValueError, "same number of axes"),
        (lambda: Proximity(FACTORS, POSITIONS, 0.0, ("s0",)), ValueError, "expected positive distances, got 0.0"),
        (lambda: Proximity(FACTORS, POSITIONS, {("s0", "a0"): 1.0}, ("s0",)), ValueError, "a0 has no position"),
        (lambda: Proximity(FACTORS, POSITIONS, 1.0), ValueError, "the action factor a0 moves nothing"),
        (lambda: Proximity(WIDE, POSITIONS, 1.0, ("s0",)), ValueError, "there are 2 action factors"),
        (lambda: Proximity(WIDE, POSITIONS, 1.0, {"a0": ["s0"]}), ValueError, "the action factor a1 moves nothing"),
        (lambda: Proximity(FACTORS, POSITIONS, 1.0, ("s0",), {"s0": (1,)}), ValueError, "same factors as positions"),
        (lambda: Threshold(lambda s, a: s, np.nan), ValueError, "tau: expected a finite number"),
        (lambda: Threshold(3, 0.5), TypeError, "an object with a method 'scores', got 3"),
        (lambda: Threshold(HashedMask(FACTORS, 0.1), 0.5)(STATE, ACTION), TypeError, "A mask needs no Threshold"),
        (lambda: Threshold(lambda s, a: s * np.nan, 0.5)(STATE, ACTION), ValueError, "some scores are NaN"),
        (lambda: Union(), ValueError, "at least one mask"),
        (
            lambda: Union(Constant.identity(FACTORS), Constant.identity(WIDE))(STATE, ACTION),
            ValueError,
            "must have one shape",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()
