"""What all others together tell: influences that no pair shows, and that a mask misses."""

import numpy as np
import pytest

from counterpoint import Factorization, Transitions
from counterpoint.learn.calibration.boosting import Boosted
from counterpoint.learn.calibration.judging import Asked, Trial
from counterpoint.learn.calibration.surroundings import Surroundings
from counterpoint.learn.calibration.telling import Slope
from counterpoint.learn.calibration.witness import Witness
from counterpoint.masks import Constant, Supported

# A gauge is nowhere. It shows a little more while the body is before the mast, about as much as its noise.
FACTORS = Factorization.blocks(state={"mast": 1, "body": 1, "gauge": 1}, positions={"mast": (0,), "body": (1,)})
MAST, BODY, GAUGE = range(3)
NOISE = 0.05


def before(state):
    gap = state[:, 1] - state[:, 0]
    return (gap > 0) & (gap < 0.4)


def record(rng, rows=8000, *, gain=2.5 * NOISE, shown=before):
    state = np.concatenate([rng.random((rows, 2)), rng.normal(0, NOISE, (rows, 1))], axis=1)
    drift = np.stack([0.9 * state[:, 0], 0.9 * state[:, 1], 0.2 * state[:, 2] + gain * shown(state)], axis=1)
    after = drift + rng.normal(0, [0.01, 0.01, NOISE], (rows, 3))
    return Transitions(state, np.zeros((rows, 0)), np.zeros(rows), after, np.zeros(rows, bool))


def exact(state, action):
    mask = np.broadcast_to(np.eye(3, dtype=bool), (len(state), 3, 3)).copy()
    mask[:, [MAST, BODY], GAUGE] |= before(state)[:, None]
    return mask


def heard(data, mask, rng):
    witness = Witness.fit(data[:4000], data[4000:], FACTORS, rng)
    asked = Asked(mask, FACTORS)
    answer = asked(witness.judged)
    trial = Trial(asked, witness, Supported(Constant.identity(FACTORS), data, FACTORS), answer, answer, 0, 3000)
    swaps = trial.swaps(0.0)
    truth = [before(rows) for rows in (swaps.proposal.state, witness.judged.state[swaps.origin[:, GAUGE]])]
    return trial.hear(swaps, 0.0), float((truth[0] != truth[1]).mean())


def test_what_two_sources_tell_together_is_missed_by_a_mask_without_them(rng):
    found, truth = heard(record(rng), Constant.identity(FACTORS), rng)
    assert truth > 0.25
    assert abs(found.told.mean() - truth) < 0.12


def test_a_mask_that_knows_all_leaves_nothing_to_tell(rng):
    found, truth = heard(record(rng), exact, rng)
    assert truth == 0
    assert found.told.mean() < 0.01
    assert found.faint < 0.03


def test_where_nobody_acts_others_tell_nothing(rng):
    found, _ = heard(record(rng, gain=0.0), Constant.identity(FACTORS), rng)
    assert found.told.mean() == 0


def test_what_a_targets_own_state_tells_is_no_influence(rng):
    """It jumps for reasons of its own, and its own state is known."""
    found, _ = heard(record(rng, shown=lambda state: state[:, 2] > 0), Constant.identity(FACTORS), rng)
    assert found.told.mean() < 0.01


def test_trees_tell_steps_and_their_sums(rng):
    features = rng.random((4000, 3))
    wanted = np.stack([features[:, 0] > 0.5, (features[:, 1] > 0.3) * (features[:, 2] > 0.6)], axis=1) * 1.0
    told = Boosted.fit(features[:2000], wanted[:2000])(features[2000:])
    assert np.abs(told - wanted[2000:]).mean() < 0.05
    assert np.abs(Boosted.fit(np.zeros((500, 0)), np.ones((500, 2)))(np.zeros((3, 0))) - 1.0).max() == 0


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_slope_is_the_share_of_what_is_told_that_is_true(rng, share):
    told = rng.choice([0.0, 1.0], (4000, 1), p=[0.9, 0.1])
    seen = told * (rng.random((4000, 1)) < share) + rng.normal(0, 0.2, (4000, 1))
    slope = Slope.of(seen, told, np.arange(4000) // 10, np.ones(1, bool))
    assert abs(float(slope.surely[0]) - share) < 0.1
    assert (slope.faintly > 0) <= (share == 0)
    nothing = Slope.of(seen, told, np.arange(4000) // 10, np.zeros(1, bool))
    assert nothing.surely[0] == nothing.faintly == 0


def test_a_target_that_is_nowhere_sees_how_the_others_lie(rng):
    data = record(rng, 4000)
    around = Surroundings(Witness.fit(data[:2000], data[2000:], FACTORS, rng).alone)
    rows = around.placed(data.state, data.action)
    columns = around.of(GAUGE, rows, np.zeros((len(data), 0)))
    gap = data.state[:, 1] - data.state[:, 0]
    assert any(np.allclose(np.abs(column), np.abs(gap)) for column in columns.T)
    in_parts = np.concatenate(list(around.in_parts(GAUGE, data, np.zeros((len(data), 0)))))
    np.testing.assert_array_equal(in_parts, columns)
    own = around.of(BODY, rows, np.zeros((len(data), 0)))
    assert not any(np.array_equal(column, data.state[:, 1]) for column in own.T)  # what it is itself comes from its law
