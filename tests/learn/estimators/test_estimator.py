"""What all estimators share: checks at the door, standardising, packing, and the class that fits and scores."""

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from counterpoint import Factorization, Transitions
from counterpoint.learn import NetworkEstimator
from counterpoint.learn.training.scaling import ScaledBatch, Scaling
from counterpoint.learn.training.tokens import Tokens, node_columns

FACTORS = Factorization.blocks(state={"cart": 2, "pole": 1, "goal": 1}, action={"push": 1})


def make_data(rng, rows=300, factors=FACTORS, dtype=np.float32, **optional):
    state = rng.normal(3.0, 2.0, (rows, factors.state_width)).astype(dtype)
    action = rng.uniform(-1, 1, (rows, factors.action_width)).astype(dtype)
    flat = np.concatenate([state, action], axis=1)
    next_state = (state + 0.1 * flat.sum(axis=1, keepdims=True)).astype(dtype)
    return Transitions(state, action, np.zeros(rows), next_state, np.zeros(rows, bool), **optional)


@dataclass(frozen=True, kw_only=True)
class Linear(NetworkEstimator):
    """The least estimator there is: a linear model of the change; its weights are the scores."""

    epochs: int = 3
    batch_size: int = 64

    def build(self, factors, scaling):
        return nn.Linear(factors.state_width + factors.action_width, factors.state_width)

    def loss(self, network, batch, generator):
        return (network(torch.cat([batch.state, batch.action], dim=1)) - batch.target("change")).square().mean()

    def edges(self, network, batch):
        weights = network.weight.T.abs()
        nodes = torch.tensor([0, 0, 1, 2, 3])
        rows = torch.zeros(4, 4).index_add(0, nodes, weights)
        scores = torch.zeros(4, 3).index_add(1, nodes[:4], rows)
        return scores + 0 * batch.state[:, :1, None]


@dataclass(frozen=True, kw_only=True)
class Looking(Linear):
    uses_next_state: ClassVar[bool] = True

    def edges(self, network, batch):
        return super().edges(network, batch) + batch.target("next")[:, :1, None]


def test_fit_returns_a_fitted_copy_and_leaves_the_settings_alone(rng):
    data = make_data(rng)
    plain = Linear()
    fitted = plain.fit(data, FACTORS, rng=rng, progress=False)
    assert plain.fitted is None
    assert fitted == plain
    assert len(fitted.learned().history.validation) == 3
    scores = fitted.scores(data.state, data.action)
    assert scores.shape == (300, 4, 3)
    assert scores.dtype == np.float32
    assert "fitted" not in repr(fitted)


def test_it_asks_to_be_fitted_first(rng, tmp_path):
    data = make_data(rng)
    for use in (lambda: Linear().scores(data.state, data.action), lambda: Linear().save(tmp_path / "x")):
        with pytest.raises(ValueError, match="learned nothing yet.*estimator = estimator.fit"):
            use()


def test_the_next_state_is_used_only_by_those_that_say_so(rng):
    data = make_data(rng)
    plain = Linear().fit(data, FACTORS, rng=rng, progress=False)
    np.testing.assert_array_equal(
        plain.scores(data.state, data.action), plain.scores(data.state, data.action, data.next_state)
    )
    looking = Looking().fit(data, FACTORS, rng=rng, progress=False)
    assert looking.scores(data.state, data.action, data.next_state).shape == (300, 4, 3)
    with pytest.raises(ValueError, match="next_state: Looking .* needs the next state"):
        looking.scores(data.state, data.action)


def test_scores_work_in_chunks_and_on_no_rows(rng, monkeypatch):
    data = make_data(rng)
    fitted = Looking().fit(data, FACTORS, rng=rng, progress=False)
    whole = fitted.scores(data.state, data.action, data.next_state)
    monkeypatch.setattr("counterpoint.learn.estimators.estimator._BATCH_TOKENS", 28)
    np.testing.assert_array_equal(whole, fitted.scores(data.state, data.action, data.next_state))
    assert fitted.scores(data.state[:0], data.action[:0], data.next_state[:0]).shape == (0, 4, 3)


