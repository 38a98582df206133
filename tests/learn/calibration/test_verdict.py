"""From figures to words: three answers."""

import re

import pytest

from counterpoint.learn.calibration.verdict import MOST_UNKNOWN, TIMES, TIMES_CHOSEN, weigh
from counterpoint.metrics import Estimate


def estimate(value, spread=0.0):
    return Estimate(value, value - spread, value + spread)


GOOD = {"wrong": estimate(0.005, 0.004), "unknown": estimate(0.01), "accepted": 0.4, "target": 0.01}


def test_a_verdict_is_fine_if_no_figure_speaks_against_it():
    words = "about 0.5% of the counterfactuals would be wrong (0.1% to 0.9%); yield 40%; fine"
    assert weigh(**GOOD) == (True, words)


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"wrong": estimate(0.2, 0.05)}, "do not augment: about 20.0% of the counterfactuals would be wrong"),
        ({"accepted": 0.001}, "do not augment: 0.10% of the pairs give a counterfactual"),
        ({"wrong": estimate(0.005, 0.05)}, "cannot tell: about 0.5% .* not sure to be below the target of 1.0%"),
        ({"wrong": estimate(0.015, 0.01)}, "cannot tell: about 1.5%"),
        ({"unknown": estimate(2 * MOST_UNKNOWN)}, "cannot tell: too few interactions. 20% of the counterfactuals"),
    ],
)
def test_one_figure_is_enough_against_it(figures, words):
    fine, verdict = weigh(**{**GOOD, **figures})
    assert not fine
    assert re.match(words, verdict)


def test_it_says_which_rows_to_collect():
    _, verdict = weigh(**{**GOOD, "unknown": estimate(0.5)}, collect=("hand and cup with distance below 0.04",))
    assert "Collect rows like these: hand and cup with distance below 0.04." in verdict


def test_of_a_threshold_that_was_chosen_less_is_allowed():
    near = {**GOOD, "wrong": Estimate(0.005, 0.0, 0.045)}
    assert weigh(**near, times=TIMES)[0]
    assert not weigh(**near, times=TIMES_CHOSEN)[0]
