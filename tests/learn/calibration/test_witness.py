"""The witness: what moves a factor always, what it does by itself, and where others matter."""

import numpy as np
import pytest

from counterpoint import Factorization, Transitions
from counterpoint.learn.calibration.own_course import SURPRISING, OwnCourses
from counterpoint.learn.calibration.witness import Witness
from counterpoint.worlds import Zoo, collect


def transitions(state, action, after, **others):
    zeros = np.zeros(len(state))
    return Transitions(state, action, zeros, after, zeros > 0, **others)


def test_what_moves_a_factor_always_is_found_and_what_a_policy_looks_at_is_not(rng):
    """A motor moves its arm; a policy looks at the ball, so that the ball tells the action."""
    factors = Factorization.blocks(state={"arm": 1, "ball": 1}, action={"motor": 1})
    state = rng.random((3000, 2))
    action = np.clip(state[:, [1]] + rng.normal(0, 0.3, (3000, 1)), -1, 1)
    after = np.hstack([state[:, [0]] + 0.1 * action, 0.9 * state[:, [1]]])
    alone = OwnCourses.fit(transitions(state, action, after), factors, rng)
    assert [course.parents for course in alone.courses] == [(2,), ()]
    assert np.array_equal(np.argwhere(alone.always), [[2, 0]])


def played(rng, rows=4000):
    """A hand moves with the square of what it is told, and a policy that knows this mostly has it go to the block."""
    state = rng.uniform(-1, 1, (rows, 4))
    way = state[:, 2:] - state[:, :2]
    action = np.where(rng.random((rows, 1)) < 0.9, np.sign(way) * np.sqrt(np.abs(way)), rng.uniform(-1, 1, (rows, 2)))
    action = action + rng.normal(0, 0.1, (rows, 2))
    after = state.copy()
    after[:, :2] += 0.1 * action * np.abs(action) + 0.006 * rng.normal(size=(rows, 2))
    return state, action, after


HELD = Factorization.blocks(
    state={"hand": 2, "block": 2}, action={"move": 2}, positions={"hand": (0, 1), "block": (2, 3)}
)


def test_a_habit_of_going_for_a_block_makes_it_no_parent(rng):
    """Where the straight law of moves is off, the block tells what they come to; who knows the moves needs no block."""
    alone = OwnCourses.fit(transitions(*played(rng)), HELD, rng)
    assert alone.courses[0].parents == (2,)


def test_a_block_that_pulls_all_the_time_is_a_parent_in_spite_of_the_habit(rng):
    state, action, after = played(rng)
    after[:, :2] += 0.1 * (state[:, 2:] - state[:, :2])
    after[:, 2:] += 0.02 * rng.normal(size=(len(state), 2))
    alone = OwnCourses.fit(transitions(state, action, after), HELD, rng)
    assert 1 in alone.courses[0].parents


def test_a_hidden_velocity_is_told_by_the_last_change(rng):
    factors = Factorization.blocks(state={"body": 1})
    speed = np.repeat(rng.normal(0, 1, 150), 20)
    state = speed * np.tile(np.arange(20), 150)
    data = transitions(
        state[:, None], np.zeros((3000, 0)), (state + speed)[:, None], episode=np.repeat(np.arange(150), 20)
    )
    alone = OwnCourses.fit(data, factors, rng)
    assert alone.courses[0].lagged
    known = alone.judged(data)[:, 0]
    assert known.mean() == pytest.approx(0.95)
    assert np.abs(alone.residuals(data)[0][known]).max() < SURPRISING


def test_a_push_that_lasts_is_not_a_hidden_velocity(rng):
    """It makes the last change tell something of the next, but much less than a velocity does."""
    factors = Factorization.blocks(state={"body": 2})
    push = rng.normal(0, 1, (150, 20))
    for step in range(1, 20):
        push[:, step] += 0.6 * push[:, step - 1]
    speed = np.repeat(rng.normal(0, 1, 150), 20)
    change = speed + push.ravel()
    place = np.cumsum(change.reshape(150, 20), axis=1).ravel() - change
    state = np.stack([place, speed], axis=1)
    after = np.stack([place + change, speed], axis=1)
    data = transitions(state, np.zeros((3000, 0)), after, episode=np.repeat(np.arange(150), 20))
    assert not OwnCourses.fit(data, factors, rng).courses[0].lagged


