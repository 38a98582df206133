import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from counterpoint import Factorization, Transitions
from counterpoint.masks import Constant, Threshold
from counterpoint.metrics import (
    EDGE_KINDS,
    auc,
    average_precision,
    bootstrap,
    edge_kind,
    missed_edge_rate,
    relative_yield,
    roc,
    swap_quality,
    threshold_for_miss_rate,
)
from counterpoint.worlds import Room, Sprites, collect, uniform_policy
from tests.examples import make_data, make_factors

KINDS = st.sampled_from(EDGE_KINDS)


@st.composite
def scored(draw, dtype=np.float32):
    """Scores with many ties, and true edges, self-edges always."""
    rows, n, m = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    shape = (rows, n + m, n)
    scores = draw(hnp.arrays(np.int64, shape, elements=st.integers(-3, 3))).astype(dtype) / 4
    truth = draw(hnp.arrays(np.bool_, shape))
    truth[:, range(n), range(n)] = True
    return scores, truth


def flat(scores, truth, kind):
    """The entries of a kind, by the definition in words."""
    _, nodes, n = scores.shape
    chosen = {
        "all": lambda i, j: True,
        "off-diagonal": lambda i, j: i != j,
        "object-object": lambda i, j: i != j and i < n,
        "action-object": lambda i, j: i >= n,
    }[kind]
    entries = [(i, j) for i in range(nodes) for j in range(n) if chosen(i, j)]
    rows = [(b, i, j) for b in range(len(scores)) for i, j in entries]
    return np.array([scores[row] for row in rows]), np.array([truth[row] for row in rows], bool)


def slow_auc(scores, truth):
    wins = [1.0 * (p > q) + 0.5 * (p == q) for p in scores[truth] for q in scores[~truth]]
    return np.mean(wins) if wins else np.nan


def slow_average_precision(scores, truth):
    """The mean over true edges of the precision among all that score at least as much."""
    if not truth.any():
        return np.nan
    return np.mean([truth[scores >= s].mean() for s in scores[truth]])


@given(scored(), KINDS)
def test_auc_and_average_precision_are_what_they_say(example, kind):
    scores, truth = example
    entries = flat(scores, truth, kind)
    np.testing.assert_allclose(auc(scores, truth, kind), slow_auc(*entries), atol=1e-12)
    np.testing.assert_allclose(average_precision(scores, truth, kind), slow_average_precision(*entries), atol=1e-12)


@given(scored(), KINDS)
def test_every_point_of_the_roc_is_that_of_its_threshold(example, kind):
    scores, truth = example
    curve, (values, edges) = roc(scores, truth, kind), flat(scores, truth, kind)
    assert len(curve.tau) == len(np.unique(values)) + 1
    assert (np.diff(curve.tau) < 0).all()
    for x, y, tau in zip(curve.false_positive_rate, curve.true_positive_rate, curve.tau, strict=True):
        np.testing.assert_allclose(y, np.mean(values[edges] >= tau) if edges.any() else np.nan)
        np.testing.assert_allclose(x, np.mean(values[~edges] >= tau) if (~edges).any() else np.nan)


def test_auc_is_the_statistic_of_mann_and_whitney(rng):
    truth = rng.random((500, 5, 4)) < 0.1
    scores = np.round(rng.normal(size=truth.shape) + truth, 1)
    values, edges = flat(scores, truth, "off-diagonal")
    u = stats.mannwhitneyu(values[edges], values[~edges]).statistic
    assert auc(scores, truth) == pytest.approx(u / edges.sum() / (~edges).sum())


@given(scored(), KINDS)
def test_missed_edges_are_counted_among_true_ones(example, kind):
    scores, truth = example
    values, edges = flat(scores, truth, kind)
    found = missed_edge_rate(scores > 0, truth, kind)
    np.testing.assert_allclose(found, np.mean(values[edges] <= 0) if edges.any() else np.nan)


