"""The numbers of a report against slow definitions."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Factorization, Provenance
from counterpoint.core.graphs import components
from counterpoint.report import graphs as graph_module
from counterpoint.report.coverage import MOST_CELLS, cells, coverage
from counterpoint.report.distributions import column_names, compare, gap
from counterpoint.report.examples import first_crossing
from counterpoint.report.graphs import component_counts, graphs, rows_of
from counterpoint.report.provenance import parents, swap_sets
from tests.examples import HashedMask, make_data, make_factors
from tests.report.reading import facts_of, seeds, values


@given(seeds, st.integers(1, 6), st.integers(0, 3))
def test_graphs_are_counted(seed, n, m):
    rng = np.random.default_rng(seed)
    factors = make_factors(n, m)
    data, mask_fn = make_data(factors, 17, rng), HashedMask(factors, 0.2, seed)
    found, mask = graphs(data, mask_fn, factors), mask_fn(data.state, data.action)
    assert np.allclose(found.edges, mask.mean(axis=0))
    sizes = [len(set(row)) for row in components(mask).tolist()]
    assert found.components.tolist() == [sizes.count(k) for k in range(n + m + 1)]
    assert found.factored == sum(size > 1 for size in sizes) / 17
    assert found.mean_components == pytest.approx(np.mean(sizes))
    touching = [any(row[i, j] for i in range(n) for j in range(n) if i != j) for row in mask]
    assert found.interactions == sum(touching) / 17


def test_graphs_do_not_depend_on_chunks(rng, monkeypatch):
    factors = make_factors(4, 2)
    data, mask = make_data(factors, 100, rng), HashedMask(factors, 0.2)
    whole = graphs(data, mask, factors)
    monkeypatch.setattr(graph_module, "CHUNK_BYTES", 7 * 24)
    parts = graphs(data, mask, factors)
    assert np.allclose(whole.edges, parts.edges)
    assert whole.components.tolist() == parts.components.tolist()


def test_context_factors_are_not_components(rng):
    labels, free = np.array([[0, 1, 1], [0, 0, 2], [0, 1, 2]]), np.array([False, True, True])
    assert component_counts(labels, free).tolist() == [1, 2, 2]


@given(seeds, st.integers(0, 40), st.integers(1, 40))
def test_rows_are_drawn_without_replacement_and_in_order(seed, total, most):
    rows = rows_of(total, most, np.random.default_rng(seed)).tolist()
    assert rows == sorted(set(rows))
    assert len(rows) == min(total, most)
    assert all(0 <= row < total for row in rows)


@given(seeds, st.integers(1, 30), st.integers(0, 30))
def test_coverage_is_the_share_of_combinations_that_occur(seed, rows, made_rows):
    rng = np.random.default_rng(seed)
    factors = make_factors(2, 1)
    real, made = make_data(factors, rows, rng), make_data(factors, made_rows, rng)
    found = coverage(real, made, factors)
    columns = [slice(0, 2), slice(2, 4)]
    codes = [cells(real.state[:, c], made.state[:, c]).tolist() for c in columns]
    codes.append(cells(real.action, made.action).tolist())
    for i in range(3):
        assert np.isnan(found.before[i, i])
        for j in set(range(3)) - {i}:
            total = len(set(codes[i])) * len(set(codes[j]))
            both = list(zip(codes[i], codes[j], strict=True))
            assert found.before[i, j] == len(set(both[:rows])) / total
            assert found.after[i, j] == len(set(both)) / total
    assert found.means[0] <= found.means[1]


@given(values, values)
def test_cells_follow_the_values(real, made):
    code = cells(real[:, None], made[:, None])
    assert sorted(set(code.tolist())) == list(range(code.max() + 1))
    assert code.max() < MOST_CELLS
    order = np.argsort(np.concatenate([real, made]), kind="stable")
    assert (np.diff(code[order]) >= 0).all()
    for value in np.unique(real):
        assert len(set(code[np.concatenate([real, made]) == value].tolist())) == 1


def test_coverage_takes_positions_where_they_are_declared(rng):
    factors = Factorization.blocks(state={"a": 4, "b": 1}, positions={"a": (2, 3)})
    data = make_data(factors, 400, rng)
    constant = data.replace(state=np.where(np.arange(5) < 2, 0.0, data.state))
    assert coverage(constant, constant[:0], factors).cells[0] > 10


@given(values, values)
def test_the_gap_is_that_of_the_distribution_functions(first, second):
    slow = max(abs(np.mean(first <= x) - np.mean(second <= x)) for x in np.concatenate([first, second]))
    assert gap(first, second) == pytest.approx(slow)
    assert gap(first, first) == 0.0


@given(values, values)
def test_bars_of_single_values_are_shares(first, second):
    found = compare("x", first, second)
    assert found.discrete
    assert found.before.tolist() == [np.mean(first == value) for value in found.bounds]
    assert found.after.tolist() == [np.mean(second == value) for value in found.bounds]
    assert (found.real.low, found.real.high, found.real.mean) == (first.min(), first.max(), first.mean())


@given(seeds, st.booleans())
def test_bars_of_ranges_hold_everything_even_outliers(seed, outlier):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=300), rng.normal(size=500)
    first[0] = 1e6 if outlier else first[0]
    found = compare("x", first, second)
    assert not found.discrete
    assert found.before.sum() == pytest.approx(1)
    assert found.after.sum() == pytest.approx(1)
    assert (found.bounds[-1] < 10) or not outlier
    inside = (first >= found.bounds[3]) & (first < found.bounds[4])
    assert found.before[3] == pytest.approx(inside.mean())


def test_every_column_is_compared_and_what_moved_most_comes_first(sprites):
    world, data, made = sprites
    found = facts_of(world.factors, data, world.mask, made).features
    assert sorted(item.label for item in found) == sorted(column_names(world.factors, {}))
    gaps = [item.gap for item in found]
    assert gaps == sorted(gaps, reverse=True)
    first = next(item for item in found if item.label == "action[1] (column 1)")
    assert first.gap == gap(data.action[:, 1], made.transitions.action[:, 1])


@given(seeds, st.integers(1, 70), st.integers(0, 60))
def test_swapped_sets_and_their_parents(seed, nodes, rows):
    rng = np.random.default_rng(seed)
    swapped = rng.random((4, nodes))[rng.integers(4, size=rows)] < 0.5
    base, donor = rng.integers(9, size=rows), rng.integers(9, size=rows)
    slow = defaultdict(list)
    for row in range(rows):
        slow[tuple(swapped[row].tolist())].append(row)
    found, different = swap_sets(Provenance(base, donor, swapped))
    assert different == len(slow)
    assert [item.rows for item in found] == sorted(map(len, slow.values()), reverse=True)
    for item in found:
        mine = slow[tuple(item.nodes.tolist())]
        assert (item.rows, item.donors, item.bases) == (len(mine), len(set(donor[mine])), len(set(base[mine])))
    count = parents(Provenance(base, donor, swapped))
    assert (count.bases, count.donors) == (len(set(base)), len(set(donor)))
    assert count.either == len(set(base) | set(donor))
    busiest = max((sum((base == row) | (donor == row)) for row in range(9)), default=0)
    assert count.heaviest == pytest.approx(busiest / max(1, rows))


@given(seeds)
def test_the_first_crossing_edge(seed):
    rng = np.random.default_rng(seed)
    mask, nodes = rng.random((5, 4, 3)) < 0.4, rng.random((5, 4)) < 0.5
    mask[:, 0, 1], nodes[:, 0], nodes[:, 1] = True, True, False
    for row, (source, target) in enumerate(first_crossing(mask, nodes).tolist()):
        crossing = [(i, j) for i in range(4) for j in range(3) if mask[row, i, j] and nodes[row, i] != nodes[row, j]]
        assert (source, target) == crossing[0]
