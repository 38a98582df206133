"""Calibration without labels: its parts by their relations, the whole against a simulator."""

from dataclasses import replace

import numpy as np
import pytest

from counterpoint import Factorization, Transitions
from counterpoint.learn import Calibration, calibrate
from counterpoint.learn.calibration.calibrate import gather, judge
from counterpoint.learn.calibration.judging import Asked, Trial
from counterpoint.masks import Constant, Threshold
from counterpoint.metrics import swap_quality
from counterpoint.worlds import Sprites, Zoo, collect
from tests.learn.calibration.worlds import EDGES, WORLD, Changed, Distance, Looking, record


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


def test_no_threshold_that_is_really_bad_is_called_fine(found):
    """What the intervals claim: at the chosen threshold, the truth is inside, or by chance just outside."""
    fresh, rng = record(6000, 1), np.random.default_rng(2)
    mask = Threshold(Distance(), found.tau)
    truth = swap_quality(mask, WORLD.mask, fresh, WORLD.factors, step=WORLD.step, rng=rng, pairs=5000)
    assert found.wrong.low <= 1 - truth.confirmed <= found.wrong.high + 0.005
    assert found.accepted == pytest.approx(truth.accepted, abs=0.05)  # of other rows; episodes differ by so much
    assert not found.fine or truth.confirmed > 1 - 2.5 * found.target


def test_the_threshold_keeps_half_the_target_and_no_other_that_does_yields_more(found):
    assert found.wrong.low <= found.wrong.value <= min(found.target / 2, found.wrong.high)
    assert found.verdict.startswith(("about ", "cannot tell: about "))
    assert (found.tau, found.wrong.value, found.accepted, found.wrong.high) in found.curve
    good = [point for point in found.curve if point.wrong <= found.target / 2 and point.high <= found.wrong.high]
    assert all(point.accepted <= found.accepted for point in good)
    assert [point[0] for point in found.curve] == sorted(point[0] for point in found.curve)


def test_the_figures_of_a_good_mask(found):
    assert found.contradicted.value < 0.02
    assert found.unknown.value < 0.1
    assert found.static == 0.0
    assert str(found).startswith(found.verdict)
    assert "no recording is like them" in str(found)


def test_a_mask_is_judged_as_it_is():
    world = Zoo(50, kinds=("drag",))
    data = collect(world, world.policy, 8000, np.random.default_rng(0), environments=256)
    always = Constant(world.mask(data.state, data.action).mean(axis=0) > 0.999)
    verdicts = []
    for mask in (always, world.mask):
        rng = np.random.default_rng(1)
        found = calibrate(mask, data, world.factors, rng=rng, progress=False)
        truth = swap_quality(mask, world.mask, data, world.factors, step=world.step, rng=rng, pairs=3000)
        assert np.isnan(found.tau)
        assert found.wrong.low <= 1 - truth.confirmed <= found.wrong.high
        verdicts.append(found.wrong.value)
    assert verdicts[0] > 3 * verdicts[1]
    assert "none, it is a mask" in str(found)


def test_a_mask_that_loses_one_edge_in_ten_is_told_from_the_exact_one():
    """Both are near zero and look alike; only one of them is really below the target."""
    world = Zoo(50, kinds=("drag",))
    data = collect(world, world.policy, 8000, np.random.default_rng(0), environments=256)
    always = world.mask(data.state, data.action).mean(axis=0) > 0.999

    def forgetful(state, action):
        exact = world.mask(state, action)
        each = (
            np.abs(np.sin(1e4 * state.sum(axis=1)))[:, None, None] * 1e3
            + np.arange(exact[0].size).reshape(always.shape) / 7
        )
        return np.where(each % 1.0 < 0.1, exact & always, exact)

    derive = world.derive if world.factors.derived else None
    found = [
        calibrate(mask, data, world.factors, rng=np.random.default_rng(1), derive=derive, progress=False).wrong.value
        for mask in (world.mask, forgetful)
    ]
    assert found[0] < found[1]


def test_it_names_the_rows_that_are_missing():
    """Two bodies that never meet: what a swap would bring together, nobody knows."""
    rng = np.random.default_rng(0)
    factors = Factorization.blocks(state={"hand": 2, "cup": 2}, positions={"hand": (0, 1), "cup": (2, 3)})
    state = rng.random((12_000, 4))
    state = state[np.linalg.norm(state[:, :2] - state[:, 2:], axis=1) > 0.35][:6000]
    zeros = np.zeros(len(state))
    data = Transitions(state, np.zeros((len(state), 0)), zeros, 0.9 * state, zeros > 0)
    found = calibrate(Constant.identity(factors), data, factors, rng=rng, progress=False)
    assert not found.fine
    assert found.verdict.startswith("cannot tell: too few interactions.")
    assert found.unknown.low > 0.1
    assert "hand and cup with distance" in found.collect[0]
    assert found.collect[0] in found.verdict


