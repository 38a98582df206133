import numpy as np
import pytest

from counterpoint import Augmenter
from counterpoint.checks import check_counterfactuals
from counterpoint.masks import Interventional
from counterpoint.scm import independent_in_union
from counterpoint.worlds import TwoArms, as_scm, check_world, collect, uniform_policy
from counterpoint.worlds.causal_model import state_and_action
from tests.examples import first_column

WORLD = TwoArms()


@pytest.mark.parametrize("world", [WORLD, TwoArms(noise_std=0.01), TwoArms(dtype=np.float64)], ids=repr)
@pytest.mark.parametrize("window", [1, 5])
def test_every_accepted_counterfactual_is_true(world, window, rng):
    check_world(world, rng)
    data = collect(world, uniform_policy(world), 2000, rng, episode_length=40, reset_probability=0.0)
    made = Augmenter(world.factors, world.mask, first_column, window=window).fill(data, 300, rng=rng)
    check_counterfactuals(made, world.step, atol=0.0)


def test_the_mask_is_what_interventions_show(rng):
    world = TwoArms(dtype=np.float64)
    state = np.concatenate([world.reset(300, rng), world.reset(1, rng)])
    state[:, [2, 3, 6, 7]] = rng.uniform(-0.05, 0.05, (len(state), 4))
    state[:50, 4:6] = state[:50, :2] + 0.05  # these touch
    inner = (state[:, [0, 1, 4, 5]] > 0.1).all(axis=1) & (state[:, [0, 1, 4, 5]] < 0.9).all(axis=1)
    state, action = state[inner], rng.uniform(-1, 1, (int(inner.sum()), 4))
    asked = Interventional(lambda s, a: world.step(s, a, np.zeros((len(s), 4))), world.factors, action_range=(-1, 1))
    assert np.array_equal(asked(state, action), world.mask(state, action))


def test_figure_two():
    """Fully connected everywhere, two components where the arms are apart."""
    model = as_scm(WORLD, values=8)
    assert model.graph.all()

    def apart(v):
        return ~world_mask(v)[:, 0, 1]

    def world_mask(v):
        return WORLD.mask(*state_and_action(v, WORLD.factors))

    local = model.restrict(apart)
    assert local.graph.astype(int).tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    left, right = ("left", "left motor"), ("right", "right motor")
    some = np.arange(len(local)) % 2 == 0
    assert independent_in_union(local, some, ~some, left, right)
    assert not independent_in_union(model, lambda v: apart(v), lambda v: ~apart(v), left, right)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="noise_std: expected a finite number, 0 or more, got -1"):
        TwoArms(noise_std=-1)
