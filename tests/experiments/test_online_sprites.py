"""The online experiment runs at its smallest, its report is made, and the example beside it is right."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("rich")

from stable_baselines3 import SAC

from counterpoint.adapters.sb3 import CodaReplayBuffer
from counterpoint.checks import audit
from counterpoint.replay import Mixing
from experiments import pages, rows
from experiments.online_sprites import report, run

ROOT = Path(__file__).parents[2]
TINY = run.PRESETS["smoke"][2]


def test_presets_begin_with_what_needs_no_model():
    configs = list(run.runs("laptop"))
    assert len(configs) == len({c.name for c in configs}) == 3 * 5 * 3
    assert [c.name for c in configs[:3]] == ["place-2_td3_0", "place-2_coda_0", "place-2_td3_1"]
    assert {c.arm for c in configs[:18]} == {"td3", "coda"}
    assert all((c.steps, c.batch_size, c.warm_up, c.width) == (50_000, 1000, 5000, 256) for c in configs)
    some = {(config.task, config.arm) for config in run.runs("laptop", ("dyna", "td3"), ("place-3",))}
    assert some == {("place-3", "dyna"), ("place-3", "td3")}
    assert len(list(run.runs("paper"))) == 8 * 5 * 3
    assert {c.arm for c in configs} == {"td3", "coda", "learned", "dyna", "attribution"}


@pytest.mark.parametrize("arm", run.ARMS)
def test_the_smoke_preset_runs(arm, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "MODELS", tmp_path)
    config = replace(TINY, arm=arm)
    with rows.recording(tmp_path / f"{config.name}.jsonl", config) as write:
        run.work(config, write)
    run.pretrained.cache_clear()
    measured = rows.read(tmp_path / f"{config.name}.jsonl")[1]
    assert [row["step"] for row in measured] == [0, 200, 400, 600]
    assert all(0 <= row["reward"] <= 1 for row in measured)
    if arm == "coda":
        last = measured[-1]
        assert last["confirmed"] >= 0.99
        assert last["share"] == pytest.approx(last["made"] / (last["made"] + 600), abs=0.02)
    transformer, attribution = ["SandyTransformer_600_16_2"], ["ResidualAttribution_600_128_30"]
    models = {"learned": transformer, "dyna": transformer, "attribution": attribution}
    assert [path.stem for path in tmp_path.glob("*.safetensors")] == models.get(arm, [])


def test_arms_with_a_model_run_with_any_that_scores_and_predicts(monkeypatch):
    """A stand-in that knows the world: its mask is exact, and so is Dyna."""
    world = run.WORLD

    class Knows:
        def scores(self, state, action):
            return world.mask(state, action).astype(np.float32)

        def predict(self, state, action):
            return world.step(state, action)

    monkeypatch.setattr(run, "pretrained", lambda config: Knows())
    for arm, figure, value in (("learned", "confirmed", 1), ("dyna", "model_error", 0)):
        written = []
        config = replace(TINY, arm=arm, steps=400, warm_up=400)
        run.work(config, lambda into=written, **row: into.append(row))
        assert written[-1][figure] == pytest.approx(value, abs=0.01)


def test_model_errors_tell_where_the_action_acts_from_the_rest(monkeypatch):
    """A model for which nothing changes where the action acts, and that is right elsewhere."""
    world = run.WORLD

    class Inert:
        def predict(self, state, action):
            acted_on = np.repeat(world.mask(state, action)[:, -1], 4, axis=1)
            return np.where(acted_on, state, world.step(state, action))

    monkeypatch.setattr(run, "pretrained", lambda config: Inert())
    lines = run.model_errors(TINY, 500).splitlines()[2:]
    model, unchanged = ([float(line.split("|")[column]) for line in lines] for column in (3, 4))
    assert model == [*unchanged[:2], 0, 0]
    assert min(unchanged) > 0.01


def test_evaluation_is_a_function_of_seed_and_step():
    """A policy that does nothing much gets what random play gets: about 0.27 of Place 2."""

    class Idle:
        def predict(self, state, deterministic):
            return np.zeros((len(state), 2), np.float32), None

    config = replace(TINY, episodes=200, evaluation_length=50)
    one = run.evaluate(Idle(), config, 0)
    assert one == run.evaluate(Idle(), config, 0) != run.evaluate(Idle(), config, 1000)
    assert one == pytest.approx(0.27, abs=0.08)


def written(folder, arm, seed, reward, steps=50_000):
    config = replace(TINY, task="place-2", arm=arm, seed=seed)
    with rows.recording(folder / f"{config.name}.jsonl", config) as write:
        for step in range(0, steps + 1, 1000):
            made = {"made": step, "share": 0.8, "acceptance": 0.6, "making": 1.0, "confirmed": 1.0}
            write(step=step, reward=reward, seconds=100.0, evaluating=50.0, **(made if arm == "coda" else {}))


def test_the_report_puts_ours_beside_theirs(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for seed in range(2):
        written(tmp_path / "runs", "td3", seed, 0.4)
        written(tmp_path / "runs", "coda", seed, 0.5 + 0.02 * seed)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "online.md").write_text(f"# Words\n{pages.BEGIN}\nold\n{pages.END}\nmore words\n")
    report.write(tmp_path / "runs", run.ARMS, docs=docs)
    page = (docs / "online.md").read_text()
    assert page.startswith("# Words")
    assert page.endswith("more words\n")
    assert "old" not in page
    assert "| place-2 | coda | 2 | 50k | 0.51 | 0.510 ± 0.014 | +0.000 |" in page
    assert "| place-2 | 25k | coda | +0.02 | +0.110 ± 0.014 | 2 of 2 |" in page
    assert "| place-2 | mean, 5k to 25k | coda | – | +0.110 ± 0.014 | 2 of 2 |" in page
    assert "80.00% | 60.00% | 100.00%" in page
    assert (docs / "online.png").stat().st_size > 1000
    assert page.split(pages.BEGIN)[1].split(pages.END)[0].strip() in capsys.readouterr().out


def test_a_short_run_is_not_compared_where_it_did_not_come(tmp_path):
    written(tmp_path, "td3", 0, 0.4, steps=30_000)
    (curve,) = report.curves(tmp_path)
    assert curve.at(25_000) == pytest.approx(0.4)
    assert np.isnan(curve.at(50_000))
    assert np.isnan(curve._replace(step=curve.step / 2).early())


def test_early_is_what_comes_after_warm_up():
    step = np.arange(0, 50_001, 1000)
    curve = report.Curve("place-2", "td3", 0, step, np.where(step > 5000, step / 1e4, 99.0), {}, np.nan)
    assert curve.early() == pytest.approx(1.55)


def test_a_report_on_nothing_says_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(tmp_path, run.ARMS)


def test_the_example_makes_true_counterfactuals():
    spec = importlib.util.spec_from_file_location("online_sb3", ROOT / "examples" / "online_sb3.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    env = gymnasium.wrappers.TimeLimit(example.Push(), 50)
    settings = {
        "replay_buffer_class": CodaReplayBuffer,
        "replay_buffer_kwargs": {**example.coda, "mixing": Mixing(every=500)},
    }
    agent = SAC("MlpPolicy", env, **settings, device="cpu", buffer_size=2000, learning_starts=2000, seed=0).learn(1500)
    made = agent.replay_buffer.counterfactual_transitions()
    assert len(made) > 3000

    def physics(states, actions):
        push, after = example.Push(), []
        for push.state, action in zip(states, actions, strict=True):
            after.append(push.step(action)[0])
        return np.array(after)

    assert audit(made, physics).confirmed == 1