def test_read_only_inputs_of_any_dtype(rng):
    data = make_data(rng)
    fitted = Linear().fit(data, FACTORS, rng=rng, progress=False)
    for dtype in (np.float64, np.float32, np.float16, np.int64):
        state, action = data.state.astype(dtype), data.action.astype(dtype)
        state.flags.writeable = action.flags.writeable = False
        assert fitted.scores(state, action).shape == (300, 4, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, a: (s[:, :3], a), "state: the factors cart, pole, goal reach up to column 3"),
        (lambda s, a: (s, np.repeat(a, 2, axis=1)), "action: the data has 2 columns"),
        (lambda s, a: (s, a[:5]), "action: expected one row for each of the 300 states"),
        (lambda s, a: (np.where(s > 3, np.nan, s), a), "state: .* NaN"),
        (lambda s, a: (s[0], a), "state: expected shape"),
    ],
)
def test_what_is_scored_is_checked(rng, change, message):
    data = make_data(rng)
    fitted = Linear().fit(data, FACTORS, rng=rng, progress=False)
    with pytest.raises(ValueError, match=message):
        fitted.scores(*change(data.state, data.action))


def test_too_little_data_is_refused(rng):
    with pytest.raises(ValueError, match="60 transitions are too few .* at least 100"):
        Linear().fit(make_data(rng, rows=60), FACTORS, rng=rng)


def test_constant_columns_are_named_and_can_be_allowed(rng):
    data = make_data(rng)
    state = data.state.copy()
    state[:, 3] = 0.5
    data = data.replace(state=state)
    with pytest.raises(ValueError, match=r"state: column 3 of factor 'goal' \(always 0.5\) is constant"):
        Linear().fit(data, FACTORS, rng=rng)
    fitted = Linear(allow_constant=True).fit(data, FACTORS, rng=rng, progress=False)
    assert np.isfinite(fitted.scores(data.state, data.action)).all()
    with pytest.raises(ValueError, match="action: column 0 of factor 'push'"):
        Linear().fit(data.replace(state=state + rng.normal(size=state.shape), action=0 * data.action), FACTORS, rng=rng)


def test_a_factor_that_never_changes_is_no_constant(rng):
    """A goal that differs between rows but stays within them: the change is 0, and that is fine."""
    data = make_data(rng)
    after = data.next_state.copy()
    after[:, 3] = data.state[:, 3]
    scaling = Scaling.of(data.replace(next_state=after))
    assert scaling.change.std[3] == 1.0
    Linear().fit(data.replace(next_state=after), FACTORS, rng=rng, progress=False)


def test_rounding_is_not_taken_for_change(rng):
    data = make_data(rng)
    after = data.next_state.copy()
    after[:, 3] = data.state[:, 3] * np.float32(1 + 1e-7)
    assert Scaling.of(data.replace(next_state=after)).change.std[3] == 1.0


def test_other_bad_input_is_refused(rng):
    data = make_data(rng)
    with pytest.raises(TypeError, match="rng: expected a NumPy generator"):
        Linear().fit(data, FACTORS, rng=0)
    with pytest.raises(TypeError, match="data: expected Transitions, got ndarray"):
        Linear().fit(data.state, FACTORS, rng=rng)
    broken = data.replace(state=np.where(data.state > 3, np.inf, data.state))
    with pytest.raises(ValueError, match="state: .* NaN or infinite"):
        Linear().fit(broken, FACTORS, rng=rng)
    with pytest.raises(ValueError, match="state: the data has 4 columns, but the factors cover only 2"):
        Linear().fit(data, Factorization.blocks(state={"cart": 2}, action={"push": 1}), rng=rng)


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"epochs": 0}, "epochs"), ({"batch_size": 2.5}, "batch_size"), ({"learning_rate": 0.0}, "learning_rate"),
     ({"clip": -1.0}, "clip"), ({"weight_decay": -1.0}, "weight_decay"),
     ({"validation_share": 1.0}, "validation_share"), ({"patience": True}, "patience"), ({"warm_up": -1}, "warm_up")],
)  # fmt: skip
def test_settings_are_checked(settings, name):
    with pytest.raises(ValueError, match=name):
        Linear(**settings)


