from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.worlds import Sprites, check_world, collect, uniform_policy
from tests.worlds.scalar_sprites import components, literal_coda, scalar_step

RULES = ("redirect", "reverse")


def scene(*sprites):
    """One state, (1, 4n), of sprites given as (x, y, vx, vy)."""
    return np.array([[value for sprite in sprites for value in sprite]], dtype=np.float64)


def at(x, y):
    """The action that clicks at this point of the canvas, (1, 2)."""
    return np.array([[2 * x - 1, 2 * y - 1]], dtype=np.float64)


def crowd(world, size, rng):
    """States that use every rule often: crowded, near walls, some too fast, some at rest."""
    state = rng.uniform(-0.02, 1.02, (size, world.n, 4))
    half = size // 2
    state[:half, :, :2] = rng.uniform(0.0, 1.0, (half, 1, 2)) + rng.uniform(-0.12, 0.12, (half, world.n, 2))
    state[..., 2:] = rng.uniform(-0.1, 0.1, (size, world.n, 2))
    state[rng.random((size, world.n)) < 0.05, 2:] = 0.0
    return state.reshape(size, -1)


def experience(world, size=20_000, seed=0, **settings):
    schedule = {"episode_length": 50, "reset_probability": 0.0, "environments": 200} | settings
    return collect(world, uniform_policy(world), size, np.random.default_rng(seed), **schedule)


