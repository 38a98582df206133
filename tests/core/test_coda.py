import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization, Transitions, coda, components, independent, swap
from counterpoint.checks import audit
from counterpoint.core.pairs import drawn
from counterpoint.masks import Constant
from counterpoint.worlds import Room, collect, uniform_policy
from tests import reference
from tests.examples import HashedMask, make_data, make_factors

sizes = st.tuples(st.integers(1, 7), st.integers(0, 3))
seeds = st.integers(0, 2**32)


def plain(data, row):
    return tuple(getattr(data, name)[row].tolist() for name in ("state", "action", "next_state"))


@given(sizes, seeds, st.sampled_from([0.02, 0.1, 0.3]))
def test_equals_the_literal_algorithm(size, seed, density):
    rng = np.random.default_rng(seed)
    factors = make_factors(*size)
    base, donor = make_data(factors, 8, rng), make_data(factors, 8, rng)
    mask_fn = HashedMask(factors, density)
    proposal, nodes, valid = coda(base, donor, mask_fn, factors, rng=rng)

    def mask(s, a):
        return mask_fn(np.array([s]), np.array([a]))[0].tolist()

    for row in range(8):
        d = frozenset(np.flatnonzero(nodes[row]))
        t1, t2 = plain(base, row), plain(donor, row)
        possible = reference.candidates(mask(*t1[:2]), mask(*t2[:2]))
        assert d in possible or (not possible and not d and not valid[row])
        literal = reference.coda(t1, t2, d, mask, (factors.state_owner, factors.action_owner))
        assert (literal is not None and bool(d)) == valid[row]
        if literal is not None:
            assert literal == plain(proposal, row)


@given(sizes, seeds, st.sampled_from([np.float32, np.float64]))
def test_swap_is_bitwise_and_symmetric(size, seed, dtype):
    rng = np.random.default_rng(seed)
    factors = make_factors(*size)
    base, donor = make_data(factors, 5, rng, dtype), make_data(factors, 5, rng, dtype)
    nodes = rng.random((5, sum(size))) < 0.5
    made, other = swap(base, donor, nodes, factors), swap(donor, base, ~nodes, factors)
    for name, owner in (
        ("state", factors.state_owner),
        ("action", factors.action_owner),
        ("next_state", factors.state_owner),
    ):
        values = getattr(made, name)
        expected = np.where(nodes[:, owner], getattr(donor, name), getattr(base, name))
        assert values.dtype == dtype
        assert values.tobytes() == expected.tobytes() == getattr(other, name).tobytes()
    assert np.isnan(made.reward).all()
    assert not made.terminated.any()


def test_one_node_set_may_serve_all_rows(rng):
    factors = make_factors(2, 1)
    base, donor = make_data(factors, 3, rng), make_data(factors, 3, rng)
    made = swap(base, donor, factors.nodes("s1"), factors)
    assert np.array_equal(made.state, np.hstack([base.state[:, :2], donor.state[:, 2:]]))
    assert np.array_equal(made.action, base.action)


def test_noise_is_swapped_with_its_owner_or_dropped(rng):
    factors = make_factors(2, 0, noise={"s1": (0,), "s0": (1,)})
    data = make_data(factors, 4, rng).replace(noise=rng.random((4, 2)), episode=np.arange(4))
    made = swap(data[:2], data[2:], factors.nodes("s1"), factors)
    assert np.array_equal(made.noise, np.column_stack([data.noise[2:, 0], data.noise[:2, 1]]))
    assert made.episode is None
    assert swap(data[:2], data[2:], factors.nodes("s1"), make_factors(2, 0)).noise is None


def test_integer_actions_are_swapped_as_they_are(rng):
    factors = make_factors(1, 1)
    data = make_data(factors, 2, rng).replace(action=np.array([[3], [7]], np.int8))
    made = swap(data[:1], data[1:], factors.nodes("a0"), factors)
    assert made.action.dtype == np.int8
    assert made.action.tolist() == [[7]]