@pytest.mark.parametrize("change", [shuffled, transposed, identity])
def test_a_broken_estimator_is_refused(data, change):
    found = calibrate(Changed(change), data[:2000], WORLD.factors, rng=np.random.default_rng(1), progress=False)
    assert not found.fine
    assert found.verdict.startswith(("do not augment: ", "cannot tell: "))


def test_scores_that_see_the_outcome_are_calibrated_too(data):
    """What the next state of a proposal hides from them is not hidden from the estimate."""
    found = calibrate(Looking(), data[:4000], WORLD.factors, rng=np.random.default_rng(1), progress=False)
    fresh, rng = record(6000, 1), np.random.default_rng(2)
    mask = Threshold(Looking(), found.tau)
    truth = swap_quality(mask, WORLD.mask, fresh, WORLD.factors, step=WORLD.step, rng=rng, pairs=5000)
    assert not found.fine or truth.confirmed > 1 - 2.5 * found.target


def deafened(witness, loud):
    """Return a witness that hears these influences alone, and to which others together tell nothing."""
    deaf = replace(witness, loud=loud)
    deaf.__dict__["telling"] = replace(witness.telling, models=())
    return deaf


def test_a_witness_that_sees_little_of_what_the_mask_sees_is_believed_less(data):
    """What it does not find by itself where the mask is right, it would not find where the mask is wrong."""
    witness, support = gather(data, WORLD.factors, rng=np.random.default_rng(1))
    blind = deafened(witness, np.zeros_like(witness.loud))
    asked = Asked(WORLD.mask, WORLD.factors)
    seeing, unsure = (judge(asked, each, support, rng=np.random.default_rng(2)) for each in (witness, blind))
    assert seeing.wrong.high < unsure.wrong.high
    assert not unsure.fine


def test_a_witness_that_is_deaf_to_one_kind_of_pair_says_what_may_be_missed_there():
    data = record(12_000, 0)
    witness, support = gather(data, WORLD.factors, rng=np.random.default_rng(1))
    loud = witness.loud.copy()
    loud[:, :-1] = False  # it never hears other sprites
    asked, edges = Asked(WORLD.mask, WORLD.factors), WORLD.mask(witness.judged.state, witness.judged.action)
    hearing, deaf = (Trial(asked, each, support, edges, edges, 0, 1000) for each in (witness, deafened(witness, loud)))
    hears, misses = (each.hear(each.swaps(0.0), 0.0) for each in (hearing, deaf))
    assert hears.sight > misses.sight
    assert misses.deaf > 1.5 * hears.deaf


def test_what_was_heard_of_a_threshold_is_not_asked_again(data):
    witness, support = gather(data[:3000], WORLD.factors, rng=np.random.default_rng(1))
    asked, edges = Asked(WORLD.mask, WORLD.factors), WORLD.mask(witness.judged.state, witness.judged.action)
    trial = Trial(asked, witness, support, edges, edges, 0, 500)
    swaps, heard = trial.at(0.0)
    assert trial.at(0.0)[1] is heard
    np.testing.assert_array_equal(heard.paired, trial.hear(swaps, 0.0).paired)
    assert trial.at(np.full((4, 3), 0.5))[1] is not heard


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
    assert capsys.readouterr().err.count("\n") == 1  # no terminal: one line for the stage


def test_derived_columns_are_recomputed_and_context_is_not_swapped(few):
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
    for tau in (-0.2, -0.1, -0.02):
        settings = {"progress": False, "rng": np.random.default_rng(3)}
        plain = calibrate(Threshold(Distance(), tau), few, WORLD.factors, **settings)
        found = calibrate(Threshold(Wider(), tau), wide, factors, derive=derive, **settings)
        assert found.accepted == pytest.approx(plain.accepted, abs=0.04), tau
        assert found.wrong.low <= plain.wrong.high, tau
        assert plain.wrong.low <= found.wrong.high, tau


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


def test_a_calibration_is_a_plain_record(found):
    assert isinstance(found, Calibration)
    with pytest.raises(AttributeError):
        found.tau = 0.0
