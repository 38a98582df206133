from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization, Sparse, Transitions, Uniform
from counterpoint.core import engine
from counterpoint.core.static import _counts, static_nodes, swaps_only_static
from counterpoint.masks import Constant
from tests.examples import HashedMask, first_column, make_data

FACTORS = Factorization.blocks(state={"arm": 2, "cup": 2, "goal": 2, "colour": 1}, action={"motor": 1})
STATIC = FACTORS.nodes("goal", "colour")


def robot(rows, rng):
    """Arm and cup move, goal and colour stay."""
    data = make_data(FACTORS, rows, rng)
    data.next_state[:, 4:] = data.state[:, 4:]
    return data


def adds_up(f):
    return f.proposals == f.trivial + f.duplicate + f.rejected + f.surplus + f.accepted


def test_static_factors_are_found_or_declared(rng):
    data = robot(50, rng)
    assert np.array_equal(static_nodes(data, FACTORS), STATIC)
    moving = make_data(FACTORS, 50, rng)
    assert not static_nodes(moving, FACTORS).any()
    declared = Factorization(FACTORS.state, FACTORS.action, static=("goal",))
    assert np.array_equal(static_nodes(moving, declared), FACTORS.nodes("goal"))
    still = data.replace(next_state=data.state)
    assert not static_nodes(still, FACTORS).any()  # where nothing moves, nothing is known
    context = Factorization(FACTORS.state, FACTORS.action, context=("goal",))
    assert np.array_equal(static_nodes(data, context), FACTORS.nodes("colour"))
    with pytest.raises(ValueError, match="static: wall: not a state factor"):
        Factorization(FACTORS.state, static=("wall",))


@pytest.mark.compiled
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("density", [0.05, 0.25])
def test_they_take_up_a_share_at_most(share, density, rng):
    made = Augmenter(FACTORS, HashedMask(FACTORS, density), first_column, static_share=share).fill(
        robot(400, rng), 2000, rng=rng
    )
    static = swaps_only_static(made.swapped, STATIC)
    assert static.sum() == made.funnel.static
    assert made.funnel.static <= share * 2000 + 20 * (share > 0)  # some come before the first of the others
    assert (made.funnel.static > 0) == (share > 0)
    assert adds_up(made.funnel)


def test_all_of_them_is_pure_relabelling(rng):
    data = robot(60, rng)
    made = Augmenter(FACTORS, Constant.identity(FACTORS), first_column, static_share=1.0).fill(data, 500, rng=rng)
    assert made.funnel.static == 500
    assert swaps_only_static(made.swapped, STATIC).all()
    assert adds_up(made.funnel)


def test_where_nothing_else_can_be_swapped_they_crowd_out_no_one(rng):
    tied = Constant.edges(FACTORS, [("arm", "cup"), ("motor", "arm")])
    made = Augmenter(FACTORS, tied, first_column).fill(robot(80, rng), 300, rng=rng)
    assert made.funnel.static == 300


@pytest.mark.parametrize("most_graphs", [1024, 1])
def test_sharing_pairs_share_something_that_moves(most_graphs, monkeypatch, rng):
    """Arm and cup are apart in every tenth row only; a goal alone is no reason to pair two rows."""
    monkeypatch.setattr("counterpoint.core.pairs.MOST_GRAPHS", most_graphs)
    data = robot(200, rng)
    data.state[:, 0] = np.arange(200) % 10

    def mask(state, action):
        tied = np.zeros((len(state), 5, 4), bool)
        tied[:, range(4), range(4)] = tied[:, 4, 0] = True
        tied[:, 0, 1] = state[:, 0] > 0
        return tied

    make = Augmenter(FACTORS, mask, first_column, pairs=500, pairing="sharing")
    made = make(data, rng=rng)
    assert made.funnel.trivial == 0
    assert (data.state[np.concatenate([made.base, made.donor]), 0] == 0).all()
    assert made.funnel.static <= 0.1 * made.funnel.accepted + 1
    tied = Constant.edges(FACTORS, [("arm", "cup"), ("motor", "arm")])
    assert Augmenter(FACTORS, tied, first_column, pairing="sharing").fill(data, 100, rng=rng).funnel.static == 100


