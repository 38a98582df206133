"""Calibration without labels: its parts by their relations, the whole against a simulator."""

from dataclasses import replace

import numpy as np
import pytest

from counterpoint import Factorization, Provenance, Transitions
from counterpoint.learn import Calibration, calibrate
from counterpoint.learn.calibration.motion_alone import MotionAlone
from counterpoint.learn.calibration.plausibility import implausible
from counterpoint.learn.calibration.reliability import (
    Curve,
    Surprises,
    Swaps,
    blame,
    first_curve,
    fit_curve,
    rising,
    wrong_chance,
)
from counterpoint.learn.calibration.threshold_trial import Scorer, glued_scores
from counterpoint.learn.calibration.verdict import FEWEST_SURPRISES, weigh
from counterpoint.masks import Threshold
from counterpoint.metrics import Estimate, swap_quality
from counterpoint.worlds import Sprites, collect, uniform_policy

WORLD = Sprites(3, noise_std=0.0)
EDGES = (4, 3)


def record(rows, seed):
    return collect(WORLD, uniform_policy(WORLD), rows, np.random.default_rng(seed))


class Distance:
    """Nearness of sprites, now or after the step, and of the click to each sprite compared with the others."""

    uses_next_state = False

    def scores(self, state, action):
        sprites = state.reshape(len(state), -1, 4).astype(float)
        here = sprites[..., :2]
        ahead = here + sprites[..., 2:]
        between = [np.linalg.norm(p[:, :, None] - q[:, None], axis=3) for p, q in ((here, here), (ahead, ahead))]
        click = np.linalg.norm(here - (action[:, None] + 1) / 2, axis=2)
        rival = np.where(np.eye(click.shape[1], dtype=bool), np.inf, click[:, None]).min(axis=2)
        return -np.concatenate([np.minimum(*between), (click - rival + 0.1)[:, None]], axis=1)


class Looking(Distance):
    """The same for a target that moved on undisturbed, and a larger score for one that did not."""

    uses_next_state = True

    def scores(self, state, action, next_state):
        before, after = (x.reshape(len(x), -1, 4) for x in (state, next_state))
        turned = np.abs(after[..., 2:] - before[..., 2:]).max(axis=2) > 1e-4
        return super().scores(state, action) + 0.05 * turned[:, None]


class Changed:
    """Scores of another estimator, changed."""

    def __init__(self, change):
        self.change = change

    def scores(self, state, action):
        return self.change(Distance().scores(state, action))


def shuffled(scores):
    return np.random.default_rng(0).permuted(scores, axis=0)


def transposed(scores):
    return np.concatenate([scores[:, :3].transpose(0, 2, 1), np.zeros_like(scores[:, 3:])], axis=1)


def identity(scores):
    return np.broadcast_to(np.eye(*EDGES), scores.shape).copy()


@pytest.fixture(scope="module")
def data():
    return record(5000, 0)


@pytest.fixture(scope="module")
def found(data):
    return calibrate(Distance(), data, WORLD.factors, rng=np.random.default_rng(1), progress=False)


def test_estimates_agree_with_the_world_at_all_thresholds(found):
    fresh, rng = record(6000, 1), np.random.default_rng(2)
    useful = [point for point in found.curve if point[2] > 0.02 and point[1] < 0.5]
    assert len(useful) > 5
    assert max(wrong for _, wrong, _ in useful) > 0.2
    for tau, wrong, accepted in useful:
        mask = Threshold(Distance(), tau)
        truth = swap_quality(mask, WORLD.mask, fresh, WORLD.factors, step=WORLD.step, rng=rng, pairs=5000)
        assert wrong == pytest.approx(1 - truth.confirmed, abs=0.03, rel=0.25)
        assert accepted == pytest.approx(truth.accepted, abs=0.03)


def test_the_threshold_keeps_half_the_target_and_no_other_that_does_yields_more(found):
    assert found.fine
    assert found.verdict == f"about {found.wrong.value:.1%} of the counterfactuals would be wrong; yield " + (
        f"{found.accepted:.0%}; fine"
    )
    assert found.wrong.low <= found.wrong.value <= min(found.target / 2, found.wrong.high)
    chosen = (found.tau, found.wrong.value, found.accepted)
    assert chosen in found.curve
    assert all(accepted <= found.accepted for _, wrong, accepted in found.curve if wrong <= found.target / 2)
    assert [point[0] for point in found.curve] == sorted(point[0] for point in found.curve)


def test_controls_of_a_good_mask(found):
    assert found.implausible.low <= found.target
    assert found.false_edges < 0.05
    assert found.missed < 0.03
    assert found.surprises > FEWEST_SURPRISES
    assert str(found).startswith(found.verdict)
    assert "surprised factors have no incoming edge" in str(found)


