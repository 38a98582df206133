"""Residual attribution on a small world whose influences are known."""

import warnings

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import audit, check_mask_fn
from counterpoint.core.positions import Position
from counterpoint.learn import ResidualAttribution, load
from counterpoint.learn.estimators.residual_attribution import Attribution
from counterpoint.masks import Threshold
from tests.learn.examples import Beads

QUICK = {"width": 32, "gate_width": 32, "epochs": 12, "batch_size": 128}


def ranking(scores, truth):
    """Area under the ROC curve."""
    order = np.argsort(np.argsort(scores, axis=None, kind="stable")).reshape(scores.shape)
    positive = truth.sum()
    return (order[truth].sum() - positive * (positive - 1) / 2) / (positive * (truth.size - positive))


@pytest.fixture(scope="module")
def beads():
    return Beads()


@pytest.fixture(scope="module")
def fitted(beads):
    settings = {**QUICK, "epochs": 20}
    return ResidualAttribution(**settings).fit(
        beads.data(6000, 0), beads.factors, rng=np.random.default_rng(0), progress=False
    )


def test_scores_tell_true_edges_on_new_data(beads, fitted):
    new = beads.data(4000, 1)
    scores, truth = fitted.scores(new.state, new.action), beads.run(new.state, new.action)[1]
    assert scores.shape == (4000, 4, 3)
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert (scores[:, range(3), range(3)] == 1).all()
    contact = ~np.eye(4, 3, dtype=bool)
    contact[3] = False
    assert ranking(scores[:, contact], truth[:, contact]) > 0.9
    assert ranking(scores[:, 3], truth[:, 3]) > 0.85
    assert not fitted.fitted.network.standing.any()


def test_what_moves_as_it_does_alone_is_no_anomaly(beads, fitted):
    new, network = beads.data(4000, 10), fitted.fitted.network
    odd = network.evidence(fitted.fitted.scaling.batch(new.state, new.action, new.next_state), fitted.surprise).odd
    driven, alone = odd[:, network.levels.index("driven")], odd[:, network.levels.index("alone")]
    assert driven.any()
    assert not (driven & ~alone).any()
    assert (alone & ~driven).any()


def test_edges_point_from_the_bead_in_the_way_to_the_one_that_turns_back(beads, fitted):
    new = beads.data(4000, 7)
    scores, truth = fitted.scores(new.state, new.action)[:, :3], beads.run(new.state, new.action)[1][:, :3]
    one_way = truth & ~truth.swapaxes(1, 2)
    assert one_way.sum() > 100
    assert (scores[one_way] > scores.swapaxes(1, 2)[one_way]).mean() > 0.9


def test_it_makes_a_mask_whose_counterfactuals_are_mostly_true(beads, fitted):
    new, mask = beads.data(2000, 2), Threshold(fitted, 0.1)
    check_mask_fn(mask, new[:100], beads.factors)
    made = Augmenter(beads.factors, mask, lambda s, a, t: np.zeros(len(s)))(new, rng=np.random.default_rng(0))
    assert len(made) > 300
    assert audit(made, lambda s, a: beads.run(s, a)[0], atol=1e-6).confirmed > 0.9


def test_fitting_is_a_function_of_data_settings_and_generator(beads):
    data, quick = beads.data(400, 3), ResidualAttribution(**{**QUICK, "epochs": 3})
    same, again, other = (
        quick.fit(data, beads.factors, rng=np.random.default_rng(seed), progress=False) for seed in (1, 1, 2)
    )
    score = [estimator.scores(data.state, data.action) for estimator in (same, again, other)]
    np.testing.assert_array_equal(score[0], score[1])
    assert (score[0] != score[2]).any()


def test_a_saved_estimator_scores_the_same(beads, fitted, tmp_path):
    new = beads.data(50, 4)
    fitted.save(tmp_path / "mask.safetensors")
    loaded = load(tmp_path / "mask.safetensors", factors=beads.factors)
    assert loaded == fitted
    np.testing.assert_array_equal(loaded.scores(new.state, new.action), fitted.scores(new.state, new.action))


def switches(rows, seed):
    """Factors of different widths and nowhere: a motor that always turns a wheel, and a switch that moves
    the lamp while it is on."""
    rng = np.random.default_rng(seed)
    factors = Factorization.blocks(state={"wheel": 2, "switch": 1, "lamp": 3}, action={"motor": 2})
    state, action = rng.normal(size=(rows, 6)), rng.normal(size=(rows, 2))
    after, on = state.copy(), state[:, 2] > 1.0
    after[:, :2] += action
    after[:, 2] *= 0.9
    after[:, 3:] = 0.8 * state[:, 3:] + on[:, None]
    truth = np.zeros((rows, 4, 3), bool)
    truth[:, [0, 1, 2], [0, 1, 2]] = truth[:, 3, 0] = True
    truth[:, 1, 2] = on
    return Transitions(state, action, np.zeros(rows), after, np.zeros(rows, bool)), factors, truth


def test_ragged_factors_without_positions_and_a_standing_influence():
    data, factors, _ = switches(4000, 0)
    learned = ResidualAttribution(**QUICK).fit(data, factors, rng=np.random.default_rng(0), progress=False)
    new, _, truth = switches(2000, 1)
    scores = learned.scores(new.state, new.action)
    assert learned.fitted.network.standing.nonzero().tolist() == [[3, 0]]  # the motor, to the wheel
    assert (scores[:, 3, 0] > 0.9).all()
    off = ~np.eye(4, 3, dtype=bool)
    assert ranking(scores[:, off], truth[:, off]) > 0.98