def test_too_high_a_wish_is_explained(rng):
    data = robot(12, rng)
    data.state[:, :4], data.next_state[:, :4], data.action[:] = 1.0, 2.0, 0.0
    data.state[0, :4] = 3.0  # all else that moves is the same, so there are few other swaps
    with pytest.raises(ValueError, match="nothing but goal, colour, which never change. Raise static_share"):
        Augmenter(FACTORS, Constant.identity(FACTORS), first_column).fill(data, 1000, rng=rng)


def test_without_static_factors_the_share_changes_nothing(rng):
    data = make_data(FACTORS, 60, rng)
    one, two = (
        Augmenter(FACTORS, HashedMask(FACTORS, 0.1), first_column, static_share=share).fill(
            data, 200, rng=np.random.default_rng(5)
        )
        for share in (0.1, 0.7)
    )
    assert one.transitions.state.tobytes() == two.transitions.state.tobytes()
    assert one.funnel == two.funnel


def test_the_size_of_chunks_does_not_matter(monkeypatch):
    made = []
    for size in (30, 700, 65536):
        monkeypatch.setattr(engine.Recipe, "chunk_rows", lambda *_, size=size: size)
        augmenter = Augmenter(FACTORS, HashedMask(FACTORS, 0.1), first_column)
        made.append(augmenter.fill(robot(100, np.random.default_rng(0)), 400, rng=np.random.default_rng(1)))
    for other in made[1:]:
        assert other.funnel == made[0].funnel
        assert other.transitions.state.tobytes() == made[0].transitions.state.tobytes()


@given(st.integers(0, 4), st.integers(0, 4), st.sampled_from([Uniform(), Sparse(1), Sparse(2), Sparse(3)]))
def test_unions_are_counted_as_an_enumeration_counts_them(moving, still, policy):
    found = set()
    for coins in product([False, True], repeat=moving + still):
        if any(coins) and not all(coins):
            most = policy.most(moving + still)
            if sum(coins) <= most or most >= moving + still - 1:
                found.add(coins)
    mixed = {c for c in found if len(set(c[:moving])) == 2}
    assert _counts(moving, still, policy)[1] == len(mixed)
    if isinstance(policy, Uniform) and still:
        assert _counts(moving, still, policy)[0] == len(found) - len(mixed)


@given(st.integers(0, 2**32), st.sampled_from([Uniform(), Sparse(1), Sparse(2)]))
def test_no_union_comes_twice(seed, policy):
    rng = np.random.default_rng(seed)
    make = Augmenter(
        FACTORS,
        HashedMask(FACTORS, 0.05),
        first_column,
        pairs=500,
        samples_per_pair=1000,
        policy=policy,
        static_share=0.5,
    )
    made = make(robot(8, rng), rng=rng)
    rows = {(*pair, swapped.tobytes()) for *pair, swapped in zip(made.base, made.donor, made.swapped, strict=True)}
    assert len(rows) == len(made)
    assert adds_up(made.funnel)


def test_a_goal_that_is_the_same_in_both_parents_is_not_swapped(rng):
    data = robot(30, rng)
    for state in (data.state, data.next_state):
        state[:, 4:] = 1.0
    made = Augmenter(FACTORS, Constant.identity(FACTORS), first_column).fill(data, 100, rng=rng)
    assert made.funnel.static == 0
    assert isinstance(made.transitions, Transitions)


@pytest.mark.parametrize("window", [1, 3])
def test_counterfactuals_say_which_are_static(window, rng):
    data = robot(60, rng).replace(episode=np.repeat(np.arange(6), 10), step=np.tile(np.arange(10), 6))
    make = Augmenter(FACTORS, HashedMask(FACTORS, 0.02), first_column, static_share=0.4, window=window)
    made = make.fill(data, 80, rng=rng)
    assert np.array_equal(made.static_nodes, STATIC)
    assert len(made.static) == 80
    assert made.static.sum() == made.funnel.static
    assert np.array_equal(made.static, swaps_only_static(made.windows.swapped, STATIC))
    others = made.funnel.accepted - made.funnel.static
    assert made.funnel.acceptance == others / (others + made.funnel.rejected)  # the others alone
    part = next(make.stream(data, 80, rng=rng))
    assert np.array_equal(part.static_nodes, STATIC)
    moving = make_data(FACTORS, 60, rng)
    plain = Augmenter(FACTORS, HashedMask(FACTORS, 0.02), first_column).fill(moving, 20, rng=rng)
    assert plain.static_nodes is None
    assert not plain.static.any()
