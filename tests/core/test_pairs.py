from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from counterpoint.core import pairs
from counterpoint.core.kernels import triangle

KEY = np.uint64(12345)


def drawn(order, chunk=7):
    found = []
    for first in range(0, order.total, chunk):
        base, donor = order.draw(first, chunk)
        found += [tuple(sorted(pair)) for pair in zip(base.tolist(), donor.tolist(), strict=True)]
    return Counter(found)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 2**63))
def test_uniform_visits_every_pair_of_a_group_once(groups, key):
    groups = np.array(groups)
    order = pairs.uniform(groups, np.uint64(key))
    expected = {(i, j) for i in range(len(groups)) for j in range(i, len(groups)) if groups[i] == groups[j]}
    assert drawn(order) == Counter(expected)


@given(st.lists(st.sampled_from([(0, 0, 0), (0, 1, 1), (0, 0, 2), (0, 1, 2), (0, 1, 0)]), min_size=1, max_size=12))
def test_sharing_visits_exactly_the_pairs_with_two_components_left(labels):
    labels = np.array(labels, np.uint8)
    groups = np.arange(len(labels)) % 2

    def parts(i, j):
        edges = [{k, int(labels[r, k])} for r in (i, j) for k in range(3)]
        for _ in range(3):
            edges = [set().union(*(f for f in edges if e & f)) for e in edges]
        return len({frozenset(e) for e in edges})

    every = [(i, j) for i in range(len(labels)) for j in range(i + 1, len(labels)) if groups[i] == groups[j]]
    order = pairs.sharing(groups, labels, np.zeros(3, bool), KEY)
    assert drawn(order) == Counter(pair for pair in every if parts(*pair) > 1)


def test_with_very_many_graphs_only_hopeless_rows_are_left_out(monkeypatch):
    monkeypatch.setattr(pairs, "MOST_GRAPHS", 2)
    labels = np.array([[0, 0, 0], [0, 1, 1], [0, 0, 2], [0, 1, 0]], np.uint8)
    assert drawn(pairs.sharing(np.zeros(4, int), labels, np.zeros(3, bool), KEY)) == Counter([(1, 2), (1, 3), (2, 3)])


@pytest.mark.compiled
def test_pairs_are_uniform_and_both_directions_occur():
    """Over many keys, the first pair is any of the 15 pairs of five rows, in either direction."""
    first = [
        tuple(map(int, np.concatenate(pairs.uniform(np.zeros(5, int), np.uint64(k)).draw(0, 1)))) for k in range(20_000)
    ]
    counts = Counter(first)
    off_diagonal = [counts[i, j] for i in range(5) for j in range(5) if i != j]
    both = [counts[i, j] + counts[j, i] for i in range(5) for j in range(i)] + [counts[i, i] for i in range(5)]
    assert stats.chisquare(off_diagonal).pvalue > 1e-3
    assert stats.chisquare(both).pvalue > 1e-3


@given(st.one_of(st.integers(0, 200), st.integers(0, 2**61)))
def test_triangle_unranks(index):
    row, column = map(int, triangle(index))
    assert 0 <= column <= row
    assert row * (row + 1) // 2 + column == index


@pytest.mark.parametrize("row", [2**26 + 1, 2**28 + 5, 2**30 - 1, 2**30 + 12345])
def test_triangle_is_exact_where_square_roots_are_not(row):
    corner = row * (row + 1) // 2
    assert tuple(map(int, triangle(corner))) == (row, 0)
    assert tuple(map(int, triangle(corner - 1))) == (row - 1, row - 1)


def test_equal_rows_get_equal_numbers():
    values = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 1.0]])
    one, two, three = pairs.same_rows(values)
    assert one == two != three
    assert pairs.same_rows(np.zeros((3, 0))).tolist() == [0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=12), st.integers(0, 2**63))
def test_of_each_pair_one_row_is_an_own_one_and_the_base(rows, key):
    groups, own = (np.array(column) for column in zip(*rows, strict=True))
    order = pairs.uniform(groups, np.uint64(key), own)
    expected = {
        (i, j)
        for i in range(len(groups))
        for j in range(i, len(groups))
        if groups[i] == groups[j] and (own[i] or own[j])
    }
    assert drawn(order) == Counter(expected)
    assert own[order.draw(0, order.total)[0]].all()


@pytest.mark.parametrize("most", [1, 1024])
def test_sharing_pairs_have_an_own_base_too(most, monkeypatch):
    monkeypatch.setattr(pairs, "MOST_GRAPHS", most)
    labels = np.array([[0, 1, 1], [0, 0, 2], [0, 1, 1], [0, 1, 1]], np.uint8)
    own = np.array([True, True, False, False])
    order = pairs.sharing(np.zeros(4, int), labels, np.zeros(3, bool), KEY, own)
    hopeless = most == 1  # then graphs are not compared with each other
    expected = [(0, 2), (0, 3)] + ([(0, 1), (1, 2), (1, 3)] if hopeless else [])
    assert drawn(order) == Counter(expected)
    assert own[order.draw(0, order.total)[0]].all()
