import numpy as np
import pytest
from scipy.special import erf

from counterpoint.worlds import NonstationaryMP, StationaryMP, check_world, collect, uniform_policy
from tests.worlds.scalar_sprites import literal_coda

NOTHING = np.zeros((400, 0))
BLOCK = np.repeat([0, 1, 2], [4, 3, 2])  # which factor each column belongs to
WORLDS = {
    "stationary": StationaryMP,
    "nonstationary": NonstationaryMP,
}


def states(size=400, seed=0):
    return np.random.default_rng(seed).standard_normal((size, 9))


def norms(state):
    return np.stack([np.linalg.norm(state[:, block == BLOCK], axis=1) for block in range(3)], axis=1)


def influence(world, state, groups, size=1e-4):
    """Which columns of the next state change when a group of columns is perturbed, (B, groups, S)."""
    before = world.step(state, NOTHING[: len(state)])
    rng, changed = np.random.default_rng(1), []
    for group in groups:
        moved = state.copy()
        moved[:, group] += size * rng.uniform(0.5, 1.0, (len(state), len(group)))
        changed.append(world.step(moved, NOTHING[: len(state)]) != before)
    return np.stack(changed, axis=1)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("kind", WORLDS)
def test_labels_are_what_a_perturbation_shows(kind, normalise):
    world = WORLDS[kind](normalise=normalise)
    state = states()
    state = state[(np.abs(norms(state) - 1.5) > 1e-3).all(axis=1)]  # not where a perturbation crosses epsilon
    action = NOTHING[: len(state)]
    by_factor = influence(world, state, [np.flatnonzero(block == BLOCK) for block in range(3)])
    shown = np.stack([by_factor[:, :, block == BLOCK].any(axis=2) for block in range(3)], axis=2)
    np.testing.assert_array_equal(shown, world.mask(state, action))
    by_column = influence(world, state, [[column] for column in range(9)])
    features = WORLDS[kind](normalise=normalise, features=True)
    np.testing.assert_array_equal(by_column, features.mask(state, action))


def test_the_factor_that_exceeds_epsilon_has_full_rows():
    state = states()
    mask = NonstationaryMP(epsilon=1.5).mask(state, NOTHING)
    np.testing.assert_array_equal(mask.all(axis=2), norms(state) > 1.5)
    np.testing.assert_array_equal(mask.sum(axis=2), np.where(norms(state) > 1.5, 3, 1))


def gelu_map(net, x):
    hidden = x @ net.inner.T + net.inner_bias
    return (0.5 * hidden * (1 + erf(hidden / np.sqrt(2)))) @ net.outer.T + net.outer_bias


@pytest.mark.parametrize("normalise", [False, True])
def test_the_step_is_the_equation_of_the_paper(normalise):
    world, state = NonstationaryMP(normalise=normalise), states()
    parts, length = [state[:, block == BLOCK] for block in range(3)], norms(state)
    if normalise:
        parts = [part / length[:, i : i + 1] for i, part in enumerate(parts)]
    expected = np.concatenate([gelu_map(world._nets[i][0], part) for i, part in enumerate(parts)], axis=1)
    for i, part in enumerate(parts):
        expected += gelu_map(world._nets[i][1], part) * (length[:, i : i + 1] > 1.5)
    np.testing.assert_allclose(world.step(state, NOTHING), expected, atol=1e-12)


def test_maps_are_initialised_like_pytorch_and_by_the_seed():
    nets = NonstationaryMP(seed=3)._nets
    for i, size in enumerate((4, 3, 2)):
        for net, outputs in zip(nets[i], (size, 9), strict=True):
            assert [part.shape for part in net] == [(32, size), (32,), (outputs, 32), (outputs,)]
            for part, fan in zip(net, (size, size, 32, 32), strict=True):
                assert 0.3 / np.sqrt(fan) < np.abs(part).max() <= 1 / np.sqrt(fan)
    state = states()
    after = {seed: StationaryMP(seed=seed).step(state, NOTHING) for seed in (0, 1)}
    np.testing.assert_array_equal(after[0], StationaryMP(seed=0).step(state, NOTHING))
    assert (after[0] != after[1]).all()


def test_an_epsilon_out_of_reach_leaves_the_stationary_process():
    state = states()
    never, stationary = NonstationaryMP(epsilon=np.inf), StationaryMP()
    np.testing.assert_array_equal(never.step(state, NOTHING), stationary.step(state, NOTHING))
    np.testing.assert_array_equal(never.mask(state, NOTHING), stationary.mask(state, NOTHING))
    assert NonstationaryMP(epsilon=0.0).mask(state, NOTHING).all()


def test_a_factor_of_norm_zero_can_be_normalised():
    world = NonstationaryMP(normalise=True)
    after = world.step(np.zeros((1, 9)), NOTHING[:1])
    np.testing.assert_array_equal(after, NonstationaryMP().step(np.zeros((1, 9)), NOTHING[:1]))


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("kind", WORLDS)
def test_the_worlds_keep_the_contract(kind, features):
    world = WORLDS[kind](features=features)
    check_world(world, np.random.default_rng(0))
    f = world.factors
    assert (f.n, f.m, f.state_width, f.action_width, f.noise_width) == (9 if features else 3, 0, 9, 0, 0)


def test_fresh_states_have_global_interactions_and_long_sequences_lose_them():
    world = NonstationaryMP()
    policy, rng = uniform_policy(world), np.random.default_rng(0)
    fresh = collect(world, policy, 6000, rng, episode_length=1)
    assert fresh.action.shape == (6000, 0)
    spread = (~np.eye(3, dtype=bool) & world.mask(fresh.state, fresh.action)).any(axis=2)
    chance = (norms(states(100_000)) > 1.5).mean(axis=0)
    np.testing.assert_allclose(spread.mean(axis=0), chance, atol=0.02)
    later = collect(world, policy, 6000, rng, episode_length=10, reset_probability=0.0)
    late = later.step >= 5
    mask = world.mask(later.state[late], later.action[late])
    assert (mask & ~np.eye(3, dtype=bool)).mean() < 0.01


@pytest.mark.parametrize("features", [False, True])
def test_every_swap_that_the_mask_allows_is_true_bit_for_bit(features):
    world = NonstationaryMP(features=features)
    data = collect(world, uniform_policy(world), 4000, np.random.default_rng(0), episode_length=1)
    outcome = literal_coda(world, data, 3000, np.random.default_rng(1))
    assert outcome.accepted > 20
    assert outcome.agreed == outcome.accepted


@pytest.mark.parametrize("splits", [(), (4, 0), (4, -1), (2.5,)])
def test_splits_must_be_sizes(splits):
    with pytest.raises(ValueError, match=r"splits: expected how many columns each factor has, such as \(4, 3, 2\)"):
        StationaryMP(splits=splits)


def test_other_settings_are_checked():
    for epsilon in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="epsilon: expected a norm, 0 or more, got"):
            NonstationaryMP(epsilon=epsilon)
    with pytest.raises(ValueError, match=r"dtype: expected np.float32 or np.float64, got bool"):
        StationaryMP(dtype=bool)
    with pytest.raises(ValueError, match="action: expected 0 columns, got 2"):
        StationaryMP().step(np.zeros((1, 9)), np.zeros((1, 2)))
    assert StationaryMP(splits=(3, 3, 3)).factors.state["factor2"] == (6, 7, 8)
