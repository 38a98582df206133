"""How sources lie to targets."""

import numpy as np
import torch

from counterpoint import Transitions
from counterpoint.learn.networks.relations import Relations
from counterpoint.learn.training.scaling import Scaling
from tests.learn.examples import ALIKE


def test_the_usual_drift_is_found_among_outliers(rng):
    """Positions move by their velocity, except in a third of the rows."""
    state = rng.normal(size=(600, 5))
    after = state.copy()
    after[:, [0, 2]] += 0.5 * state[:, [1, 3]]
    after[:200, [0, 2]] += rng.normal(size=(200, 2))
    data = Transitions(state, rng.uniform(-1, 1, (600, 1)), np.zeros(600), after, np.zeros(600, bool))
    scaling = Scaling.of(data)
    relations = Relations(ALIKE, scaling)
    batch = scaling.batch(data.state, data.action, data.next_state)
    relations.observe(batch)
    seen = relations.nodes.see(batch)
    ones = torch.ones(600, 4, 1)
    drift = torch.einsum("bnw,nwx->bnx", torch.cat([seen.tokens, ones], -1), relations.drift)[:, :, 0].numpy()
    unit = np.ptp(seen.places[:, 0, 0].numpy()) / np.ptp(state[:, 0])
    np.testing.assert_allclose(drift[:, :2], 0.5 * unit * state[:, [1, 3]], atol=0.02)
    assert (drift[:, 2:] == 0).all()
