"""Networks that do without a source."""

from dataclasses import replace

import torch

from counterpoint import Factorization
from counterpoint.learn.networks.message_passing import MessageNetwork, TrunkNetwork, network_for, without
from counterpoint.learn.training.scaling import ScaledBatch
from tests.learn.examples import ALIKE, NETWORKS, ONE_WAY, batch_of


@NETWORKS
def test_the_kind_of_network_follows_from_the_factors(rng, factors):
    scaling, _ = batch_of(rng, factors)
    assert isinstance(network_for(factors, scaling, 3, 8), TrunkNetwork if factors is ONE_WAY else MessageNetwork)


@NETWORKS
def test_a_source_that_is_left_out_is_not_seen(rng, factors):
    """Its values change nothing but the prediction of itself. Rivals share a feature, so there is one bead less."""
    if factors is ALIKE:
        factors = Factorization.blocks(state={"a": 2, "b": 2}, types={"a": "bead", "b": "bead"})
    scaling, batch = batch_of(rng, factors)
    network = network_for(factors, scaling, 3, 8)
    other = batch.state.clone()
    other[:, :2] = torch.randn(len(other), 2)
    source = torch.zeros(len(other), dtype=torch.long)
    first, second = (
        network.head(without(network.encode(b), source)) for b in (batch, ScaledBatch(other, batch.action))
    )
    torch.testing.assert_close(first[1:], second[1:], rtol=1e-4, atol=1e-5)
    told, changed = (network.head(network.encode(b).total) for b in (batch, ScaledBatch(other, batch.action)))
    assert (told - changed)[1:].abs().max() > 1e-3


def test_messages_treat_factors_of_a_type_alike(rng):
    """Exchanging two beads exchanges what is predicted of them; their order alone may tell them apart."""
    factors = Factorization.blocks(state={"a": 2, "b": 2}, positions={"a": (0,), "b": (2,)}, types={"a": "x", "b": "x"})
    scaling, batch = batch_of(rng, factors)
    same = replace(scaling, state=replace(scaling.state, mean=(0.0,) * 4, std=(1.0,) * 4))
    network = network_for(factors, same, 3, 8)
    network.relations.nodes.rank = torch.zeros_like(network.relations.nodes.rank)
    exchanged = ScaledBatch(batch.state[:, [2, 3, 0, 1]], batch.action)
    first, second = (network.head(network.encode(b).total) for b in (batch, exchanged))
    torch.testing.assert_close(first, second.flip(0), rtol=1e-4, atol=1e-5)
