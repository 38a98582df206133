"""Rows made chunk by chunk, and made again from their provenance, are the rows of `fill`."""

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Funnel, Provenance
from counterpoint.core import engine
from tests.examples import HashedMask, first_column, make_data, make_factors


@pytest.fixture
def chunks(monkeypatch):
    monkeypatch.setattr(engine, "CHUNK_BYTES", 0)  # 1024 proposals at a time


def columns(made):
    return [array for _, array in made.columns()]


def make(rng):
    factors = make_factors(3, 1)
    data = make_data(factors, 200, rng)
    return Augmenter(factors, HashedMask(factors, 0.2), first_column, lambda s, a, s2: s2[:, 1] > 0.5), data


def test_a_stream_is_fill_in_parts(chunks, rng):
    augmenter, data = make(rng)
    whole = augmenter.fill(data, 3000, rng=np.random.default_rng(1))
    parts = list(augmenter.stream(data, 3000, rng=np.random.default_rng(1)))
    assert len(parts) > 2
    assert sum((part.funnel for part in parts), Funnel()) == whole.funnel
    for name in ("base", "donor", "swapped"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    for mine, theirs in zip(
        zip(*(columns(part.transitions) for part in parts), strict=True), columns(whole.transitions), strict=True
    ):
        np.testing.assert_array_equal(np.concatenate(mine), theirs)


@pytest.mark.parametrize("done", [1, 2])
def test_a_stream_goes_on_where_it_ended(chunks, done, rng):
    augmenter, data = make(rng)
    parts = list(augmenter.stream(data, 3000, rng=np.random.default_rng(1)))
    after = sum((part.funnel for part in parts[:done]), Funnel())
    rest = list(augmenter.stream(data, 3000, rng=np.random.default_rng(1), after=after))
    assert [part.funnel for part in rest] == [part.funnel for part in parts[done:]]
    for mine, theirs in zip(rest, parts[done:], strict=True):
        np.testing.assert_array_equal(mine.transitions.state, theirs.transitions.state)
        np.testing.assert_array_equal(mine.base, theirs.base)


def test_rows_are_made_again_from_their_provenance(chunks, rng):
    augmenter, data = make(rng)
    made = augmenter.fill(data, 500, rng=rng)
    again = augmenter.rebuild(data, made.provenance)
    for mine, theirs in zip(columns(again), columns(made.transitions), strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_derived_columns_are_made_again_too(rng):
    factors = Factorization({"s0": (0, 1), "s1": (2, 3)}, {"a0": (0,)}, derived=(4,))
    data = make_data(factors, 40, rng)
    data.state[:, -1], data.next_state[:, -1] = data.state[:, 0] * 2, data.next_state[:, 0] * 2
    augmenter = Augmenter(factors, HashedMask(factors, 0.2), first_column, derive=lambda state: state[:, :1] * 2)
    made = augmenter.fill(data, 100, rng=rng)
    again = augmenter.rebuild(data, made.provenance)
    np.testing.assert_array_equal(again.state[:, -1], again.state[:, 0] * 2)
    np.testing.assert_array_equal(again.state, made.transitions.state)


def test_no_rows_are_no_problem(rng):
    augmenter, data = make(rng)
    none = np.zeros(0, np.int64)
    assert not len(augmenter.rebuild(data, Provenance(none, none, np.zeros((0, 4), bool))))


@pytest.mark.parametrize(
    ("base", "donor", "swapped", "message"),
    [
        ([0, 200], [0, 1], np.zeros((2, 4), bool), "base: expected rows of the data, whole numbers from 0 to 199"),
        ([0, 1], [0, -1], np.zeros((2, 4), bool), "donor: expected rows of the data"),
        ([0.0, 1.0], [0, 1], np.zeros((2, 4), bool), "base: expected rows of the data"),
        ([0, 1], [0], np.zeros((2, 4), bool), "swapped: expected bool"),
        ([0, 1], [0, 1], np.zeros((2, 3), bool), r"swapped: expected bool \(2, 4\)"),
        ([0, 1], [0, 1], np.zeros((2, 4)), "swapped: expected bool"),
    ],
)
def test_a_provenance_that_cannot_be_is_refused(base, donor, swapped, message, rng):
    augmenter, data = make(rng)
    with pytest.raises(ValueError, match=message):
        augmenter.rebuild(data, Provenance(np.array(base), np.array(donor), swapped))


def test_a_stream_says_why_it_ends_too_early(rng):
    augmenter, data = make(rng)
    with pytest.raises(ValueError, match="size: 1,000 counterfactuals were asked for"):
        list(augmenter.stream(data[:2], 1000, rng=rng))
    with pytest.raises(ValueError, match="size: expected a whole number, 1 or more"):
        next(augmenter.stream(data, 0, rng=rng))


@pytest.mark.parametrize("window", [1, 2])
def test_only_the_first_rows_are_bases_if_so_many_are_asked_for(window, rng):
    factors = make_factors(3, 1)
    data = make_data(factors, 60, rng).replace(episode=np.repeat(np.arange(6), 10))
    augmenter = Augmenter(factors, HashedMask(factors, 0.1), first_column, window=window)
    made = next(augmenter.stream(data, 100, rng=rng, bases=20))
    assert made.base.max() < 20 <= made.donor.max()
    assert (made.donor < 20).any()
    with pytest.raises(ValueError, match="bases: expected a whole number, 1 or more, got 0"):
        next(augmenter.stream(data, 100, rng=rng, bases=0))
