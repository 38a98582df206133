"""What all estimators share: checks at the door, standardising, packing, and the class that fits and scores."""

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from tests.learn.examples import FACTORS, Linear, make_data


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


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"epochs": 0}, "epochs"), ({"batch_size": 2.5}, "batch_size"), ({"learning_rate": 0.0}, "learning_rate"),
     ({"clip": -1.0}, "clip"), ({"weight_decay": -1.0}, "weight_decay"),
     ({"validation_share": 1.0}, "validation_share"), ({"patience": True}, "patience"), ({"warm_up": -1}, "warm_up")],
)  # fmt: skip
def test_settings_are_checked(settings, name):
    with pytest.raises((TypeError, ValueError), match=name):
        Linear(**settings)


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