@pytest.mark.parametrize("change", [shuffled, transposed, identity])
def test_a_broken_estimator_is_refused(data, change):
    found = calibrate(Changed(change), data[:2000], WORLD.factors, rng=np.random.default_rng(1), progress=False)
    assert not found.fine
    assert found.verdict.startswith("do not augment: ")


@pytest.mark.slow
def test_scores_that_see_the_outcome_are_calibrated_too(data):
    """What the next state of a proposal hides from them is not hidden from the estimate."""
    found = calibrate(Looking(), data[:4000], WORLD.factors, rng=np.random.default_rng(1), progress=False)
    fresh, rng = record(6000, 1), np.random.default_rng(2)
    for tau, wrong, _ in [point for point in found.curve if point[2] > 0.02]:
        mask = Threshold(Looking(), tau)
        truth = swap_quality(mask, WORLD.mask, fresh, WORLD.factors, step=WORLD.step, rng=rng, pairs=5000)
        assert wrong == pytest.approx(1 - truth.confirmed, abs=0.06)


@pytest.fixture(scope="module")
def few(data):
    return data[:2000].replace(episode=None)


@pytest.fixture(scope="module")
def rough(few):
    return calibrate(Distance(), few, WORLD.factors, rng=np.random.default_rng(3), progress=False)


def test_the_same_seed_gives_the_same(few, rough, capsys):
    again = calibrate(Distance(), few, WORLD.factors, rng=np.random.default_rng(3))
    assert str(again) == str(rough)
    np.testing.assert_array_equal(again.curve, rough.curve)  # also where nothing was accepted, and the share is NaN
    assert "forward model: 100%" in capsys.readouterr().err


def test_without_episodes_there_is_no_negative_control(rough):
    assert rough.false_edges is None
    assert "not known, the data has no episodes" in str(rough)


def along_both(*found):
    """Return what two calibrations say at the same thresholds, between those that they tried."""
    tried = [np.array([point for point in each.curve if point[2] > 0.02]).T for each in found]
    taus = np.linspace(max(each[0].min() for each in tried), min(each[0].max() for each in tried), 8)
    return [[(tau, *(np.interp(tau, each[0], column) for column in each[1:])) for tau in taus] for each in tried]


def test_derived_columns_are_recomputed_and_context_is_not_swapped(few, rough):
    """A room that never changes, and a distance: the sprites do not care, and neither do the figures."""
    old = WORLD.factors
    factors = Factorization(
        {**old.state, "room": (12,)}, old.action, (13,), ("room",), positions=old.positions, types=old.types
    )
    room = np.arange(len(few))[:, None] % 2

    def derive(state):
        return np.linalg.norm(state[:, :2] - state[:, 4:6], axis=1, keepdims=True)

    class Wider:
        def scores(self, state, action):
            assert not np.isnan(state).any()
            scores = np.pad(Distance().scores(state[:, :12], action), ((0, 0), (0, 0), (0, 1)), constant_values=-9.0)
            return np.insert(scores, 3, 9.0, axis=1)  # the room moves everything

    wide = few.replace(
        state=np.hstack([few.state, room, derive(few.state)]),
        next_state=np.hstack([few.next_state, room, derive(few.next_state)]),
    )
    with pytest.raises(ValueError, match="derive: the factorisation declares derived columns"):
        calibrate(Wider(), wide, factors, rng=np.random.default_rng(3), progress=False)
    found = calibrate(Wider(), wide, factors, rng=np.random.default_rng(3), derive=derive, progress=False)
    for (tau, wrong, accepted), (_, *plain) in zip(*along_both(found, rough), strict=True):
        assert accepted == pytest.approx(plain[1], abs=0.08), tau
        assert wrong == pytest.approx(plain[0], abs=0.05, rel=0.5), tau


def test_bad_input_is_refused_in_words(data):
    def run(estimator=Distance(), rows=data, factors=WORLD.factors, **others):  # noqa: B008
        settings = {"rng": np.random.default_rng(0), "progress": False} | others
        return calibrate(estimator, rows, factors, **settings)

    with pytest.raises(ValueError, match="1,999 transitions are too few to count what a mask misses"):
        run(rows=data[:1999])
    state = data.state.copy()
    state[7, 3] = np.nan
    with pytest.raises(ValueError, match="state"):
        run(rows=data.replace(state=state))
    with pytest.raises(ValueError, match="state"):
        run(factors=Sprites(4).factors)
    with pytest.raises(ValueError, match="all scores are 2, so no threshold can tell edges from others"):
        run(Changed(lambda scores: np.full_like(scores, 2.0)))
    with pytest.raises(ValueError, match="some scores are NaN"):
        run(Changed(lambda scores: np.where(scores > -0.1, np.nan, scores)))
    with pytest.raises(ValueError, match=r"expected scores, floats of shape \(\d+, 4, 3\), got float64"):
        run(Changed(lambda scores: scores[:, :3]))
    with pytest.raises(ValueError, match="target: expected a share between 0 and 1, got 1.5"):
        run(target=1.5)
    with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
        run(rng=0)


