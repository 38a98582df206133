"""A forward model with doubts: what it predicts, how it spreads, what it does not know, and what it imagines."""

import numpy as np
import pytest
import torch

from counterpoint import Factorization, Transitions
from counterpoint.learn import DynamicsEnsemble, RewardModel

FACTORS = Factorization.blocks(state={"cart": 2, "lamp": 1}, action={"motor": 1})
NOISE = 0.05
SMALL = {"members": 3, "layers": 2, "width": 32, "epochs": 12, "batch_size": 50, "learning_rate": 3e-3}


def moved(state, action):
    """A cart that its motor pushes, and a lamp that fades."""
    x, v, lamp = state.T
    return np.stack([x + v, v + 0.5 * action[:, 0], 0.5 * lamp], axis=1)


def recorded(seed=0, rows=3000, reach=1.0):
    rng = np.random.default_rng(seed)
    state, action = rng.uniform(-reach, reach, (rows, 3)), rng.uniform(-1, 1, (rows, 1))
    after = moved(state, action) + NOISE * rng.standard_normal((rows, 3)) * (1, 1, 0)
    columns = (state, action, np.zeros(rows), after)
    return Transitions(*(column.astype(np.float32) for column in columns), np.zeros(rows, bool))


@pytest.fixture(scope="module", params=["change", "next"])
def fitted(request):
    settings = DynamicsEnsemble(target=request.param, **SMALL)
    return settings.fit(recorded(), FACTORS, rng=np.random.default_rng(0), progress=False)


def test_it_expects_what_happens(fitted):
    data = recorded(seed=1)
    error = np.abs(fitted.predict(data.state, data.action) - moved(data.state, data.action)).mean(axis=0)
    unchanged = np.abs(data.state - moved(data.state, data.action)).mean(axis=0)
    assert (error < 0.15 * unchanged).all()
    assert fitted.predict(data.state, data.action).dtype == np.float32


def test_its_samples_spread_as_the_world_does(fitted):
    data = recorded(seed=1)
    drawn = fitted.sample(data.state, data.action, rng=np.random.default_rng(2))
    off = (drawn - moved(data.state, data.action)).std(axis=0)
    assert off[:2] == pytest.approx([NOISE, NOISE], rel=0.6)
    assert off[2] < 0.6 * NOISE  # the lamp has no noise
    again = fitted.sample(data.state, data.action, rng=np.random.default_rng(2))
    assert np.array_equal(drawn, again)
    assert not np.array_equal(drawn, fitted.sample(data.state, data.action, rng=np.random.default_rng(3)))


def test_its_members_disagree_where_there_was_no_data(fitted):
    known, unknown = recorded(seed=1), recorded(seed=1, reach=6.0)
    far = np.abs(unknown.state).max(axis=1) > 3.0
    inside = fitted.disagreement(known.state, known.action)
    outside = fitted.disagreement(unknown.state, unknown.action)[far]
    assert np.median(outside) > 3.0 * np.median(inside)
    assert (inside > 0).all()


def test_the_batched_program_is_its_members_one_by_one(fitted):
    data = recorded(seed=1, rows=50)
    network, batch = fitted.fitted.network, fitted.fitted.scaling.batch(data.state, data.action)
    with torch.no_grad():
        means, _ = network(batch)
        for member in range(fitted.members):
            x = torch.cat([batch.state, batch.action], dim=1)
            for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
                x = (torch.relu(x) if layer else x) @ weight[member] + bias[member]
            assert torch.allclose(means[member], x[:, :3], atol=1e-5)
    assert not torch.allclose(means[0], means[1], atol=1e-3)


def test_rollouts_go_on_from_states_of_the_data(fitted):
    data, rng = recorded(seed=1, rows=200), np.random.default_rng(0)
    made = fitted.rollouts(data, 103, rng=rng, reward_fn=lambda s, a, after: after[:, 0], steps=4)
    starts = 26  # 103 rows of rollouts of 4 steps
    assert len(made) == 103
    known = {row.tobytes() for row in data.state}
    assert all(row.tobytes() in known for row in made.state[:starts])
    assert np.array_equal(made.state[starts:], made.next_state[: 103 - starts])
    assert np.array_equal(made.reward, made.next_state[:, 0])
    assert np.abs(made.action).max() <= 1.0
    assert made.noise is None
    assert made.origins() == {"model": 103}


def test_a_rollout_ends_where_the_episode_does(fitted):
    data, rng = recorded(seed=1, rows=200), np.random.default_rng(0)
    made = fitted.rollouts(
        data, 60, rng=rng, reward_fn=lambda s, a, after: after[:, 0], terminal_fn=lambda s, a, after: after[:, 0] > 0,
        draw_actions=lambda rows, rng: np.full((rows, 1), 0.5, np.float32),
    )  # fmt: skip
    over = {row.tobytes() for row in made.next_state[made.terminated]}
    assert len(made) == 60
    assert 0 < made.terminated.mean() < 1
    assert not any(row.tobytes() in over for row in made.state)
    assert (made.action == 0.5).all()


def test_it_is_stored_without_loss(fitted, tmp_path):
    data = recorded(seed=1, rows=50)
    fitted.save(tmp_path / "model.safetensors")
    again = DynamicsEnsemble.load(tmp_path / "model.safetensors", factors=FACTORS)
    assert again == fitted
    assert np.array_equal(again.predict(data.state, data.action), fitted.predict(data.state, data.action))
    with pytest.raises(ValueError, match="expected a RewardModel, it holds a DynamicsEnsemble"):
        RewardModel.load(tmp_path / "model.safetensors")


def test_chunks_do_not_matter(fitted, monkeypatch):
    data = recorded(seed=1, rows=100)
    ask = fitted.predict, fitted.disagreement
    whole = [function(data.state, data.action) for function in ask]
    monkeypatch.setattr("counterpoint.learn.estimators.dynamics_ensemble._CHUNK", 33)
    for found, function in zip(whole, ask, strict=True):
        assert np.allclose(found, function(data.state, data.action), atol=1e-5)
    assert fitted.predict(data.state[:0], data.action[:0]).shape == (0, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"members": 0}, "members: expected a whole number"),
        ({"target": "delta"}, "target: expected 'next' or 'change'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        DynamicsEnsemble(**settings)


def test_misuse_is_explained(fitted):
    with pytest.raises(ValueError, match="it has learned nothing yet"):
        DynamicsEnsemble().predict(np.zeros((1, 3)), np.zeros((1, 1)))
    derived = Factorization(state={"cart": (0, 1)}, action={"motor": (0,)}, derived=(2,))
    with pytest.raises(ValueError, match=r"columns \(2,\) are derived"):
        DynamicsEnsemble(**SMALL).fit(recorded(rows=200), derived, rng=np.random.default_rng(0), progress=False)
    with pytest.raises(ValueError, match="size: expected a whole number, 1 or more"):
        fitted.rollouts(recorded(rows=200), 0, rng=np.random.default_rng(0), reward_fn=lambda s, a, after: a[:, 0])
