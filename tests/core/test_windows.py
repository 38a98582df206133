import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization, Funnel, Sparse
from counterpoint.checks import audit, check_counterfactuals
from counterpoint.core import engine
from counterpoint.core.windows import Windows
from counterpoint.masks import Constant
from counterpoint.worlds import Pong, Room, Sprites, collect, pong_policy, uniform_policy
from tests import reference
from tests.examples import HashedMask, first_column, make_data, make_factors

EVERYTHING = 10**6


def episodes(factors, lengths, rng):
    """Episodes whose states follow each other, all rows shuffled."""
    data = make_data(factors, sum(lengths), rng)
    episode, step = np.repeat(np.arange(len(lengths)), lengths), np.concatenate([np.arange(k) for k in lengths])
    later = np.flatnonzero(step > 0)
    data.next_state[later - 1] = data.state[later]
    return data.replace(episode=episode * 3, step=step + 5)[rng.permutation(len(data))]


def arrays(made):
    return [array for _, array in made.transitions.columns()] + list(made.provenance.arrays())


def plain(data, row):
    return tuple(getattr(data, name)[row].tolist() for name in ("state", "action", "next_state"))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(2, 4), st.integers(0, 2**32))
def test_windows_are_runs_of_one_episode(lengths, length, seed):
    rng = np.random.default_rng(seed)
    data = episodes(make_factors(2, 0), lengths, rng)
    data = data[rng.random(len(data)) < 0.9]  # gaps
    expected = reference.windows(data.episode.tolist(), data.step.tolist(), length) if len(data) else []
    if not expected:
        with pytest.raises(ValueError, match="rows that follow each other; the longest has"):
            Windows.of(data, length)
        return
    found = Windows.of(data, length)
    assert found.rows(np.arange(len(found))).tolist() == expected


@given(
    st.integers(2, 3), st.integers(0, 1), st.sampled_from([[3, 3], [2, 4, 2], [5]]),
    st.integers(2, 3), st.integers(0, 2**32), st.sampled_from([0.03, 0.1]),
)  # fmt: skip
def test_an_exhaustive_round_makes_exactly_what_the_literal_windows_accept(n, m, lengths, length, seed, density):
    rng = np.random.default_rng(seed)
    factors = make_factors(n, m)
    data = episodes(factors, lengths, rng)
    mask_fn = HashedMask(factors, density)
    make = Augmenter(factors, mask_fn, first_column, pairs=EVERYTHING, samples_per_pair=EVERYTHING, window=length)
    made = make(data, rng=rng)

    def mask(s, a):
        return mask_fn(np.array([s]), np.array([a]))[0].tolist()

    owner = factors.state_owner, factors.action_owner
    windows = reference.windows(data.episode.tolist(), data.step.tolist(), length)
    rows = [plain(data, row) for row in range(len(data))]
    masks = [mask(*row[:2]) for row in rows]
    expected = {
        (w1[0], w2[0], d): proposals
        for a, w1 in enumerate(windows)
        for w2 in windows[a + 1 :]
        for d in reference.window_candidates([masks[r] for r in w1], [masks[r] for r in w2])
        if (proposals := reference.window_coda([rows[r] for r in w1], [rows[r] for r in w2], d, mask, owner))
    }
    order = {w[0]: k for k, w in enumerate(windows)}
    found = {}
    for k, (i, j, d) in enumerate(zip(*(array.tolist() for array in made.windows.arrays()), strict=True)):
        swapped = frozenset(np.flatnonzero(d))
        key = (i, j, swapped) if order[i] < order[j] else (j, i, frozenset(range(n + m)) - swapped)
        found[key] = [plain(made.transitions, k * length + step) for step in range(length)]
    assert len(found) == made.funnel.accepted == len(made) // length
    assert found == {key: [tuple(row) for row in proposals] for key, proposals in expected.items()}
    assert made.funnel.pairs == len(windows) * (len(windows) + 1) // 2


