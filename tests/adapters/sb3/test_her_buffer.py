"""Hindsight with counterfactuals: real rows as in Stable-Baselines3, true counterfactuals, goals given when drawn."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium.spaces import Box, Dict
from stable_baselines3 import HerReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

from counterpoint import Augmenter
from counterpoint.adapters.sb3 import CodaHerReplayBuffer, FutureActual, goal_doors
from counterpoint.checks import audit
from counterpoint.goals import Goals, no_reward
from counterpoint.replay import Mixing
from tests.adapters.sb3.goal_environments import FACTORS, ID, MASK, GoalPush, filled, make, settings, step


def halves(buffer, size=400, env=None):
    """A batch as arrays, its real and its counterfactual rows apart."""
    np.random.seed(0)  # noqa: NPY002 (the real half is drawn by Stable-Baselines3, from the global state)
    batch = buffer.sample(size, env)
    count = round(buffer.counterfactual.share * size)
    named = {f"now_{key}": value for key, value in batch.observations.items()}
    named |= {f"next_{key}": value for key, value in batch.next_observations.items()}
    named |= {name: getattr(batch, name) for name in ("actions", "rewards", "dones")}
    arrays = {name: value.numpy() for name, value in named.items()}
    return tuple({n: a[which] for n, a in arrays.items()} for which in (slice(size - count), slice(size - count, None)))


def rows_of(*arrays):
    return {row.tobytes() for row in np.hstack(arrays).astype(np.float32) + 0.0}  # no negative zeros


@pytest.mark.parametrize("n_envs", [1, 4])
def test_counterfactuals_are_true_and_know_no_goals(n_envs):
    buffer = filled(2000, n_envs)
    rows = buffer.counterfactual_transitions()
    assert len(rows) > 500
    assert rows.state.shape[1] == 4
    assert audit(rows, step, atol=1e-6).confirmed == 1
    assert audit(buffer.real_transitions(), step, atol=1e-6).confirmed == 1


def test_only_finished_episodes_are_used():
    buffer = filled(119, **settings(every=1), length=20)
    assert len(buffer.real_transitions()) == 100
    unfinished = rows_of(buffer.observations["observation"][100:119, 0, :2])
    assert not unfinished & rows_of(buffer.counterfactual_transitions().state[:, :2])


@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_without_room_for_counterfactuals_batches_are_those_of_plain_hindsight(strategy):
    plain = filled(kind=HerReplayBuffer, goal_selection_strategy=strategy)
    ours = filled(goal_selection_strategy=strategy, augmenter=settings()["augmenter"], mixing=Mixing(max_fraction=0.0))
    ours.counterfactual.share = 0.0
    batches = []
    for buffer in (plain, ours):
        np.random.seed(5)  # noqa: NPY002
        batches.append(buffer.sample(64))
    for name in ("actions", "rewards", "dones"):
        assert (getattr(batches[0], name) == getattr(batches[1], name)).all()
    for key in plain.observations:
        assert (batches[0].observations[key] == batches[1].observations[key]).all()
        assert (batches[0].next_observations[key] == batches[1].next_observations[key]).all()


def test_a_batch_holds_both_halves_and_all_rewards_are_those_of_their_goals():
    buffer = filled()
    real, made = halves(buffer)
    assert len(made["rewards"]) == 300  # capped at three of four
    for half in (real, made):
        reward = GoalPush().compute_reward(half["next_achieved_goal"], half["now_desired_goal"], None)
        np.testing.assert_array_equal(half["rewards"][:, 0], reward)
        np.testing.assert_array_equal(half["now_desired_goal"], half["next_desired_goal"])
        np.testing.assert_array_equal(half["now_achieved_goal"], half["now_observation"][:, 2:])
        np.testing.assert_array_equal(half["next_achieved_goal"], half["next_observation"][:, 2:])
        assert not half["dones"].any()
        assert np.abs(half["actions"]).max() <= 1 + 1e-6
        assert {-1.0, 0.0} == set(half["rewards"].ravel().tolist())
    stored = buffer.counterfactual_transitions()
    assert rows_of(made["now_observation"], made["next_observation"]) <= rows_of(stored.state, stored.next_state)


def test_counterfactuals_get_half_desired_and_half_achieved_goals_anew_each_time():
    buffer = filled(1000)
    made = halves(buffer)[1]["now_desired_goal"]
    desired = rows_of(buffer.observations["desired_goal"][:1000, 0])
    achieved = rows_of(buffer.next_observations["achieved_goal"][:1000, 0])
    assert rows_of(made[:150]) <= desired
    assert rows_of(made[150:]) <= achieved
    assert not np.array_equal(made, halves(buffer)[1]["now_desired_goal"])


def test_futureactual_gives_two_fifths_each_and_only_future_at_the_beginning():
    none = {**settings(), "mixing": Mixing(max_fraction=0.0)}
    for until, expected in ((0, (160, 80)), (10_000, (0, 0))):
        buffer = filled(500, **none, goal_selection_strategy=FutureActual(2, 2, future_until=until))
        buffer.counterfactual.share = 0.0
        goals, own = halves(buffer)[0]["now_desired_goal"], buffer.observations["desired_goal"][:500, 0]
        desired = [row.tobytes() in rows_of(own) for row in goals]
        actual, kept = expected
        assert sum(desired) == actual + kept
    assert filled(0, goal_selection_strategy="futureactual_3_1").strategy == FutureActual(3, 1)
    with pytest.raises(ValueError, match="expected counts of goals, not all of them 0"):
        FutureActual(0, 0)


def test_hindsight_is_a_counterfactual_in_which_the_goal_alone_is_swapped():
    """The engine, told that the goal is a factor, makes exactly the rows of hindsight experience replay.

    Donors are later rows of the same episode, as they look to one who wanted what they achieved; hindsight may also
    choose a row's own step, and that is then the donor itself. Everything but the goal hangs together, so that the
    goal is all that can be swapped: goal from the donor, or all the rest from the base, which is the same.
    """
    buffer = filled(15, **settings(every=1000), length=5, n_sampled_goal=4)
    np.random.seed(0)  # noqa: NPY002
    batch = buffer.sample(20_000)
    new = slice(4000, None)  # the relabelled ones come last
    seen, after = ({k: v[new].numpy() for k, v in o.items()} for o in (batch.observations, batch.next_observations))
    hindsight = rows_of(
        seen["observation"], seen["desired_goal"], buffer.scale.real(batch.actions[new].numpy()), after["observation"],
        after["desired_goal"], batch.rewards[new].numpy(),
    )  # fmt: skip

    goals = Goals.arrays(4, 2, achieved=(2, 3))
    factors = goals.factors(FACTORS)

    def mask(state, action):
        joined = np.ones((len(state), 4, 3), bool)
        joined[:, 2, :2] = joined[:, :2, 2] = joined[:, 3, 2] = False
        return joined

    real = buffer.real_transitions()
    wanted = buffer.observations["desired_goal"][:15, 0]
    achieved = buffer.next_observations["achieved_goal"][:15, 0]
    both = [np.tile(part, (2, 1)) for part in (real.state, real.next_state)]
    goal = np.vstack([wanted, achieved])
    state, next_state = (np.hstack([part, goal]) for part in both)
    pool = real[np.tile(np.arange(15), 2)].replace(state=state, next_state=next_state)
    reward = goals.reward_fn(GoalPush().compute_reward)
    augmenter = Augmenter(factors, mask, reward, pairs=10_000, samples_per_pair=2, static_share=1.0)
    made = augmenter(pool, rng=np.random.default_rng(0))
    assert {tuple(nodes) for nodes in made.swapped.tolist()} == {(0, 0, 1, 0), (1, 1, 0, 1)}
    alone = made.swapped[:, 2]
    base, donor = np.where(alone, made.base, made.donor), np.where(alone, made.donor, made.base) - 15
    chosen = (base < 15) & (donor > base) & (base // 5 == donor // 5)

    def as_stored(rows):
        return rows_of(rows.state, rows.action, rows.next_state, rows.reward[:, None])

    itself = pool[15:].replace(reward=reward(None, None, pool.next_state[15:]))
    engine = as_stored(made.transitions[chosen])
    assert len(engine) > 10  # fewer than 3 * (4 + 3 + 2 + 1), because a puck that lies still achieves the same again
    assert engine | as_stored(itself) == hindsight


@pytest.mark.parametrize("n_envs", [1, 3])
def test_save_and_load(tmp_path, n_envs):
    buffer, other = filled(800, n_envs), filled(300, n_envs)
    buffer.save(tmp_path / "buffer.npz")
    other.load(tmp_path / "buffer.npz")
    for one, again in zip(halves(buffer), halves(other), strict=True):
        for name, array in one.items():
            np.testing.assert_array_equal(array, again[name])
    fresh = filled(0, n_envs)
    fresh.load(tmp_path / "buffer.npz")
    assert len(halves(fresh)[1]["rewards"]) == 300  # it finds out by itself what rows achieve
    with pytest.raises(ValueError, match=r"buffer.npz: .*room for"):
        filled(0, n_envs, **settings(capacity=7)).load(tmp_path / "buffer.npz")


def test_reset_forgets_both_halves():
    buffer = filled()
    buffer.reset()
    assert (buffer.size(), len(buffer.counterfactual.ring), buffer.ep_length.any()) == (0, 0, False)


def test_the_same_seed_gives_the_same_rows():
    one, again, other = (filled(**settings(seed=seed)).counterfactual_transitions() for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.state, again.state)
    assert not np.array_equal(one.state[:20], other.state[:20])


def test_normalisation_is_that_of_the_real_half():
    env = VecNormalize(DummyVecEnv([make]), norm_reward=False)
    env.reset()
    for _ in range(50):
        env.step(np.random.default_rng(0).uniform(-0.2, 0.4, (1, 2)).astype(np.float32))
    plain, normal = halves(filled()), halves(filled(), env=env)
    for raw, scaled in zip(plain, normal, strict=True):
        part = {key: raw[f"now_{key}"] for key in env.observation_space.spaces}
        for key, value in env.normalize_obs(part).items():
            np.testing.assert_allclose(scaled[f"now_{key}"], value, rtol=1e-5)
        np.testing.assert_array_equal(raw["rewards"], scaled["rewards"])


@pytest.mark.slow
def test_rewards_are_computed_in_this_process():
    env = SubprocVecEnv([remote] * 2)
    try:
        spaces = (env.observation_space, env.action_space)
        buffer = CodaHerReplayBuffer(100, *spaces, env=env, n_envs=2, **settings())
    finally:
        env.close()
    assert buffer.env.env_method("compute_reward", np.zeros((3, 2)), np.ones((3, 2)), [{}] * 3)[0].tolist() == [-1] * 3


def remote():
    import gymnasium

    return gymnasium.make(ID)


class OneByOne(GoalPush):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -float(np.linalg.norm(achieved_goal - desired_goal) > 0.5)


class Hidden(GoalPush):
    """The goal is nowhere in the observation."""

    def shown(self):
        return {**super().shown(), "achieved_goal": self.state[2:] + self.state[:2]}


class Rewardless(GoalPush):
    compute_reward = property()


def made_for(env_class, rows=0, **given):
    from tests.adapters.sb3.goal_environments import play

    env = DummyVecEnv([lambda: __import__("gymnasium").wrappers.TimeLimit(env_class(), 10)])
    buffer = CodaHerReplayBuffer(500, env.observation_space, env.action_space, env=env, **{**settings(), **given})
    return play(buffer, env, rows)


def test_environments_without_rewards_for_batches_are_refused():
    with pytest.raises(ValueError, match=r"compute_reward: expected rewards \(2,\) of two goals, got shape \(\)"):
        made_for(OneByOne)
    with pytest.raises(TypeError, match="no compute_reward.*use CodaReplayBuffer"):
        made_for(Rewardless)


def test_a_goal_that_is_no_part_of_the_state_needs_a_function():
    with pytest.raises(ValueError, match="column 0 of the achieved goal is not a column of the observation.*achieved="):
        made_for(Hidden, 100)
    buffer = made_for(Hidden, 100, achieved=lambda observation: observation[:, :2] + observation[:, 2:])
    made = halves(buffer, 100)[1]
    np.testing.assert_allclose(made["now_achieved_goal"], made["now_observation"].reshape(-1, 2, 2).sum(axis=1))
    with pytest.raises(ValueError, match="does not give the achieved goals that the environment shows"):
        made_for(Hidden, 100, achieved=(2, 3))


class AlikeAtFirst(GoalPush):
    """In the first eight episodes the hand holds the puck, and the columns of both are the same."""

    episodes = 0

    def reset(self, **given):
        super().reset(**given)
        self.episodes += 1
        if self.episodes <= 8:
            self.state[2:] = self.state[:2]
        return self.shown(), {}


def test_columns_that_look_alike_at_first_are_told_apart_later():
    buffer = made_for(AlikeAtFirst, 200)
    made = halves(buffer, 200)[1]
    np.testing.assert_array_equal(made["now_achieved_goal"], made["now_observation"][:, 2:])
    seen = np.random.default_rng(0).normal(size=(50, 4))
    seen[:, 2] = seen[:, 0]  # what follows on one another is likelier to be a goal
    assert goal_doors.achieved_columns(seen, seen[:, [1, 2]]).which == (1, 2)


def test_images_and_other_keys_are_refused():
    parts = dict(GoalPush.observation_space.spaces)
    action = GoalPush.action_space
    with pytest.raises(TypeError, match="what camera of a counterfactual would look like.*FilterObservation"):
        CodaHerReplayBuffer(9, Dict({**parts, "camera": Box(0, 255, (8, 8, 3), np.uint8)}), action, **settings())
    with pytest.raises(TypeError, match="expected observation to be a flat Box.*Images have no columns"):
        CodaHerReplayBuffer(9, Dict({**parts, "observation": Box(0, 255, (8, 8, 3), np.uint8)}), action, **settings())
    with pytest.raises(TypeError, match="expected a Dict of observation, achieved_goal, desired_goal"):
        CodaHerReplayBuffer(9, Box(0, 1, (4,)), action, **settings())


def test_what_was_made_for_the_flattened_state_is_refused():
    goals = Goals.arrays(4, 2, achieved=(2, 3))
    flat = goals.factors(FACTORS)
    with pytest.raises(ValueError, match="6 state columns, those of a flattened state with its goal.*the 4 columns"):
        filled(0, augmenter=Augmenter(flat, goals.mask(MASK, flat), no_reward))
    with pytest.raises(ValueError, match="mask_fn: .*4 columns of the observation, without the goal"):
        filled(100, augmenter=Augmenter(FACTORS, goals.mask(MASK, flat), no_reward))
    with pytest.raises(ValueError, match="copy_info_dict: a counterfactual has no info"):
        filled(0, copy_info_dict=True)
