"""No evidence, no counterfactual."""

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import check_mask_fn
from counterpoint.masks import Constant, Proximity, Supported
from counterpoint.masks.regions import Regions

FACTORS = Factorization.blocks(
    state={"hand": 2, "cup": 2}, action={"motor": 1}, positions={"hand": (0, 1), "cup": (2, 3)}
)


def no_reward(state, action, next_state):
    return np.zeros(len(state))


def recording(apart, size=6000, seed=0, **columns):
    """Hand and cup somewhere on the unit square, never nearer than ``apart``."""
    rng = np.random.default_rng(seed)
    state = rng.random((4 * size, 4))
    state = state[np.linalg.norm(state[:, :2] - state[:, 2:], axis=1) > apart][:size]
    zeros = np.zeros(len(state))
    return Transitions(state, rng.uniform(-1, 1, (len(state), 1)), zeros, state, zeros > 0, **columns)


def gap(state):
    return np.linalg.norm(state[:, :2] - state[:, 2:], axis=1)


def touching(radius):
    return Proximity(FACTORS, {"hand": (0, 1), "cup": (2, 3)}, radius, ["hand"])


@pytest.mark.parametrize("inner", [Constant.identity(FACTORS), touching(0.02)])
def test_factors_are_never_brought_nearer_than_the_recordings_show_them(inner):
    data = recording(apart=0.2)
    free = Augmenter(FACTORS, inner, no_reward)(data, rng=np.random.default_rng(0))
    made = Augmenter(FACTORS, Supported(inner, data, FACTORS), no_reward)(data, rng=np.random.default_rng(0))
    near, still = (gap(rows.transitions.state) < 0.15 for rows in (free, made))
    assert near.mean() > 0.03
    assert still.mean() < 0.1 * near.mean()
    assert len(made) > 0.75 * len(free)


def test_what_one_cup_does_is_no_evidence_for_another():
    """Two cups of one type: the hand touches the one, and keeps away from the other."""
    places = {"hand": (0, 1), "cup0": (2, 3), "cup1": (4, 5)}
    factors = Factorization(places, {}, positions=places, types={"cup0": "cup", "cup1": "cup"})
    data = recording(apart=0.3, size=5000)
    state = np.hstack([data.state, np.random.default_rng(1).random((5000, 2))])
    data = Transitions(state, np.zeros((5000, 0)), data.reward, state, data.terminated)
    unknown = Supported(Constant.identity(factors), data, factors).unknown
    hand, near, far = np.array([[0.4, 0.4]]), np.array([[0.45, 0.45]]), np.array([[0.9, 0.9]])
    untouched, touched = (
        unknown(np.hstack(both), np.zeros((1, 0)))[0] for both in ([hand, near, far], [hand, far, near])
    )
    assert untouched[0, 1]
    assert untouched[1, 0]
    assert not touched.any()


def test_what_it_rejects_has_its_own_line_in_the_funnel():
    data = recording(apart=0.2)
    masks = touching(0.05), Supported(touching(0.05), data, FACTORS)
    plain, funnel = (Augmenter(FACTORS, m, no_reward)(data, rng=np.random.default_rng(0)).funnel for m in masks)
    assert plain.no_evidence == 0
    assert 0 < funnel.no_evidence < funnel.rejected
    assert funnel.proposals == funnel.trivial + funnel.duplicate + funnel.rejected + funnel.accepted
    assert f"no evidence {funnel.no_evidence:>12,}" in str(funnel)


def test_where_nothing_is_missing_hardly_anything_is_rejected():
    data = recording(apart=0.0)
    made = Augmenter(FACTORS, Supported(Constant.identity(FACTORS), data, FACTORS), no_reward)(
        data, rng=np.random.default_rng(0)
    )
    assert made.funnel.no_evidence < 0.03 * made.funnel.proposals