def test_factor_order_only_permutes_the_result(rng):
    """The same columns under other names of nodes: the same sets stay independent, the same rows are valid."""
    one = Factorization({"x": (0, 1), "y": (2,), "z": (3, 4)}, {"u": (0,)})
    two = Factorization({"z": (3, 4), "x": (0, 1), "y": (2,)}, {"u": (0,)})
    data = make_data(one, 60, rng)
    order = [one.names.index(name) for name in two.names]
    mask = HashedMask(one, 0.15)

    def permuted(s, a):
        return np.ascontiguousarray(mask(s, a)[:, order][:, :, order[:3]])

    nodes = rng.random((30, 4)) < 0.5
    made = swap(data[:30], data[30:], nodes, one)
    other = swap(data[:30], data[30:], nodes[:, order], two)
    assert made.state.tobytes() == other.state.tobytes()
    assert np.array_equal(
        independent(mask(made.state, made.action), nodes),
        independent(permuted(other.state, other.action), nodes[:, order]),
    )
    groups = components(mask(data.state, data.action)), components(permuted(data.state, data.action))
    together = [labels[:, :, None] == labels[:, None, :] for labels in groups]
    assert np.array_equal(together[0][:, order][:, :, order], together[1])


def test_derived_columns_are_recomputed(rng):
    factors = Factorization({"hand": (0,), "cup": (1,)}, derived=(2,))
    state = rng.random((6, 3))
    state[:, 2] = state[:, 1] - state[:, 0]
    data = Transitions(state, np.zeros((6, 0)), np.zeros(6), state + 0.0, np.zeros(6, bool))
    for derive in (lambda s: s[:, [1]] - s[:, [0]], lambda s: np.column_stack([s[:, :2], s[:, 1] - s[:, 0]])):
        made, _, valid = coda(data[:3], data[3:], Constant.identity(factors), factors, rng=rng, derive=derive)
        assert valid.all()
        assert np.array_equal(made.state[:, 2], made.state[:, 1] - made.state[:, 0])
        assert np.array_equal(made.next_state[:, 2], made.next_state[:, 1] - made.next_state[:, 0])
    with pytest.raises(ValueError, match="a function that recomputes them after a swap is needed"):
        coda(data[:3], data[3:], Constant.identity(factors), factors, rng=rng)
    with pytest.raises(ValueError, match=r"derive: expected shape \(3, 1\), one column for each of 2"):
        coda(data[:3], data[3:], Constant.identity(factors), factors, rng=rng, derive=lambda s: s[:, :2])


def test_a_mask_may_ask_for_the_next_state(rng):
    factors = make_factors(2, 1)
    data = make_data(factors, 6, rng)
    asked = []

    class Mask:
        uses_next_state = True

        def __call__(self, state, action, next_state):
            asked.append(next_state.copy())
            return np.broadcast_to(np.eye(3, 2, dtype=bool), (len(state), 3, 2))

    proposal, _, _ = coda(data[:3], data[3:], Mask(), factors, rng=rng)
    for seen, expected in zip(asked, (data[:3], data[3:], proposal), strict=True):
        assert np.array_equal(seen, expected.next_state)


def in_context(rows, rng):
    """Two bodies and a context of three values, which ties both of them; the last column is derived."""
    factors = Factorization({"c": (0,), "x": (1,), "y": (2,)}, {"u": (0,)}, derived=(3,), context=("c",))
    data = make_data(factors, rows, rng)
    for state in (data.state, data.next_state):
        state[:, 0] = np.arange(rows) % 3
        state[:, 3] = state[:, 1] - state[:, 2]
    return factors, data, lambda s: s[:, [1]] - s[:, [2]]


def test_context_and_derived_columns(rng):
    factors, data, derive = in_context(60, rng)
    tied = Constant.edges(factors, [("c", "x"), ("c", "y"), ("u", "x")])
    base, donor = data[rng.integers(60, size=300)], data[rng.integers(60, size=300)]
    made, nodes, valid = coda(base, donor, tied, factors, rng=rng, derive=derive)
    agree = base.state[:, 0] == donor.state[:, 0]
    assert 0.2 < agree.mean() < 0.5
    assert np.array_equal(valid, agree)  # x and y are apart wherever the context is the same, and nowhere else
    assert not nodes[~agree].any()
    assert not nodes[:, 0].any()
    for name in ("state", "next_state"):
        assert np.array_equal(getattr(made, name)[:, 0], getattr(base, name)[:, 0])
        assert np.array_equal(getattr(made, name)[:, [3]], derive(getattr(made, name)))


