"""Several trees as one."""

import numpy as np
import pytest

from counterpoint.learn.forests.forest import Forest
from counterpoint.masks.regions import Binned, Regions


@pytest.fixture
def features(rng):
    return rng.random((400, 3))


@pytest.fixture
def forest(features, rng):
    trees = tuple(Regions.grow(features, rng.random((400, 1)), fewest=20) for _ in range(3))
    return Forest(trees, tuple(rng.random((len(tree), 2)) for tree in trees))


def test_it_says_the_mean_of_its_trees(forest, features):
    each = [values[tree(features)] for tree, values in zip(forest.trees, forest.values, strict=True)]
    np.testing.assert_allclose(forest(features), np.mean(each, axis=0))
    assert forest(features[:0]).shape == (0, 2)


def test_arrays_bring_it_back(forest, features):
    again = Forest.of(forest.arrays(), 3)
    np.testing.assert_array_equal(again(features), forest(features))
    with pytest.raises(ValueError, match="leads nowhere"):
        Forest.of(forest.arrays(), 1)
    with pytest.raises(ValueError, match="lengths"):
        Forest.of({**forest.arrays(), "cut": np.zeros(1)}, 3)
    with pytest.raises(KeyError):
        Forest.of({}, 3)


def test_binned_features_give_the_same_tree(features, rng):
    targets = rng.random((400, 2))
    plain, binned = (Regions.grow(each, targets, fewest=20) for each in (features, Binned.of(features)))
    for part in ("feature", "cut", "left"):
        np.testing.assert_array_equal(getattr(plain, part), getattr(binned, part))
    some = np.arange(100)
    assert len(Binned.of(features)[some]) == 100
