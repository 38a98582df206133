"""How the core writes counts and lists in its messages."""

from counterpoint.core.arrays import counted, listed


def test_a_count_agrees_with_its_noun():
    assert [counted(value, "row") for value in (0, 1, 2, 2000)] == ["0 rows", "1 row", "2 rows", "2,000 rows"]


def test_a_long_list_is_cut():
    assert listed("abc", most=2).endswith("and 1 more")
    assert "more" not in listed("abc", most=3)
