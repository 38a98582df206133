"""Forward models of sprites: they learn, roll out as they should, and are reported beside the published ones."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")

from counterpoint.worlds import Sprites, collect, uniform_policy
from experiments import pages, rows
from experiments.dynamics import models, report, run
from experiments.dynamics.__main__ import main

TINY = run.PRESETS["smoke"][1]
WORLD = Sprites(n=2, action_rule="reverse")


@pytest.fixture(scope="module")
def data():
    return collect(WORLD, uniform_policy(WORLD), 1500, np.random.default_rng(0))


def test_presets_are_complete():
    names = [config.name for config in run.runs("laptop")]
    assert len(names) == len(set(names)) == 3 * (4 + 3)
    assert {config.added for config in run.runs("laptop")} == {35_000}


@pytest.mark.parametrize("name", models.NAMES)
def test_models_learn_where_things_are(name, data):
    model = models.fit(name, data, np.random.default_rng(0), epochs=15)
    off = np.abs(model.predict(data.state, data.action) - data.next_state)[:, :2].mean()
    assert off < 0.5 * np.abs(data.next_state - data.next_state.mean(axis=0))[:, :2].mean()
    assert model.predict(data.state, data.action).shape == data.state.shape


def test_the_lstm_is_told_of_earlier_columns_alone(data):
    model = models.fit("lstm", data, np.random.default_rng(0), epochs=1)
    batch = model.scaling.batch(data.state[:20], data.action[:20], data.next_state[:20])
    told = model.network.told(batch)
    other = replace(batch, next_state=batch.next_state.clone())
    other.next_state[:, 3] += 1.0
    changed = (model.network.told(other) != told).any(dim=0).numpy()
    assert not changed[:4].any()
    assert changed[4:].all()


def test_a_model_that_knows_the_world_follows_it_to_the_end():
    config = replace(TINY, sprites=2, steps=40)
    state = WORLD.reset(5, np.random.default_rng(0))
    truth = run.rolled(WORLD.step, state, config)
    assert truth.shape == (41, 5, 8)
    told = run.lifetimes(truth, truth)
    assert told == {"follows": 41.0, "moving": 1.0, "outside": 0.0, "collisions": pytest.approx(1.0, abs=1.0)}
    still = run.rolled(lambda state, action: state, state, config)
    told = run.lifetimes(truth, still)
    assert told["moving"] == 0
    assert told["follows"] < 20


def test_the_smoke_preset_runs_and_is_reported(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    folder = tmp_path / "smoke"
    for config in run.runs("smoke"):
        with rows.recording(folder / f"{config.name}.jsonl", config) as write:
            run.work(config, write)
    (tmp_path / "dynamics.md").write_text(f"# Words\n{pages.BEGIN}\nold\n{pages.END}\nmore words\n")
    report.write(folder, docs=tmp_path)
    page = (tmp_path / "dynamics.md").read_text()
    assert "| exact | 1 | 48 / 64, 0.52 |" in page
    assert "| lstm | 1 |" in page
    assert "100.00%" in next(line for line in page.splitlines() if line.startswith("| exact"))
    for name in ("dynamics-rollouts.png", "dynamics-curves.png"):
        assert (tmp_path / name).stat().st_size > 1000
    main(["run", "--preset", "smoke", "--folder", str(tmp_path)])
    assert "7 runs, 7 finished already" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(tmp_path / "nothing", docs=tmp_path)
