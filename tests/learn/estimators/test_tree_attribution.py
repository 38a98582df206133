"""Attribution by trees on small worlds whose influences are known."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.checks import audit, check_mask_fn
from counterpoint.core import threads
from counterpoint.files import FileProblem
from counterpoint.learn import TreeAttribution, load
from counterpoint.masks import Threshold
from tests.learn.estimators.test_residual_attribution import ranking
from tests.learn.examples import EDGES, ONE_WAY, make_data, one_way

QUICK = {"halvings": 2}


class Touch:
    """A hand on a line pushes cups that are near to where it will be; a motor moves the hand, always."""

    factors = Factorization.blocks(
        state={"hand": 2, "cup": 2, "mug": 2},
        action={"motor": 1},
        positions={"hand": (0,), "cup": (2,), "mug": (4,)},
        types={"cup": "vessel", "mug": "vessel"},
    )

    def run(self, state, action):
        after = state.astype(float)
        after[:, 1] += 0.1 * action[:, 0]
        after[:, ::2] += after[:, 1::2]
        touched = np.abs(after[:, [0]] - state[:, 2::2]) < 0.1
        after[:, 3::2] = 0.9 * after[:, 3::2] + 0.5 * touched
        edges = np.zeros((len(state), 4, 3), bool)
        edges[:, range(3), range(3)] = edges[:, 3, 0] = True
        edges[:, 0, 1:] = touched
        return after, edges

    def data(self, rows, seed):
        rng = np.random.default_rng(seed)
        state = rng.uniform(-1, 1, (rows, 6))
        state[:, 1::2] *= 0.1
        action = rng.uniform(-1, 1, (rows, 1))
        return Transitions(state, action, np.zeros(rows), self.run(state, action)[0], np.zeros(rows, bool))


@pytest.fixture(scope="module")
def world():
    return Touch()


def fit(data, factors, seed=0, **settings):
    return TreeAttribution(**{**QUICK, **settings}).fit(data, factors, rng=np.random.default_rng(seed), progress=False)


@pytest.fixture(scope="module")
def fitted(world):
    return fit(world.data(6000, 0), world.factors)


def test_scores_tell_true_edges_on_new_data(world, fitted):
    new = world.data(4000, 1)
    scores, truth = fitted.scores(new.state, new.action), world.run(new.state, new.action)[1]
    assert scores.shape == (4000, 4, 3)
    assert scores.dtype == np.float32
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert (scores[:, range(3), range(3)] == 1).all()
    assert (scores[:, 3, 0] == 1).all()
    apart = ~np.eye(4, 3, dtype=bool)
    assert ranking(scores[:, apart], truth[:, apart]) > 0.99


def test_its_mask_makes_few_wrong_counterfactuals(world, fitted):
    mask, data = Threshold(fitted, 0.1), world.data(2000, 2)
    check_mask_fn(mask, data, world.factors)
    made = Augmenter(world.factors, mask, lambda state, action, after: np.zeros(len(state)))(
        data, rng=np.random.default_rng(0)
    )
    found = audit(made, lambda state, action: world.run(state, action)[0], atol=1e-6)
    assert len(made) > 500
    assert len(found.wrong) < 0.05 * len(made)


def test_what_moves_a_factor_always_is_certain(rng):
    data = one_way(rng)
    scores = fit(data, ONE_WAY).scores(data.state, data.action)
    names = ONE_WAY.names
    always = {(names[i], names[j]) for i, j in np.argwhere((scores == 1).all(axis=0)) if i != j}
    assert always == EDGES
    assert Threshold(fit(data, ONE_WAY), 0.5)(data.state, data.action).mean(axis=0)[2, 0] == 0  # alone on driver


RINGING = Factorization.blocks(
    state={"runner": 1, "wire": 1, "bell": 1, "light": 2},
    positions={"runner": (0,), "wire": (1,), "light": (3,)},
)


def ringing(seed, rows=5000):
    """A bell falls silent, and rings while a runner is at the wire, wherever that is. Nothing else is tied."""
    rng = np.random.default_rng(seed)
    state = rng.uniform(-1, 1, (rows, 5))
    rung = np.abs(state[:, 0] - state[:, 1]) < 0.1
    after = 0.9 * state + 0.01 * rng.normal(size=state.shape)
    after[:, 2] += rung
    return Transitions(state, np.zeros((rows, 0)), np.zeros(rows), after, np.zeros(rows, bool)), rung


def test_two_that_act_only_together_are_both_found():
    fitted = fit(ringing(0)[0], RINGING)
    assert [each.target for each in fitted.learned().influences.situations] == [2]
    data, rung = ringing(1)
    scores = fitted.scores(data.state, data.action)
    for source in (0, 1):
        assert ranking(scores[:, source, 2], rung) > 0.95
    assert scores[:, 3].max(initial=0.0, where=np.arange(4) != 3) < 0.3


LIT = Factorization.blocks(
    state={"lamp": 1, "puck": 2, "screen": 1, "other": 1}, positions={"lamp": (0,), "puck": (1,)}
)


def test_who_changes_what_another_does_has_an_edge_where_that_one_has():
    """A lamp pushes the puck when it is near, unless the screen is up."""
    rng = np.random.default_rng(0)
    state = rng.uniform(-1, 1, (8000, 5))
    near, down = np.abs(state[:, 0] - state[:, 1]) < 0.3, state[:, 3] < 0
    after = 0.9 * state + 0.01 * rng.normal(size=state.shape)
    after[:, 2] += near & down
    fitted = fit(Transitions(state, np.zeros((8000, 0)), np.zeros(8000), after, np.zeros(8000, bool)), LIT)
    found = {triple for each in fitted.learned().influences.changes for triple in each.triples}
    assert (0, 1, 2) in found
    assert found <= {(0, 1, 2), (2, 1, 0)}  # either changes what the other does
    scores = fitted.scores(state, np.zeros((8000, 0)))
    assert np.quantile(scores[near, 2, 1], 0.02) > 0.1
    assert ranking(scores[:, 2, 1], near) > 0.98
    assert scores[:, 3, 1].max() < 0.2


def test_who_changes_what_another_does_only_here_and_there_has_no_edge_elsewhere():
    """A lamp pushes the puck when it is near, unless the screen is about to fall, which it hardly ever is."""
    rng = np.random.default_rng(0)
    state = rng.uniform(-1, 1, (12_000, 5))
    near, falls = np.abs(state[:, 0] - state[:, 1]) < 0.4, state[:, 3] > 0.8
    after = 0.9 * state + 0.01 * rng.normal(size=state.shape)
    after[:, 2] += near & ~falls
    fitted = fit(Transitions(state, np.zeros((12_000, 0)), np.zeros(12_000), after, np.zeros(12_000, bool)), LIT)
    scores = fitted.scores(state, np.zeros((12_000, 0)))
    assert np.quantile(scores[near, 0, 1], 0.02) > 0.2
    assert np.median(scores[near & falls, 2, 1]) > 0.3
    assert np.quantile(scores[near & ~falls, 2, 1], 0.9) < 0.15


class Nearest:
    """A click moves the nearest of some balls, whichever that is, and no other."""

    def __init__(self, balls):
        self.factors = Factorization.blocks(
            state={f"ball{k}": 2 for k in range(balls)},
            action={"click": 2},
            positions={**{f"ball{k}": (2 * k, 2 * k + 1) for k in range(balls)}, "click": (0, 1)},
            types={f"ball{k}": "ball" for k in range(balls)},
        )

    def data(self, rows, seed):
        rng = np.random.default_rng(seed)
        state, action = rng.uniform(-1, 1, (rows, 2 * self.factors.n)), rng.uniform(-1, 1, (rows, 2))
        balls = state.reshape(rows, -1, 2)
        apart = np.linalg.norm(balls - action[:, None], axis=2)
        moved = apart == apart.min(axis=1, keepdims=True)
        after = balls + 0.01 * rng.normal(size=balls.shape) + 0.3 * moved[:, :, None]
        return Transitions(state, action, np.zeros(rows), after.reshape(rows, -1), np.zeros(rows, bool)), moved


@pytest.mark.parametrize("balls", [3, 5])
def test_the_nearest_of_several_is_told(balls):
    world = Nearest(balls)
    fitted = fit(world.data(8000, 0)[0], world.factors)
    data, moved = world.data(4000, 1)
    scores = fitted.scores(data.state, data.action)
    assert ranking(scores[:, -1], moved) > 0.995
    found = Threshold(fitted, 0.3)(data.state, data.action)
    assert (found[:, -1] != moved).mean() < 0.02
    others = ~np.eye(balls, dtype=bool)
    assert found[:, :balls][:, others].mean() < 0.02


def test_files_of_before_there_were_places_of_changes_are_read(tmp_path, fitted, world):
    """They say only who changes what another does, which then counts wherever that one acts."""
    path, new = tmp_path / "mask.safetensors", world.data(500, 4)
    fitted.save(path)
    damaged(path, "changers", lambda _: torch.tensor([[0, 1, 2]]))
    read, before = (each.scores(new.state, new.action) for each in (load(path), fitted))
    acts = before[:, 0, 1] > 0.05
    assert acts.any()
    assert (read[acts, 2, 1] >= before[acts, 0, 1]).all()
    assert not (before[acts, 2, 1] >= before[acts, 0, 1]).all()


def test_the_order_of_episodes_hardly_matters(world):
    data = world.data(6000, 0).replace(episode=np.arange(6000) // 10)
    order = np.random.default_rng(3).permutation(600)
    other = data[(10 * order[:, None] + np.arange(10)).ravel()]
    new = world.data(2000, 1)
    one, two = (fit(each, world.factors, halvings=4).scores(new.state, new.action) for each in (data, other))
    apart = ~np.eye(4, 3, dtype=bool)
    assert np.corrcoef(one[:, apart].ravel(), two[:, apart].ravel())[0, 1] > 0.95


def test_the_same_seed_gives_the_same_trees(world, fitted):
    new = world.data(500, 4)
    again = fit(world.data(6000, 0), world.factors)
    np.testing.assert_array_equal(fitted.scores(new.state, new.action), again.scores(new.state, new.action))


def test_any_number_of_threads_gives_the_same_trees(world, monkeypatch):
    data, found = world.data(6000, 5), []
    for number in (1, 2):
        monkeypatch.setattr(threads, "THREADS", number)
        found.append(fit(data, world.factors))
    assert found[0] == found[1]
    np.testing.assert_array_equal(*(each.scores(data.state, data.action) for each in found))


def test_a_round_trip_gives_the_same_scores(fitted, world, tmp_path):
    path, new = tmp_path / "mask.safetensors", world.data(500, 4)
    fitted.save(path)
    again = load(path, factors=world.factors)
    assert again == fitted
    np.testing.assert_array_equal(again.scores(new.state, new.action), fitted.scores(new.state, new.action))
    assert TreeAttribution.load(path) == fitted
    assert again.scores(new.state[:0], new.action[:0]).shape == (0, 4, 3)


def test_situations_and_changers_are_stored(tmp_path):
    data, _ = ringing(0)
    fitted, path = fit(data, RINGING), tmp_path / "mask.safetensors"
    fitted.save(path)
    np.testing.assert_array_equal(load(path).scores(data.state, data.action), fitted.scores(data.state, data.action))


def damaged(path, name, change):
    """Change one of the arrays of a file, and leave out the checksum."""
    with safe_open(path, framework="pt") as file:
        text = file.metadata()["counterpoint"]
        weights = {each: file.get_tensor(each) for each in file.keys()}  # noqa: SIM118
    weights[name] = change(weights.get(name))
    save_file(weights, path, metadata={"counterpoint": json.dumps(json.loads(text))})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("forest.0.left", lambda each: each.zero_()),
        ("forest.0.left", lambda each: each.add_(10_000)),
        ("forest.0.feature", lambda each: each.fill_(99)),
        ("forest.0.sizes", lambda each: each.add_(1)),
        ("forest.0.values", lambda each: each.fill_(torch.nan)),
        ("drift", lambda each: each.fill_(torch.inf)),
        ("asked", lambda each: each.fill_(True)),
        ("changers", lambda _: torch.full((1, 3), 9)),
        ("change.0.nodes", lambda _: torch.full((1, 3), 9)),
    ],
)
def test_a_file_whose_trees_lead_nowhere_is_refused(fitted, tmp_path, name, change):
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    damaged(path, name, change)
    with pytest.raises(FileProblem, match="do not make a TreeAttribution"):
        load(path)


def test_it_says_what_is_wrong(rng, world, fitted):
    data = make_data(rng)
    with pytest.raises(ValueError, match="learned nothing yet"):
        TreeAttribution().scores(data.state, data.action)
    with pytest.raises(ValueError, match="halvings"):
        TreeAttribution(halvings=0)
    with pytest.raises(ValueError, match="is the only one"):
        fit(data.replace(action=np.zeros((300, 0))), Factorization.blocks(state={"all": 4}))
    with pytest.raises(ValueError, match="too few to learn from"):
        fit(world.data(50, 0), world.factors)
    with pytest.raises(ValueError, match="columns"):
        fitted.scores(data.state, data.action)
