"""What can be learned from and scored."""

import numpy as np
import pytest

from counterpoint import Factorization
from tests.learn.examples import FACTORS, Linear, make_data


def test_read_only_inputs_of_any_dtype(rng):
    data = make_data(rng)
    fitted = Linear().fit(data, FACTORS, rng=rng, progress=False)
    for dtype in (np.float64, np.float32, np.float16, np.int64):
        state, action = data.state.astype(dtype), data.action.astype(dtype)
        state.flags.writeable = action.flags.writeable = False
        assert fitted.scores(state, action).shape == (300, 4, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, a: (s[:, :3], a), "state: the factors cart, pole, goal reach up to column 3"),
        (lambda s, a: (s, np.repeat(a, 2, axis=1)), "action: the data has 2 columns"),
        (lambda s, a: (s, a[:5]), "action: expected one row for each of the 300 states"),
        (lambda s, a: (np.where(s > 3, np.nan, s), a), "state: .* NaN"),
        (lambda s, a: (s[0], a), "state: expected shape"),
    ],
)
def test_what_is_scored_is_checked(rng, change, message):
    data = make_data(rng)
    fitted = Linear().fit(data, FACTORS, rng=rng, progress=False)
    with pytest.raises(ValueError, match=message):
        fitted.scores(*change(data.state, data.action))


def test_too_little_data_is_refused(rng):
    with pytest.raises(ValueError, match="60 transitions are too few .* at least 100"):
        Linear().fit(make_data(rng, rows=60), FACTORS, rng=rng)


def test_constant_columns_are_named_and_can_be_allowed(rng):
    data = make_data(rng)
    state = data.state.copy()
    state[:, 3] = 0.5
    data = data.replace(state=state)
    with pytest.raises(ValueError, match=r"state: goal\[\d\] \(column 3\), always 0.5 is constant"):
        Linear().fit(data, FACTORS, rng=rng)
    fitted = Linear(allow_constant=True).fit(data, FACTORS, rng=rng, progress=False)
    assert np.isfinite(fitted.scores(data.state, data.action)).all()
    with pytest.raises(ValueError, match=r"action: push\[0\] \(column 0\)"):
        Linear().fit(data.replace(state=state + rng.normal(size=state.shape), action=0 * data.action), FACTORS, rng=rng)


def test_other_bad_input_is_refused(rng):
    data = make_data(rng)
    with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
        Linear().fit(data, FACTORS, rng=0)
    with pytest.raises(TypeError, match="data: expected Transitions, got ndarray"):
        Linear().fit(data.state, FACTORS, rng=rng)
    broken = data.replace(state=np.where(data.state > 3, np.inf, data.state))
    with pytest.raises(ValueError, match="state: .* NaN or infinite"):
        Linear().fit(broken, FACTORS, rng=rng)
    with pytest.raises(ValueError, match="state: the data has 4 columns, but the factors cover only 2"):
        Linear().fit(data, Factorization.blocks(state={"cart": 2}, action={"push": 1}), rng=rng)
