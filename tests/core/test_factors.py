import copy
import pickle

import numpy as np
import pytest

from counterpoint import Factorization, Position


def test_blocks_are_consecutive():
    f = Factorization.blocks(state={"a": 2, "b": 3}, action={"u": 1, "v": 2}, noise={"b": (0, 1)}, context=("a",))
    assert dict(f.state) == {"a": (0, 1), "b": (2, 3, 4)}
    assert dict(f.action) == {"u": (0,), "v": (1, 2)}
    assert (f.n, f.m, f.names) == (2, 2, ("a", "b", "u", "v"))
    assert f.widths == (2, 3, 1, 2)
    assert (f.state_width, f.action_width, f.noise_width) == (5, 3, 2)
    assert f.state_owner.tolist() == [0, 0, 1, 1, 1]
    assert f.action_owner.tolist() == [2, 3, 3]
    assert f.noise_owner.tolist() == [1, 1]


def test_columns_may_be_scattered_and_derived():
    f = Factorization({"a": [0, np.int64(3)], "b": range(1, 2)}, derived=(2,))
    assert f.state_owner.tolist() == [0, 1, -1, 0]
    assert f.nodes("b").tolist() == [False, True]
    assert f.nodes().tolist() == [False, False]


def test_positions_and_types():
    f = Factorization.blocks(
        state={"a": 2, "b": 2, "c": 1}, action={"u": 1},
        positions={"b": [3], "u": Position((0,), scale=0.5, offset=[0.5])}, types={"a": "ball", "b": "ball"},
    )  # fmt: skip
    assert f.positions["b"] == Position((3,))
    assert f.positions["u"].of(np.array([[1.0], [-1.0]])).tolist() == [[1.0], [0.0]]
    assert dict(f.types) == {"a": "ball", "b": "ball", "c": "c", "u": "u"}


def test_it_is_a_value():
    f = Factorization.blocks(state={"a": 2}, action={"u": 1}, positions={"a": (1,)}, types={"a": "ball"})
    assert f == pickle.loads(pickle.dumps(f)) == copy.deepcopy(f)
    with pytest.raises(TypeError):
        f.state["b"] = (3,)
    with pytest.raises(AttributeError):
        f.derived = (1,)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Factorization({}), ValueError, "at least one factor"),
        (lambda: Factorization([0, 1]), TypeError, "expected a mapping"),
        (lambda: Factorization({"a": ()}), TypeError, "state factor 'a': expected column numbers"),
        (lambda: Factorization({"a": (0.5,)}), TypeError, "column numbers such as"),
        (lambda: Factorization({"a": (-1,)}), ValueError, "counted from 0, got -1"),
        (lambda: Factorization({"a": (0, 1), "b": (1,)}), ValueError, r"column 1 \(a and b\) has two owners"),
        (lambda: Factorization({"a": (0,), "b": (2,)}), ValueError, "no factor owns columns 1.*derived"),
        (lambda: Factorization({"a": (0,)}, {"u": (1,)}), ValueError, "action: no factor owns columns 0"),
        (lambda: Factorization({"a": (0,)}, derived=(0,)), ValueError, r"column 0 \(a and derived\)"),
        (lambda: Factorization({"a": (0,)}, {"a": (0,)}), ValueError, "already names a state factor"),
        (
            lambda: Factorization({"a": (0,)}, context=("room",)),
            ValueError,
            "context: room: not a state factor. The state factors are a",
        ),
        (lambda: Factorization({"a": (0,)}, noise={"u": (0,)}), ValueError, "noise: u: not a state factor"),
        (lambda: Factorization({"a": (0,)}, positions={"b": (0,)}), ValueError, "positions: no factor is called 'b'"),
        (lambda: Factorization({"a": (0,), "b": (1,)}, positions={"a": (1,)}), ValueError, "'a' owns the columns"),
        (lambda: Factorization.blocks(state={"a": 2, "b": 2}, positions={"a": (0, 1), "b": (2,)}), ValueError, "axes"),
        (lambda: Position((0, 1), scale=(1, 2, 3)), ValueError, "scale: expected one finite number, or one for each"),
        (lambda: Factorization({"a": (0,)}, types={"b": "x"}), ValueError, "no factor is called b"),
        (lambda: Factorization.blocks(state={"a": 1, "b": 2}, types={"a": "x", "b": "x"}), ValueError, "same width"),
        (lambda: Factorization.blocks(state={"a": 0}), ValueError, "positive number of columns, got 0"),
        (lambda: Factorization({"a": (0,)}).nodes("b"), ValueError, "no factor is called b; the factors are a"),
        (
            lambda: Factorization({"a": (0,)}).require_widths(12, 0),
            ValueError,
            "columns 1, 2, .* and 3 more belong to no",
        ),
        (lambda: Factorization({"a": (0, 1)}).require_widths(1, 0), ValueError, "the data has only 1 columns"),
        (lambda: Factorization({"a": (0,)}).require_widths(1, 2), ValueError, "action: the data has 2 columns"),
    ],
)
def test_errors_name_what_is_wrong(make, error, message):
    with pytest.raises(error, match=message):
        make()