@given(seeds, st.booleans())
def test_the_engine_is_this_at_speed(seed, contextual):
    """One sample per pair, the same seed: what the engine accepts is what ``coda`` calls valid, bit for bit."""
    factors, data, derive = in_context(40, np.random.default_rng(seed))
    if not contextual:
        factors = Factorization({"c": (0,), "x": (1,), "y": (2,)}, {"u": (0,)}, derived=(3,))
        data = data.replace(state=data.state + data.action * [1, 0, 0, 0])  # no two rows agree on "c"
    mask = HashedMask(factors, 0.1)
    fast = Augmenter(factors, mask, lambda s, a, s2: s2[:, 0], pairs=300, samples_per_pair=1, derive=derive)
    made = fast(data, rng=np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    base, donor = drawn(data, factors, 300, rng)
    proposal, nodes, valid = coda(data[base], data[donor], mask, factors, rng=rng, derive=derive)
    valid &= base != donor
    assert np.array_equal(made.base, base[valid])
    assert np.array_equal(made.donor, donor[valid])
    assert np.array_equal(made.swapped, nodes[valid])
    for name in ("state", "action", "next_state"):
        assert getattr(made.transitions, name).tobytes() == getattr(proposal, name)[valid].tobytes()


def test_in_the_icy_room_every_valid_swap_is_right(rng):
    world = Room()
    data = collect(world, uniform_policy(world), 2000, rng)
    made, _, valid = coda(data[:1000], data[1000:], world.mask, world.factors, rng=rng)
    assert 0.3 < valid.mean() < 0.7
    assert audit(made[valid], world.step).confirmed == 1.0


@pytest.mark.parametrize("after", [False, True])
def test_a_mask_may_ask_for_the_noise(rng, after):
    factors = Factorization.blocks(state={"a": 1, "b": 1}, action={"go": 1}, noise={"a": (0,), "b": (1, 2)})
    data = make_data(factors, 6, rng).replace(noise=rng.random((6, 3)))
    asked = []

    class Mask:
        uses_noise, uses_next_state = True, after

        def __call__(self, state, action, *others):
            asked.append(others)
            return np.broadcast_to(np.eye(3, 2, dtype=bool), (len(state), 3, 2))

    proposal, _, _ = coda(data[:3], data[3:], Mask(), factors, rng=rng)
    for seen, expected in zip(asked, (data[:3], data[3:], proposal), strict=True):
        assert np.array_equal(seen[-1], expected.noise)
        assert len(seen) == 1 + after
        assert not after or np.array_equal(seen[0], expected.next_state)
    assert len(Augmenter(factors, Mask(), lambda s, a, s2: s2[:, 0]).fill(data, 5, rng=rng)) == 5
    with pytest.raises(ValueError, match="declares uses_noise, but the transitions have no noise columns"):
        coda(data[:3].replace(noise=None), data[3:], Mask(), factors, rng=rng)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, f: swap(d[:2], d[:3], f.nodes("s0"), f), "donor: expected as many rows as base, 2, got 3"),
        (lambda d, f: swap(d[:2], d[:2], np.ones((2, 9), bool), f), r"nodes: expected booleans of shape \(2, 3\)"),
        (lambda d, f: swap(d[:2], d[:2], np.ones((2, 3)), f), "nodes: expected booleans"),
        (lambda d, f: swap(d[:2], d[:2], f.nodes("s0"), make_factors(3, 1)), "the data has only 4 columns"),
    ],
)
def test_errors(call, message, rng):
    factors = make_factors(2, 1)
    with pytest.raises(ValueError, match=message):
        call(make_data(factors, 4, rng), factors)