def test_without_actions_only_state_factors_explain():
    rng = np.random.default_rng(0)
    state = rng.normal(size=(2000, 3))
    after = 0.5 * state
    after[:, 0] += 2.0 * (state[:, 2] > 1)
    data = Transitions(state, np.zeros((2000, 0)), np.zeros(2000), after, np.zeros(2000, bool))
    factors = Factorization.blocks(state={"x": 1, "y": 1, "z": 1})
    learned = ResidualAttribution(**QUICK).fit(data, factors, rng=rng, progress=False)
    scores = learned.scores(state, np.zeros((2000, 0)))
    assert learned.fitted.network.levels == ["driven"]
    assert ranking(scores[:, 2, 0], state[:, 2] > 1) > 0.98
    assert scores[:, [1, 0, 2, 0], [0, 1, 1, 2]].max() < 0.5


@pytest.mark.parametrize("seed", [0, 301])  # on the second one, one of the sources is clear, the other nearly
def test_all_sources_of_a_factor_that_never_moves_by_itself_stand(seed):
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(2000, 4))
    after = 0.5 * state
    after[:, 0] += state[:, 1] - 0.7 * state[:, 2]
    data = Transitions(state, np.zeros((2000, 0)), np.zeros(2000), after, np.zeros(2000, bool))
    factors = Factorization.blocks(state={"cart": 1, "left": 1, "right": 1, "bystander": 1})
    learned = ResidualAttribution(**QUICK).fit(data, factors, rng=rng, progress=False)
    standing = learned.fitted.network.standing.numpy()
    scores = learned.scores(state, np.zeros((2000, 0)))
    assert min(standing[[1, 2], 0]) > max(0.7, 1.5 * standing[3, 0])
    assert not standing[:, 1:].any()
    assert np.median(scores[:, [1, 2], 0]) > 0.7
    assert np.median(scores[:, [0, 0, 0], [1, 2, 3]]) < 0.1


def test_neither_names_nor_the_order_of_columns_matter(beads):
    order = [3, 0, 5, 2, 1, 4]  # where each column goes
    place = np.argsort(order)
    renamed = Factorization(
        state={"x": (3, 0), "y": (5, 2), "z": (1, 4)},
        action={"touch": (0,)},
        positions={"x": (3,), "y": (5,), "z": (1,), "touch": Position((0,), 0.5, 0.5)},
        types={"x": "pearl", "y": "pearl", "z": "pearl"},
    )
    data, quick = beads.data(400, 8), ResidualAttribution(**{**QUICK, "epochs": 3})
    moved = data.replace(state=data.state[:, place], next_state=data.next_state[:, place])
    plain, other = (
        quick.fit(part, factors, rng=np.random.default_rng(0), progress=False).scores(part.state, part.action)
        for part, factors in ((data, beads.factors), (moved, renamed))
    )
    np.testing.assert_array_equal(plain, other)


def impatient(patched, calls):
    """Make a function of a class interrupt at one of its calls."""
    count = 0

    def wrapped(*arguments):
        nonlocal count
        count += 1
        if count == calls:
            raise KeyboardInterrupt
        return patched(*arguments)

    return wrapped


@pytest.mark.parametrize("calls", [25, 55])  # in the second epoch of the first stage, in the first of the second
def test_interrupted_gates_are_kept(beads, monkeypatch, calls):
    data = beads.data(1000, 9)
    monkeypatch.setattr(Attribution, "explain", impatient(Attribution.explain, calls))
    with pytest.warns(UserWarning, match="gates: interrupted after"):
        learned = ResidualAttribution(**{**QUICK, "epochs": 10}).fit(
            data, beads.factors, rng=np.random.default_rng(0), progress=False
        )
    assert learned.fitted.history.stopped == "interrupted"
    assert np.isfinite(learned.scores(data.state, data.action)).all()


def test_without_gates_an_interrupt_is_passed_on(beads, monkeypatch):
    monkeypatch.setattr(Attribution, "motion_loss", impatient(Attribution.motion_loss, 25))
    data, estimator = beads.data(1000, 9), ResidualAttribution(**QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody says that weights are kept
        with pytest.raises(KeyboardInterrupt, match="nothing is kept"):
            estimator.fit(data, beads.factors, rng=np.random.default_rng(0), progress=False)


def test_it_says_what_is_wrong(beads):
    with pytest.raises(ValueError, match="width: expected"):
        ResidualAttribution(width=0)
    with pytest.raises(ValueError, match="surprise and sparsity: expected a positive number.*got 0.0"):
        ResidualAttribution(surprise=0.0)
    with pytest.raises(ValueError, match="50 transitions are too few"):
        ResidualAttribution().fit(beads.data(50, 0), beads.factors, rng=np.random.default_rng(0))
    lonely = Factorization.blocks(state={"all": 6})
    data = beads.data(200, 0).replace(action=np.zeros((200, 0)))
    with pytest.raises(ValueError, match="'all' is the only one.*Split the state"):
        ResidualAttribution().fit(data, lonely, rng=np.random.default_rng(0))
