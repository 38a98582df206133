"""The scripted player of Pong."""

from functools import partial

import numpy as np
import pytest

from counterpoint.worlds.pong import CODE_LENGTH, Pong, pong_policy
from tests.worlds.pong_games import crowded


def success_rate(noise_level, *, length, rng, episodes=600):
    world = Pong(length=length)
    state, noise = world.reset(episodes, rng), world.noise(episodes, rng)
    scored, last, over = np.zeros(episodes, int), np.zeros(episodes), np.zeros(episodes, bool)
    for count in range(1, length + 1):
        action = pong_policy(state, rng, noise_level=noise_level)
        after = world.step(state, action, noise)
        reward = world.reward(state, action, after)
        scored += ~over & (reward != 0)
        last = np.where(over, last, reward)
        over |= world.ends(np.full(episodes, count), scored)
        state = after
    return world.success(last).mean()


def test_the_player_is_good_and_noise_makes_it_worse():
    rng = np.random.default_rng(22)
    rates = [success_rate(level, length=CODE_LENGTH, rng=rng) for level in (0.0, 0.5, 0.7, 1.0)]
    np.testing.assert_allclose(rates, [0.88, 0.60, 0.37, 0.13], atol=0.09)  # the original's, see the sheet
    assert rates[0] > 0.85
    assert np.all(np.diff(rates) < -0.1)
    assert 0.8 < success_rate(0.0, length=150, rng=rng) < rates[0]


def test_actions_of_the_player():
    rng = np.random.default_rng(23)
    state = crowded(4000, rng, np.float32)[0]
    certain = pong_policy(state, rng)
    assert certain.shape == (4000, 2)
    assert certain.dtype == np.float32
    assert np.abs(certain).max() == 1
    assert np.array_equal(certain, pong_policy(state, rng))
    kept = (partial(pong_policy, noise_level=0.3)(state, rng) == certain).all(axis=1).mean()
    assert kept == pytest.approx(0.7, abs=0.03)
    random = pong_policy(state, rng, noise_level=1.0)
    np.testing.assert_allclose(random.std(axis=0), 1 / np.sqrt(3), atol=0.02)
    assert np.abs(np.corrcoef(random.T, certain.T)[:2, 2:]).max() < 0.06