def test_standardising_and_back(rng):
    data = make_data(rng)
    scaling = Scaling.of(data)
    batch = scaling.batch(data.state, data.action, data.next_state)
    for part in (batch.state, batch.action, batch.next_state, batch.change):
        np.testing.assert_allclose(part.mean(0), 0.0, atol=1e-5)
        np.testing.assert_allclose(part.std(0, correction=0), 1.0, atol=1e-5)
    back = scaling.original(batch)
    np.testing.assert_allclose(back.state, data.state, atol=1e-5)
    np.testing.assert_allclose(back.action, data.action, atol=1e-5)
    np.testing.assert_allclose(back.next_state, data.next_state, atol=1e-5)
    np.testing.assert_allclose(back.change, data.next_state - data.state, atol=1e-5)
    assert scaling.original(scaling.batch(data.state, data.action)).change is None


def test_a_batch_without_next_state_says_so(rng):
    data = make_data(rng)
    batch = Scaling.of(data).batch(data.state, data.action)
    assert batch[:5].next_state is None
    with pytest.raises(ValueError, match="needs the next state"):
        batch.target("change")


RAGGED = Factorization(
    state={"a": (4, 1), "b": (0,), "c": (2, 3)},
    action={"u": (1,), "v": (0, 2)},
    derived=(5,),
    types={"a": "x", "c": "x"},
)


@pytest.mark.parametrize(
    ("embedding", "starts", "width"), [("padded", (0, 0, 0, 0, 0), 2), ("typed", (0, 2, 0, 3, 4), 6),
                                       ("blocks", (0, 2, 3, 5, 6), 8)],
)  # fmt: skip
def test_tokens_hold_each_factor_once(rng, embedding, starts, width):
    tokens = Tokens(RAGGED, embedding)
    state, action = torch.from_numpy(rng.random((7, 6))), torch.from_numpy(rng.random((7, 3)))
    packed = tokens.pack(state, action)
    assert packed.shape == (7, 5, width)
    values = {**{k: state[:, list(c)] for k, c in RAGGED.state.items()},
              **{k: action[:, list(c)] for k, c in RAGGED.action.items()}}  # fmt: skip
    for node, (own, start) in enumerate(zip(values.values(), starts, strict=True)):
        assert torch.equal(packed[:, node, start : start + own.shape[1]], own)
        assert tokens.real[node].sum() == own.shape[1]
    assert (packed[:, ~tokens.real] == 0).all()
    assert torch.equal(tokens.pack_state(state), packed[:, :3])


def test_state_and_action_factors_are_different_types_even_undeclared():
    factors = Factorization.blocks(state={"a": 2, "b": 2}, action={"u": 2})
    assert Tokens(factors, "typed").real.tolist() == [[True, True, False, False]] * 2 + [[False, False, True, True]]


def test_node_columns():
    assert node_columns(RAGGED).tolist() == [4, 1, 0, 2, 3, 7, 6, 8]


def test_batches_cover_a_batch():
    batch = ScaledBatch(torch.arange(7.0)[:, None], torch.zeros(7, 0))
    assert [one.state.flatten().tolist() for one in batch.batches(3)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_replacing_settings_keeps_the_weights(rng):
    data = make_data(rng)
    fitted = Linear().fit(data, FACTORS, rng=rng, progress=False)
    assert replace(fitted, epochs=9).learned() is fitted.learned()


def test_without_torch_the_install_line_is_shown():
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Refuse())
try:
    import counterpoint.learn
except ImportError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "needs torch" in out
    assert "pip install counterpoint-rl[torch]" in out
