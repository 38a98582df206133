import numpy as np
import pytest

from counterpoint import Transitions


def columns(rows=5, **changes):
    return {
        "state": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4),
        "action": np.zeros((rows, 2), np.float32),
        "reward": np.zeros(rows, np.float32),
        "next_state": np.ones((rows, 4), np.float32),
        "terminated": np.zeros(rows, bool),
        **changes,
    }


def test_optional_columns_travel_with_their_rows():
    data = Transitions(**columns(episode=np.arange(5), step=np.arange(5) * 2, noise=np.arange(10.0).reshape(5, 2)))
    for index in (slice(1, 4), np.array([3, 1, 1]), data.episode > 2, -1, slice(None, None, 2)):
        part = data[index]
        rows = np.atleast_1d(np.arange(5)[index])
        assert part.episode.tolist() == rows.tolist()
        assert part.step.tolist() == (2 * rows).tolist()
        assert np.array_equal(part.noise, data.noise[rows])
        assert np.array_equal(part.state, data.state[rows])
        assert part.state.flags.c_contiguous
    both = Transitions.concat(data, data[:2])
    assert both.episode.tolist() == [0, 1, 2, 3, 4, 0, 1]
    assert Transitions.concat(data, Transitions(**columns())).episode is None


def test_dtypes_are_kept():
    data = Transitions(**columns(action=np.zeros((5, 2), np.int64), reward=np.zeros(5, np.float16)))
    assert (data.state.dtype, data.action.dtype, data.reward.dtype) == (np.float32, np.int64, np.float16)
    assert Transitions(**columns(reward=np.zeros(5, int))).reward.dtype == np.float64


def test_repr_shows_shapes_not_numbers():
    assert repr(Transitions(**columns())).startswith("Transitions(5 rows: state (4,) float32, action (2,)")


def test_large_but_finite_values_are_fine():
    assert len(Transitions(**columns(state=np.full((5, 4), 1e308)))) == 5


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"state": np.zeros(5)}, ValueError, r"state: expected shape \(B, columns\), got \(5,\)"),
        ({"reward": np.zeros((5, 1))}, ValueError, r"reward: expected shape \(B,\), got \(5, 1\). Take"),
        ({"state": np.full((5, 4), "x")}, TypeError, "state: expected an array of numbers"),
        ({"state": np.zeros((5, 4), np.longdouble)}, TypeError, "at most 8 bytes"),
        ({"action": np.zeros((4, 2))}, ValueError, "same number of rows, got state 5, action 4"),
        ({"next_state": np.zeros((5, 3))}, ValueError, r"next_state: expected the shape of state, \(5, 4\)"),
        ({"terminated": np.zeros(5)}, TypeError, r"terminated: expected booleans, got dtype float64. Use .astype"),
        (
            {"state": np.where(np.arange(20).reshape(5, 4) == 6, np.nan, 0)},
            ValueError,
            "1 values are NaN .* row 1, column 2",
        ),
        (
            {"reward": np.array([0, np.inf, 0, 0, 0])},
            ValueError,
            "reward: 1 values are NaN or infinite, first at row 1",
        ),
        ({"noise": np.full((5, 1), np.nan)}, ValueError, "noise: 5 values"),
    ],
)
def test_errors(changes, error, message):
    with pytest.raises(error, match=message):
        Transitions(**columns(**changes))


def test_concat_errors():
    with pytest.raises(ValueError, match="at least one batch"):
        Transitions.concat()
    with pytest.raises(ValueError, match=r"action must have one width, got \[1, 2\]"):
        Transitions.concat(Transitions(**columns()), Transitions(**columns(action=np.zeros((5, 1)))))
    with pytest.raises(IndexError):
        Transitions(**columns())[5]


def test_rows_say_what_they_are():
    real, model = Transitions(**columns(3)).labelled("real"), Transitions(**columns(2)).labelled("model")
    both = Transitions.concat(real, model)
    assert both.origins() == {"real": 3, "model": 2}
    assert both[1:4].origins() == {"real": 2, "model": 1}
    assert Transitions(**columns(3)).origins() == {}
    assert Transitions.concat(real, Transitions(**columns(2))).origin is None
    with pytest.raises(ValueError, match="origin: expected one of real, counterfactual, model, got 'dream'"):
        real.labelled("dream")
    for wrong in (np.array([0, 1, 7]), np.array([0.0, 1.0, 2.0])):
        with pytest.raises(ValueError, match="origin: expected 0 for real, 1 for counterfactual, 2 for model"):
            Transitions(**{**dict(real.columns()), "origin": wrong})
