"""Densities of the next state, with a source redrawn."""

import torch

from counterpoint.learn.networks.density_network import DensityNetwork
from counterpoint.learn.training.scaling import ScaledBatch
from tests.learn.examples import FACTORS, batch_of


def test_rows_to_redraw_from_are_rows_or_quantiles(rng):
    """The two columns of a cart stay together; single columns are spread evenly."""
    scaling, batch = batch_of(rng, FACTORS, rows=300)
    network = DensityNetwork(FACTORS, scaling, components=2, width=8, finest=0.01, draws=4)
    network.observe(batch, rng)
    carts = {tuple(row) for row in batch.state[:, :2].tolist()}
    assert all(tuple(row) in carts for row in network.drawn[:, :2].tolist())
    pushes = batch.action[:, 0].sort().values
    torch.testing.assert_close(network.drawn[:, 4], pushes[[37, 112, 187, 262]])


def test_a_redrawn_source_is_the_mean_over_its_values(rng):
    """Against one prediction for each remembered value."""
    scaling, batch = batch_of(rng, FACTORS)
    network = DensityNetwork(FACTORS, scaling, components=2, width=8, finest=0.01, draws=4)
    network.observe(batch, rng)
    value, real = network.target(batch), network.real
    each = []
    for drawn in network.drawn:
        action = drawn[4:].expand(len(batch), 1)
        predicted = network.densities(network.encode(ScaledBatch(batch.state, action)).total)
        each.append(predicted.log_prob(value, real).exp())
    found = network.redrawn(batch, 3).log_prob(value, real).exp()
    torch.testing.assert_close(found, torch.stack(each).mean(0))
