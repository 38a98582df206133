"""Thresholds: one for all edges, or one for each kind of edge."""

from types import SimpleNamespace

import numpy as np
import pytest

from counterpoint import Factorization
from counterpoint.learn.calibration.thresholds import Point, best, by_kind
from counterpoint.masks import Threshold
from counterpoint.masks.pairs import FactorPairs, kinds_of_tau, tau_of_kinds

FACTORS = Factorization.blocks(state={"hand": 1, "cup": 1, "ball": 1}, action={"motor": 1})


def trial(rng, rows=4000):
    """An influence of the hand on the cup, and one of the motor on the ball; scores of the motor are larger."""
    loud = np.zeros((rows, 4, 3), bool)
    loud[:, 0, 1] = rng.random(rows) < 0.2
    loud[:, 3, 2] = rng.random(rows) < 0.3
    scale = np.where(np.arange(4) == 3, 100.0, 1.0)[:, None]
    scores = scale * (loud + 0.9 * rng.random(loud.shape))
    testimonies = [SimpleNamespace(kind=kind) for kind in FactorPairs(FACTORS).kinds]
    witness = SimpleNamespace(loud=loud, surprised=loud.any(axis=1), testimonies=testimonies)
    return SimpleNamespace(witness=witness, answer=scores, hiding=scores), loud


def test_each_kind_misses_the_same_share_on_its_own_scale(rng):
    given, loud = trial(rng)
    taus = by_kind(given)
    assert len(taus) > 5
    for tau in taus:
        missed = [(given.answer <= tau)[:, i, j][loud[:, i, j]].mean() for i, j in ((0, 1), (3, 2))]
        assert missed[0] == pytest.approx(missed[1], abs=0.01)
    densest = taus[-1]
    assert densest[3, 2] > 50 * densest[0, 1]
    made = Threshold(lambda state, action: given.answer, densest)(np.zeros((1, 3)), np.zeros((1, 1)))
    assert made[:, 0, 1][loud[:, 0, 1]].mean() > 0.99


def test_a_mask_and_a_single_kind_have_none(rng):
    given, _ = trial(rng)
    given.answer = given.answer > 0.5
    assert by_kind(given) == []


def test_thresholds_have_names(rng):
    tau = by_kind(trial(rng)[0])[0]
    names = kinds_of_tau(FACTORS, tau)
    assert set(names) == {" > ".join(kind.types) for kind in FactorPairs(FACTORS).kinds}
    again = tau_of_kinds(FACTORS, names)
    for kind in FactorPairs(FACTORS).kinds:
        for pair in kind.pairs:
            assert again[pair] == tau[pair]
    with pytest.raises(ValueError, match="tau: expected a number for each of"):
        tau_of_kinds(FACTORS, {"hand > spoon": 1.0})


def test_the_best_point_keeps_the_target_or_comes_nearest():
    points = [
        Point(0.1, 0.001, 0.2, 0.01),
        Point(0.2, 0.004, 0.5, 0.03),
        Point(0.3, 0.02, 0.8, 0.1),
        Point(0.4, float("nan"), 0.0, float("nan")),
    ]
    assert best(points, 0.005, 0.01, 0.04) == 1
    assert best(points[2:], 0.005, 0.01, 0.04) == 0
    assert best(points[3:], 0.005, 0.01, 0.04) == 0


def test_a_little_yield_is_given_up_for_edges_that_may_be_there():
    points = [Point(tau, 0.0, accepted, 0.01) for tau, accepted in ((0.1, 0.5), (0.2, 0.81), (0.3, 0.9), (0.4, 1.0))]
    assert best(points, 0.005, 0.01, 0.04) == 1
    assert best(points[::-1], 0.005, 0.01, 0.04) == 2
    assert best([point for point in points if point.accepted != 0.81], 0.005, 0.01, 0.04) == 1


def test_a_point_where_nothing_is_found_because_little_can_be_is_not_the_best():
    sure, unsure, little = Point(0.1, 0.002, 0.4, 0.03), Point(0.2, 0.0, 0.9, 1.0), Point(0.05, 0.0, 0.2, 0.01)
    assert best([sure, unsure], 0.005, 0.01, 0.04) == 0
    assert best([little, sure], 0.005, 0.01, 0.04) == 1  # below the bar the yield decides
    assert best([little, sure], 0.005, 0.01, 0.02) == 0
    assert best([unsure], 0.005, 0.01, 0.04) == 0
    nearly = unsure._replace(high=0.04)
    assert best([sure, nearly], 0.005, 0.01, 0.01) == 1


@pytest.mark.parametrize(("tau", "message"), [(np.zeros(3), "one for each edge"), (np.full((4, 3), np.nan), "finite")])
def test_thresholds_that_cannot_be(tau, message):
    with pytest.raises(ValueError, match=message):
        Threshold(lambda state, action: state, tau)
