"""Masked likelihood: networks that do without a source, known one-way edges, and rows that are predicted badly."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from counterpoint import Factorization, Transitions
from counterpoint.checks import check_mask_fn
from counterpoint.learn import MaskedLikelihood, load
from counterpoint.learn.estimators.masked_likelihood import more_of_the_worst
from counterpoint.learn.networks.layers import SELF
from counterpoint.masks import Threshold
from tests.learn.examples import EDGES, FACTORS, NETWORKS, ONE_WAY, make_data, one_way

TINY = MaskedLikelihood(width=8, components=2, draws=4, epochs=4)


@pytest.fixture(scope="module")
def fitted():
    estimator = MaskedLikelihood(width=32, components=2, draws=8, epochs=40, batch_size=64)
    return estimator.fit(one_way(np.random.default_rng(0)), ONE_WAY, rng=np.random.default_rng(1), progress=False)


@pytest.mark.parametrize("uses_next_state", [True, False])
def test_a_one_way_edge_is_found_in_its_own_direction(fitted, uses_next_state):
    data = one_way(np.random.default_rng(2), rows=300)
    asked = replace(fitted, uses_next_state=uses_next_state)
    scores = np.median(asked.scores(data.state, data.action, data.next_state), axis=0)
    names = ONE_WAY.names
    others = [(i, j) for i in range(4) for j in range(3) if i != j and (names[i], names[j]) not in EDGES]
    strongest = max(scores[i, j] for i, j in others)
    for source, target in EDGES:
        assert scores[names.index(source), names.index(target)] > 1.0 + 2 * strongest, (source, target, scores)
    assert (scores[range(3), range(3)] == SELF).all()


def test_what_cannot_be_explained_is_entangled_with_everything(fitted):
    data = one_way(np.random.default_rng(2), rows=300)
    odd = data.next_state.copy()
    odd[:, 3] += 3.0 * odd[:, 3].std()
    before, after = (fitted.scores(data.state, data.action, s).astype(float) for s in (data.next_state, odd))
    np.testing.assert_allclose(before[:, :, :2], after[:, :, :2], atol=1e-4)
    assert (np.median(after[:, [0, 1, 3], 2] - before[:, [0, 1, 3], 2], axis=0) > 2.0).all()


def test_an_influence_that_comes_and_goes():
    """A door lets the wind in, if it is open."""
    rng = np.random.default_rng(0)
    factors = Factorization.blocks(state={"door": 1, "wind": 1, "leaf": 1})

    def rows(count):
        state = rng.normal(size=(count, 3))
        after = 0.5 * state
        after[:, 2] += (state[:, 0] > 0) * state[:, 1]
        return Transitions(state, np.zeros((count, 0)), np.zeros(count), after, np.zeros(count, bool))

    data, test = rows(3000), rows(500)
    estimator = MaskedLikelihood(width=32, components=2, draws=8, epochs=20, batch_size=64)
    fitted = estimator.fit(data, factors, rng=rng, progress=False)
    scores = fitted.scores(test.state, test.action, test.next_state)
    windy = (test.state[:, 0] > 0.3) & (np.abs(test.state[:, 1]) > 0.3)
    calm = test.state[:, 0] < -0.3
    assert np.quantile(scores[windy, 1, 2], 0.1) > np.quantile(scores[calm, 1, 2], 0.9)
    assert np.median(scores[:, 2, 1]) < 0.5


@NETWORKS
def test_ragged_factors_save_load_and_seeds(rng, factors, tmp_path):
    data = make_data(rng, factors=factors)
    first, second = (TINY.fit(data, factors, rng=np.random.default_rng(3), progress=False) for _ in range(2))
    scores = first.scores(data.state, data.action, data.next_state)
    assert scores.shape == (300, 4, 3)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, second.scores(data.state, data.action, data.next_state))
    replace(first, uses_next_state=False).save(tmp_path / "mask.safetensors")
    again = load(tmp_path / "mask.safetensors", factors=factors)
    assert not again.uses_next_state
    np.testing.assert_array_equal(
        replace(again, uses_next_state=True).scores(data.state, data.action, data.next_state), scores
    )
    check_mask_fn(Threshold(first, 1.0), data, factors)


@NETWORKS
def test_a_component_that_drifted_away_does_no_harm(rng, factors):
    """One that is never needed may get any standard deviation; squared it must not overflow."""
    data = make_data(rng, factors=factors)
    fitted = TINY.fit(data, factors, rng=rng, progress=False)
    with torch.no_grad():
        list(fitted.learned().network.network.last.parameters())[-1].fill_(80.0)  # the bias
    assert np.isfinite(fitted.scores(data.state, data.action, data.next_state)).all()


def test_scores_do_not_depend_on_their_company(rng):
    """More rows than are scored at once."""
    data = make_data(rng, rows=200)
    fitted = TINY.fit(data, FACTORS, rng=rng, progress=False)
    many = np.tile(data.state, (25, 1)), np.tile(data.action, (25, 1)), np.tile(data.next_state, (25, 1))
    few = fitted.scores(data.state, data.action, data.next_state)
    np.testing.assert_allclose(fitted.scores(*many), np.tile(few, (25, 1, 1)), rtol=1e-3, atol=1e-3)


def test_bad_rows_are_drawn_again(rng, monkeypatch):
    """Rows that jumped are a tenth of the data, and most of what is added."""
    data = make_data(rng, rows=600)
    jumped = np.arange(600) % 10 == 0
    after = data.next_state + 20.0 * jumped[:, None] * rng.normal(size=(600, 4)).astype(np.float32)
    data = data.replace(next_state=after)
    seen = []

    def watched(network, task, *settings):
        rows = more_of_the_worst(network, task, *settings)
        seen.append((len(task.train), rows, task.train))
        return rows

    monkeypatch.setattr("counterpoint.learn.estimators.masked_likelihood.more_of_the_worst", watched)
    estimator = MaskedLikelihood(width=8, components=2, draws=4, epochs=8, oversample=0.5)
    estimator.fit(data, FACTORS, rng=rng, progress=False)
    count, rows, train = seen[-1]
    assert len(seen) == 3
    assert len(rows) == 2 * count
    wild = train.change.abs().amax(1).median() * 3
    assert (rows.change[count:].abs().amax(1) > wild).float().mean() > 0.8
    assert (train.change.abs().amax(1) > wild).float().mean() < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"components": 0}, "components: expected a whole number, 1 or more, got 0"),
        ({"draws": 1.5}, "draws: expected a whole number"),
        ({"finest": 1.0}, "finest: expected a share of a standard deviation between 0 and 1, got 1.0"),
        ({"oversample": 1.0}, "worst, oversample and surprise: expected shares between 0 and 1, got 0.05, 1.0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MaskedLikelihood(**settings)


def test_the_next_state_is_asked_for(fitted):
    data = one_way(np.random.default_rng(2), rows=3)
    with pytest.raises(ValueError, match="it needs the next state"):
        fitted.scores(data.state, data.action)
