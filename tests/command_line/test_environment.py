"""MuJoCo environments on the command line."""

import runpy

import numpy as np
import pytest

from counterpoint import files
from counterpoint.adapters.mujoco import collect, factorization
from counterpoint.command_line import main
from counterpoint.command_line.environment import maker
from counterpoint.description import read_description

BALLS = "tests.adapters.mujoco.conftest:Balls"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    env = maker(BALLS)()
    path = tmp_path_factory.mktemp("balls") / "recording.npz"
    files.write(path, collect(env, None, 120, rng=np.random.default_rng(0)), factors=factorization(env))
    return path


def test_inspect_shows_how_an_environment_comes_apart(capsys, tmp_path):
    assert main(["inspect", "--environment", "FetchPush-v4", "--propose", str(tmp_path / "fetch.toml")]) == 0
    shown = capsys.readouterr().out
    for words in ("(column 14) is derived: ", "action moves robot0:base_link", "are exact"):
        assert words in shown
    described = read_description(tmp_path / "fetch.toml")
    env = maker("FetchPush-v4")()
    assert described.factors.state == factorization(env).state
    assert described.factors.noise == factorization(env).noise
    augmenter = described.augmenter()
    data = collect(env, None, 20, rng=np.random.default_rng(0))
    assert np.allclose(augmenter.derive(data.state), data.state[:, list(described.factors.derived)])
    assert np.array_equal(augmenter.reward_fn(data.state, data.action, data.next_state), data.reward)
    assert (
        main(["inspect", "--environment", "FetchPush-v4", "--propose", str(tmp_path / "fetch.toml")]) != 0
    )  # is there


def test_from_an_environment_to_a_verdict_without_a_line_of_code(recording, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["inspect", "--environment", BALLS, "--propose", "balls.toml"]) == 0
    assert "python balls_environment.py recording.parquet 5000" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["balls_environment.py", "balls.npz", "120"])
    runpy.run_path("balls_environment.py", run_name="__main__")
    own, other = files.read("balls.npz"), files.read(recording)
    assert own.factors == other.factors
    assert np.array_equal(own.transitions.noise, other.transitions.noise)  # the same seed
    with (tmp_path / "balls.toml").open("a") as file:
        file.write('\n[reward]\nkind = "function"\nfunction = "no_reward:reward"\n')
    (tmp_path / "no_reward.py").write_text("import numpy as np\ndef reward(s, a, n):\n    return np.zeros(len(s))\n")
    assert main(["augment", "balls.npz", "balls.toml", "--ratio", "0.5", "--out", "more.npz"]) == 0
    assert main(["audit", "more.npz", "--environment", BALLS]) == 0
    shown = capsys.readouterr().out
    assert "real rows: 100.0% of 120 real steps come out to the bit" in shown
    assert "100.00% of 60 transitions come out to the bit" in shown


def test_an_audit_finds_what_is_wrong(recording, tmp_path, capsys):
    found = files.read(recording)
    lies = found.transitions.next_state.copy()
    lies[::2] += 0.01
    files.write(tmp_path / "lies.npz", found.transitions.replace(next_state=lies), factors=found.factors)
    assert main(["audit", str(tmp_path / "lies.npz"), "--environment", BALLS]) == 2
    assert "does not repeat real steps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["inspect", "--environment", "NoSuchEnvironment-v0"], "NoSuchEnvironment"),
        (["inspect", "--environment", "CartPole-v1"], "no MuJoCo simulator"),
        (["inspect", "--environment", "no_such_module:make"], "no_such_module"),
        (["inspect"], "give a file of transitions, or --environment"),
        (["inspect", "data.npz", "--environment", "FetchPush-v4"], "data.npz"),
        (["audit", "data.npz", "--environment", "FetchPush-v4", "--simulator", "a:b"], "give only one of them"),
    ],
)
def test_bad_words(words, message, capsys):
    assert main(words) == 2
    assert message in capsys.readouterr().err
