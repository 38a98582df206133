import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization
from counterpoint.checks import check_mask_fn
from counterpoint.masks import And, Constant, Ensemble, Threshold, Union
from tests.examples import HashedMask, first_column, make_data, make_factors

FACTORS = make_factors(2, 1)
WIDE = make_factors(2, 2)
STATE, ACTION = np.zeros((3, 4)), np.zeros((3, 1))


class Hindsight:
    """Edges where the next state's first column is positive."""

    uses_next_state = True

    def __call__(self, state, action, next_state):
        return np.broadcast_to((next_state[:, 0] > 0)[:, None, None], (len(state), 3, 2))


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=5))
def test_truth_tables(tables):
    members = [Constant(np.reshape(table, (3, 2))) for table in tables]
    for entry in range(6):
        said = [table[entry] for table in tables]
        where = (0, *divmod(entry, 2))
        assert And(*members)(STATE, ACTION)[where] == all(said)
        assert Ensemble(*members)(STATE, ACTION)[where] == any(said)
        assert Ensemble(*members, rule="vote")(STATE, ACTION)[where] == (sum(said) >= len(said) / 2)


@given(st.integers(1, 4), st.integers(0, 2**32))
def test_relations_between_the_rules(count, seed):
    factors = make_factors(3, 1)
    data = make_data(factors, 20, np.random.default_rng(seed))
    members = [HashedMask(factors, 0.4, salt) for salt in range(count)]
    both, vote, union = (
        mask(data.state, data.action)
        for mask in (And(*members), Ensemble(*members, rule="vote"), Ensemble(*members, rule="union"))
    )
    assert (both <= vote).all()
    assert (vote <= union).all()
    assert np.array_equal(union, Union(*members)(data.state, data.action))
    for mask in (both, vote, union):
        assert mask.dtype == np.bool_
        assert mask[:, range(3), range(3)].all()


def test_a_static_mask_removes_what_cannot_be(rng):
    factors = Factorization.blocks(state={"hand": 2, "cup": 2}, action={"motor": 1})
    data = make_data(factors, 40, rng)
    static = Constant.edges(factors, [("motor", "hand"), ("hand", "cup")])
    mask = And(static, HashedMask(factors, 0.5))
    check_mask_fn(mask, data, factors)
    made = mask(data.state, data.action)
    assert not made[:, ~static.adjacency].any()
    assert np.array_equal(
        made[:, static.adjacency], HashedMask(factors, 0.5)(data.state, data.action)[:, static.adjacency]
    )


@pytest.mark.parametrize("join", [And, Ensemble])
def test_members_that_look_at_the_next_state(join):
    mixed = join(Constant.identity(FACTORS), Hindsight())
    assert mixed.uses_next_state
    assert not join(Constant.identity(FACTORS)).uses_next_state
    after = np.zeros((3, 4))
    after[1] = 1.0
    expected = [[False, True, False], [True, True, True]][join is Ensemble]
    assert mixed(STATE, ACTION, after)[:, 0, 0].tolist() == expected


class Gusty:
    """Edges where the first noise column is positive."""

    uses_noise = True

    def __call__(self, state, action, noise):
        return np.broadcast_to((noise[:, 0] > 0)[:, None, None], (len(state), 3, 2))


@pytest.mark.parametrize("join", [And, Ensemble, Union])
def test_each_member_gets_what_it_declares(join):
    after, noise = np.zeros((3, 4)), np.zeros((3, 1))
    after[1], noise[2] = 1.0, 1.0
    mixed = join(Hindsight(), Gusty(), Constant.full(FACTORS))
    assert (mixed.uses_next_state, mixed.uses_noise) == (True, True)
    assert mixed(STATE, ACTION, after, noise)[:, 0, 0].tolist() == [join is not And] * 3
    outer = And(Constant.full(FACTORS), join(Gusty()))
    assert (outer.uses_next_state, outer.uses_noise) == (False, True)
    assert outer(STATE, ACTION, noise)[:, 0, 0].tolist() == [False, False, True]


def test_scores_of_the_noise():
    class Estimator:
        uses_noise = True

        def scores(self, state, action, noise):
            return np.broadcast_to(noise[:, :1, None], (len(state), 3, 2))

    mask = Threshold(Estimator(), 0.5)
    assert (mask.uses_next_state, mask.uses_noise) == (False, True)
    assert mask(STATE, ACTION, np.array([[0.0], [1.0], [0.2]]))[:, 0, 0].tolist() == [False, True, False]


def test_they_can_be_nested_and_used_to_augment(rng):
    data = make_data(FACTORS, 50, rng)
    inner = Ensemble(Threshold(lambda s, a: np.zeros((len(s), 3, 2)), 0.5), Hindsight(), HashedMask(FACTORS, 0.1))
    nothing = And(Constant.identity(FACTORS), inner)
    assert len(Augmenter(FACTORS, nothing, first_column).fill(data, 20, rng=rng)) == 20


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: And(), ValueError, "And: expected at least one mask, got none"),
        (lambda: Ensemble(), ValueError, "Ensemble: expected at least one mask, got none"),
        (lambda: Ensemble(Constant.full(FACTORS), rule="most"), ValueError, "expected 'union' or 'vote', got 'most'"),
        (lambda: And(np.ones((3, 2), bool)), TypeError, r"Edges become a mask by Constant\(adjacency\)"),
        (
            lambda: Ensemble(Constant.full(FACTORS), Constant.full(WIDE))(STATE, ACTION),
            ValueError,
            r"Ensemble: the masks must have one shape, got \(3, 3, 2\), \(3, 4, 2\)",
        ),
        (
            lambda: And(lambda s, a: np.ones((3, 3, 2)), Constant.full(FACTORS))(STATE, ACTION),
            TypeError,
            "Scores need a Threshold",
        ),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_threshold_is_a_mask_like_any_other():
    scores = Threshold(lambda s, a: np.full((len(s), 3, 2), 0.7), 0.5)
    assert And(scores, Constant.identity(FACTORS))(STATE, ACTION)[0].astype(int).tolist() == [[1, 0], [0, 1], [0, 0]]
