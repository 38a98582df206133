"""Pong's exact mask: interventions, and counterfactuals that are put back into the world."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from counterpoint.worlds.pong import CODE_LENGTH, Pong
from tests.worlds.pong_games import ACTION, AGENT, BALL, OPPONENT, STATE_OWNER, alone, crowded, played


def test_shape_of_the_mask():
    world = Pong()
    state, action, noise = crowded(3000, np.random.default_rng(10))
    for mask in (world.mask(state, action, noise), world.mask(state, action)):
        assert mask.shape == (3000, 4, 3)
        assert mask.dtype == bool
        assert mask[:, [AGENT, OPPONENT, BALL, ACTION], [AGENT, OPPONENT, BALL, AGENT]].all()
        assert not mask[:, [AGENT, OPPONENT, ACTION], [OPPONENT, AGENT, OPPONENT]].any()
        for paddle in (AGENT, OPPONENT):
            assert np.array_equal(mask[:, paddle, BALL], mask[:, BALL, paddle])
            assert 0.1 < mask[:, paddle, BALL].mean() < 0.5
        assert np.array_equal(mask[:, ACTION, BALL], mask[:, AGENT, BALL])


@pytest.mark.parametrize("source", [AGENT, OPPONENT, BALL, ACTION])
def test_an_edge_is_there_if_and_only_if_an_intervention_shows(source):
    """Replace one source by a value that touches nothing either: only its children may change."""
    world, rng = Pong(), np.random.default_rng(11)
    state, action, noise = crowded(20_000, rng)
    after, mask = world.step_and_mask(state, action, noise)
    other, other_action = state.copy(), action.copy()
    if source == ACTION:
        other_action = rng.uniform(-1, 1, action.shape)
    else:  # the ball far away; a paddle at the other end of its range
        far = np.where(state[:, [9]] > 0, -1.0, 1.0)
        values = np.hstack([0 * far, far, 0 * far, 0 * far]) if source < BALL else [0.5, 0.0, 0.0, 0.0]
        other[:, 4 * source : 4 * source + 4] = values
    changed_after, changed_mask = world.step_and_mask(other, other_action, noise)
    changed = (changed_after != after).reshape(-1, 3, 4).any(axis=2)
    either = mask[:, source] | changed_mask[:, source]
    assert not (changed & ~either).any()
    responds = changed[mask[:, source]].mean()
    assert responds > 0.98, responds  # the rest: the action saturates the motor, or a stop hides the push


def test_without_noise_no_edge_is_missing_for_any_target():
    world, rng, size = Pong(), np.random.default_rng(12), 50_000
    state, action, _ = crowded(size, rng)
    state[:, 6:8] *= rng.choice([0.1, 1, 3, 10], (size, 2))  # also where limits and damping matter
    unknown = world.mask(state, action)
    possible = np.zeros_like(unknown)
    for x, y in [(0, 0), (-9, -9), (-9, 9), (9, -9), (9, 9), *rng.uniform(-0.9, 0.9, (3, 2))]:
        known = world.mask(state, action, np.tile([float(x), float(y)], (size, 1)))
        assert not (known & ~unknown).any(), (x, y)
        possible |= known
    extra = (unknown & ~possible)[:, OPPONENT, BALL].mean()
    assert 0 < extra < 0.05
    assert unknown[:, OPPONENT, BALL].mean() > 0.2


@pytest.mark.parametrize("sign", [-1, 1])
def test_without_noise_no_edge_is_missing_when_the_ball_barely_catches_up(sign):
    """The paddle runs away as slowly as it can, so the bounds are tight, damping included."""
    world, rng, size = Pong(), np.random.default_rng(24), 100_000
    state, action = np.zeros((size, 12)), np.zeros((size, 2))
    state[:, 4] = -sign * 0.2 / 0.3
    state[:, 6:8] = np.stack([sign * rng.uniform(0.5, 3, size), rng.uniform(-8, 8, size)], axis=1) / 2
    state[:, 8] = (1.3 - sign * (0.2 + 0.055 + rng.uniform(0, 0.05, size))) / 2.1
    state[:, 10] = sign * rng.uniform(2, 6, size) / 2
    known, unknown = world.mask(state, action, np.full((size, 2), -9.0 * sign)), world.mask(state, action)
    assert not (known & ~unknown).any()
    assert 0 < (unknown & ~known).any(axis=(1, 2)).mean() < 0.01


def test_without_noise_no_edge_is_missing_even_if_the_ball_crosses_the_court_in_one_step():
    rng, world = np.random.default_rng(13), Pong()
    state = np.repeat(alone(ball_x=1.3 - 0.05), 20_000, axis=0)
    state[:, 6] = rng.uniform(-400, -100, 20_000) / 2
    action, noise = np.zeros((20_000, 2)), rng.uniform(-0.9, 0.9, (20_000, 2))
    known, unknown = world.mask(state, action, noise), world.mask(state, action)
    both = known[:, AGENT, BALL] & known[:, OPPONENT, BALL]
    assert both.sum() > 100
    assert not (known & ~unknown).any()


def test_how_much_more_the_mask_ties_without_noise():
    world = Pong(length=CODE_LENGTH)
    rng = np.random.default_rng(14)
    state, action, noise, _ = played(1000, 300, noise_level=0.5, rng=rng, world=world)
    known, unknown = world.mask(state, action, noise), world.mask(state, action)
    assert not (known & ~unknown).any()
    assert 0 < (unknown != known).any(axis=(1, 2)).mean() < 0.002
    assert 0.005 < known[:, AGENT, BALL].mean() < 0.015
    assert 0.0005 < known[:, OPPONENT, BALL].mean() < unknown[:, OPPONENT, BALL].mean() < 0.004


def components(mask):
    """Label the nodes of each row by connected component, (B, 4); labels differ between rows."""
    rows, sources, columns = np.nonzero(mask)
    shape = (4 * len(mask), 4 * len(mask))
    graph = coo_matrix((np.ones(len(rows)), (4 * rows + sources, 4 * rows + columns)), shape=shape)
    return connected_components(graph, directed=False)[1].reshape(-1, 4)


def counterfactuals(data, mask_fn, rng):
    """Propose one swap per random pair; return the accepted state, action, noise, next state, and nodes."""
    pairs = rng.integers(0, len(data[0]), (2, 40_000))
    base, donor = ([column[index] for column in data] for index in pairs)
    labels = components(mask_fn(*base[:3]) | mask_fn(*donor[:3]))
    nodes = rng.integers(0, 2, labels.max() + 1).astype(bool)[labels]
    owners = (STATE_OWNER, [ACTION, ACTION], [OPPONENT, OPPONENT], STATE_OWNER)
    made = [np.where(nodes[:, owner], d, b) for b, d, owner in zip(base, donor, owners, strict=True)]
    crossing = mask_fn(*made[:3]) & (nodes[:, :, None] != nodes[:, None, :3])
    accepted = ~crossing.any(axis=(1, 2)) & nodes.any(axis=1) & ~nodes.all(axis=1)
    return [column[accepted] for column in made], nodes[accepted]


def audit(data, mask_fn, size, rng):
    """Count wrong ones among at least ``size`` accepted counterfactuals; also contacts and swaps seen."""
    world, wrong, total, seen, contacts = Pong(), 0, 0, set(), 0
    while total < size:
        (state, action, noise, after), nodes = counterfactuals(data, mask_fn, rng)
        truth, mask = world.step_and_mask(state, action, noise)
        wrong += int((truth != after).any(axis=1).sum())
        total += len(state)
        contacts += int(mask[:, BALL, :2].any(axis=1).sum())
        seen |= {tuple(row) for row in np.unique(nodes, axis=0)}
    return wrong, contacts, seen


@pytest.fixture(scope="module")
def mixed_data():
    """Transitions of games and of crowded states, half and half, in single precision."""
    world, rng = Pong(), np.random.default_rng(15)
    games = played(200, 150, noise_level=0.5, rng=rng, world=world)
    incidents = crowded(30_000, rng, np.float32)
    return [np.concatenate(pair) for pair in zip(games, (*incidents, world.step(*incidents)), strict=True)]


def test_every_accepted_counterfactual_is_true_with_a_mask_that_never_saw_the_noise(mixed_data):
    world = Pong()
    mask_fn = lambda state, action, _: world.mask(state, action)  # noqa: E731
    wrong, contacts, seen = audit(mixed_data, mask_fn, 100_000, np.random.default_rng(16))
    assert wrong == 0
    assert contacts > 10_000
    assert len(seen) == 2**3 - 2  # the action goes with the agent; all proper unions of three components


def test_every_accepted_counterfactual_is_true_with_the_mask_of_the_noise(mixed_data):
    wrong, contacts, seen = audit(mixed_data, Pong().mask, 50_000, np.random.default_rng(17))
    assert wrong == 0
    assert contacts > 5_000
    assert len(seen) == 2**3 - 2


def test_the_audit_finds_masks_that_miss_edges(mixed_data):
    """Without the edges of contact, or with a target of zero taken for the truth, some swaps are wrong."""
    world, rng = Pong(), np.random.default_rng(18)
    still = world.mask(alone(ball_x=0), np.zeros((1, 2)), np.zeros((1, 2)))
    assert audit(mixed_data, lambda state, *_: np.repeat(still, len(state), axis=0), 30_000, rng)[0] > 1000
    assert audit(mixed_data, lambda state, action, noise: world.mask(state, action, 0 * noise), 30_000, rng)[0] > 0