def test_one_row_is_what_it_was(rng):
    """The default, and a window of one row, give the same bits."""
    factors = make_factors(3, 1)
    data = episodes(factors, [9, 9, 9], rng)
    options = (factors, HashedMask(factors, 0.1), first_column)
    one, two = (
        Augmenter(*options, **more).fill(data, 50, rng=np.random.default_rng(4)) for more in ({}, {"window": 1})
    )
    assert one.transitions.episode is None
    for mine, theirs in zip(arrays(one), arrays(two), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    # and the same as without any episodes to form windows of
    bare = Augmenter(*options).fill(data.replace(episode=None, step=None), 50, rng=np.random.default_rng(4))
    assert bare.transitions.state.tobytes() == one.transitions.state.tobytes()


class ExactMask:
    """Edges by the bits of whole numbers, the same on every processor."""

    def __init__(self, factors):
        self.factors = factors

    def __call__(self, state, action):
        nodes = (np.column_stack([state[:, ::2], action]) * 64).astype(np.int64)
        mask = (nodes[:, :, None] ^ nodes[:, None, : self.factors.n]) % 11 == 0
        mask[:, range(self.factors.n), range(self.factors.n)] = True
        return mask


@pytest.mark.parametrize(
    ("options", "context", "expected"),
    [
        ({}, (), "57e6b14d3ffaef00"),
        ({"pairing": "sharing"}, (), "5a8ada86dc93a330"),
        ({"policy": Sparse(), "samples_per_pair": 3}, (), "cfe861ae6f12e3ae"),
        ({}, ("s1",), "bad08be4ea9ceafc"),
    ],
)
def test_single_rows_are_bit_for_bit_what_they_were_before_there_were_windows(options, context, expected):
    """The digests were taken from the last version without windows."""
    rng = np.random.default_rng(7)
    factors = make_factors(4, 1, context=context)
    data = make_data(factors, 200, rng)
    if context:
        data.state[:, 2:4] = data.next_state[:, 2:4] = rng.integers(0, 3, (200, 1))
    made = Augmenter(factors, ExactMask(factors), first_column, **options).fill(data, 500, rng=rng)
    parts = [made.transitions.state, made.transitions.action, made.transitions.next_state, made.transitions.reward]
    parts += [made.base, made.donor, made.swapped]
    assert hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16] == expected


def over(state, action, next_state):
    return next_state[:, 0] > 0.7


@pytest.mark.parametrize("length", [1, 2, 4])
def test_no_window_goes_on_after_its_end(length, rng):
    """Those that are terminal before their last row are left out, counted, and nothing else changes."""
    factors = make_factors(3, 1)
    data = episodes(factors, [12, 12, 12], rng)
    given = (factors, HashedMask(factors, 0.05), first_column)
    options = {"pairs": EVERYTHING, "samples_per_pair": EVERYTHING, "window": length}
    every, some = (
        Augmenter(*given, terminal_fn, **options)(data, rng=np.random.default_rng(1))
        for terminal_fn in (lambda s, a, s2: np.zeros(len(s), bool), over)
    )
    early = over(None, None, every.transitions.next_state).reshape(-1, length)[:, :-1].any(axis=1)
    assert early.any() == (length > 1)
    assert some.funnel.ended == early.sum()
    assert some.funnel.accepted == every.funnel.accepted - early.sum()
    assert some.transitions.state.tobytes() == every.transitions.state[~early.repeat(length)].tobytes()
    assert not some.transitions.terminated.reshape(-1, length)[:, :-1].any()
    assert some.transitions.terminated.any()
    f = some.funnel
    assert f.proposals == f.trivial + f.duplicate + f.rejected + f.surplus + f.ended + f.accepted


@pytest.mark.parametrize("pairing", ["uniform", "sharing"])
def test_rows_of_a_window_stay_together(pairing, rng):
    factors = make_factors(4, 1, noise={"s0": (0,), "s3": (1,)})
    data = episodes(factors, [12, 7, 9], rng)
    data = data.replace(noise=rng.random((len(data), 2)))
    make = Augmenter(factors, HashedMask(factors, 0.02), first_column, pairing=pairing, window=4)
    made = make.fill(data, 60, rng=rng)
    rows = made.transitions
    assert (len(made), made.window, made.funnel.accepted, len(made.windows)) == (240, 4, 60, 60)
    first = data.episode.max() + 1
    assert rows.episode.tolist() == np.repeat(np.arange(first, first + 60), 4).tolist()
    assert rows.step.tolist() == [0, 1, 2, 3] * 60
    for name, owner in (("state", factors.state_owner), ("noise", factors.noise_owner)):
        source = getattr(data, name)
        expected = np.where(made.swapped[:, owner], source[made.donor], source[made.base])
        assert np.array_equal(getattr(rows, name), expected)
    for parent in (made.base, made.donor):
        steps, of = data.step[parent].reshape(60, 4), data.episode[parent].reshape(60, 4)
        assert (np.diff(steps, axis=1) == 1).all()
        assert (of == of[:, :1]).all()
    inner = rows.step < 3
    assert np.array_equal(rows.next_state[inner], rows.state[np.flatnonzero(inner) + 1])  # it is one trajectory
    assert np.array_equal(rows.reward, rows.next_state[:, 0])


@pytest.fixture(params=[1, 7, 64])
def chunks(request, monkeypatch):
    """Other sizes of chunk."""
    monkeypatch.setattr(engine.Recipe, "chunk_rows", lambda *_: request.param * 13)


def make_some(rng):
    factors = make_factors(4, 1)
    return Augmenter(factors, HashedMask(factors, 0.03), first_column, window=3), episodes(factors, [30, 20, 25], rng)