@given(scored(), KINDS, st.floats(0, 0.99))
def test_the_threshold_is_the_largest_that_keeps_the_rate(example, kind, rate):
    scores, truth = example
    _, edges = flat(scores, truth, kind)
    if not edges.any():
        with pytest.raises(ValueError, match="no threshold follows"):
            threshold_for_miss_rate(scores, truth, rate, kind)
        return
    tau = threshold_for_miss_rate(scores, truth, rate, kind)
    assert missed_edge_rate(scores > tau, truth, kind) <= rate + 1e-9
    larger = np.nextafter(np.float32(tau), np.float32(np.inf))
    assert missed_edge_rate(scores > larger, truth, kind) > rate


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_threshold_keeps_its_rate_as_a_mask_compares(dtype, rng):
    """A threshold in another precision than the scores could round onto an edge and miss it."""
    scores = rng.random((200, 3, 2)).astype(dtype)
    truth = rng.random(scores.shape) < 0.5
    tau = threshold_for_miss_rate(scores, truth, 0.0)
    mask = Threshold(lambda s, a: scores, tau)(np.zeros((200, 2)), np.zeros((200, 1)))
    assert missed_edge_rate(mask, truth) == 0.0


def test_self_edges_flatter():
    """A score that knows nothing but the self-edges is nearly perfect in the pooled AUC, and useless."""
    truth = np.broadcast_to(np.eye(5, 4, dtype=bool), (300, 5, 4)).copy()
    truth[:, 4, 0] = np.arange(300) % 2 == 0
    blind = np.broadcast_to(np.eye(5, 4), truth.shape)
    assert auc(blind, truth, "all") > 0.9
    assert auc(blind, truth) == 0.5


def test_bootstrap_covers_the_truth_and_repeats(rng):
    """For the mean of normal numbers the interval is that of theory."""
    values = rng.normal(size=(400, 1, 1))

    def mean(scores, truth):
        return float(scores.mean())

    found = bootstrap(mean, values, values > 0, rng=np.random.default_rng(0), resamples=500)
    half = 1.96 * values.std() / 20
    assert found.value == values.mean()
    assert found.low == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.2 * half)
    assert found == bootstrap(mean, values, values > 0, rng=np.random.default_rng(0), resamples=500)
    assert f"[{found.low:.3f}," in str(found)


def test_bootstrap_passes_over_resamples_without_edges():
    scores, truth = np.zeros((3, 2, 2)), np.zeros((3, 2, 2), bool)
    truth[0, 0, 1] = True
    scores[0, 0, 1] = 1.0
    found = bootstrap(auc, scores, truth, rng=np.random.default_rng(0), resamples=50)
    assert found.value == found.low == found.high == 1.0
    nothing = bootstrap(auc, scores, np.zeros_like(truth), rng=np.random.default_rng(0), resamples=5)
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()


@pytest.fixture(scope="module")
def sprites():
    world = Sprites(noise_std=0.0)
    return world, collect(world, uniform_policy(world), 5000, np.random.default_rng(3))


def test_the_exact_mask_is_confirmed_and_yields_all(sprites):
    world, data = sprites
    quality = swap_quality(
        world.mask, world.mask, data, world.factors, step=world.step, rng=np.random.default_rng(0), pairs=4000
    )
    assert quality.confirmed == 1.0
    assert 0.9 < quality.relative_yield < 1.1
    assert "100.00%" in str(quality)


def test_no_mask_is_refuted_and_a_full_one_yields_nothing(sprites):
    world, data = sprites
    options = {"rng": np.random.default_rng(0), "pairs": 4000}
    blind = Constant.identity(world.factors)
    quality = swap_quality(blind, world.mask, data, world.factors, step=world.step, **options)
    assert quality.confirmed < 0.3
    assert quality.accepted == 1.0
    assert quality.relative_yield > 1.3
    full = swap_quality(Constant.full(world.factors), world.mask, data, world.factors, step=world.step, **options)
    assert np.isnan(full.confirmed)
    assert full.accepted == full.relative_yield == 0.0
    assert relative_yield(blind, world.mask, data, world.factors, **options) > 1.3


def test_pairs_agree_on_the_context(rng):
    world = Room()
    data = collect(world, uniform_policy(world), 2000, rng)
    blind = Constant.identity(world.factors)
    quality = swap_quality(world.mask, world.mask, data, world.factors, step=world.step, rng=rng, pairs=1000)
    assert (quality.confirmed, quality.accepted) == (1.0, 1.0)
    told = swap_quality(blind, world.mask, data, world.factors, step=world.step, rng=rng, pairs=1000)
    assert 0.3 < told.confirmed < 1.0  # the push goes to another puck, that is all


