"""Compiled loops say what plain arrays say, to the bit."""

import numpy as np
import pytest

from counterpoint import Factorization
from counterpoint.core import threads
from counterpoint.learn.forests.changes import Meddling
from counterpoint.learn.forests.forest import Forest
from counterpoint.learn.forests.influences import Influences
from counterpoint.learn.forests.joint import Situation
from counterpoint.learn.forests.outlook import Outlook
from counterpoint.masks.regions import Regions
from tests.learn.forests import literal


def world(axes):
    """Four balls, two cups, a lamp and a wide table that are nowhere, and two clicks."""
    names = [*(f"ball{k}" for k in range(4)), "cup0", "cup1"]
    widths = {name: 2 * axes if name[0] == "b" else axes + 1 for name in names}
    places, at = {}, 0
    for name in names:
        places[name] = tuple(range(at, at + axes))
        at += widths[name]
    return Factorization.blocks(
        state={**widths, "lamp": 1, "table": 7},
        action={"click0": axes, "click1": axes},
        positions={**places, "click0": tuple(range(axes)), "click1": tuple(range(axes, 2 * axes))},
        types={name: name[:-1] for name in (*names, "click0", "click1")},
    )


def outlook_of(factors, rng):
    width = factors.state_width + factors.action_width
    return Outlook(factors, 0.1 * rng.normal(size=(width + 1, width)))


def drawn(factors, rows, rng, dtype):
    return rng.normal(size=(rows, factors.state_width)).astype(dtype), rng.normal(size=(rows, factors.action_width))


def grown(features, rng, values, trees=5):
    each = [Regions.grow(features, rng.random((len(features), 1)), fewest=20, deepest=5 + t) for t in range(trees)]
    return Forest(tuple(each), tuple(rng.random((len(tree), values)) * rng.random((len(tree), 1)) for tree in each))


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_pairs(axes, dtype, rng):
    factors = world(axes)
    outlook, n = outlook_of(factors, rng), factors.n
    values = [np.concatenate(drawn(factors, 200, rng, dtype), axis=1).astype(dtype) for _ in range(2)]
    here, away = (outlook.placed(each) for each in values)
    for i in range(n + factors.m):
        for j in set(range(n + factors.m)) - {i}:
            for source in (here, away):
                found = outlook.pair(i, j, source, here)
                np.testing.assert_array_equal(found, literal.pair(outlook, i, j, source, here))
                assert found.shape[1] == outlook.width(i, j)


@pytest.mark.parametrize("trees", [1, 2, 4, 7, 8])
def test_forests(trees, rng):
    features = rng.normal(size=(300, 4))
    forest = grown(features, rng, 3, trees)
    np.testing.assert_array_equal(forest(features), literal.told(forest, features))
    assert forest.most >= forest(features)[:, 0].max()


def influences(rng, axes=2):
    """Influences, situations and changes that nothing was learned for."""
    factors = world(axes)
    outlook, size = outlook_of(factors, rng), (factors.n + factors.m, factors.n)
    asked = (rng.random(size) < 0.8) & ~np.eye(*size, dtype=bool)
    asked[:, 6] = asked[6] = False
    rows = outlook.placed(np.concatenate(drawn(factors, 500, rng, np.float64), axis=1))

    def forest(pairs, values):
        return grown(np.concatenate([outlook.pair(*pair, rows, rows) for pair in pairs], axis=1), rng, values)

    balls = [(0, 1, 2), (1, 0, 2), (3, 2, 0), (2, 0, 1), (3, 0, 1)]
    clicks = [(8, 4, 0), (8, 4, 1), (9, 4, 1), (9, 5, 1)]
    changes = tuple(
        Meddling(tuple(triples), forest([(i, j), (k, j), (k, i)], 1))
        for triples in (balls, clicks)
        for i, j, k in triples[:1]
    )
    situations = (
        Situation(7, ((0, 1), (1, 2), (0, 3)), forest([(0, 1)], 1)),
        Situation(4, ((8, 6),), forest([(8, 6)], 1)),
    )
    kinds = outlook.kinds(asked)
    forests = tuple(forest(pairs[:1], 3) for pairs in kinds)
    return Influences(outlook, np.zeros(size, bool), asked, forests, changes, situations)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores(dtype, rng):
    learned = influences(rng)
    state, action = drawn(learned.outlook.factors, 2000, rng, dtype)
    expected = literal.scores(learned, state, action)
    np.testing.assert_array_equal(learned.scores(state, action), expected)
    alone = Influences(learned.outlook, learned.always, learned.asked, learned.forests, (), ())
    plain = alone.scores(state, action)
    assert (expected >= plain).all()
    for k, j in ((2, 1), (1, 4), (0, 7), (6, 4)):
        assert (expected[:, k, j] > plain[:, k, j]).any()


def test_any_number_of_threads(rng, monkeypatch):
    learned = influences(rng)
    state, action = drawn(learned.outlook.factors, 2000, rng, np.float32)
    monkeypatch.setattr(threads, "THREADS", 1)
    expected = learned.scores(state, action)
    monkeypatch.setattr(threads, "THREADS", 2)
    np.testing.assert_array_equal(learned.scores(state, action), expected)


def test_whole_numbers_are_numbers(rng):
    learned = influences(rng)
    state, action = (
        np.round(5 * each).astype(np.int64) for each in drawn(learned.outlook.factors, 50, rng, np.float64)
    )
    np.testing.assert_array_equal(learned.scores(state, action), literal.scores(learned, state, action))
