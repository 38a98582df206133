"""How pairs lie to each other, now and after the step."""

import numpy as np
import pytest

from counterpoint import Factorization, Transitions
from counterpoint.learn.calibration.own_course import OwnCourses
from counterpoint.learn.forests.outlook import Outlook
from counterpoint.masks.pairs import beside

FACTORS = Factorization.blocks(
    state={"cup": 4, "ball": 4, "lamp": 1}, action={"push": 2}, positions={"cup": (0, 1), "ball": (4, 5)}
)


@pytest.fixture
def data(rng):
    """The cup and the ball fly straight on; the push moves the cup."""
    state, action = rng.normal(size=(500, 9)), rng.normal(size=(500, 2))
    after = state.copy()
    after[:, :2] += 0.1 * state[:, 2:4] + action
    after[:, 4:6] += 0.1 * state[:, 6:8]
    return Transitions(state, action, np.zeros(500), after, np.zeros(500, bool))


@pytest.fixture
def outlook(data, rng):
    return Outlook.of(OwnCourses.fit(data, FACTORS, rng))


def test_laws_say_where_everything_will_be(data, outlook):
    placed = outlook.placed(beside(data.state, data.action))
    for node, columns in ((0, slice(0, 2)), (1, slice(4, 6))):
        np.testing.assert_array_equal(placed.now[node], data.state[:, columns])
        np.testing.assert_allclose(placed.ahead[node], data.next_state[:, columns], atol=1e-6)
    assert set(placed.now) == {0, 1}


def test_the_nearest_is_no_further_than_begin_and_end(data, outlook):
    placed = outlook.placed(beside(data.state, data.action))
    features = outlook.pair(0, 1, placed, placed)
    nearest, then = features[:, 2], features[:, 3]
    begin = np.linalg.norm(data.state[:, :2] - data.state[:, 4:6], axis=1)
    assert (nearest <= np.minimum(begin, np.linalg.norm(features[:, :2], axis=1)) + 1e-9).all()
    np.testing.assert_allclose(then, np.linalg.norm(features[:, :2], axis=1))
    assert (nearest < begin - 0.1).any()


def test_moving_everything_changes_no_pair_with_positions(data, outlook):
    moved = beside(data.state, data.action)
    moved[:, [0, 1, 4, 5]] += 3.0
    here, there = (outlook.placed(rows) for rows in (beside(data.state, data.action), moved))
    np.testing.assert_allclose(outlook.pair(0, 1, here, here), outlook.pair(0, 1, there, there), atol=1e-6)


def test_kinds_without_a_pair_are_left_out(outlook):
    asked = np.zeros((4, 3), bool)
    asked[0, 1] = asked[3, 2] = True
    assert outlook.kinds(asked) == [((0, 1),), ((3, 2),)]
    assert outlook.kinds(asked & False) == []


def test_rows_may_be_none_or_some(data, outlook):
    placed = outlook.placed(beside(data.state, data.action))
    every = outlook.pair(2, 0, placed, placed)
    np.testing.assert_array_equal(outlook.pair(2, 0, placed[np.array([3, 1])], placed[np.array([3, 1])]), every[[3, 1]])
    assert outlook.pair(2, 0, placed[np.array([], int)], placed[np.array([], int)]).shape == (0, every.shape[1])


BALLS = Factorization.blocks(
    state={"one": 1, "two": 1, "three": 1},
    action={"click": 1},
    positions={"one": (0,), "two": (1,), "three": (2,), "click": (0,)},
    types=dict.fromkeys(("one", "two", "three"), "ball"),
)


def test_how_much_nearer_a_rival_is_comes_last():
    outlook = Outlook(BALLS, np.zeros((5, 4)))
    placed = outlook.placed(np.array([[0.0, 0.3, 1.0, 0.1]]))
    behind = {node: outlook.pair(3, node, placed, placed)[0, -2:] for node in range(3)}  # now, and after the step
    for node, expected in ((0, 0.0), (1, 0.1), (2, 0.8)):
        np.testing.assert_allclose(behind[node], expected, atol=1e-12)
    between = outlook.pair(2, 0, placed, placed)[0, -4:]  # three is nearer to two, and two is nearer to one
    np.testing.assert_allclose(between, [0.3, 0.7, 0.3, 0.7], atol=1e-12)


def test_rivals_are_those_of_the_row_of_the_target():
    outlook = Outlook(BALLS, np.zeros((5, 4)))
    here, away = (outlook.placed(np.array([row])) for row in ([0.0, 0.3, 1.0, 0.1], [0.0, 0.3, 1.0, 0.9]))
    np.testing.assert_allclose(outlook.pair(3, 0, away, here)[0, -2:], 0.8)
    np.testing.assert_allclose(outlook.pair(3, 2, away, here)[0, -2:], 0.0)
