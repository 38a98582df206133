"""The pieces a page is built of."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Factorization
from counterpoint.report import Reliability
from counterpoint.report.distributions import column_names
from counterpoint.report.markup import Html, number, share, table, tag, text
from counterpoint.report.svg import inline


def test_calibration_error_is_weighted():
    assert Reliability([0.0, 1.0], [0.5, 1.0], [1, 3]).error == pytest.approx(0.125)


@given(st.floats(-1e300, 1e300))
def test_numbers_read_back(value):
    read = float(number(value).replace(",", "").replace("−", "-"))
    assert read == pytest.approx(value, rel=1e-3)


@given(st.floats(0, 1))
def test_a_share_never_rounds_to_all_or_nothing(value):
    assert (share(value) == "100%") == (value == 1)
    assert (share(value) == "0%") == (value == 0)


@given(st.text())
def test_text_survives_escaping(value):
    class Reader(HTMLParser):
        def __init__(self):
            super().__init__()
            self.seen = ""

        def handle_data(self, data):
            self.seen += data

    reader = Reader()
    reader.feed(tag("p", value))
    reader.close()
    kept = [ord(character) >= 32 or character in "\t\n" for character in value]
    expected = "".join(
        c if keep and not 0xD7FF < ord(c) < 0xE000 else "\ufffd" for c, keep in zip(value, kept, strict=True)
    )
    expected = re.sub("[\x7f\ufffe\uffff]", "\ufffd", expected)
    assert reader.seen == expected
    assert text(Html("<b>")) == "<b>"


def test_columns_of_numbers_are_flush_right():
    made = table("t", ["a", "b", "c"], [["x", "1,200", "−1e−7"], ["y", "–", "word" * 9]])
    assert made.count('class="number"') == 3  # the heading and two cells of the second column
    assert made.count('class="long"') == 3


def test_columns_are_named_after_their_factors():
    factors = Factorization(state={"a": (0, 2), "b": (3,)}, action={"push": (0, 1)}, derived=(1,))
    names = column_names(factors, {"push": ("x (m)", "y (m)")})
    assert names == [
        "a[0] (column 0)", "derived[0] (column 1)", "a[1] (column 2)", "b[0] (column 3)",
        "push x (m) (column 0)", "push y (m) (column 1)",
    ]  # fmt: skip


def test_a_drawing_without_a_view_box_is_refused():
    with pytest.raises(ValueError, match="viewBox"):
        inline("<svg></svg>", "x", "y")
