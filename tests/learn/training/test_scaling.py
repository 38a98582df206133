"""Standardising, and batches of what is standardised."""

import numpy as np
import pytest
import torch

from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from tests.learn.examples import FACTORS, Linear, make_data


def test_a_factor_that_never_changes_is_no_constant(rng):
    """A goal that differs between rows but stays within them: the change is 0, and that is fine."""
    data = make_data(rng)
    after = data.next_state.copy()
    after[:, 3] = data.state[:, 3]
    scaling = Scaling.of(data.replace(next_state=after))
    assert scaling.change.std[3] == 1.0
    Linear().fit(data.replace(next_state=after), FACTORS, rng=rng, progress=False)


def test_rounding_is_not_taken_for_change(rng):
    data = make_data(rng)
    after = data.next_state.copy()
    after[:, 3] = data.state[:, 3] * np.float32(1 + 1e-7)
    assert Scaling.of(data.replace(next_state=after)).change.std[3] == 1.0


def test_standardising_and_back(rng):
    data = make_data(rng)
    scaling = Scaling.of(data)
    batch = scaling.batch(data.state, data.action, data.next_state)
    for part in (batch.state, batch.action, batch.next_state, batch.change):
        np.testing.assert_allclose(part.mean(0), 0.0, atol=1e-5)
        np.testing.assert_allclose(part.std(0, correction=0), 1.0, atol=1e-5)
    back = scaling.original(batch)
    np.testing.assert_allclose(back.state, data.state, atol=1e-5)
    np.testing.assert_allclose(back.action, data.action, atol=1e-5)
    np.testing.assert_allclose(back.next_state, data.next_state, atol=1e-5)
    np.testing.assert_allclose(back.change, data.next_state - data.state, atol=1e-5)
    assert scaling.original(scaling.batch(data.state, data.action)).change is None


def test_a_batch_without_next_state_says_so(rng):
    data = make_data(rng)
    batch = Scaling.of(data).batch(data.state, data.action)
    assert batch[:5].next_state is None
    with pytest.raises(ValueError, match="needs the next state"):
        batch.target("change")


def test_batches_cover_a_batch():
    batch = ScaledBatch(torch.arange(7.0)[:, None], torch.zeros(7, 0))
    assert [one.state.flatten().tolist() for one in batch.chunks(3)] == [[0, 1, 2], [3, 4, 5], [6]]
