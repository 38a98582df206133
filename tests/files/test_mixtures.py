"""Columns that mix two factors are found; those that do not are left alone."""

import numpy as np
import pytest

from counterpoint import Factorization, Transitions
from counterpoint.files.mixtures import difference, mixtures
from counterpoint.worlds import Sprites, TwoArms, collect, uniform_policy

# hand x, velocity; puck x, velocity, velocity relative to the hand's (as FetchPush shows it)
FACTORS = Factorization.blocks(state={"hand": 2, "puck": 3}, action={"motor": 1})


def pushed(rng, rows=2000):
    """A hand and a puck that move on their own; the puck's last column is its change relative to the hand's."""
    before = rng.normal(size=(rows, 2))
    change = 0.1 * rng.normal(size=(rows, 2))

    def shown(place, step):
        hand, puck = place[:, :1], place[:, 1:]
        return np.hstack(
            [hand, rng.normal(size=(rows, 1)), puck, rng.normal(size=(rows, 1)), (step[:, 1:] - step[:, :1]) / 0.04]
        )

    state = shown(before, change)
    next_state = shown(before + change, change)
    return Transitions(state, np.zeros((rows, 1)), np.zeros(rows), next_state, np.zeros(rows, bool))


def test_a_relative_velocity_is_found(rng):
    found = mixtures(pushed(rng), FACTORS)
    assert [one.column for one in found] == [4]
    assert {found[0].plus, found[0].minus} == {0, 2}
    assert found[0].changes
    assert found[0].explained > 0.99
    assert found[0].by_own < 0.6


def test_a_relative_position_is_found_and_its_rule_too(rng):
    data = pushed(rng)
    state, next_state = data.state.copy(), data.next_state.copy()
    for rows in (state, next_state):
        rows[:, 4] = rows[:, 2] - rows[:, 0]
    data = data.replace(state=state, next_state=next_state)
    (one,) = [one for one in mixtures(data, FACTORS) if one.column == 4]
    assert not one.changes
    assert {one.plus, one.minus} == {0, 2}
    assert difference((state, next_state), 4, range(4)) == (2, 0)
    assert difference((state, next_state), 2, (0, 1)) is None
    copies = np.hstack([state, state[:, [3]]])
    assert difference((copies,), 5, range(5)) == (3, None)


@pytest.mark.parametrize("world", [Sprites(), TwoArms()])
def test_worlds_without_such_columns_are_left_alone(world, rng):
    assert mixtures(collect(world, uniform_policy(world), 2000, rng), world.factors) == []


def test_one_factor_or_very_many_columns_are_passed_over(rng):
    data = pushed(rng, 10)
    assert mixtures(data, Factorization.blocks(state={"all": 5}, action={"motor": 1})) == []
    wide = np.zeros((3, 200))
    many = Transitions(wide, wide[:, :1], wide[:, 0], wide, wide[:, 0] > 0)
    assert mixtures(many, Factorization.blocks(state={"a": 100, "b": 100}, action={"c": 1})) == []
