import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from counterpoint import Augmenter, Factorization, Funnel, Sparse, Transitions
from counterpoint.core import engine, threads
from counterpoint.masks import Constant
from tests import reference
from tests.examples import HashedMask, first_column, make_data, make_factors

EVERYTHING = 10**6


def rows_of(made):
    return [
        (int(i), int(j), frozenset(np.flatnonzero(d)))
        for i, j, d in zip(made.base, made.donor, made.swapped, strict=True)
    ]


def canonical(i, j, d, nodes):
    """(i, j, d) and (j, i, not d) are the same row."""
    return (i, j, d) if i < j else (j, i, frozenset(range(nodes)) - d)


def adds_up(f):
    return f.proposals == f.trivial + f.duplicate + f.rejected + f.accepted


@given(st.integers(2, 5), st.integers(0, 2), st.integers(2, 6), st.integers(0, 2**32), st.sampled_from([0.05, 0.2]))
def test_an_exhaustive_round_makes_exactly_what_the_literal_algorithm_accepts(n, m, rows, seed, density):
    rng = np.random.default_rng(seed)
    factors = make_factors(n, m)
    data = make_data(factors, rows, rng)
    mask_fn = HashedMask(factors, density)
    made = Augmenter(factors, mask_fn, first_column, pairs=EVERYTHING, samples_per_pair=EVERYTHING)(data, rng=rng)

    def mask(s, a):
        return mask_fn(np.array([s]), np.array([a]))[0].tolist()

    owner = factors.state_owner, factors.action_owner
    plain = [tuple(getattr(data, c)[r].tolist() for c in ("state", "action", "next_state")) for r in range(rows)]
    expected = {
        (i, j, d)
        for i in range(rows)
        for j in range(i + 1, rows)
        for d in reference.candidates(mask(*plain[i][:2]), mask(*plain[j][:2]))
        if reference.coda(plain[i], plain[j], d, mask, owner)
    }
    found = [canonical(*row, n + m) for row in rows_of(made)]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert made.funnel.pairs == rows * (rows + 1) // 2
    assert adds_up(made.funnel)


@given(st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]), st.integers(1, 40))
def test_fill_returns_exactly_size_rows_with_bitwise_provenance(seed, dtype, size):
    rng = np.random.default_rng(seed)
    factors = make_factors(4, 1, noise={"s0": (0,), "s3": (1,)})
    data = make_data(factors, 12, rng, dtype).replace(noise=rng.random((12, 2)), step=np.arange(12))
    made = Augmenter(factors, HashedMask(factors, 0.05), first_column, samples_per_pair=3).fill(data, size, rng=rng)
    assert len(made) == size == made.funnel.accepted
    assert adds_up(made.funnel)
    for name, owner in (
        ("state", factors.state_owner), ("action", factors.action_owner),
        ("next_state", factors.state_owner), ("noise", factors.noise_owner),
    ):  # fmt: skip
        source = getattr(data, name)
        expected = np.where(made.swapped[:, owner], source[made.donor], source[made.base])
        assert getattr(made.transitions, name).tobytes() == expected.tobytes()
    assert made.transitions.reward.dtype == dtype
    assert np.array_equal(made.transitions.reward, made.transitions.next_state[:, 0])
    assert made.transitions.step is None
    assert (made.base != made.donor).all()
    unique = {canonical(*row, 5) for row in rows_of(made)}
    assert len(unique) == size


def test_an_identity_mask_accepts_everything_and_a_full_mask_nothing(rng):
    factors = make_factors(3, 1)
    data = make_data(factors, 30, rng)
    made = Augmenter(factors, Constant.identity(factors), first_column, pairs=50, samples_per_pair=4)(data, rng=rng)
    assert made.funnel.rejected == 0
    assert made.funnel.accepted == 4 * (50 - made.funnel.trivial)
    nothing = Augmenter(factors, Constant.full(factors), first_column, pairs=50)(data, rng=rng)
    assert nothing.funnel == Funnel(pairs=50, proposals=50, trivial=50)
    assert len(nothing) == 0


def test_fill_is_the_beginning_of_what_a_larger_fill_makes_whatever_the_chunks(rng, monkeypatch):
    factors = make_factors(4, 1)
    data = make_data(factors, 50, rng)
    augmenter = Augmenter(factors, HashedMask(factors, 0.1), first_column)
    large = augmenter.fill(data, 900, rng=np.random.default_rng(5))
    monkeypatch.setattr(engine.Recipe, "chunk_rows", lambda *_: 13)
    small = augmenter.fill(data, 300, rng=np.random.default_rng(5))
    again = augmenter.fill(data, 900, rng=np.random.default_rng(5))
    assert rows_of(small) == rows_of(large)[:300]
    assert again.funnel == large.funnel
    assert again.transitions.state.tobytes() == large.transitions.state.tobytes()
    assert rows_of(augmenter.fill(data, 300, rng=np.random.default_rng(6))) != rows_of(small)


