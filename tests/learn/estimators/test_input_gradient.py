"""Input gradients: known Jacobians, orientation, smoothing, settings."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from counterpoint import Factorization, Transitions
from counterpoint.checks import check_mask_fn
from counterpoint.learn import InputGradient, load
from counterpoint.learn.estimators.input_gradient import ForwardEnsemble, predict
from counterpoint.learn.networks.layers import SELF
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.masks import Threshold
from tests.learn.estimators import test_action_influence
from tests.learn.examples import ALIKE, EDGES, NETWORKS, ONE_WAY, make_data, one_way

TINY = InputGradient(members=2, samples=2, width=8, epochs=3)


@pytest.fixture(scope="module")
def fitted():
    estimator = InputGradient(members=2, samples=2, width=32, epochs=20, batch_size=64, learning_rate=5e-3)
    return estimator.fit(one_way(np.random.default_rng(0)), ONE_WAY, rng=np.random.default_rng(1), progress=False)


def test_a_one_way_edge_is_found_in_its_own_direction(fitted):
    data = one_way(np.random.default_rng(2), rows=300)
    scores = fitted.scores(data.state, data.action).mean(axis=0)
    names = ONE_WAY.names
    others = [(i, j) for i in range(4) for j in range(3) if i != j and (names[i], names[j]) not in EDGES]
    strongest = max(scores[i, j] for i, j in others)
    for source, target in EDGES:
        assert scores[names.index(source), names.index(target)] > 3 * strongest, (source, target, scores)
    assert (scores[range(3), range(3)] == SELF).all()


def test_the_score_is_the_slope_in_standard_deviations(fitted):
    """The driven changes by the difference of two columns, minus half of itself."""
    data = one_way(np.random.default_rng(0))
    scores = fitted.scores(data.state, data.action).mean(axis=0)
    scaling = fitted.learned().scaling
    spread = min(scaling.change.std[2], scaling.next_state.std[2])
    slope = (scaling.state.std[0] + scaling.state.std[1]) / spread
    assert scores[0, 1] == pytest.approx(slope, rel=0.15)


@NETWORKS
def test_gradients_are_those_of_finite_differences(rng, factors):
    data = make_data(rng, factors=factors)
    scaling = Scaling.of(data)
    network = TINY.build(factors, scaling)
    batch = scaling.batch(data.state[:5], data.action[:5])
    inputs = torch.cat([batch.state, batch.action], dim=1)
    model, width = network.models[0], factors.state_width
    found = network.gradients(model, inputs)
    expected = torch.zeros_like(found)
    with torch.no_grad():
        for column in range(inputs.shape[1]):
            owner = factors.state_owner[column] if column < width else factors.action_owner[column - width]
            moved = [inputs.clone(), inputs.clone()]
            moved[0][:, column] += 1e-3
            moved[1][:, column] -= 1e-3
            high, low = (predict(model, ScaledBatch(x[:, :width], x[:, width:])) for x in moved)
            for target, own in enumerate(factors.state.values()):
                expected[:, owner, target] += ((high - low)[target, :, : len(own)] / 2e-3).abs().sum(-1)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-3)


def test_smoothing_averages_over_points_and_members(rng):
    data = make_data(rng, factors=ONE_WAY)
    fitted = TINY.fit(data, ONE_WAY, rng=rng, progress=False)
    network, scaling = fitted.learned().network, fitted.learned().scaling
    batch = scaling.batch(data.state, data.action)
    inputs = torch.cat([batch.state, batch.action], dim=1)
    points = [inputs, inputs + TINY.radius * network.cloud[1]]
    each = [network.gradients(model, point) for model in network.models for point in points]
    off = ~np.eye(4, 3, dtype=bool)
    expected = torch.stack(each).mean(0).numpy()
    np.testing.assert_allclose(fitted.scores(data.state, data.action)[:, off], expected[:, off], rtol=1e-4, atol=1e-6)
    assert not torch.equal(network.cloud[0], network.cloud[1])
    plain = replace(fitted, radius=0.0).scores(data.state, data.action)
    assert np.abs(plain - fitted.scores(data.state, data.action)).max() > 1e-5


@NETWORKS
@pytest.mark.parametrize(
    "estimator", [TINY, test_action_influence.TINY], ids=lambda estimator: type(estimator).__name__
)
def test_ragged_factors_save_load_and_seeds(rng, estimator, factors, tmp_path):
    data = make_data(rng, factors=factors)
    first, second = (estimator.fit(data, factors, rng=np.random.default_rng(3), progress=False) for _ in range(2))
    scores = first.scores(data.state, data.action)
    assert scores.shape == (300, 4, 3)
    np.testing.assert_array_equal(scores, second.scores(data.state, data.action))
    first.save(tmp_path / "mask.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "mask.safetensors").scores(data.state, data.action), scores)
    check_mask_fn(Threshold(first, 0.1), data, factors)


def test_units_do_not_matter(rng):
    """The same rows in other units give the same scores."""
    data = make_data(rng, factors=ALIKE, dtype=np.float64)
    far = Transitions(1e3 * data.state - 7.0, data.action, data.reward, 1e3 * data.next_state - 7.0, data.terminated)
    factors = Factorization(ALIKE.state, ALIKE.action, types=dict(ALIKE.types))
    scores = [
        TINY.fit(d, factors, rng=np.random.default_rng(3), progress=False).scores(d.state, d.action)
        for d in (data, far)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("epoch", [5, 6])
def test_after_an_interrupt_all_members_are_those_that_were_trained(rng, monkeypatch, epoch):
    """In the first epoch of the second member, and after it: one has four epochs, each of a batch and a validation."""
    data = make_data(rng, factors=ONE_WAY)
    calls = []
    error = ForwardEnsemble.error

    def interrupted(self, member, batch):
        calls.append(member)
        if len(calls) == 2 * epoch:
            raise KeyboardInterrupt
        return error(self, member, batch)

    monkeypatch.setattr(ForwardEnsemble, "error", interrupted)
    estimator = replace(TINY, members=3, batch_size=1000)
    with pytest.warns(UserWarning, match="interrupted|of 3 members were trained"):
        fitted = estimator.fit(data, ONE_WAY, rng=rng, progress=False)
    models = fitted.learned().network.models
    trained = 1 if epoch == 5 else 2
    inputs = torch.randn(4, 5)
    each = [fitted.learned().network.gradients(model, inputs) for model in models]
    torch.testing.assert_close(each[2], each[trained - 1])
    assert fitted.learned().history.stopped == "interrupted"
    assert torch.equal(each[0], each[1]) == (trained == 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"members": 0}, "members: expected a whole number, 1 or more, got 0"),
        ({"radius": -0.1}, "radius: expected 0 or more standard deviations, got -0.1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        InputGradient(**settings)