def test_of_two_bodies_of_a_type_only_the_one_that_is_pulled_is_influenced(rng):
    """A rope is tied to one of them; both come as near to whoever holds it."""
    names = {"hand": 2, "puck0": 2, "puck1": 2}
    places = {name: (2 * k, 2 * k + 1) for k, name in enumerate(names)}
    types = {"puck0": "puck", "puck1": "puck"}
    factors = Factorization(places, {}, positions=places, types=types)
    state = rng.random((8000, 6))
    near = [np.linalg.norm(state[:, :2] - state[:, [k, k + 1]], axis=1) < 0.25 for k in (2, 4)]
    after = state + rng.normal(0, 0.01, state.shape)
    after[:, 2:4] += 0.1 * near[0][:, None]
    data = transitions(state, np.zeros((8000, 0)), after)
    witness = Witness.fit(data[:4000], data[4000:], factors, rng)
    tied, other = (witness.loud[near[k][4000:], 0, 1 + k].mean() for k in (0, 1))
    assert tied > 0.8
    assert other < 0.05


def test_without_its_residual_a_factor_does_what_it_would_do_anyway(rng):
    factors = Factorization.blocks(state={"body": 2})
    state = rng.random((2000, 2))
    after = 0.5 * state
    struck = np.arange(2000) % 50 == 0
    after[struck] += 3.0
    data = transitions(state, np.zeros((2000, 0)), after)
    alone = OwnCourses.fit(data, factors, rng)
    calm = alone.hidden(data, struck[:, None]).next_state
    assert np.abs(calm - 0.5 * state).max() < 0.02
    assert np.array_equal(alone.hidden(data, np.zeros((2000, 1), bool)).next_state, after)


def test_a_wall_is_a_law_of_its_own(rng):
    """A body that comes back from a wall did so by itself, although it is no straight law."""
    factors = Factorization.blocks(state={"body": 2})
    place, speed = rng.random(4000), rng.uniform(-0.1, 0.1, 4000)
    ahead = place + speed
    walled = (ahead < 0) | (ahead > 1)
    after = np.stack([np.clip(ahead, 0, 1), np.where(walled, -speed, speed)], axis=1)
    data = transitions(np.stack([place, speed], axis=1), np.zeros((4000, 0)), after)
    alone = OwnCourses.fit(data, factors, rng)
    surprised = (np.abs(alone.residuals(data)[0]) > SURPRISING).any(axis=1)
    assert surprised[walled].mean() < 0.3
    assert surprised[~walled].mean() < 0.01


def heard(kind, seed, rows=8000):
    world = Zoo(seed, kinds=(kind,))
    data = collect(world, world.policy, rows, np.random.default_rng(seed), environments=256)
    half = data.episode <= np.median(data.episode)
    witness = Witness.fit(data[half], data[~half], world.factors, np.random.default_rng(0))
    return world, witness, world.mask(witness.judged.state, witness.judged.action)


@pytest.mark.parametrize("kind", ["drag", "weak", "carrier"])
def test_influences_are_found_without_labels(kind):
    _, witness, truth = heard(kind, 50)
    chances = witness.own([each.chance for each in witness.findings(np.zeros_like(truth))])
    comes = (truth.mean(axis=0) > 0.001) & (truth.mean(axis=0) < 0.999)
    here, elsewhere = (chances[:, comes][truth[:, comes] == edge].mean() for edge in (True, False))
    assert here > 0.3
    assert here > 8 * elsewhere


def test_where_a_mask_has_all_edges_little_influence_is_left():
    _, witness, truth = heard("drag", 50)
    missed = witness.own([each.chance for each in witness.findings(np.zeros_like(truth))])
    left = witness.own([each.chance for each in witness.findings(truth)])
    assert left.mean() < 0.3 * missed.mean()


def test_a_push_lasts_one_row_longer_where_the_velocity_is_hidden(rng):
    """It shows in the next change; a factor that shows its velocity, and the next episode, have no part in that."""
    factors = Factorization.blocks(state={"hidden": 1, "shown": 2})
    speed = np.repeat(rng.normal(0, 1, (2, 150)), 20, axis=1)
    place = speed * np.tile(np.arange(20), 150)
    state = np.stack([place[0], place[1], speed[1]], axis=1)
    after = state + np.stack([speed[0], speed[1], np.zeros(3000)], axis=1)
    data = transitions(state, np.zeros((3000, 0)), after, episode=np.repeat(np.arange(150), 20))
    witness = Witness.fit(data[:1500], data[1500:], factors, rng)
    edges = np.zeros((1500, 2, 2), bool)
    edges[[5, 19], 1, 0] = edges[5, 0, 1] = True
    assert np.array_equal(np.argwhere(witness.moved(edges)), [[5, 0, 1], [5, 1, 0], [6, 1, 0], [19, 1, 0]])
