"""The exactness of MuJoCo counterfactuals is measured at its smallest, and its report is made."""

from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("gymnasium_robotics")
pytest.importorskip("rich")

from experiments import pages, rows
from experiments.mujoco_exactness import report, run

TINY = run.PRESETS["smoke"]


def test_presets_cover_all_environments():
    configs = list(run.runs("laptop", run.ENVIRONMENTS))
    assert [config.environment for config in configs] == [*run.ENVIRONMENTS] * len(run.SEEDS)
    assert all(config.counterfactuals == 5_000 for config in configs)
    assert len({config.name for config in configs}) == len(configs)
    (part,) = run.runs("laptop", ["Slide2"], ("near", "identity"), seeds=[7])
    assert part.name == "Slide2-7-near"


def test_the_smoke_preset_runs_and_is_reported(tmp_path):
    config = replace(TINY, environment="FetchPush")
    folder = tmp_path / "smoke"
    with rows.recording(folder / f"{config.name}.jsonl", config) as write:
        run.work(config, write)
    first, *found = rows.read(folder / f"{config.name}.jsonl")[1]
    assert first["same"] == 1.0
    assert [row["mask"] for row in found] == list(run.MASKS)
    by_mask = {row["mask"]: row for row in found}
    assert by_mask["islands"]["wrong"] == 0
    assert by_mask["identity"]["share"] >= by_mask["reach or fallen"]["share"]
    page = tmp_path / "mujoco.md"
    page.write_text(f"{pages.BEGIN}\n{pages.END}\n")
    report.write(folder, tmp_path)
    assert f"| FetchPush | {config.seed} | islands | 30 |" in page.read_text()
