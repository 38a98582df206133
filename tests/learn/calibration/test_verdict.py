"""From figures to words."""

from counterpoint.learn.calibration.verdict import weigh
from counterpoint.metrics import Estimate


def estimate(value, spread=0.0):
    return Estimate(value, value - spread, value + spread)


GOOD = {"wrong": estimate(0.005), "accepted": 0.4, "target": 0.01, "far": estimate(0.0), "surprises": 500}


def test_a_verdict_is_fine_unless_one_figure_speaks_against_it():
    assert weigh(**GOOD) == (True, "about 0.5% of the counterfactuals would be wrong; yield 40%; fine")
    against = {
        "wrong": (estimate(0.02), "about 2.0% of the counterfactuals would be wrong, whatever the threshold"),
        "accepted": (0.001, "0.10% of the pairs give a counterfactual"),
        "far": (estimate(0.2, 0.01), "20.0% are implausible to an independent forward model"),
        "surprises": (3, "only 3 factors did what they would not do by themselves"),
    }
    for name, (value, reason) in against.items():
        fine, words = weigh(**{**GOOD, name: value})
        assert not fine
        assert words.startswith("do not augment: ")
        assert reason in words
