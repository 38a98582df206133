"""What pairs of factors look like."""

import numpy as np

from counterpoint.learn.networks.features import Nodes
from counterpoint.learn.training.scaling import Scaling
from tests.learn.examples import Beads


def test_relative_features_are_what_they_say():
    beads = Beads()
    data = beads.data(200, 6)
    scaling = Scaling.of(data)
    nodes, batch = Nodes(beads.factors, scaling), scaling.batch(data.state, data.action, data.next_state)
    seen = nodes.see(batch)
    where = np.column_stack([data.state[:, ::2], 0.5 * data.action + 0.5])
    places = seen.places[:, :, 0].numpy()
    unit = (where[0, 0] - where[0, 1]) / (places[0, 0] - places[0, 1])
    np.testing.assert_allclose(unit * (places - places[:, :1]), where - where[:, :1], atol=1e-5)
    after = nodes.ahead(seen.places, nodes.change(batch))[:, :, 0].numpy()
    moved = np.column_stack([data.next_state[:, ::2], where[:, 3]])
    np.testing.assert_allclose(unit * (after - places[:, :1]), moved - where[:, :1], atol=1e-5)
    nearer = nodes.nearer(seen.places).numpy()
    distance = np.abs(where[:, 3:] - where[:, :3])
    for j in range(3):
        rival = np.delete(distance, j, axis=1).min(axis=1)
        np.testing.assert_allclose(unit * nearer[:, 3, j], rival - distance[:, j], atol=1e-5)
        np.testing.assert_array_equal(nearer[:, j, j], 0)