def test_only_the_rows_that_are_used_are_asked_for(rng):
    factors = make_factors(3, 1)
    data = make_data(factors, 5000, rng)
    asked = []

    def mask(state, action):
        asked.append(len(state))
        return Constant.identity(factors)(state, action)

    made = Augmenter(factors, mask, first_column, pairs=10, samples_per_pair=1)(data, rng=rng)
    assert sum(asked) <= 20 + len(made)


@pytest.mark.compiled
def test_swapped_sets_are_uniform_over_proper_unions(rng):
    factors = make_factors(3, 1)
    data = make_data(factors, 400, rng)
    mask = Constant.edges(factors, [("a0", "s0")])  # components {s0, a0}, {s1}, {s2}
    made = Augmenter(factors, mask, first_column, samples_per_pair=1).fill(data, 30_000, rng=rng)
    _, counts = np.unique(made.swapped, axis=0, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


def test_the_sparse_policy_moves_one_component(rng):
    factors = make_factors(6, 1)
    data = make_data(factors, 40, rng)
    mask = Constant.edges(factors, [("a0", "s0")])
    made = Augmenter(factors, mask, first_column, policy=Sparse()).fill(data, 500, rng=rng)
    assert set(made.swapped[:, 1:6].sum(axis=1) + made.swapped[:, 0]) == {1}
    assert np.array_equal(made.swapped[:, 0], made.swapped[:, 6])


def test_parents_that_agree_make_duplicates_not_rows(rng):
    """A swap of what both parents share would only repeat a row; it is counted and dropped."""
    factors = make_factors(3, 0)
    data = make_data(factors, 20, rng)
    data.state[:, :2] = data.next_state[:, :2] = 0.25  # all agree on s0
    made = Augmenter(factors, Constant.identity(factors), first_column, pairs=EVERYTHING, samples_per_pair=6)(
        data, rng=rng
    )
    pairs = 20 * 19 // 2
    assert made.funnel == Funnel(pairs + 20, 6 * pairs + 20, trivial=20, duplicate=4 * pairs, accepted=2 * pairs)
    assert not made.swapped[:, 0].any()
    every = np.vstack([np.hstack([t.state, t.next_state]) for t in (made.transitions, data)])
    assert len(np.unique(every, axis=0)) == len(every)


def test_context_factors_must_agree_and_tie_nothing(rng):
    factors = Factorization.blocks(state={"room": 1, "puck": 2, "ball": 2}, action={"push": 1}, context=("room",))
    data = make_data(factors, 60, rng)
    data.state[:, 0] = data.next_state[:, 0] = rng.integers(0, 3, 60)
    edges = [("room", "puck"), ("room", "ball"), ("push", "puck")]
    augmenter = Augmenter(factors, Constant.edges(factors, edges), first_column)
    for chosen in (augmenter, Augmenter(factors, augmenter.mask_fn, first_column, pairing="sharing")):
        made = chosen.fill(data, 200, rng=rng)
        assert np.array_equal(data.state[made.base, 0], data.state[made.donor, 0])
        assert not made.swapped[:, 0].any()
        assert made.swapped[:, 2].any()
        assert made.funnel.rejected == 0
    data.state[:, 0] = np.arange(60)
    with pytest.raises(ValueError, match="No two transitions agree on the context room"):
        augmenter.fill(data, 1, rng=rng)


def test_sharing_pairs_waste_no_proposal_where_uniform_ones_do(rng):
    factors = make_factors(3, 0)
    data = make_data(factors, 200, rng)

    def rarely_free(state, action):
        mask = np.ones((len(state), 3, 3), bool)
        mask[state[:, 0] < 0.1] = np.eye(3, dtype=bool)
        return mask

    uniform = Augmenter(factors, rarely_free, first_column, pairs=300)(data, rng=rng)
    sharing = Augmenter(factors, rarely_free, first_column, pairs=100, pairing="sharing")(data, rng=rng)
    assert uniform.funnel.trivial > 200
    assert sharing.funnel.trivial == 0
    assert (data.state[sharing.base, 0] < 0.1).all()


def test_derive_is_tried_on_the_real_data_first(rng):
    factors = Factorization({"hand": (0,), "cup": (1,)}, derived=(2, 3))
    state = rng.random((40, 4))
    state[:, 2] = state[:, 1] - state[:, 0]
    state[:, 3] = state[:, 1] + state[:, 0]
    data = Transitions(state, np.zeros((40, 0)), np.zeros(40), state[::-1], np.zeros(40, bool))

    def derive(s):
        return np.column_stack([s[:, 1] - s[:, 0], s[:, 1] + s[:, 0]])

    make = {"factors": factors, "mask_fn": Constant.identity(factors), "reward_fn": first_column}
    made = Augmenter(**make, derive=derive).fill(data, 30, rng=rng).transitions
    assert np.array_equal(made.state[:, 2:], derive(made.state))
    assert np.array_equal(made.next_state[:, 2:], derive(made.next_state))
    with pytest.raises(ValueError, match=r"Worst is derived\[\d\] \(column 3\) of state"):
        Augmenter(**make, derive=lambda s: derive(s) + np.array([0.0, 0.5])).fill(data, 30, rng=rng)
    with pytest.raises(ValueError, match=r"Worst is derived\[\d\] \(column 2\) of state, off by inf"):
        Augmenter(**make, derive=lambda s: np.column_stack([s[:, 2], derive(s)[:, 1]])).fill(data, 30, rng=rng)
    with pytest.raises(ValueError, match="declares derived columns"):
        Augmenter(**make).fill(data, 30, rng=rng)
    whole = data.replace(state=data.state.astype(int), next_state=data.next_state.astype(int))
    with pytest.raises(TypeError, match="derived columns need floats"):
        Augmenter(**make, derive=derive).fill(whole, 30, rng=rng)


def test_termination_is_relabelled_never_copied(rng):
    factors = make_factors(2, 1)
    data = make_data(factors, 20, rng).replace(terminated=np.arange(20) % 4 == 0)
    with pytest.raises(ValueError, match="5 of 20 transitions are terminal.*Give terminal_fn"):
        Augmenter(factors, Constant.identity(factors), first_column)(data, rng=rng)

    def terminal(state, action, next_state):
        return next_state[:, 0] > 0.5

    made = Augmenter(factors, Constant.identity(factors), first_column, terminal)(data, rng=rng).transitions
    assert np.array_equal(made.terminated, made.next_state[:, 0] > 0.5)


def test_it_can_be_sent_to_another_process(rng):
    factors = make_factors(2, 1)
    augmenter = Augmenter(factors, Constant.identity(factors), first_column, pairs=5)
    data = make_data(factors, 20, rng)
    one, two = (a(data, rng=np.random.default_rng(0)) for a in (augmenter, pickle.loads(pickle.dumps(augmenter))))
    assert rows_of(one) == rows_of(two)


@pytest.mark.compiled
def test_the_same_bits_for_any_number_of_threads():
    script = (
        "import hashlib, numpy as np\n"
        "from counterpoint import Augmenter\n"
        "from counterpoint.core import threads\n"
        "from tests.examples import HashedMask, first_column, make_data, make_factors\n"
        "f = make_factors(5, 1); rng = np.random.default_rng(3)\n"
        "made = Augmenter(f, HashedMask(f, 0.1), first_column).fill(make_data(f, 9000, rng), 60000, rng=rng)\n"
        "parts = made.transitions.state, made.transitions.next_state, made.base, made.donor, made.swapped\n"
        "digest = hashlib.sha256(b''.join(x.tobytes() for x in parts)).hexdigest()\n"
        "print(threads.THREADS, threads._pool is not None, digest)\n"
    )

    def output(threads):
        env = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
        return subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        ).stdout.split()

    (one, alone, first), (two, pooled, second) = output(1), output(2)
    assert (one, alone, two, pooled) == ("1", "False", "2", "True")
    assert first == second


def test_threads_share_the_rows(monkeypatch):
    monkeypatch.setattr(threads, "THREADS", 3)
    monkeypatch.setattr(threads, "_pool", None)
    seen = np.zeros(3 * threads.FEWEST, int)
    for _ in range(2):
        threads.run(lambda start, stop, out: np.add.at(out, slice(start, stop), 1), len(seen), seen)
    assert (seen == 2).all()


def test_progress_is_reported(rng):
    factors = make_factors(3, 0)
    seen = []
    Augmenter(factors, Constant.identity(factors), first_column).fill(
        make_data(factors, 20, rng), 50, rng=rng, progress=seen.append
    )
    assert seen == sorted(seen)
    assert seen[-1] == 50


def test_the_funnel_reads_well():
    funnel = Funnel(10, 50, 2, 3, 25, 20) + Funnel(1, 1, 1, 0, 0, 0)
    assert funnel == Funnel(11, 51, 3, 3, 25, 20)
    assert funnel.acceptance == pytest.approx(20 / 45)
    assert Funnel().acceptance == 0
    assert "rejected              25" in str(funnel)
