"""What a mask misses, from counts: few surprises in each region are many in all of them."""

import numpy as np
import pytest

from counterpoint.learn.calibration.counting import Counts, Loudness, found, how_many

REGIONS = 12


def planted(rng, rows, influenced, noise=0.01, power=0.9):
    """Rows in regions. In some an influence always acts, in some half of the time; it surprises if it does."""
    where = rng.integers(REGIONS, size=rows)
    acts = rng.random(rows) < influenced * np.repeat([1.0, 0.5, 0.0], REGIONS // 3)[where]
    odd = (acts & (rng.random(rows) < power)) | (rng.random(rows) < noise)
    values = np.concatenate([odd[:, None], rng.normal(size=(rows, 2))], axis=1).astype(float)
    return where, acts, values


def counted(where, values):
    return Counts.of(where, values, np.arange(len(where)), REGIONS)


def findings(rng, missed, moved=0.0):
    """What is found if a mask misses a share of the influences, and another source moves a share of the targets.

    That other source is in every row of such a target, glued or not; the mask has an edge wherever it acts.
    """
    where, acts, values = planted(rng, 3000, 1.0)
    glued, _, calm = planted(rng, 9000, 0.0)
    other, glued_other = (rng.random(len(rows)) < moved for rows in (where, glued))
    values[other, 0] = calm[glued_other, 0] = 1.0
    left = ~acts | (rng.random(len(acts)) < missed)  # rows without an edge between the two
    free = np.bincount(where[left], minlength=REGIONS)
    clean, clean_glued = left & ~other, ~glued_other
    finding = found(
        counted(where[clean], values[clean]),
        counted(glued[clean_glued], calm[clean_glued]),
        free.astype(float),
        counted(where, values),
        counted(glued, calm),
        np.ones((REGIONS, 3)),
    )
    return finding, acts[left], where[left]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("moved", [0.0, 0.3])
@pytest.mark.parametrize("missed", [0.0, 0.05, 0.3, 1.0])
def test_the_missed_share_is_found_and_the_error_is_honest(seed, missed, moved):
    """Also where another source surprises a third of the targets, which the mask knows."""
    finding, acts, where = findings(np.random.default_rng(seed), missed, moved)
    expected = finding.chance[where].mean()
    error = (finding.slope[where]).mean() * finding.error + finding.doubt[where].mean()
    assert expected == pytest.approx(acts.mean(), abs=max(0.01, 3 * error))
    assert expected == pytest.approx(acts.mean(), rel=0.3, abs=0.01)
    assert 0 <= finding.chance.min() <= finding.chance.max() <= 1


def test_a_mask_that_misses_nothing_is_told_from_one_that_misses_one_in_twenty():
    def expected(seed, missed):
        finding, _, where = findings(np.random.default_rng(seed), missed)
        return finding.chance[where].mean()

    none, some = ([expected(seed, missed) for seed in range(8)] for missed in (0.0, 0.05))
    assert max(none) < min(some)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("push", [1.5, 3.0, 8.0])
@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_a_push_of_all_is_told_from_a_strong_push_of_some(seed, push, share):
    rng = np.random.default_rng(seed)
    off = rng.normal(size=20_000) + push * (rng.random(20_000) < share)
    told = how_many(off.mean(keepdims=True), np.sign(off).mean(keepdims=True), np.ones(1))
    assert told[0] == pytest.approx(share, abs=0.12)


@pytest.mark.parametrize("seed", range(3))
def test_a_steady_push_within_the_noise_is_heard_only_where_the_other_half_has_it_too(seed):
    rng = np.random.default_rng(seed)
    where, glued = rng.integers(2, size=400), rng.integers(2, size=1200)
    values, calm = (
        np.concatenate([np.zeros((len(r), 1)), rng.normal(size=(len(r), 1))], axis=1) for r in (where, glued)
    )
    values[where == 1, 1] += 1.5  # of one standard deviation: hardly ever a surprise
    counts = [Counts.of(rows, all_, np.arange(len(rows)), 2) for rows, all_ in ((where, values), (glued, calm))]
    same, opposite = (Loudness.of(*counts, np.array([[0.0, 0.01], [0.0, sign]])) for sign in (1.5, -1.5))
    assert same.loud.tolist() == [False, True]
    assert same.chance[1] > 0.8
    assert opposite.loud.tolist() == [False, False]


@pytest.mark.parametrize("seed", range(3))
def test_surprises_count_only_where_the_other_half_has_them_too(seed):
    rng = np.random.default_rng(seed)
    where, glued = rng.integers(2, size=400), rng.integers(2, size=1200)
    values, calm = (np.zeros((len(rows), 2)) for rows in (where, glued))
    values[where == 1, 0] = rng.random((where == 1).sum()) < 0.3
    counts = [Counts.of(rows, all_, np.arange(len(rows)), 2) for rows, all_ in ((where, values), (glued, calm))]
    both, one = (Loudness.of(*counts, np.array([[0.0, 0.0], [before, 0.0]])) for before in (0.3, 0.0))
    assert both.loud.tolist() == [False, True]
    assert one.loud.tolist() == [False, False]


def test_where_other_sources_nearly_always_act_too_any_share_may_be_missed():
    """What a mask misses can be counted in few rows then, and few rows must not pass for many."""
    rng = np.random.default_rng(0)
    errors = []
    for alone in (1.0, 0.02):  # share of the rows in which no other source has an edge to the target
        where, acts, values = planted(rng, 3000, 1.0)
        glued, _, calm = planted(rng, 9000, 0.0)
        left = ~acts
        clean = left & (rng.random(3000) < alone)
        free = np.bincount(where[left], minlength=REGIONS).astype(float)
        counts, every, usual = counted(where[clean], values[clean]), counted(where, values), counted(glued, calm)
        errors.append(found(counts, usual, free, every, usual, np.ones((REGIONS, 3))).error)
    assert errors[1] > 5 * errors[0]