def test_derived_columns_are_recomputed(rng):
    def step(state, action, noise=None):
        moved = state[:, :2] + np.hstack([action, np.ones_like(action)])
        return np.column_stack([moved, moved[:, 1] - moved[:, 0]])

    factors = Factorization({"hand": (0,), "cup": (1,)}, {"motor": (0,)}, derived=(2,))
    state, action = rng.random((50, 3)), rng.random((50, 1))
    state[:, 2] = state[:, 1] - state[:, 0]
    data = Transitions(state, action, np.zeros(50), step(state, action), np.zeros(50, bool))
    mask = Constant.edges(factors, [("motor", "hand")])
    options = {"rng": rng, "derive": lambda s: s[:, [1]] - s[:, [0]], "pairs": 300}
    quality = swap_quality(mask, mask, data, factors, step=step, **options)
    assert (quality.confirmed, quality.accepted) == (1.0, 1.0)
    assert relative_yield(mask, mask, data, factors, **options) == 1.0


def test_repeats_do_not_count(rng):
    factors = make_factors(2, 0)
    data = make_data(factors, 30, rng)
    for state in (data.state, data.next_state):
        state[:, :2] = 1.0  # every row agrees on the first factor, so each swap only repeats a row
    mask = Constant.identity(factors)
    assert swap_quality(mask, mask, data, factors, step=lambda s, a: s, rng=rng).accepted == 0.0


def test_swaps_of_what_never_changes_do_not_count(rng):
    """A mask that ties all that moves together accepts goals alone, and that is no yield."""
    factors = make_factors(3, 0)
    data = make_data(factors, 60, rng)
    data.next_state[:, 4:] = data.state[:, 4:]  # s2 is a goal
    tied, free = Constant.edges(factors, [("s0", "s1")]), Constant.identity(factors)
    options = {"rng": rng, "step": lambda s, a: s, "pairs": 500}
    assert swap_quality(tied, free, data, factors, **options).accepted == 0.0
    assert 0.5 < swap_quality(free, free, data, factors, **options).accepted < 0.8  # four of six unions


def test_mistakes_are_explained(rng):
    scores, truth = rng.random((4, 3, 2)), np.zeros((4, 3, 2), bool)
    with pytest.raises(ValueError, match="kind: expected one of 'off-diagonal'"):
        auc(scores, truth, "diagonal")
    with pytest.raises(ValueError, match=r"scores: expected shape \(B, N, n\)"):
        auc(scores[0], truth[0])
    with pytest.raises(ValueError, match=r"truth: expected booleans of shape \(4, 3, 2\)"):
        auc(scores, truth.astype(int))
    with pytest.raises(ValueError, match="NaN"):
        auc(np.full_like(scores, np.nan), truth)
    with pytest.raises(TypeError, match="mask: expected booleans"):
        missed_edge_rate(scores, truth)
    with pytest.raises(ValueError, match="rate: expected a share"):
        threshold_for_miss_rate(scores, truth, 1.0)
    with pytest.raises(ValueError, match="level"):
        bootstrap(auc, scores, truth, rng=rng, level=1.0)
    with pytest.raises(TypeError, match="rng"):
        bootstrap(auc, scores, truth, rng=0)
    with pytest.raises(ValueError, match="expected equal lengths"):
        bootstrap(auc, scores, truth[:3], rng=rng)
    factors = Factorization.blocks(state={"a": 1, "b": 1})
    one = Transitions(np.zeros((1, 2)), np.zeros((1, 0)), np.zeros(1), np.zeros((1, 2)), np.zeros(1, bool))
    mask = Constant.identity(factors)
    with pytest.raises(ValueError, match="two transitions"):
        relative_yield(mask, mask, one, factors, rng=rng)


def test_kinds_of_edges_split_the_mask():
    for nodes, n in ((3, 3), (5, 4), (4, 2)):
        parts = [edge_kind(kind, nodes, n) for kind in ("object-object", "action-object")]
        assert (parts[0] ^ parts[1] == edge_kind("off-diagonal", nodes, n)).all()
        assert (edge_kind("all", nodes, n) & ~np.eye(nodes, n, dtype=bool) == edge_kind("off-diagonal", nodes, n)).all()
