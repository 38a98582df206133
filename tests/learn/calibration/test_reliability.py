"""From scores to chances: parts of the reasoning, each by its relations."""

from dataclasses import replace

import numpy as np
import pytest

from counterpoint import Provenance
from counterpoint.learn.calibration.reliability import (
    Curve,
    Surprises,
    Swaps,
    blame,
    first_curve,
    fit_curve,
    rising,
    wrong_chance,
)
from tests.learn.calibration.worlds import EDGES, WORLD


def test_rising_is_the_isotonic_regression(rng):
    """Against the min-max formula: the largest lower mean over all intervals that hold a place."""
    values, weights = rng.normal(size=20), rng.uniform(0.1, 2.0, 20)

    def mean(a, b):
        return np.average(values[a : b + 1], weights=weights[a : b + 1])

    slow = [max(min(mean(a, b) for b in range(k, 20)) for a in range(k + 1)) for k in range(20)]
    np.testing.assert_allclose(rising(values, weights), slow)


@pytest.fixture
def noisy_or(rng):
    """Scores and the surprises that follow from a known chance of each edge, the square of its score, and a leak."""
    scores = rng.uniform(size=(20_000, *EDGES))
    chance = np.where(np.eye(*EDGES, dtype=bool), 0.0, scores**2 / 2)
    leak = np.full((20_000, 3), 0.05)
    surprised = rng.uniform(size=leak.shape) < 1 - (1 - leak) * np.prod(1 - chance, axis=1)
    return scores, chance, Surprises(surprised, np.ones_like(surprised), leak)


def test_chances_are_found_from_surprises_alone(noisy_or):
    scores, chance, seen = noisy_or
    start = first_curve(scores, WORLD.factors, np.zeros(EDGES, bool))
    curve = fit_curve(scores, seen, start)
    assert np.abs(curve(scores) - chance).mean() < 0.02
    assert (np.diff(curve.chance, axis=1) >= 0).all()
    tight = fit_curve(scores, replace(seen, leak=np.zeros_like(seen.leak)), start)
    assert tight(scores).mean() > curve(scores).mean() + 0.01  # without the leak, its surprises are blamed on someone
    assert set(start.kinds.ravel()) == {-1, 0, 1}  # self-edges, sprite to sprite, action to sprite
    doubled = fit_curve(scores, seen, start, weight=np.full(len(scores), 2.0))
    np.testing.assert_allclose(doubled.chance, curve.chance)
    ignored = replace(seen, clear=np.arange(len(scores))[:, None] % 2 * np.ones((1, 3)) > 0)
    half = Surprises(seen.surprised[1::2], seen.clear[1::2], seen.leak[1::2])
    np.testing.assert_allclose(fit_curve(scores, ignored, start).chance, fit_curve(scores[1::2], half, start).chance)


def test_blame_is_shared_among_the_sources_of_what_was_surprised(noisy_or):
    _, chance, seen = noisy_or
    always = np.zeros(EDGES, bool)
    always[3, 0] = True
    shared = blame(chance, seen, always)
    assert (shared[:, 3, 0] == 1.0).all()
    rest = np.where(always, 0.0, shared)
    moved = np.broadcast_to(seen.surprised[:, None], rest.shape)
    assert (rest[~moved] == 0).all()
    some = 1 - 0.95 * np.prod(1 - np.where(always, 0.0, chance), axis=1)
    np.testing.assert_allclose((rest * some[:, None])[moved], np.where(always, 0.0, chance)[moved])
    unclear = replace(seen, clear=np.zeros_like(seen.clear))
    np.testing.assert_array_equal(blame(chance, unclear, always), np.where(always, 1.0, chance))


def test_with_certain_edges_what_is_wrong_is_what_an_edge_crosses(rng):
    rows, pairs = 50, 2000
    edge = rng.uniform(size=(rows, *EDGES)) < 0.05
    after = rng.uniform(size=(pairs, *EDGES)) < 0.05
    base, donor = rng.integers(rows, size=(2, pairs))
    nodes = rng.uniform(size=(pairs, 4)) < 0.5
    step = Curve(np.array([0.5]), np.array([[0.0, 1.0]]), np.zeros(EDGES, int), np.zeros(EDGES, bool))
    swaps = Swaps(Provenance(base, donor, nodes), after.astype(float))
    found = wrong_chance(swaps, edge.astype(float), edge.astype(float), (step, step), np.zeros(4, bool))
    for r in range(pairs):
        cross = nodes[r][:, None] != nodes[r][:3]
        old = np.stack([edge[donor[r] if nodes[r, j] else base[r]][:, j] for j in range(3)], axis=1)
        if ((old | after[r]) & cross).any():
            assert found[r] == 1.0
        lost = np.stack([edge[donor[r] if nodes[r, i] else base[r]][i] for i in range(4)]) & cross
        if not ((old | after[r] | lost) & cross).any():
            assert found[r] == 0.0
    everything = wrong_chance(swaps, edge * 1.0, edge * 1.0, (step, step), np.ones(4, bool))
    assert (everything == 0.0).all()  # context ties nothing
