"""Trees are grown as row by row, to the bit, whatever the number of threads."""

import numpy as np
import pytest

from counterpoint.core import threads
from counterpoint.learn.calibration.laws import totals
from counterpoint.masks import regions
from counterpoint.masks.regions import Binned, Regions
from tests.learn.forests import literal


@pytest.fixture
def features(rng):
    """Numbers of many kinds: some that are alike, and one that is always the same."""
    drawn = rng.normal(size=(1500, 5))
    drawn[:, 1], drawn[:, 2] = np.round(2 * drawn[:, 1]), 3.0
    return drawn


@pytest.mark.parametrize(("kinds", "of", "deepest"), [(1, 0, 12), (3, 0, 4), (5, 7, 6)])
def test_a_tree(features, rng, kinds, of, deepest):
    targets = rng.normal(size=(len(features), kinds)) + (features[:, :1] > 0.3) * (features[:, 1:2] > 0)
    some = rng.random(len(features)) < 0.4
    tree = Regions.grow(features, targets, fewest=20, deepest=deepest, some=some, of=of)
    expected = literal.grow(features, targets, some, 20, of, deepest)
    assert len(expected) > 10
    asks = tree.feature >= 0
    for found, part in zip((tree.feature, tree.cut, tree.left), zip(*expected, strict=True), strict=True):
        np.testing.assert_array_equal(found[asks], np.array(part)[asks])
    assert len(tree) == len(expected)


@pytest.mark.parametrize("rows", [1, 2, 64, 65, 1000])
def test_bins(features, rows):
    found, (cuts, codes) = Binned.of(features[:rows]), literal.bins(features[:rows])
    np.testing.assert_array_max_ulp(found.cuts, cuts)
    np.testing.assert_array_equal(found.codes, codes)


def test_nothing_has_no_bins():
    assert Binned.of(np.zeros((0, 3))).codes.shape == (0, 3)
    assert Binned.of(np.zeros((3, 0))).codes.shape == (3, 0)


def test_any_number_of_threads(features, rng, monkeypatch):
    targets, trees = rng.normal(size=(len(features), 2)), []
    monkeypatch.setattr(regions, "FEWEST", 10)
    for number in (1, 2):
        monkeypatch.setattr(threads, "THREADS", number)
        trees.append(Regions.grow(features, targets, fewest=20))
    for part in ("feature", "cut", "left"):
        np.testing.assert_array_equal(*(getattr(tree, part) for tree in trees))


def test_totals(rng):
    where, values = rng.integers(0, 9, 1000), rng.normal(size=(1000, 3))
    expected = np.stack([np.bincount(where, column, 12) for column in values.T], axis=1)
    np.testing.assert_array_equal(totals(where, values, 12), expected)
    np.testing.assert_array_equal(totals(where, 2.0, 12)[:, 0], 2.0 * np.bincount(where, minlength=12))
    np.testing.assert_array_equal(totals(where[:0], values[:0], 2), np.zeros((2, 3)))
