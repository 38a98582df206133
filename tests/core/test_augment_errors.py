"""What an augmenter refuses, and how it explains that."""

import numpy as np
import pytest

from counterpoint import Augmenter, Transitions
from counterpoint.core import patience
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors


def crossing(state, action):
    """Sources look free, but every proposal is tied together: its two factors never come from one row."""
    mask = np.broadcast_to(np.eye(2, dtype=bool), (len(state), 2, 2)).copy()
    mask[state[:, 0] != state[:, 1], 0, 1] = True
    return mask


def test_fill_explains_why_it_cannot(rng, monkeypatch):
    factors = make_factors(2, 0, width=1)
    data = make_data(factors, 6, rng)

    def fill(mask, data=data, size=100, **others):
        Augmenter(factors, mask, first_column, **others).fill(data, size, rng=rng)

    with pytest.raises(ValueError, match="Every mask is one component: nothing can be swapped"):
        fill(Constant.full(factors))
    with pytest.raises(
        ValueError, match="100 counterfactuals were asked for, 30 could be made. All 21 pairs have been tried"
    ):
        fill(Constant.identity(factors))
    with pytest.raises(ValueError, match="A swap needs two transitions"):
        fill(Constant.identity(factors), data=data[:1])
    same = Transitions.concat(*[data[:1]] * 5)
    with pytest.raises(ValueError, match="None of 15 pairs had anything to exchange"):
        fill(Constant.identity(factors), data=same)
    monkeypatch.setattr(patience, "PATIENCE", 1)
    linked = data.replace(state=np.repeat(np.arange(6.0)[:, None], 2, axis=1))
    with pytest.raises(
        ValueError, match="30 of 30 proposals were rejected, because an edge of the proposal's own mask"
    ):
        fill(crossing, data=linked)


def bad(factors, what):
    """Functions that misbehave in the way named."""
    n, nodes = factors.n, factors.n + factors.m
    return {
        "scores": lambda s, a: np.ones((len(s), nodes, n)),
        "integers": lambda s, a: np.ones((len(s), nodes, n), int),
        "transposed": lambda s, a: np.ones((len(s), n, nodes), bool),
        "square": lambda s, a: np.ones((len(s), nodes, nodes), bool),
        "flat": lambda s, a: np.ones((nodes, n), bool),
        "writing": lambda s, a: s.fill(0),
        "failing": lambda s, a: np.zeros(2) + np.zeros(3),
    }[what]


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("scores", TypeError, r"got dtype float64. Scores become a mask .* Threshold\(score_fn, tau\)"),
        ("integers", TypeError, r"mask_fn: expected booleans, got dtype int64. Use .astype\(bool\)"),
        ("transposed", ValueError, r"expected shape \(9, 3, 2\) for s0, s1, a0, got \(9, 2, 3\). It looks transposed"),
        ("square", ValueError, "Drop the last 1 columns"),
        ("flat", ValueError, r"got \(3, 2\). Rows are sources"),
        ("writing", ValueError, "mask_fn: it tried to change its input in place. Work on a copy"),
        ("failing", ValueError, "could not be broadcast"),
    ],
)
def test_a_bad_mask_is_explained(what, error, message, rng):
    factors = make_factors(2, 1)
    with pytest.raises(error, match=message):
        Augmenter(factors, bad(factors, what), first_column).fill(make_data(factors, 9, rng), 5, rng=rng)


@pytest.mark.parametrize(
    ("others", "error", "message"),
    [
        (
            {"reward_fn": lambda s, a, n: n},
            ValueError,
            r"reward_fn: expected shape \(5,\), one value per transition, got \(5, 4\)",
        ),
        ({"reward_fn": lambda s, a, n: n[:, 0].astype(str)}, TypeError, "reward_fn: expected floats"),
        ({"reward_fn": lambda s, a, n: n[:, 0] * np.nan}, ValueError, "reward_fn: returned NaN"),
        ({"reward_fn": lambda s, a, n: n.fill(1)}, ValueError, "reward_fn: it tried to change its input"),
        ({"terminal_fn": lambda s, a, n: n[:, 0]}, TypeError, "terminal_fn: expected booleans"),
        ({"reward_fn": None}, TypeError, "reward_fn: expected a function, got None"),
        ({"pairs": 0}, ValueError, "pairs: expected a whole number, 1 or more, got 0"),
        ({"samples_per_pair": 2.5}, TypeError, "samples_per_pair: expected a whole number, 1 or more, got 2.5"),
        ({"pairing": "clever"}, ValueError, "pairing: expected 'uniform' or 'sharing', got 'clever'"),
        ({"policy": "uniform"}, TypeError, r"policy: expected Uniform\(\) or Sparse\(\)"),
    ],
)
def test_bad_parts_are_explained(others, error, message, rng):
    factors = make_factors(2, 1)
    parts = {"factors": factors, "mask_fn": Constant.identity(factors), "reward_fn": first_column, **others}
    with pytest.raises(error, match=message):
        Augmenter(**parts).fill(make_data(factors, 9, rng), 5, rng=rng)


@pytest.mark.parametrize(
    ("data", "size", "generator", "error", "message"),
    [
        (None, 0, None, ValueError, "size: expected a whole number, 1 or more, got 0"),
        (None, -3, None, ValueError, "size: expected a whole number, 1 or more, got -3"),
        (None, 1.0, None, TypeError, "size: expected a whole number"),
        (None, 1, 0, TypeError, r"rng: expected a NumPy generator such as np.random.default_rng\(0\), got 0"),
        (lambda d: d[:0], 1, None, ValueError, "it holds no transitions"),
        (lambda d: {}, 1, None, TypeError, "data: expected Transitions, got dict"),
        (lambda d: d.replace(action=np.zeros((9, 4))), 1, None, ValueError, "action: the data has 4 columns"),
        (
            lambda d: d.replace(noise=np.zeros((9, 4))),
            1,
            None,
            ValueError,
            "noise: the data has 4 columns, the factors own 1",
        ),
        (None, 10**15, None, MemoryError, "rows do not fit into memory. Make them chunk by chunk"),
    ],
)
def test_bad_data_is_explained(data, size, generator, error, message, rng):
    factors = make_factors(2, 1, noise={"s0": (0,)})
    real = make_data(factors, 9, rng)
    augmenter = Augmenter(factors, Constant.identity(factors), first_column)
    with pytest.raises(error, match=message):
        augmenter.fill(data(real) if data else real, size, rng=rng if generator is None else generator)