def test_streams_and_chunks_and_rebuilding_agree(chunks):
    augmenter, data = make_some(np.random.default_rng(0))
    whole = augmenter.fill(data, 80, rng=np.random.default_rng(1))
    some = list(augmenter.stream(data, 80, rng=np.random.default_rng(1)))
    for k, array in enumerate(arrays(whole)):
        assert np.concatenate([arrays(part)[k] for part in some]).tobytes() == array.tobytes()
    assert sum((part.funnel for part in some), Funnel()) == whole.funnel
    rest = list(augmenter.stream(data, 80, rng=np.random.default_rng(1), after=some[0].funnel))
    assert np.array_equal(rest[0].transitions.episode, some[1].transitions.episode) if rest else len(some) == 1
    again = augmenter.rebuild(data, whole.provenance)
    for (_, mine), (_, theirs) in zip(again.columns(), whole.transitions.columns(), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    later = augmenter.rebuild(data, whole.provenance[30:], before=10)
    assert np.array_equal(later.episode, whole.transitions.episode[30:])


def test_the_size_of_chunks_does_not_matter(monkeypatch):
    made = []
    for size in (40, 1000, 65536):
        monkeypatch.setattr(engine.Recipe, "chunk_rows", lambda *_, size=size: size)
        augmenter, data = make_some(np.random.default_rng(0))
        made.append(augmenter.fill(data, 100, rng=np.random.default_rng(1)))
    for other in made[1:]:
        assert other.funnel == made[0].funnel
        for mine, theirs in zip(arrays(other), arrays(made[0]), strict=True):
            assert mine.tobytes() == theirs.tobytes()


@pytest.mark.compiled
def test_the_same_bits_for_any_number_of_threads():
    script = (
        "import hashlib, numpy as np\n"
        "from counterpoint import Augmenter\n"
        "from tests.core.test_windows import episodes\n"
        "from tests.examples import HashedMask, first_column, make_factors\n"
        "f = make_factors(4, 1); rng = np.random.default_rng(3)\n"
        "data = episodes(f, [40] * 200, rng)\n"
        "made = Augmenter(f, HashedMask(f, 0.02), first_column, window=5).fill(data, 5000, rng=rng)\n"
        "parts = made.transitions.state, made.transitions.next_state, made.base, made.donor, made.swapped\n"
        "print(hashlib.sha256(b''.join(x.tobytes() for x in parts)).hexdigest())\n"
    )

    def output(threads):
        env = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
        return subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        ).stdout

    assert output(1) == output(2)


def test_context_must_agree_at_every_step(rng):
    factors = Factorization.blocks(state={"c": 1, "x": 1, "y": 1}, context=("c",))
    data = episodes(factors, [8, 8, 8], rng)
    for state in (data.state, data.next_state):
        state[:, 0] = data.step % 2  # windows agree only if they begin at steps of the same parity
    tied = Constant.edges(factors, [("c", "x"), ("c", "y")])
    made = Augmenter(factors, tied, first_column, window=3).fill(data, 100, rng=rng)
    assert (data.step[made.base] % 2 == data.step[made.donor] % 2).all()
    assert not made.swapped[:, 0].any()


@pytest.mark.parametrize("world", [Sprites(), Room(), Pong()], ids=lambda world: type(world).__name__)
def test_the_simulator_started_once_reproduces_every_window(world, rng):
    policy = pong_policy if isinstance(world, Pong) else uniform_policy(world)
    data = collect(world, policy, 3000, rng, episode_length=50, reset_probability=0.0)
    make = Augmenter(world.factors, world.mask, first_column, pairing="sharing", window=4)
    made = make.fill(data, 200, rng=rng)
    found = check_counterfactuals(made, world.step, atol=1e-5)
    assert found.confirmed == 1.0
    blind = Augmenter(world.factors, Constant.identity(world.factors), first_column, window=4).fill(data, 200, rng=rng)
    told = audit(blind, world.step, atol=1e-5)
    single = audit(blind.transitions, world.step, atol=1e-5)
    assert told.confirmed < 1.0
    assert told.confirmed <= single.confirmed  # a window is wrong if one of its rows is


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.replace(episode=None), "the data does not say which rows form episodes"),
        (lambda d: d[d.step < 7], "no episode has 4 rows that follow each other; the longest has 2"),
        (lambda d: d[(d.episode == 0) & (d.step < 9)], "A swap needs two windows, and the data holds one"),
    ],
)
def test_what_cannot_be_is_explained(change, message, rng):
    factors = make_factors(2, 1)
    data = episodes(factors, [8, 8], rng)
    with pytest.raises(ValueError, match=message):
        Augmenter(factors, Constant.identity(factors), first_column, window=4).fill(change(data), 5, rng=rng)
