"""A learned reward: few values are chosen from, others are numbers; it can be stored, and a description can name it."""

import numpy as np
import pytest

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.description import DescriptionError, read_description
from counterpoint.learn import RewardModel, SandyMixture
from counterpoint.masks import Constant

FACTORS = Factorization.blocks(state={"hand": 2, "cup": 2}, action={"motor": 1})


def recorded(rng, reward, rows=3000, terminal=lambda state, action, after: after[:, 0] > 1.2):
    state, action = rng.standard_normal((rows, 4)).astype(np.float32), rng.standard_normal((rows, 1)).astype(np.float32)
    after = state + 0.1 * rng.standard_normal((rows, 4)).astype(np.float32)
    return Transitions(state, action, reward(state, action, after), after, terminal(state, action, after))


def scored(state, action, after):  # as in Pong: -1, 0 or 1
    return np.sign(np.trunc(after[:, 0] + after[:, 2]))


def smooth(state, action, after):
    return 3.0 * after[:, 1] - action[:, 0] + 100.0


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    return RewardModel().fit(recorded(rng, scored), FACTORS, rng=rng, progress=False)


def test_few_values_are_predicted_as_values(fitted):
    data = recorded(np.random.default_rng(1), scored)
    predicted = fitted(data.state, data.action, data.next_state)
    assert set(np.unique(predicted)) <= {-1.0, 0.0, 1.0}
    assert (predicted == data.reward).mean() > 0.95


def test_other_rewards_are_predicted_as_numbers_in_their_own_units():
    rng = np.random.default_rng(0)
    model = RewardModel().fit(recorded(rng, smooth), FACTORS, rng=rng, progress=False)
    data = recorded(np.random.default_rng(1), smooth)
    off = model(data.state, data.action, data.next_state) - data.reward
    assert np.abs(off).mean() < 0.1 * data.reward.std()


def test_the_end_of_an_episode_is_predicted_as_a_flag():
    rng = np.random.default_rng(0)
    model = RewardModel(predicts="terminated").fit(recorded(rng, scored), FACTORS, rng=rng, progress=False)
    data = recorded(np.random.default_rng(1), scored)
    predicted = model(data.state, data.action, data.next_state)
    assert predicted.dtype == np.bool_
    assert (predicted == data.terminated).mean() > 0.95


def test_chunks_do_not_matter(fitted, monkeypatch):
    data = recorded(np.random.default_rng(1), scored, rows=100)
    whole = fitted(data.state, data.action, data.next_state)
    monkeypatch.setattr("counterpoint.learn.estimators.reward_model._BATCH", 7)
    np.testing.assert_array_equal(fitted(data.state, data.action, data.next_state), whole)


def test_what_was_saved_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "reward.safetensors")
    data = recorded(np.random.default_rng(1), scored, rows=200)
    again = RewardModel.load(tmp_path / "reward.safetensors", factors=FACTORS)
    inputs = data.state, data.action, data.next_state
    np.testing.assert_array_equal(again(*inputs), fitted(*inputs))


def test_an_augmenter_takes_it(fitted):
    data = recorded(np.random.default_rng(1), scored, terminal=lambda s, a, after: np.zeros(len(s), bool))
    made = Augmenter(FACTORS, Constant.identity(FACTORS), fitted).fill(data, 2000, rng=np.random.default_rng(2))
    rows = made.transitions
    assert (rows.reward == scored(rows.state, rows.action, rows.next_state)).mean() > 0.9


def test_a_description_names_its_file(fitted, tmp_path):
    fitted.save(tmp_path / "reward.safetensors")
    text = '[state]\nhand = "0:2"\ncup = "2:4"\n[action]\nmotor = [0]\n'
    text += '[mask]\nkind = "proximity"\nradius = 0.1\nattached = ["hand"]\n'
    text += '[positions]\nhand = "0:2"\ncup = "2:4"\n[reward]\nkind = "learned"\n'
    (tmp_path / "robot.toml").write_text(text + 'file = "reward.safetensors"\n')
    reward = read_description(tmp_path / "robot.toml").augmenter().reward_fn
    data = recorded(np.random.default_rng(1), scored, rows=200)
    inputs = data.state, data.action, data.next_state
    np.testing.assert_array_equal(reward(*inputs), fitted(*inputs))
    (tmp_path / "other.toml").write_text(text)
    with pytest.raises(DescriptionError, match="needs 'file'"):
        read_description(tmp_path / "other.toml").augmenter()
    (tmp_path / "other.toml").write_text(
        text + 'file = "reward.safetensors"\n[terminal]\nkind = "learned"\nfile = "reward.safetensors"\n'
    )
    with pytest.raises(DescriptionError, match="line 18: reward.safetensors predicts 'reward', expected 'terminated'"):
        read_description(tmp_path / "other.toml").augmenter()


def test_bad_input_is_named(fitted, tmp_path):
    rng = np.random.default_rng(0)
    data = recorded(rng, scored)
    with pytest.raises(ValueError, match="predicts: expected 'reward' or 'terminated'"):
        RewardModel(predicts="return")
    with pytest.raises(ValueError, match="reward: some values are NaN"):
        RewardModel().fit(data.replace(reward=np.full(len(data), np.nan)), FACTORS, rng=rng, progress=False)
    with pytest.raises(ValueError, match="learned nothing yet"):
        RewardModel()(data.state, data.action, data.next_state)
    fitted.save(tmp_path / "reward.safetensors")
    with pytest.raises(ValueError, match="expected a SandyMixture, it holds a RewardModel"):
        SandyMixture.load(tmp_path / "reward.safetensors")
