"""The best test there is: put accepted counterfactuals back into the world and ask whether they are true."""

import numpy as np
import pytest

from counterpoint import Augmenter, Transitions, components, random_union, swap
from counterpoint.checks import audit, check_counterfactuals
from counterpoint.masks import Constant, Interventional
from counterpoint.worlds import (
    NonstationaryMP,
    Place,
    Pong,
    Room,
    Sprites,
    StationaryMP,
    collect,
    pong_policy,
    uniform_policy,
)


def zero(state, action, next_state):
    return np.zeros(len(state))


def record(world, size, seed=0, **episodes):
    policy = pong_policy if isinstance(world, Pong) else uniform_policy(world)
    return collect(world, policy, size, np.random.default_rng(seed), **episodes)


WORLDS = {
    "sprites": Sprites(noise_std=0.0),
    "sprites-reverse": Sprites(noise_std=0.0, action_rule="reverse"),
    "eight-sprites": Sprites(8, noise_std=0.0),
    "pong": Pong(),
    "stationary": StationaryMP(),
    "nonstationary": NonstationaryMP(),
    "nonstationary-features": NonstationaryMP(features=True),
    "room": Room(),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_world_confirms_every_accepted_counterfactual_bit_for_bit(name):
    world = WORLDS[name]
    data = record(world, 20_000)
    made = Augmenter(world.factors, world.mask, zero).fill(data, 100_000, rng=np.random.default_rng(1))
    assert len(made) == 100_000
    check_counterfactuals(made, world.step, atol=0.0)


def test_under_noise_that_the_mask_does_not_see_hardly_any_is_wrong():
    world = Sprites(noise_std=0.01)
    made = Augmenter(world.factors, world.mask, zero).fill(record(world, 20_000), 100_000, rng=np.random.default_rng(1))
    assert 0.999 <= audit(made, world.step).confirmed < 1.0


def test_the_audit_bites():
    """Without the third mask call a third is wrong, without any mask most are."""
    world = Sprites(noise_std=0.0)
    data = record(world, 40_000)
    base, donor = data[:20_000], data[20_000:]
    m1, m2 = world.mask(base.state, base.action), world.mask(donor.state, donor.action)
    nodes = random_union(components(m1 | m2), np.random.default_rng(0))
    unchecked = audit(swap(base, donor, nodes, world.factors)[nodes.any(axis=1)], world.step).confirmed
    assert 0.55 < unchecked < 0.75
    blind = Augmenter(world.factors, Constant.identity(world.factors), Place(1))(data, rng=np.random.default_rng(0))
    assert 0.05 < audit(blind, world.step).confirmed < 0.25


def test_a_hidden_context_makes_half_of_all_swaps_wrong():
    world = Room(hidden=True)
    made = Augmenter(world.factors, world.mask, zero)(record(world, 5_000), rng=np.random.default_rng(1))
    assert 0.4 < audit(made, world.step, atol=0.0).confirmed < 0.6


# Share of the true edges that a small nudge sees. A collision of sprites, and the kind of floor in the room,
# are steps, which it cannot see; the rest is smooth.
SMOOTH = {"sprites": 0.5, "pong": 0.97, "nonstationary": 0.999, "nonstationary-features": 0.95, "room": 0.33}


@pytest.mark.parametrize("name", WORLDS)
def test_nudging_a_simulator_finds_no_edge_that_the_exact_mask_misses(name):
    world = WORLDS[name]
    data = record(world, 20_000, seed=7)
    still = np.zeros((len(data), world.factors.noise_width)) if data.noise is not None else None
    oracle = Interventional(
        lambda s, a: world.step(s, a, still[: len(s)]), world.factors, samples=1, action_range=(-1.0, 1.0)
    )
    exact = world.mask(data.state, data.action, still)
    found = oracle(data.state, data.action)
    assert not (found & ~exact).any()
    off = ~np.eye(*exact.shape[1:], dtype=bool)
    if name in SMOOTH:
        assert found[:, off][exact[:, off]].mean() >= SMOOTH[name]


def test_noise_travels_with_its_owner():
    world = Pong()
    data = record(world, 2_000)
    made = Augmenter(world.factors, world.mask, zero)(data, rng=np.random.default_rng(0))
    expected = np.where(made.swapped[:, world.noise_owner], data.noise[made.donor], data.noise[made.base])
    assert made.transitions.noise.tobytes() == expected.tobytes()
    assert isinstance(made.transitions, Transitions)
