"""Plausibility and glued factors."""

import numpy as np

from counterpoint import Factorization
from counterpoint.learn.calibration.plausibility import implausible
from counterpoint.learn.calibration.threshold_trial import Scorer, glued_scores
from tests.learn.calibration.worlds import WORLD, Distance, record


def test_what_is_implausible_changes_sign_with_its_direction(rng):
    before, after = rng.normal(0, 10, (2, 5000))
    lost = implausible(before, after)
    np.testing.assert_array_equal(lost, -implausible(after, before))
    np.testing.assert_array_equal(lost, implausible(before + 3, after + 3))
    assert set(lost) == {-1.0, 0.0, 1.0}


def test_glued_factors_are_far_apart(rng):
    """All of their scores are small, where distance is the score; sprites without positions may be near."""
    data = record(5000, 0)
    scores = glued_scores(Scorer(Distance(), WORLD.factors), data, rng)
    every = Distance().scores(data.state, data.action)[:, :3][:, ~np.eye(3, dtype=bool)]
    assert scores.max() < np.median(every)
    nowhere = Factorization(WORLD.factors.state, WORLD.factors.action)
    assert glued_scores(Scorer(Distance(), nowhere), data, rng).max() > np.quantile(every, 0.9)
