"""The experiment on learned masks runs at its smallest, and its report says what was measured."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")

from experiments import pages, rows
from experiments.mask_roc import report, run

SMALL = run.PRESETS["smoke"][1]


def one(world, estimator, folder, **settings):
    config = run.Config(world, estimator, 0, calibrate=world == "sprites", **SMALL, settings={"epochs": 1, **settings})
    with rows.recording(folder / f"{config.name}.jsonl", config) as write:
        run.work(config, write)
    return report.Run(folder / f"{config.name}.jsonl")


def test_presets_have_each_estimator_on_each_world_it_has_something_to_say_about():
    configs = list(run.runs("laptop", run.WORLDS, run.ESTIMATORS))
    assert len({config.name for config in configs}) == len(configs) == 3 * (4 * 6 - 2 + 1)
    assert all((config.train, config.validation, config.test) == (40_000, 10_000, 10_000) for config in configs)
    assert {config.estimator for config in configs if config.settings} == {"SandyTransformer"}


def test_a_run_measures_what_the_report_shows(tmp_path, capsys):
    folder, docs = tmp_path / "runs", tmp_path / "docs"
    docs.mkdir()
    (docs / "masks.md").write_text(f"# Words\n{pages.BEGIN}\nold\n{pages.END}\nmore words\n")
    sprites = one("sprites", "SandyTransformer", folder, width=16)
    assert set(sprites.kinds) == {"all", "off-diagonal", "object-object", "action-object", "columns"}
    assert sprites.figure("off-diagonal", "low") <= sprites.figure("off-diagonal", "auc")
    assert sprites.figure("off-diagonal", "auc") <= sprites.figure("off-diagonal", "high")
    curve = sprites.kinds["all"]["roc"]
    assert (curve[0] >= 0, curve[-1]) == (True, 1.0)
    assert np.all(np.diff(curve) >= 0)
    assert np.trapezoid(curve, run.GRID) == pytest.approx(sprites.figure("all", "auc"), abs=0.02)
    assert np.array(sprites.trajectory["truth"]).shape == (run.STEPS, 5, 4)
    yields = [sprites.misses[rate]["relative_yield"] for rate in run.MISS_RATES]
    assert yields[0] >= yields[-1]  # the fewer edges are missed, the fewer swaps are left
    assert one("stationary", "SandyMixture", folder, width=16).misses
    report.write(folder, run.WORLDS, run.ESTIMATORS, docs)
    page = (docs / "masks.md").read_text()
    assert "old" not in page
    assert page.startswith("# Words")
    assert page.endswith("more words\n")
    assert "| sprites | SandyTransformer | 1 | 0.973 |" in page
    assert "| stationary | SandyMixture | 1 | 0.96 |" in page
    assert f"{sprites.figure('all', 'auc'):.4f}" in page
    assert {path.name for path in docs.iterdir()} == {"masks.md", "masks-roc.png", "masks-trajectory.png"}
    assert page.split(pages.BEGIN)[1].split(pages.END)[0].strip() in capsys.readouterr().out


def test_counted_by_columns_an_edge_weighs_what_its_block_holds():
    scores = np.array([[[3.0, 0.0], [1.0, 2.0], [0.5, 1.5]]])
    truth = np.array([[[True, False], [False, True], [True, False]]])
    alone = run.by_columns(scores, truth, [1, 1, 1])["auc"]
    wide = run.by_columns(scores, truth, [3, 1, 2])
    assert alone == pytest.approx((3 + 3 + 1) / 9)  # of three edges, one outscores only one of the three others
    weights, others = (9 * 1.0, 1 * 1.0, 6.0), (3.0, 3.0, 2.0)  # blocks of edges, and of no edges by their score
    assert wide["auc"] == pytest.approx(((weights[0] + weights[1]) * sum(others) + weights[2] * others[0]) / (16 * 8))
    assert (wide["precision"], wide["recall"]) == (16 / (16 + 3 + 2), 1.0)


def test_a_folder_without_runs_says_how_to_start_some(tmp_path):
    with pytest.raises(SystemExit, match="mask_roc run"):
        report.write(tmp_path, run.WORLDS, run.ESTIMATORS, tmp_path)


def test_rows_of_a_run_are_plain_json(tmp_path):
    one("nonstationary", "SandyMixture", tmp_path, width=8, experts=2)
    for line in (tmp_path / "nonstationary_SandyMixture_0.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # no NaN