def estimate(value, spread=0.0):
    return Estimate(value, value - spread, value + spread)


GOOD = {"wrong": estimate(0.005), "accepted": 0.4, "target": 0.01, "far": estimate(0.0), "surprises": 500}


def test_a_verdict_is_fine_unless_one_figure_speaks_against_it():
    assert weigh(**GOOD) == (True, "about 0.5% of the counterfactuals would be wrong; yield 40%; fine")
    against = {
        "wrong": (estimate(0.02), "about 2.0% of the counterfactuals would be wrong, whatever the threshold"),
        "accepted": (0.001, "0.10% of the pairs give a counterfactual"),
        "far": (estimate(0.2, 0.01), "20.0% are implausible to an independent forward model"),
        "surprises": (3, "only 3 factors did what they would not do by themselves"),
    }
    for name, (value, reason) in against.items():
        fine, words = weigh(**{**GOOD, name: value})
        assert not fine
        assert words.startswith("do not augment: ")
        assert reason in words


def test_rising_is_the_isotonic_regression(rng):
    """Against the min-max formula: the largest lower mean over all intervals that hold a place."""
    values, weights = rng.normal(size=20), rng.uniform(0.1, 2.0, 20)

    def mean(a, b):
        return np.average(values[a : b + 1], weights=weights[a : b + 1])

    slow = [max(min(mean(a, b) for b in range(k, 20)) for a in range(k + 1)) for k in range(20)]
    np.testing.assert_allclose(rising(values, weights), slow)


@pytest.fixture
def noisy_or(rng):
    """Scores and the surprises that follow from a known chance of each edge, the square of its score, and a leak."""
    scores = rng.uniform(size=(20_000, *EDGES))
    chance = np.where(np.eye(*EDGES, dtype=bool), 0.0, scores**2 / 2)
    leak = np.full((20_000, 3), 0.05)
    surprised = rng.uniform(size=leak.shape) < 1 - (1 - leak) * np.prod(1 - chance, axis=1)
    return scores, chance, Surprises(surprised, np.ones_like(surprised), leak)


def test_chances_are_found_from_surprises_alone(noisy_or):
    scores, chance, seen = noisy_or
    start = first_curve(scores, WORLD.factors, np.zeros(EDGES, bool))
    curve = fit_curve(scores, seen, start)
    assert np.abs(curve(scores) - chance).mean() < 0.02
    assert (np.diff(curve.chance, axis=1) >= 0).all()
    tight = fit_curve(scores, replace(seen, leak=np.zeros_like(seen.leak)), start)
    assert tight(scores).mean() > curve(scores).mean() + 0.01  # without the leak, its surprises are blamed on someone
    assert set(start.kinds.ravel()) == {-1, 0, 1}  # self-edges, sprite to sprite, action to sprite
    doubled = fit_curve(scores, seen, start, weight=np.full(len(scores), 2.0))
    np.testing.assert_allclose(doubled.chance, curve.chance)
    ignored = replace(seen, clear=np.arange(len(scores))[:, None] % 2 * np.ones((1, 3)) > 0)
    half = Surprises(seen.surprised[1::2], seen.clear[1::2], seen.leak[1::2])
    np.testing.assert_allclose(fit_curve(scores, ignored, start).chance, fit_curve(scores[1::2], half, start).chance)


def test_blame_is_shared_among_the_sources_of_what_was_surprised(noisy_or):
    _, chance, seen = noisy_or
    always = np.zeros(EDGES, bool)
    always[3, 0] = True
    shared = blame(chance, seen, always)
    assert (shared[:, 3, 0] == 1.0).all()
    rest = np.where(always, 0.0, shared)
    moved = np.broadcast_to(seen.surprised[:, None], rest.shape)
    assert (rest[~moved] == 0).all()
    some = 1 - 0.95 * np.prod(1 - np.where(always, 0.0, chance), axis=1)
    np.testing.assert_allclose((rest * some[:, None])[moved], np.where(always, 0.0, chance)[moved])
    unclear = replace(seen, clear=np.zeros_like(seen.clear))
    np.testing.assert_array_equal(blame(chance, unclear, always), np.where(always, 1.0, chance))


