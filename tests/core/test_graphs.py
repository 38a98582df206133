import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from scipy.sparse.csgraph import connected_components

from counterpoint import Sparse, Uniform, components, independent, random_union
from counterpoint.core.graphs import unions
from tests import reference


@st.composite
def masks(draw, rows=3):
    n, m = draw(st.integers(1, 7)), draw(st.integers(0, 3))
    return draw(hnp.arrays(bool, (rows, n + m, n), elements=st.sampled_from([False] * 3 + [True])))


@given(masks())
def test_components_are_those_of_the_literal_algorithm(mask):
    for row, labels in zip(mask, components(mask), strict=True):
        expected = {node: min(c) for c in reference.connected_components(row.tolist()) for node in c}
        assert labels.tolist() == [expected[node] for node in range(len(row))]


@given(masks(), st.data())
def test_a_set_is_independent_exactly_if_it_is_in_D(mask, data):
    nodes = data.draw(hnp.arrays(bool, mask.shape[:2]))
    expected = [
        frozenset(np.flatnonzero(d)) in reference.Components(m) for m, d in zip(mask.tolist(), nodes, strict=True)
    ]
    assert independent(mask, nodes).tolist() == expected


@given(masks(rows=2))
def test_unions_of_the_overlaid_graph_are_the_intersection(mask):
    m1, m2 = mask
    overlaid = reference.Components((m1 | m2).tolist())
    assert overlaid == reference.Components(m1.tolist()) & reference.Components(m2.tolist())


@pytest.mark.compiled
@pytest.mark.parametrize("n", [64, 65, 300])
def test_any_number_of_nodes(n, rng):
    mask = rng.random((20, n + 3, n)) < 0.4 / n
    square = np.zeros((n + 3, n + 3), bool)
    for row, labels in zip(mask, components(mask), strict=True):
        square[:, :n] = row
        _, theirs = connected_components(square, directed=True, connection="weak")
        assert [np.flatnonzero(theirs == theirs[i])[0] for i in range(n + 3)] == labels.tolist()
        union = random_union(labels[None], rng)
        assert independent(row[None], union).all()
        assert 0 < union.sum() < n + 3


@given(masks(), st.sampled_from([Uniform(), Sparse(), Sparse(2)]), st.integers(0, 2**32))
def test_a_random_union_is_a_proper_union(mask, policy, seed):
    labels = components(mask)
    union = random_union(labels, np.random.default_rng(seed), policy)
    assert independent(mask, union).all()
    for row, d in zip(labels, union, strict=True):
        k = len(set(row))
        chosen = len(set(row[d]))
        assert chosen == 0 if k == 1 else 1 <= chosen <= min(policy.most(k), k - 1)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("k", "policy"), [(2, Uniform()), (3, Uniform()), (5, Uniform()), (5, Sparse()), (5, Sparse(2)), (4, Sparse(3))]
)
def test_unions_are_uniform(k, policy, rng):
    labels = np.tile(np.arange(k), (40_000, 1))
    union = random_union(labels, rng, policy)
    found, counts = np.unique(union, axis=0, return_counts=True)
    assert len(found) == unions(k, policy)
    assert stats.chisquare(counts).pvalue > 1e-3


def test_unions_depend_on_the_generator_alone(rng):
    labels = np.tile(np.arange(6), (50, 1))
    one = random_union(labels, np.random.default_rng(1))
    assert np.array_equal(one, random_union(labels, np.random.default_rng(1)))
    assert not np.array_equal(one, random_union(labels, np.random.default_rng(2)))


def test_counts_of_unions():
    assert [unions(k, Uniform()) for k in range(5)] == [0, 0, 2, 6, 14]
    assert [unions(k, Sparse(2)) for k in range(5)] == [0, 0, 2, 6, 10]
    assert unions(70, Sparse()) == 70


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: components(np.ones((3, 2))), r"mask: expected booleans of shape \(B, N, n\)"),
        (lambda: components(np.ones((1, 2, 3), bool)), "with N >= n"),
        (lambda: independent(np.ones((1, 3, 2), bool), np.ones((1, 2), bool)), r"nodes: .* shape \(1, 3\)"),
        (lambda: independent(np.ones((1, 3, 2), bool), np.ones((1, 3))), "nodes: expected booleans"),
        (
            lambda: random_union(np.zeros(3, int), np.random.default_rng()),
            r"labels: expected integers of shape \(B, N\)",
        ),
        (lambda: Sparse(0), "components: expected a whole number, 1 or more, got 0"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
