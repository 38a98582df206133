"""The mask from contact islands: exact, cheap for recorded rows, honest about what it does not see."""

import mujoco
import numpy as np
import pytest

from counterpoint import Augmenter
from counterpoint.adapters.mujoco import Islands, Simulator, derive, factorization
from counterpoint.adapters.mujoco.rows import known_ties
from counterpoint.checks import audit, check_counterfactuals, check_mask_fn
from counterpoint.core.protocols import call_mask
from counterpoint.masks import Constant
from tests.adapters.mujoco.conftest import Balls


def nothing(state, action, next_state):
    return np.zeros(len(state))


def touching(env, data):
    """Whether robot and object touch in some substep, by the geoms of the contacts."""
    model, state = env.unwrapped.model, env.unwrapped.data
    tree = model.body_treeid[model.geom_bodyid]
    found = []

    def look(_, inner):
        pairs = {tuple(sorted((int(tree[c.geom1]), int(tree[c.geom2])))) for c in inner.contact[: inner.ncon]}
        found[-1] |= (0, 1) in pairs

    simulator = Simulator(env, workers=1, at_least=0.0)
    for row in range(len(data)):
        found.append(False)
        mujoco.set_mjcb_control(look)
        simulator(data.state[row : row + 1], data.action[row : row + 1], data.noise[row : row + 1])
        mujoco.set_mjcb_control(None)
    assert state is env.unwrapped.data
    return np.array(found)


def test_islands_are_contacts_between_trees(push, pushed):
    """A test written by hand, with the names of the trees, says the same or a little more: it also sees last looks."""
    mask = call_mask(Islands(push, workers=1), pushed, factorization(push))
    apart = ~mask[:, 0, 1]
    assert np.array_equal(mask[:, 0, 1], mask[:, 1, 0])
    by_hand = touching(push, pushed[:120])
    assert by_hand.any()
    assert not (mask[:120, 0, 1] & ~by_hand).any()
    assert (mask[:120, 0, 1] == by_hand).mean() > 0.95
    assert apart.any()
    assert mask[:, 2].sum() == len(pushed)  # the goal keeps to itself
    assert mask[:, 3, 0].all()  # the action moves the robot alone
    assert not mask[:, 3, 1:].any()


def test_counterfactuals_of_islands_are_all_confirmed(push, pushed, rng):
    factors = factorization(push)
    augmenter = Augmenter(factors, Islands(push, workers=1), nothing, derive=derive(push))
    made = augmenter.fill(pushed, 60, rng=rng)
    simulator = Simulator(push, real=pushed, workers=1)
    found = check_counterfactuals(made, simulator)
    assert found.exact == 1.0
    blind = Augmenter(factors, Constant.edges(factors, [("action", "robot0:base_link")]), nothing, derive=derive(push))
    others = blind.fill(pushed, 150, rng=rng)
    assert 0.3 < audit(others, simulator).confirmed < 1.0  # the pushes are wrong, the rest is not


def test_recorded_rows_are_not_simulated_again(push, pushed):
    mask = Islands(push, workers=1)
    stored = mask(pushed.state, pushed.action, pushed.noise)
    assert known_ties(mask.bench.inside, pushed.action, pushed.noise)[1].all()
    unknown = pushed.noise.copy()
    unknown[:, mask.bench.inside.packing.width + 1] = -1  # no digest: as if another wrapper had recorded
    steps = []
    mask.progress = steps.append
    assert np.array_equal(stored, mask(pushed.state, pushed.action, unknown))
    assert steps[-1] == len(pushed)
    other = pushed.action.copy()
    other[0] = 0.123  # a swapped action makes another row of it
    assert not known_ties(mask.bench.inside, other, pushed.noise)[1][0]


def test_what_ends_up_elsewhere_without_a_contact_is_tied(push, pushed):
    mask, loose = Islands(push, workers=1), Islands(push, workers=1, strict=False)
    unknown = pushed[:10].noise.copy()
    unknown[:, mask.bench.inside.packing.width + 1] = -1  # so that they are simulated
    said = pushed[:10].next_state.copy()
    said[0, 3] += 1e-5  # the object lies elsewhere than the simulator puts it
    rows = pushed[:10].replace(noise=unknown, next_state=said)
    strict, plain = (call_mask(each, rows, factorization(push)) for each in (mask, loose))
    assert np.flatnonzero((strict != plain).any(axis=(1, 2))).tolist() == [0]
    assert strict[0, 0, 1]
    assert strict[0, 1, 0]


def test_it_is_a_mask(balls, rolled):
    check_mask_fn(Islands(balls, workers=1), rolled[:60], factorization(balls))


def test_balls_that_meet_are_tied(balls, rolled):
    mask = Islands(balls, workers=1)(rolled.state, rolled.action, rolled.noise)
    gap = np.minimum(
        np.abs(rolled.state[:, 1] + 1 - rolled.state[:, 0]),
        np.abs(rolled.next_state[:, 1] + 1 - rolled.next_state[:, 0]),
    )
    assert mask[gap < 0.2, 0, 1].all()
    assert not mask[gap > 0.5, 0, 1].any()
    assert 0 < mask[:, 0, 1].sum() < len(mask)


def test_what_the_environments_code_reads_is_an_edge():
    mask = Islands(Balls(reads=True), workers=1)
    assert mask._always[1, 0]
    assert any("right influence left" in each for each in mask.remarks)


def test_each_model_says_whether_islands_are_exact(push):
    assert Islands(push, workers=1).exact
    for change, words in (
        ({"noslip_iterations": 3}, "no-slip"),
        ({"solver": mujoco.mjtSolver.mjSOL_PGS}, "PGS"),
        ({"disableflags": mujoco.mjtDisableBit.mjDSBL_ISLAND}, "switched off"),
    ):
        env = Balls()
        for name, value in change.items():
            setattr(env.model.opt, name, int(value))
        mask = Islands(env, workers=1)
        assert not mask.exact
        assert any(words in each for each in mask.remarks)


def test_masks_need_the_hidden_state(push, pushed, rng):
    augmenter = Augmenter(factorization(push), Islands(push, workers=1), nothing, derive=derive(push))
    with pytest.raises(ValueError, match="the transitions have no noise columns"):
        augmenter(pushed.replace(noise=None), rng=rng)
