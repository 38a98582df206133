"""Corners of the core that only others' masks, rewards and files reach."""

import numpy as np
import pytest

from counterpoint import Augmenter, Transitions
from counterpoint.core.coda import propose
from counterpoint.core.windows import Windows
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors

FACTORS = make_factors(2, 1)


class Doubtful:
    """A mask that also asks for evidence, and finds none where both factors are beyond their usual place."""

    def __init__(self, data):
        self.mask, self.usual = Constant.identity(FACTORS), np.median(data.state, axis=0)

    def unknown(self, state, action):
        tied = ~np.eye(FACTORS.n + FACTORS.m, FACTORS.n, dtype=bool)
        both = (state[:, 0] > self.usual[0]) & (state[:, 2] > self.usual[2])
        return both[:, None, None] & tied

    def __call__(self, state, action):
        return self.mask(state, action) | self.unknown(state, action)


def test_proposals_that_only_lack_evidence_are_counted_among_the_rejected(rng):
    data = make_data(FACTORS, 60, rng)
    made = Augmenter(FACTORS, Doubtful(data), first_column, pairs=200)(data, rng=rng)
    assert made.funnel.accepted > 0
    assert made.funnel.no_evidence == made.funnel.rejected > 0  # the mask by itself would accept all


def test_pairs_need_as_many_donors_as_bases(rng):
    data = make_data(FACTORS, 5, rng)
    mask = np.ones((3, FACTORS.n + FACTORS.m, FACTORS.n), bool)
    with pytest.raises(ValueError, match="donor: expected as many rows as base, 3, got 2"):
        propose(data[:3], data[3:], mask, FACTORS, rng=rng)


def test_a_reward_that_overflows_where_it_is_stored_is_refused(rng):
    data = make_data(FACTORS, 40, rng)
    data = data.replace(reward=data.reward.astype(np.float32))
    augmenter = Augmenter(FACTORS, Constant.identity(FACTORS), lambda s, a, s2: np.full(len(s), 1e300))
    with pytest.raises(ValueError, match=r"reward_fn: 1e\+300 in row 0 of the batch does not fit into float32"):
        augmenter.fill(data, 10, rng=rng)


def test_origins_are_kept_and_checked(rng):
    data = make_data(FACTORS, 3, rng)
    columns = dict(data.columns())
    assert Transitions(**columns, origin=np.array([0, 1, 2])).origin.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="origin: expected 0 for real"):
        Transitions(**columns, origin=np.array([0, 1, 3]))


def test_windows_without_steps_follow_the_order_of_the_rows(rng):
    data = make_data(FACTORS, 6, rng).replace(episode=np.array([1, 0, 1, 0, 1, 0]), step=None)
    with_steps = data.replace(step=np.array([0, 0, 1, 1, 2, 2]))
    plain, stepped = (Windows.of(each, 2) for each in (data, with_steps))
    for name in ("order", "starts"):
        assert np.array_equal(getattr(plain, name), getattr(stepped, name))
