"""The experiment on calibration: its made-up estimators are what they claim, it runs, and its report is made."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from counterpoint.checks import check_mask_fn
from counterpoint.masks import Threshold
from counterpoint.metrics import auc
from experiments import pages, rows
from experiments.mask_calibration import estimators, report, run

SMOKE = run.PRESETS["smoke"][2]


def test_presets_have_each_estimator_on_each_world():
    configs = list(run.runs("laptop"))
    assert len({config.name for config in configs}) == len(configs) == 6 * 3 * 3
    assert {config.seed for config in configs} == {100, 101, 102}
    assert [config.estimator for config in run.runs("smoke", ["noisy"])] == ["noisy"] * 3


@pytest.mark.parametrize("world", run.WORLDS)
@pytest.mark.parametrize("name", estimators.HAND_MADE)
def test_made_up_estimators_are_masks_as_good_as_their_names(world, name):
    config = replace(SMOKE, world=world, estimator=name)
    data, made = run.record(config, 0, 1000), run.estimator(config)
    check_mask_fn(Threshold(made, 0.5), data, run.WORLDS[world].factors)
    truth = run.WORLDS[world].mask(data.state, data.action)
    good = auc(made.scores(data.state, data.action), truth, "all")
    bounds = {"random": (0.45, 0.55), "identity": (0.5, 0.95), "transposed": (0.5, 0.97)}.get(name, (0.97, 1.0))
    assert bounds[0] <= good <= bounds[1]


def test_a_run_is_what_the_report_shows(tmp_path, capsys):
    folder, docs = tmp_path / "runs", tmp_path / "docs"
    docs.mkdir()
    (docs / "calibration.md").write_text(f"# Words\n{pages.BEGIN}\nstale\n{pages.END}\nmore words\n")
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(folder, docs)
    with rows.recording(folder / f"{SMOKE.name}.jsonl", SMOKE) as write:
        run.work(SMOKE, write)
    (found,) = report.read(folder)
    assert found.chosen in found.points
    assert 0 <= min(found.gaps) < 0.05
    report.write(folder, docs)
    page = (docs / "calibration.md").read_text()
    assert page.startswith("# Words\n")
    assert page.endswith("more words\n")
    assert f"| sprites | blurred | 1 | {len(found.gaps)} |" in page
    assert "stale" not in page
    assert (docs / "calibration.png").stat().st_size > 10_000
    assert "sprites | blurred" in capsys.readouterr().out