@pytest.mark.parametrize("seed", range(4))
def test_few_long_episodes_leave_holes_by_chance_that_are_no_gaps(seed):
    """A cup that stands still for an episode has been in 200 places: what lies between is not forbidden."""
    rng = np.random.default_rng(seed)
    cup = np.repeat(rng.random((200, 2)), 30, axis=0)
    hand = np.clip(
        np.repeat(rng.random((200, 2)), 30, axis=0) + rng.normal(0, 0.05, (6000, 2)).cumsum(axis=0) % 0.1, 0, 1
    )
    state, zeros = np.hstack([hand, cup]), np.zeros(6000)
    data = Transitions(state, rng.random((6000, 1)), zeros, state, zeros > 0, episode=np.arange(6000) // 30)
    mask = Supported(Constant.identity(FACTORS), data, FACTORS)
    mixed = np.hstack([hand, cup[rng.permutation(6000)]])
    assert mask.unknown(mixed, data.action).any(axis=(1, 2)).mean() < 0.05


@pytest.mark.parametrize("episodes", [1, 3, 300])
def test_any_number_of_episodes_will_do(episodes):
    data = recording(apart=0.2)
    mask = Supported(Constant.identity(FACTORS), data.replace(episode=np.arange(6000) * episodes // 6000), FACTORS)
    close = np.full((1, 4), 0.5)
    assert mask(close, np.zeros((1, 1)))[0, :2].all()


def test_it_is_a_mask_and_adds_edges_only():
    data = recording(apart=0.2, episode=np.arange(6000) // 30)
    inner = touching(0.3)
    mask = Supported(inner, data, FACTORS)
    check_mask_fn(mask, data[:500], FACTORS)
    before, after = inner(data.state, data.action), mask(data.state, data.action)
    assert not (before & ~after).any()
    assert np.array_equal(after, before | mask.unknown(data.state, data.action))


def test_it_passes_on_what_its_mask_looks_at():
    class Later:
        uses_next_state = True

        def __call__(self, state, action, next_state):
            return Constant.identity(FACTORS)(state, action) | (next_state[:, 0] > 2)[:, None, None]

    data = recording(apart=0.2)
    mask = Supported(Later(), data, FACTORS)
    assert mask.uses_next_state
    assert not mask.uses_noise
    assert mask(data.state, data.action, data.next_state + 9).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.3, recording(0.1)), TypeError, "mask: expected a function"),
        ((Constant.identity(FACTORS), recording(0.1)[:50]), ValueError, "120 transitions or more to tell gaps, got 50"),
    ],
)
def test_bad_arguments_are_explained(arguments, error, message):
    with pytest.raises(error, match=message):
        Supported(*arguments, FACTORS)
    with pytest.raises(ValueError, match="ratio: expected a share between 0 and 1, got 2"):
        Supported(Constant.identity(FACTORS), recording(0.1), FACTORS, ratio=2)


def test_regions_find_a_sharp_condition_of_two_features_and_name_its_bounds():
    rng = np.random.default_rng(0)
    x = rng.random((4000, 3))
    inside = (x[:, 0] < 0.3) & (x[:, 2] > 0.6)
    regions = Regions.grow(x, inside[:, None].astype(float), fewest=40)
    where = regions(x)
    share = np.bincount(where, inside, len(regions)) / np.maximum(np.bincount(where, minlength=len(regions)), 1)
    assert np.mean((share[where] > 0.5) == inside) > 0.99
    box = regions.box(int(where[inside & (x[:, 0] < 0.2) & (x[:, 2] > 0.8)][0]), 3)
    assert 0.25 < box[0, 1] < 0.35
    assert 0.55 < box[2, 0] < 0.65


def test_regions_of_constant_features_are_one():
    regions = Regions.grow(np.ones((100, 2)), np.arange(100.0)[:, None], fewest=5)
    assert set(regions(np.ones((7, 2)))) == {0}


def test_regions_with_few_rows_are_merged_with_their_neighbours(rng):
    features = rng.random((4000, 2))
    targets = np.floor(4 * features[:, [0]]) + 8 * (features[:, [1]] > 0.5)
    regions = Regions.grow(features, targets, fewest=100)
    others = features[(features[:, 0] > 0.3) | (features[:, 1] > 0.5)]
    merged = regions.merged(np.bincount(regions(others), minlength=len(regions)), 50)
    assert len(np.unique(merged(features))) < len(np.unique(regions(features)))
    assert np.bincount(merged(others))[np.unique(merged(features))].min() >= 50
    whole = Regions.grow(features, targets, fewest=100).merged(
        np.bincount(regions(features), minlength=len(regions)), 50
    )
    assert np.array_equal(whole(features), regions(features))
