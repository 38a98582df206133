"""The replay buffer for flat observations: true rows, promised proportions, doors that say what is wrong."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from gymnasium.spaces import Box, Dict, Discrete
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from counterpoint.adapters.sb3 import CodaReplayBuffer
from counterpoint.checks import audit
from counterpoint.replay import Rollouts
from tests.adapters.sb3.environments import ID, TASK, WORLD, coda, filled


@pytest.mark.parametrize("n_envs", [1, 4])
def test_counterfactuals_are_confirmed_by_the_world(n_envs):
    """The mask does not know the noise, and allows for two standard deviations of it."""
    buffer = filled(2000, n_envs, noise_key="noise", **coda(pairs=500))
    assert audit(buffer.real_transitions(), WORLD.step).confirmed == 1
    made = buffer.counterfactual_transitions()
    assert len(made) > 10_000
    assert audit(made, WORLD.step).confirmed >= 0.999
    np.testing.assert_array_equal(made.reward, TASK(made.state, made.action, made.next_state))


def test_batches_hold_both_kinds_in_proportion():
    buffer = filled()
    real, made = 1000, len(buffer.counterfactual_transitions())
    batch = buffer.sample(500)
    rows = 500 - 500 * real // (real + made)
    assert buffer.counterfactual.share == rows / 500
    assert batch.observations.shape == (500, 16)
    assert batch.discounts is None
    for half, source in (
        (slice(0, 500 - rows), buffer.real_transitions()),
        (slice(500 - rows, None), buffer.counterfactual_transitions()),
    ):
        known = {row.tobytes() for row in np.hstack([source.state, source.next_state, source.reward[:, None]])}
        drawn = np.hstack([t.numpy() for t in (batch.observations, batch.next_observations, batch.rewards)])[half]
        assert {row.tobytes() for row in drawn} <= known


def test_columns_are_those_of_the_plain_buffer():
    buffer = filled()
    plain, mixed = ReplayBuffer.sample(buffer, 100), buffer.sample(100)
    for name in ("observations", "actions", "next_observations", "dones", "rewards"):
        one, other = getattr(plain, name), getattr(mixed, name)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_the_share_is_capped():
    buffer = filled(**coda(max_fraction=0.25))
    assert len(buffer.counterfactual_transitions()) > 1000
    buffer.sample(200)
    assert buffer.counterfactual.share == 0.25


def test_the_ring_is_capped():
    assert len(filled(**coda(capacity=300)).counterfactual_transitions()) == 300


def test_the_same_seed_gives_the_same_rows():
    one, again, other = filled(**coda(seed=5)), filled(**coda(seed=5)), filled(**coda(seed=6))
    np.testing.assert_array_equal(one.counterfactual_transitions().state, again.counterfactual_transitions().state)
    assert not np.array_equal(
        one.counterfactual_transitions().state[:50], other.counterfactual_transitions().state[:50]
    )


def test_vectorised_environments_bring_as_many_rounds():
    assert filled(1000, 1).counterfactual.rounds == filled(1000, 4).counterfactual.rounds == 10


def test_time_limits_are_no_ends():
    """Episodes of 50 steps: 20 rows are done, none is terminal, in either half."""
    buffer = filled(1000)
    assert buffer.dones.sum() == 20
    assert not buffer.real_transitions().terminated.any()
    assert not buffer.sample(1000).dones.any()


def test_memory_optimisation_is_refused_with_a_reason():
    with pytest.raises(ValueError, match="reads the next row as the next state"):
        filled(0, optimize_memory_usage=True)


@pytest.mark.parametrize(
    ("space", "action", "message"),
    [
        (Dict({"x": Box(0, 1)}), Box(-1, 1, (2,)), "flat Box"),
        (Box(0, 1, (4, 4)), Box(-1, 1, (2,)), "flat Box"),
        (Box(0, 1, (16,)), Dict({"x": Discrete(2)}), "action_space"),
    ],
)
def test_unfit_spaces_are_refused(space, action, message):
    with pytest.raises(TypeError, match=message):
        CodaReplayBuffer(100, space, action, **coda())


def test_wrong_widths_and_names_are_refused():
    with pytest.raises(ValueError, match="reach up to column 15"):
        CodaReplayBuffer(100, Box(0, 1, (15,)), Box(-1, 1, (2,)), **coda())
    with pytest.raises(TypeError, match="pears"):
        CodaReplayBuffer(100, Box(0, 1, (16,)), Box(-1, 1, (2,)), **coda(), pears=3)


def test_noise_that_is_not_there_is_missed():
    with pytest.raises(ValueError, match="noise_key: the environment's info has no 'luck'"):
        filled(1, noise_key="luck")


def test_reset_forgets_both_halves():
    buffer = filled()
    buffer.reset()
    assert (buffer.size(), len(buffer.counterfactual.ring), buffer.counterfactual.added) == (0, 0, 0)


def test_normalisation_is_that_of_the_real_half():
    env = VecNormalize(make_vec_env(ID, 1, seed=0), clip_obs=100.0)
    env.reset()
    for _ in range(200):
        env.step(np.random.default_rng(0).uniform(-1, 1, (1, 2)).astype(np.float32))
    plain, normal = filled(**coda(seed=2)), filled(**coda(seed=2))
    np.random.seed(0)  # noqa: NPY002
    raw = plain.sample(100)
    np.random.seed(0)  # noqa: NPY002
    scaled = normal.sample(100, env)
    np.testing.assert_allclose(scaled.observations, env.normalize_obs(raw.observations.numpy()), rtol=1e-6)
    np.testing.assert_allclose(scaled.next_observations, env.normalize_obs(raw.next_observations.numpy()), rtol=1e-6)
    np.testing.assert_allclose(scaled.rewards, env.normalize_reward(raw.rewards.numpy()), rtol=1e-6)
    assert torch.equal(scaled.actions, raw.actions)


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"augmenter": "coda"}, TypeError, r"augmenter: expected Augmenter\("),
        ({"mixing": {"every": 5}}, TypeError, r"mixing: expected counterpoint.replay.Mixing\("),
        ({"augmenter": Rollouts(WORLD.step, TASK), "noise_key": "noise"}, ValueError, "only an Augmenter knows"),
    ],
)
def test_wrong_objects_are_refused(settings, kind, message):
    with pytest.raises(kind, match=message):
        filled(0, **settings)
