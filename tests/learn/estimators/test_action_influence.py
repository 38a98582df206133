"""Action influence: known influence of actions, its bounds, and its place beside other masks."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from counterpoint import Factorization, Transitions
from counterpoint.learn import ActionInfluence
from counterpoint.learn.networks.densities import GaussianMixture, kl_to_mixture
from counterpoint.learn.networks.layers import SELF
from counterpoint.masks import And, Constant, Threshold, Union
from tests.learn.examples import make_data

FACTORS = Factorization.blocks(state={"boat": 1, "kite": 1}, action={"rudder": 1, "line": 1})
TINY = ActionInfluence(actions=4, width=8, epochs=3)


def sea(rng, rows):
    """The rudder turns the boat if it moves; the line always pulls the kite."""
    state, action = rng.normal(size=(rows, 2)), rng.uniform(-1, 1, (rows, 2))
    after = 0.5 * state
    after[:, 0] += (state[:, 0] > 0) * action[:, 0]
    after[:, 1] += action[:, 1]
    return Transitions(state, action, np.zeros(rows), after, np.zeros(rows, bool))


@pytest.fixture(scope="module")
def fitted():
    estimator = ActionInfluence(actions=16, width=32, epochs=20, batch_size=64, learning_rate=4e-3)
    return estimator.fit(sea(np.random.default_rng(0), 3000), FACTORS, rng=np.random.default_rng(1), progress=False)


@pytest.mark.parametrize("pointwise", [True, False])
def test_the_influence_that_comes_and_goes_is_found(fitted, pointwise):
    data = sea(np.random.default_rng(2), 400)
    scores = replace(fitted, pointwise=pointwise).scores(data.state, data.action)
    moving, still = data.state[:, 0] > 0.3, data.state[:, 0] < -0.3
    rudder, line = scores[:, 2], scores[:, 3]
    assert np.quantile(rudder[moving, 0], 0.1) > np.quantile(rudder[still, 0], 0.9)
    assert np.median(line[:, 1]) > 10 * max(np.median(line[:, 0]), np.median(rudder[:, 1]), 0.01)
    assert (rudder <= math.log(17.0) + 1e-4).all()
    assert (scores >= 0).all()


def test_only_actions_are_scored(fitted):
    data = sea(np.random.default_rng(2), 50)
    scores = fitted.scores(data.state, data.action)
    assert (scores[:, [0, 1], [0, 1]] == SELF).all()
    assert (scores[:, [0, 1], [1, 0]] == 0).all()


def test_the_mean_over_actions_is_the_mean_of_the_pointwise_scores(fitted):
    """For a state and the drawn actions, compared among themselves: a slow reference."""
    network, scaling = fitted.learned().network, fitted.learned().scaling
    data = sea(np.random.default_rng(2), 1)
    batch = scaling.batch(data.state, data.action)
    with torch.no_grad():
        found = replace(fitted, pointwise=False).edges(network, batch)[0, 2, 0].item()
        actions = torch.cat([batch.action, network.drawn[:, 2:]])
        actions[:, 1] = batch.action[0, 1]
        predicted = network.densities(
            network.encode(replace(batch, state=batch.state.expand(17, -1), action=actions)).total
        )
        mean, log_std = predicted.mean[0, :, 0], predicted.log_std[0, :, 0]
        everything = GaussianMixture(torch.full((17,), -math.log(17.0)), mean, log_std)
        each = [
            kl_to_mixture(
                GaussianMixture(torch.zeros(1), mean[k : k + 1], log_std[k : k + 1]), everything, torch.ones(1)
            )
            for k in range(17)
        ]
    assert found == pytest.approx(float(torch.stack(each).mean()), rel=1e-3, abs=1e-5)


def test_it_is_joined_to_other_masks(fitted):
    data = sea(np.random.default_rng(2), 50)
    influence = Threshold(fitted, 0.5)
    wind = Constant.edges(FACTORS, [("boat", "kite")])
    joined = Union(wind, influence)(data.state, data.action)
    assert joined[:, 0, 1].all()
    np.testing.assert_array_equal(joined[:, 2:], influence(data.state, data.action)[:, 2:])
    possible = Constant.edges(FACTORS, [("line", "kite")])
    assert not And(possible, influence)(data.state, data.action)[:, 2].any()


def test_no_actions_is_an_error(rng):
    factors = Factorization.blocks(state={"a": 1, "b": 2})
    with pytest.raises(ValueError, match="there is no action factor"):
        TINY.fit(make_data(rng, factors=factors), factors, rng=rng, progress=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"actions": 0}, "actions: expected a whole number, 1 or more, got 0"),
        ({"finest": 0.0}, "finest: expected a share of a standard deviation between 0 and 1, got 0.0"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        ActionInfluence(**settings)
