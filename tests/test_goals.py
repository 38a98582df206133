"""Goal environments: flat states and back, the goal as a factor, relabelling as a swap."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import check_mask_fn, check_reward_fn
from counterpoint.goals import Goals
from counterpoint.masks import Constant

INNER = Factorization.blocks(state={"hand": 2, "puck": 2}, action={"motor": 2})
GOALS = Goals.arrays(4, 2, achieved=(2, 3))


def compute_reward(achieved_goal, desired_goal, info):
    assert info == {}
    return -(np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.3).astype(np.float32)


def shown(rng, rows=20):
    observation = rng.random((rows, 4))
    return {
        "observation": observation,
        "achieved_goal": observation[:, 2:].copy(),
        "desired_goal": rng.random((rows, 2)),
    }


def rollout(rng, rows=300):
    now, then = shown(rng, rows), shown(rng, rows)
    then["desired_goal"] = now["desired_goal"]
    state, next_state = GOALS.flatten(now), GOALS.flatten(then)
    reward = compute_reward(then["achieved_goal"], then["desired_goal"], {})
    return Transitions(state, rng.random((rows, 2)), reward, next_state, np.zeros(rows, bool))


@given(st.integers(1, 4), st.integers(1, 3), st.booleans(), st.integers(0, 2**32))
def test_there_and_back(width, goal, copied, seed):
    rng = np.random.default_rng(seed)
    columns = tuple(int(c) for c in rng.integers(0, width, goal))
    goals = Goals.arrays(width, goal, achieved=columns if copied else None)
    observation = rng.random((7, width)).astype(np.float32)
    before = {
        "observation": observation,
        "achieved_goal": observation[:, columns] if copied else rng.random((7, goal)).astype(np.float32),
        "desired_goal": rng.random((7, goal)).astype(np.float32),
    }
    state = goals.flatten(before)
    assert state.shape == (7, goals.S)
    assert state.dtype == np.float32
    after = goals.unflatten(state)
    assert set(after) == set(before)
    for key, array in before.items():
        np.testing.assert_array_equal(after[key], array)


def test_nested_goals_as_in_the_kitchen(rng):
    tasks = {"microwave": Box(-1, 1, (1,)), "bottom burner": Box(-1, 1, (2,))}
    space = Dict({"observation": Box(-1, 1, (5,)), "desired_goal": Dict(tasks), "achieved_goal": Dict(tasks)})
    goals = Goals.of_space(space)
    assert (goals.O, goals.G, goals.S) == (5, 3, 11)
    batch = {"observation": rng.random((6, 5))}
    for key in ("desired_goal", "achieved_goal"):  # in another order than the space's: names count
        batch[key] = {"microwave": rng.random((6, 1)), "bottom burner": rng.random((6, 2))}
    after = goals.unflatten(goals.flatten(batch))
    for task in tasks:
        np.testing.assert_array_equal(after["desired_goal"][task], batch["desired_goal"][task])
        np.testing.assert_array_equal(after["achieved_goal"][task], batch["achieved_goal"][task])


def test_the_goal_is_the_last_state_factor():
    factors = GOALS.factors(INNER)
    assert factors.names == ("hand", "puck", "goal", "motor")
    assert factors.state["goal"] == (4, 5)
    assert factors.derived == ()
    stored = Goals.arrays(4, 2).factors(INNER, name="target")
    assert stored.state["target"] == (4, 5)
    assert stored.derived == (6, 7)


def test_the_mask_leaves_the_goal_alone(rng):
    factors = GOALS.factors(INNER)
    inner = np.array([[1, 1], [0, 1], [1, 0]], bool)  # hand, puck, motor -> hand, puck

    def mask_fn(state, action):
        assert state.shape[1] == 4
        return np.broadcast_to(inner, (len(state), 3, 2))

    mask = GOALS.mask(mask_fn, factors)
    data = rollout(rng)
    check_mask_fn(mask, data, factors)
    expected = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], bool)
    np.testing.assert_array_equal(mask(data.state, data.action)[0], expected)


@pytest.mark.parametrize("looks_at", [("noise",), ("next_state",), ("next_state", "noise")])
def test_a_mask_that_looks_at_noise_or_next_states_is_given_them(looks_at, rng):
    """With a goal around it, it sees what it would see without one: its own columns, and the noise."""
    factors = replace(GOALS.factors(INNER), noise={"hand": (0,)})
    data = rollout(rng).replace(noise=rng.random((300, 1)))
    widths = {"next_state": 4, "noise": 1}

    class Hidden:
        uses_next_state, uses_noise = "next_state" in looks_at, "noise" in looks_at
        rows_at_once = 77

        def __call__(self, state, action, *more):
            assert [state.shape[1], *(array.shape[1] for array in more)] == [4, *(widths[name] for name in looks_at)]
            near = more[-1][:, 0] < 0.5
            return np.eye(3, 2, dtype=bool) | near[:, None, None]

    mask = GOALS.mask(Hidden(), factors)
    assert mask.rows_at_once == 77
    check_mask_fn(mask, data, factors)
    made = Augmenter(factors, mask, GOALS.reward_fn(compute_reward)).fill(data, 200, rng=rng)
    last = made.transitions.noise[:, 0] if looks_at[-1] == "noise" else made.transitions.next_state[:, 0]
    tied = last < 0.5  # there all but the goal is one component
    assert (made.swapped[tied][:, [0, 1, 3]].sum(axis=1) % 3 == 0).all()
    assert tied.any()


def test_relabelling_goals_is_swapping_a_factor(rng):
    data = rollout(rng)
    factors = GOALS.factors(INNER)
    reward_fn = GOALS.reward_fn(compute_reward)
    check_reward_fn(reward_fn, data)
    terminal_fn = GOALS.terminal_fn(lambda achieved, desired, info: False)
    whole = np.ones((3, 2), bool)  # all but the goal is one component, so only goals can move
    mask = GOALS.mask(lambda state, action: np.broadcast_to(whole, (len(state), 3, 2)), factors)
    made = Augmenter(factors, mask, reward_fn, terminal_fn).fill(data, 500, rng=rng)
    goals = GOALS.desired_goal(made.transitions.state)
    np.testing.assert_array_equal(goals, GOALS.desired_goal(made.transitions.next_state))
    donors = np.where(made.swapped[:, factors.nodes("goal").argmax()], made.donor, made.base)
    np.testing.assert_array_equal(goals, GOALS.desired_goal(data.state)[donors])
    expected = compute_reward(made.transitions.next_state[:, 2:4], goals, {})
    np.testing.assert_array_equal(made.transitions.reward, expected)
    assert len(np.unique(made.transitions.reward)) == 2


def test_stored_achieved_goals_are_recomputed(rng):
    goals = Goals.arrays(4, 2)
    now, then = shown(rng, 100), shown(rng, 100)
    then["desired_goal"] = now["desired_goal"]
    zeros = np.zeros(100)
    data = Transitions(goals.flatten(now), rng.random((100, 2)), zeros, goals.flatten(then), zeros > 0)
    factors = goals.factors(INNER)
    augmenter = Augmenter(
        factors, Constant.identity(factors), goals.reward_fn(compute_reward), derive=lambda state: state[:, 2:4]
    )
    made = augmenter.fill(data, 300, rng=rng)
    np.testing.assert_array_equal(goals.achieved_goal(made.transitions.next_state), made.transitions.next_state[:, 2:4])


class TestErrors:
    def test_achieved_columns_must_exist_and_agree(self, rng):
        for achieved in ((1,), (2, 4), (-1, 0)):
            with pytest.raises(ValueError, match="achieved: expected 2 columns below 4"):
                Goals.arrays(4, 2, achieved=achieved)
        with pytest.raises(ValueError, match="are not the achieved goal. Leave `achieved` out"):
            Goals.arrays(4, 2, achieved=(0, 1)).flatten(shown(rng))

    def test_shapes_must_fit(self, rng):
        wrong = {**shown(rng), "desired_goal": np.zeros((20, 3))}
        with pytest.raises(ValueError, match=r"desired_goal: expected a batch of parts shaped {'': \(2,\)}"):
            GOALS.flatten(wrong)
        with pytest.raises(ValueError, match="observation: expected a batch"):
            GOALS.flatten({key: array[0] for key, array in shown(rng).items()})
        with pytest.raises(ValueError, match="the factors cover only 2"):
            GOALS.factors(Factorization.blocks(state={"hand": 2}))

    def test_spaces_must_be_of_goal_environments(self):
        with pytest.raises(ValueError, match="achieved_goal.* is missing"):
            Goals.of_space(Dict({"observation": Box(-1, 1, (5,)), "desired_goal": Box(-1, 1, (1,))}))
        with pytest.raises(ValueError, match="expected a Dict"):
            Goals.of_space(Box(-1, 1, (5,)))
