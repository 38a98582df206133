"""The experiment on random worlds: its measures are right, it runs, and its report is made."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")

from counterpoint.worlds import collect
from counterpoint.worlds.zoo import DEVELOPMENT, HELD_OUT, Zoo
from experiments import rows
from experiments.mask_zoo import report, run


def test_presets_keep_kinds_apart():
    assert {config.kind for config in run.runs("laptop")} == set(DEVELOPMENT)
    assert {config.kind for config in run.runs("heldout")} == set(HELD_OUT)
    names = [config.name for config in run.runs("laptop")]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_mask_ranks_every_kind_of_edge_perfectly(seed):
    world, rng = Zoo(seed, kinds=("push", "fan")), np.random.default_rng(seed)
    data = run.recombined(world, collect(world, world.policy, 3000, rng), rng)
    truth = world.mask(data.state, data.action, data.noise)
    found = run.by_types(truth.astype(float), truth, world.factors)
    assert found
    assert all(row["auc"] == 1.0 and 0 < row["share"] < 1 for row in found.values())


def test_runs_become_a_table(tmp_path, capsys):
    for config in run.runs("smoke"):
        with rows.recording(tmp_path / f"{config.name}.jsonl", config) as write:
            run.work(config, write)
    report.write(tmp_path)
    text = capsys.readouterr().out
    assert "| push | 0 |" in text
    assert all(f"`{name}`" in text for name in run.ESTIMATORS)


def test_no_runs_no_report(tmp_path):
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(tmp_path)
