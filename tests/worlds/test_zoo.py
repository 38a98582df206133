"""Random worlds: each keeps the contract, its mask misses nothing, and every kind of influence really happens."""

import numpy as np
import pytest

from counterpoint import Augmenter
from counterpoint.checks import audit, check_counterfactuals
from counterpoint.core.coda import require_derived
from counterpoint.masks import Constant
from counterpoint.worlds import Zoo, check_world, collect
from counterpoint.worlds.zoo import DEVELOPMENT, FOREIGN, HELD_OUT, KINDS, NOVEL, STRANGE


def no_reward(state, action, next_state):
    return np.zeros(len(state))


def record(world, size=600, seed=0):
    return collect(world, world.policy, size, np.random.default_rng(seed))


def augmented(world, data, mask, pairs=600):
    derive = world.derive if world.factors.derived else None
    return Augmenter(world.factors, mask, no_reward, pairs=pairs, derive=derive)(data, rng=np.random.default_rng(1))


def keeps_all_promises(world):
    check_world(world, np.random.default_rng(world.seed), size=8)
    data = record(world)
    require_derived(data, world.factors, world.derive)
    assert np.isfinite(data.next_state).all()
    assert np.array_equal(world.mask(data.state, data.action), world.mask(data.state, data.action, data.noise))
    made = augmented(world, data, world.mask)
    check_counterfactuals(made, world.step, atol=0.0)
    return len(made)


@pytest.mark.parametrize("kind", [*KINDS, *STRANGE, *FOREIGN, *NOVEL])
def test_worlds_of_every_kind_confirm_all_that_the_exact_mask_accepts(kind):
    assert sum(keeps_all_promises(Zoo(seed, kinds=(kind,))) for seed in range(3)) > 200


@pytest.mark.slow
def test_a_thousand_random_worlds_have_no_edge_that_the_exact_mask_misses():
    made = [keeps_all_promises(Zoo(seed)) for seed in range(1000)]
    assert np.mean(np.array(made) > 0) > 0.98


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [STRANGE, FOREIGN, NOVEL])
def test_strange_foreign_and_novel_worlds_have_no_edge_that_the_exact_mask_misses(kinds):
    made = [keeps_all_promises(Zoo(seed, kinds=kinds)) for seed in range(300)]
    made += [keeps_all_promises(Zoo(seed, kinds=(*KINDS, *kinds))) for seed in range(300)]
    assert np.mean(np.array(made) > 0) > 0.98


@pytest.mark.parametrize("kind", [*KINDS, *STRANGE, *FOREIGN, *NOVEL])
def test_without_its_mask_a_kind_of_influence_makes_wrong_counterfactuals(kind):
    """Edges that are always there are kept; what comes and goes is forgotten."""
    wrong = []
    for seed in range(4):
        world = Zoo(seed, kinds=(kind,))
        data = record(world, 2000)
        always = Constant(world.mask(data.state, data.action).all(axis=0))
        wrong.append(1.0 - audit(augmented(world, data, always), world.step).confirmed)
    assert max(wrong) > 0.02


def test_hidden_velocities_are_carried_from_step_to_step():
    hidden = [world for world in map(Zoo, range(40)) if any(p.hidden for p in world.blueprint.observation.cast.parts)]
    assert hidden
    world = hidden[0]
    data = record(world, 400)
    follows = np.flatnonzero(np.diff(data.episode) == 0)
    carried = world.carry(data.state, data.action, data.noise, data.noise)
    observation = world.blueprint.observation
    for name, part in zip(observation.names, observation.cast.parts, strict=True):
        columns = list(observation.noise_columns.get(name, ())[len(part.noisy) :])
        assert np.array_equal(carried[follows][:, columns], data.noise[follows + 1][:, columns])


def test_the_family_has_what_it_promises():
    worlds = [Zoo(seed) for seed in range(60)]
    assert set(DEVELOPMENT) | set(HELD_OUT) == set(KINDS)
    assert not set(DEVELOPMENT) & set(HELD_OUT)
    assert {kind for world in worlds for kind in world.drawn} == set(KINDS)
    assert {1, 2, 3, 4} <= {world.factors.m for world in worlds}
    assert len({width for world in worlds for width in world.factors.widths}) >= 5
    assert {bool(world.factors.derived) for world in worlds} == {True, False}
    assert {world.policy.style for world in worlds} == {"random", "seek", "aloof", "patrol"}
    parts = [part for world in worlds for part in world.blueprint.observation.cast.parts]
    assert {part.noise_shape for part in parts if part.noise} == {"normal", "uniform", "laplace", "kicks"}


def test_a_seed_is_a_world_and_another_one_another():
    state = np.random.default_rng(0)
    assert Zoo(5).factors.names == Zoo(5).factors.names
    assert np.array_equal(Zoo(5).reset(3, state), Zoo(5).reset(3, np.random.default_rng(0)))
    assert len({Zoo(seed).factors.names for seed in range(10)}) > 5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": -1}, ValueError, "seed: expected a whole number, 0 or more, got -1"),
        ({"seed": 0, "kinds": ()}, ValueError, "kinds: expected some of push, .*, got none"),
        ({"seed": 0, "kinds": ("push", "wormhole")}, ValueError, "kinds: expected some of .*, got wormhole"),
        ({"seed": 0, "kinds": "push"}, TypeError, "got the string 'push'"),
        ({"seed": 0, "dtype": np.int32}, ValueError, "dtype: expected"),
    ],
)
def test_bad_arguments_are_explained(arguments, error, message):
    with pytest.raises(error, match=message):
        Zoo(**arguments)