def test_with_certain_edges_what_is_wrong_is_what_an_edge_crosses(rng):
    rows, pairs = 50, 2000
    edge = rng.uniform(size=(rows, *EDGES)) < 0.05
    after = rng.uniform(size=(pairs, *EDGES)) < 0.05
    base, donor = rng.integers(rows, size=(2, pairs))
    nodes = rng.uniform(size=(pairs, 4)) < 0.5
    step = Curve(np.array([0.5]), np.array([[0.0, 1.0]]), np.zeros(EDGES, int), np.zeros(EDGES, bool))
    swaps = Swaps(Provenance(base, donor, nodes), after.astype(float))
    found = wrong_chance(swaps, edge.astype(float), edge.astype(float), (step, step), np.zeros(4, bool))
    for r in range(pairs):
        cross = nodes[r][:, None] != nodes[r][:3]
        old = np.stack([edge[donor[r] if nodes[r, j] else base[r]][:, j] for j in range(3)], axis=1)
        if ((old | after[r]) & cross).any():
            assert found[r] == 1.0
        lost = np.stack([edge[donor[r] if nodes[r, i] else base[r]][i] for i in range(4)]) & cross
        if not ((old | after[r] | lost) & cross).any():
            assert found[r] == 0.0
    everything = wrong_chance(swaps, edge * 1.0, edge * 1.0, (step, step), np.ones(4, bool))
    assert (everything == 0.0).all()  # context ties nothing


def test_a_baseline_knows_what_moves_a_factor_always(rng):
    """The arm follows its motor; the ball moves by itself, unless the arm is near."""
    state, motor = rng.uniform(-1, 1, (2000, 3)), rng.uniform(-1, 1, (2000, 1))
    near = np.abs(state[:, 0] - state[:, 1]) < 0.1
    after = np.stack([state[:, 0] + motor[:, 0], state[:, 1] + np.where(near, 0.5, 0.1 * state[:, 2]), state[:, 2]], 1)
    factors = Factorization.blocks(state={"arm": 1, "ball": 2}, action={"motor": 1})
    data = Transitions(state, motor, np.zeros(2000), after, np.zeros(2000, bool))
    baseline = MotionAlone.fit(data, factors, rng)
    np.testing.assert_array_equal(baseline.always, [[False, False], [False, False], [True, False]])
    off = baseline.residual(data)
    assert np.median(off[near, 1]) > 20 * np.median(off[~near, 1])
    undisturbed = np.abs(baseline.next_state(data) - after)[~near]
    assert np.median(undisturbed, axis=0).max() < 0.02


def test_what_a_policy_looks_at_is_not_what_moves_a_factor(rng):
    """The player follows the ball, so the ball tells as much as the action does; still the action moves the paddle."""
    factors = Factorization.blocks(state={"paddle": 1, "ball": 1}, action={"motor": 1})
    state = rng.uniform(-1, 1, (1500, 2))
    action = np.tanh(2.0 * (state[:, 1:] - state[:, :1])) + 0.01 * rng.normal(size=(1500, 1))
    next_state = state + np.concatenate([0.3 * action, 0.1 * np.sin(3.0 * state[:, 1:])], axis=1)
    data = Transitions(state, action, np.zeros(1500), next_state, np.zeros(1500, bool))
    always = MotionAlone.fit(data, factors, rng).always
    np.testing.assert_array_equal(always, [[False, False], [False, False], [True, False]])


def test_what_is_implausible_changes_sign_with_its_direction(rng):
    before, after = rng.normal(0, 10, (2, 5000))
    lost = implausible(before, after)
    np.testing.assert_array_equal(lost, -implausible(after, before))
    np.testing.assert_array_equal(lost, implausible(before + 3, after + 3))
    assert set(lost) == {-1.0, 0.0, 1.0}


def test_glued_factors_are_far_apart(data, rng):
    """All of their scores are small, where distance is the score; sprites without positions may be near."""
    scores = glued_scores(Scorer(Distance(), WORLD.factors), data, rng)
    every = Distance().scores(data.state, data.action)[:, :3][:, ~np.eye(3, dtype=bool)]
    assert scores.max() < np.median(every)
    nowhere = Factorization(WORLD.factors.state, WORLD.factors.action)
    assert glued_scores(Scorer(Distance(), nowhere), data, rng).max() > np.quantile(every, 0.9)


def test_a_calibration_is_a_plain_record(found):
    assert isinstance(found, Calibration)
    with pytest.raises(AttributeError):
        found.tau = 0.0