# --- the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_step_and_mask_are_those_of_the_scalar_rules(n, rule):
    rng = np.random.default_rng(n)
    world = Sprites(n, noise_std=0.02, action_rule=rule, dtype=np.float64)
    state, noise = crowd(world, 1500, rng), world.noise(1500, rng)
    action = np.where(rng.random((1500, 1)) < 0.5, rng.uniform(-1, 1, (1500, 2)), np.clip(2 * state[:, :2] - 1, -1, 1))
    reports = [scalar_step(*row, rule) for row in zip(state, action, noise, strict=True)]
    after, mask = world.step_and_mask(state, action, noise)
    np.testing.assert_allclose(after, [report.state for report in reports], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(mask, [report.mask for report in reports])
    assert sum(bool(report.walls) for report in reports) > 100
    if n > 1:
        assert sum(bool(report.walls & set(report.hits)) for report in reports) > 20
        assert any(report.corners for report in reports)
    if rule == "reverse":
        assert {report.acted is None for report in reports} == {True, False}


coordinate = st.integers(-1, 41).map(lambda k: k / 40)  # a grid of 0.025, so distances tie and touch exactly
speed = st.integers(-4, 4).map(lambda k: k / 40)
sprite = st.tuples(coordinate, coordinate, speed, speed)


@settings(deadline=None, max_examples=300)
@given(st.lists(sprite, min_size=1, max_size=5), st.integers(-40, 40), st.integers(-40, 40), st.sampled_from(RULES))
def test_the_rules_hold_on_a_grid_where_everything_ties(sprites, ax, ay, rule):
    world = Sprites(len(sprites), action_rule=rule)
    state, action, noise = scene(*sprites), np.array([[ax / 40, ay / 40]]), np.zeros((1, 2 * len(sprites)))
    report = scalar_step(state[0], action[0], noise[0], rule)
    after, mask = world.step_and_mask(state, action, noise)
    np.testing.assert_allclose(after[0], report.state, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(mask[0], report.mask)


def test_a_click_at_distance_z_turns_the_heading_by_the_share_z():
    world = Sprites(1)
    state = scene((0.5, 0.5, 0.0, 0.04))  # heading up, 90 degrees; click to its left: away is 0 degrees
    for z in (0.0, 0.1, 0.25, 0.5):
        after = world.step(state, at(0.5 - z, 0.5))
        heading = np.arctan2(after[0, 3], after[0, 2])
        assert heading == pytest.approx((1 - z) * np.pi / 2)
        assert np.hypot(after[0, 2], after[0, 3]) == pytest.approx(0.04)


def test_angles_are_blended_without_wrapping():
    state = scene((0.5, 0.5, -0.04, 1e-9))  # heading just below +180 degrees; away is just above -180
    after = Sprites(1).step(state, at(1.0, 0.5 + 1e-9))
    assert np.arctan2(after[0, 3], after[0, 2]) == pytest.approx(0.0, abs=1e-6)  # the long way round


def test_a_sprite_at_rest_stays_at_rest_until_noise_moves_it():
    world, state = Sprites(2), scene((0.5, 0.5, 0.0, 0.0), (0.52, 0.5, 0.0, 0.0))
    after, mask = world.step_and_mask(state, at(0.1, 0.1))
    np.testing.assert_array_equal(after, state)
    np.testing.assert_array_equal(mask[0], [[1, 0], [0, 1], [1, 0]])
    pushed, mask = world.step_and_mask(state, at(0.1, 0.1), np.array([[0.01, 0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(pushed, scene((0.5, 0.5, -0.01, 0.0), (0.52, 0.5, 0.0, 0.0)))
    np.testing.assert_array_equal(mask[0], [[1, 0], [1, 1], [1, 0]])


def test_only_the_mover_is_affected_and_order_decides_who_that_is():
    left, right = (0.40, 0.5, 0.05, 0.0), (0.54, 0.5, 0.0, 0.0)
    far = at(0.0, 0.0)  # nearest is `left`, at distance ~0.64
    world = Sprites(2, action_rule="reverse")  # this click hits nothing
    after, mask = world.step_and_mask(scene(left, right), far)
    np.testing.assert_allclose(after, scene((0.40, 0.5, -0.05, 0.0), right))
    np.testing.assert_array_equal(mask[0], [[1, 0], [1, 1], [0, 0]])


def test_lower_sprites_have_already_moved_when_a_higher_one_is_tested():
    runner, follower = (0.50, 0.5, 0.08, 0.0), (0.36, 0.5, 0.08, 0.0)
    world = Sprites(2, action_rule="reverse")
    ahead = world.mask(scene(runner, follower), at(0.0, 0.0))[0]
    behind = world.mask(scene(follower, runner), at(0.0, 0.0))[0]
    assert not ahead[0, 1]  # the runner was gone
    assert behind[1, 0]  # the runner was still there


def test_only_the_first_hit_is_an_edge():
    mover, one, two = (0.5, 0.5, 0.01, 0.0), (0.58, 0.5, 0.0, 0.0), (0.58, 0.52, 0.0, 0.0)
    mask = Sprites(3, action_rule="reverse").mask(scene(one, two, mover), at(0.0, 0.0))[0]
    assert mask[:3, 2].tolist() == [True, False, True]


def test_a_wall_and_a_collision_in_one_step_flip_twice():
    mover, other = (0.97, 0.5, 0.05, 0.02), (0.95, 0.55, 0.0, 0.0)
    after = Sprites(2, action_rule="reverse").step(scene(mover, other), at(0.0, 0.0))
    np.testing.assert_allclose(after, scene(mover, other))


def test_a_wall_alone_flips_both_components_and_clips():
    after = Sprites(1, action_rule="reverse").step(scene((0.97, 0.5, 0.05, 0.02)), at(0.0, 0.0))
    np.testing.assert_allclose(after, scene((1.0, 0.52, -0.05, -0.02)))


@pytest.mark.parametrize("flip", [False, True])
def test_a_centre_that_just_reaches_a_wall_bounces(flip):
    start, speed = (0.25, -0.25) if flip else (0.75, 0.25)  # binary fractions: the sums are exactly 0 and 1
    world, click = Sprites(1, action_rule="reverse"), at(0.0, 0.0)
    along_x = world.step(scene((start, 0.5, speed, 0.0)), click)
    along_y = world.step(scene((0.5, start, 0.0, speed)), click)
    assert along_x[0, 2] == along_y[0, 3] == -np.sign(speed) * 0.08
    assert along_x[0, 0] == along_y[0, 1] == start + speed


def test_speeds_are_capped_only_when_they_change():
    fast, bouncing = (0.3, 0.3, 0.2, 0.0), (0.9, 0.9, 0.2, 0.0)
    after = Sprites(2, action_rule="reverse").step(scene(fast, bouncing), at(0.0, 0.0))
    np.testing.assert_allclose(after, scene((0.5, 0.3, 0.2, 0.0), (1.0, 0.9, -0.08, 0.0)))


def test_noise_of_sprites_that_are_not_acted_on_is_not_used():
    world, rng = Sprites(4), np.random.default_rng(0)
    state, action, noise = world.reset(500, rng), rng.uniform(-1, 1, (500, 2)), world.noise(500, rng)
    after, mask = world.step_and_mask(state, action, noise)
    used = mask[:, 4, world.noise_owner]
    assert used.sum(axis=1).tolist() == [2] * 500
    np.testing.assert_array_equal(after, world.step(state, action, np.where(used, noise, world.noise(500, rng))))
    changed = world.step(state, action, np.where(used, noise + 0.005, noise)) != after
    assert changed.any(axis=1).mean() > 0.9


# --- the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 4, 7])
def test_the_world_keeps_the_contract(n, rule, dtype):
    world = Sprites(n, action_rule=rule, noise_margin=2.0, dtype=dtype)
    check_world(world, np.random.default_rng(0))
    assert world.reset(3, np.random.default_rng(0)).dtype == dtype
    assert world.noise(3, np.random.default_rng(0)).dtype == dtype


def test_stored_float32_rows_recompute_bit_for_bit_even_read_only():
    world = Sprites()
    data = experience(world, 5000)
    for column in (data.state, data.action, data.noise):
        column.flags.writeable = False
    again, mask = world.step_and_mask(data.state, data.action, data.noise)
    assert again.dtype == np.float32
    assert again.tobytes() == data.next_state.tobytes()
    np.testing.assert_array_equal(mask, world.mask(data.state, data.action, data.noise))


def test_an_empty_batch_has_empty_results():
    world = Sprites()
    after, mask = world.step_and_mask(np.zeros((0, 16)), np.zeros((0, 2)), np.zeros((0, 8)))
    assert (after.shape, mask.shape) == ((0, 16), (0, 5, 4))


def test_resets_stay_on_the_canvas_and_separate_ones_apart():
    rng = np.random.default_rng(0)

    def closest(world):
        centres = world.reset(4000, rng).reshape(-1, 4, 4)[..., :2].astype(np.float64)
        gaps = np.linalg.norm(centres[:, :, None] - centres[:, None], axis=3)
        return gaps[:, *np.triu_indices(4, 1)].min(axis=1)

    assert (closest(Sprites()) < 0.1).mean() == pytest.approx(0.195, abs=0.03)
    assert closest(Sprites(separate=True)).min() >= 0.1
    state = Sprites().reset(4000, rng).reshape(-1, 4)
    assert 0.05 <= state[:, :2].min() < 0.06
    assert 0.94 < state[:, :2].max() <= 0.95
    assert 0.079 < np.abs(state[:, 2:]).max() <= np.float32(0.08)


def test_noise_has_the_given_spread_and_zero_means_none():
    rng = np.random.default_rng(0)
    assert Sprites(noise_std=0.03).noise(20_000, rng).std() == pytest.approx(0.03, rel=0.02)
    assert not Sprites(noise_std=0.0).noise(100, rng).any()
    np.testing.assert_array_equal(Sprites(3).noise_owner, [0, 0, 1, 1, 2, 2])


# --- exactness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_every_swap_that_the_exact_mask_allows_is_true_bit_for_bit(n, rule):
    world = Sprites(n, noise_std=0.02, action_rule=rule)
    data, rng = experience(world), np.random.default_rng(1)
    outcome = literal_coda(world, data, 3000, rng)
    assert outcome.accepted > 300
    assert outcome.agreed == outcome.accepted
    unchecked = literal_coda(world, data, 3000, rng, validate=False)
    assert unchecked.agreement < 0.97  # the proposal's own mask is needed


def test_about_64_percent_of_proper_proposals_are_valid():
    outcome = literal_coda(Sprites(), experience(Sprites()), 5000, np.random.default_rng(1))
    assert outcome.accepted / outcome.nontrivial == pytest.approx(0.64, abs=0.03)


def test_a_noise_blind_mask_is_nearly_right_and_a_margin_makes_it_so():
    data, share, accepted = experience(Sprites()), {}, {}
    for margin in (0.0, 2.0):
        outcome = literal_coda(Sprites(noise_margin=margin), data, 20_000, np.random.default_rng(2), told_noise=False)
        share[margin], accepted[margin] = outcome.agreement, outcome.accepted
    assert 0.99 < share[0.0] < 0.999
    assert share[2.0] > 0.999
    assert 0.9 < accepted[2.0] / accepted[0.0] < 1.0


@pytest.mark.parametrize("rule", RULES)
def test_the_margin_covers_every_noise_within_it(rule):
    rng = np.random.default_rng(3)
    world = Sprites(5, noise_std=0.01, noise_margin=2.0, action_rule=rule)
    state = crowd(world, 3000, rng)
    action = rng.uniform(-1, 1, (3000, 2))
    cover = world.mask(state, action)
    for extreme in (False, True):
        noise = rng.uniform(-0.02, 0.02, (3000, 10))
        noise = np.copysign(0.02, noise) if extreme else noise
        assert not (world.mask(state, action, noise) & ~cover).any()
    assert (world.mask(state, action, 3 * noise) & ~cover).any()  # beyond the margin, it is not promised


def test_a_larger_margin_only_adds_edges_and_none_is_zero_noise():
    rng = np.random.default_rng(4)
    state, action = crowd(Sprites(), 3000, rng), rng.uniform(-1, 1, (3000, 2))
    masks = [Sprites(noise_margin=margin).mask(state, action) for margin in (0.0, 1.0, 2.0, 4.0)]
    np.testing.assert_array_equal(masks[0], Sprites().mask(state, action, np.zeros((3000, 8))))
    for small, large in pairwise(masks):
        assert not (small & ~large).any()
        assert (large & ~small).any()
    calm = Sprites(noise_std=0.0, noise_margin=4.0).mask(state, action)
    np.testing.assert_array_equal(calm, masks[0])


# --- calibration against the original ---------------------------------------------------------------


def test_random_clicks_give_the_original_shares_of_events():
    world = Sprites()
    data = experience(world, 60_000)
    mask = world.mask(data.state, data.action, data.noise)
    between = mask[:, :4] & ~np.eye(4, dtype=bool)
    assert between.any(axis=(1, 2)).mean() == pytest.approx(0.20, abs=0.02)
    counts = [components(4, graph.tobytes()).max() + 1 for graph in between]
    shares = np.bincount(counts, minlength=5)[1:] / len(counts)
    np.testing.assert_allclose(shares, [0.0006, 0.014, 0.19, 0.795], atol=0.015)
    assert shares[1] > 0.005
    centres = data.next_state.reshape(-1, 4, 4)[..., :2]
    wall = ((centres == 0) | (centres == 1)).any(axis=(1, 2))
    assert wall.mean() == pytest.approx(0.32, abs=0.02)
    blocks = mask[:, :4].repeat(4, axis=1).repeat(4, axis=2), mask[:, 4:].repeat(2, axis=1).repeat(4, axis=2)
    assert np.concatenate(blocks, axis=1).mean() == pytest.approx(0.265, abs=0.01)


def test_the_older_click_leaves_845_of_1000_steps_without_a_collision():
    world = Sprites(action_rule="reverse")
    data = experience(world, 20_000)
    mask = world.mask(data.state, data.action, data.noise)
    free = ~(mask[:, :4] & ~np.eye(4, dtype=bool)).any(axis=(1, 2))
    assert free.mean() == pytest.approx(0.845, abs=0.02)
    clicked = mask[:, 4].any(axis=1)
    assert clicked.mean() == pytest.approx(4 * 0.15**2, abs=0.015)  # the area of four squares


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0}, "n: expected a number of sprites, 1 or more, got 0"),
        ({"n": 2.5}, "n: expected a number of sprites"),
        ({"n": True}, "n: expected a number of sprites"),
        ({"noise_std": -0.1}, "noise_std: expected a finite number, 0 or more, got -0.1"),
        ({"noise_std": float("nan")}, "noise_std: expected a finite number"),
        ({"noise_margin": float("inf")}, "noise_margin: expected a finite number"),
        ({"action_rule": "drag"}, "action_rule: expected 'redirect' or 'reverse', got 'drag'"),
        ({"dtype": np.int32}, "dtype: expected np.float32 or np.float64, got int32"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Sprites(**given)


def test_a_canvas_that_is_too_full_says_so():
    with pytest.raises(ValueError, match=r"separate: found no place for sprite .* too full for n=150: use fewer"):
        Sprites(150, separate=True).reset(1, np.random.default_rng(0))


def test_a_changed_copy_is_a_new_world():
    assert replace(Sprites(), n=6).factors.names == (*(f"sprite{i}" for i in range(6)), "action")
