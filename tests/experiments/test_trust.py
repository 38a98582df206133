"""The experiment on trust: its masks are what they claim, it runs, and its report is made."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from counterpoint.checks import check_mask_fn
from counterpoint.worlds import Zoo, collect
from counterpoint.worlds.zoo import STRANGE
from experiments import pages, rows
from experiments.trust import report, run

SMOKE = run.PRESETS["smoke"][0]


def test_worlds_are_of_strange_kinds_alone():
    for preset in ("laptop", "strangers"):
        assert len({config.seed for config in run.PRESETS[preset]}) == 60
        assert all(config.kinds == STRANGE for config in run.PRESETS[preset])


def test_a_forgetful_mask_loses_its_share_of_the_edges_that_come_and_go():
    world = Zoo(0, kinds=("spring",))
    data = collect(world, world.policy, 1500, np.random.default_rng(0))
    exact = world.mask(data.state, data.action)
    always = exact.mean(axis=0) > 0.999
    for share in (0.1, 0.5):
        mask = run.Forgetful(world, always, share)
        check_mask_fn(mask, data, world.factors)
        left = mask(data.state, data.action)
        assert not (left & ~exact).any()
        assert left[:, always].all()
        comes = exact & ~always
        assert (comes & ~left).sum() / comes.sum() == pytest.approx(share, abs=0.05)


def test_a_run_is_what_the_report_shows(tmp_path, capsys):
    folder, docs = tmp_path / "runs", tmp_path / "docs"
    docs.mkdir()
    (docs / "trust.md").write_text(f"# Words\n{pages.BEGIN}\nstale\n{pages.END}\nmore words\n")
    with pytest.raises(SystemExit, match="no finished runs"):
        report.write(folder, docs)
    with rows.recording(folder / f"{SMOKE.name}.jsonl", SMOKE) as write:
        run.work(SMOKE, write)
    found = {row["mask"]: row for row in report.read(folder)}
    assert found["exact"]["truth"] == 0.0
    assert found["all forgotten"]["truth"] > found["a tenth forgotten"]["truth"]
    assert not any(row["fine"] for row in found.values() if row["truth"] > 0.05)
    report.write(folder, docs)
    page = (docs / "trust.md").read_text()
    assert "| all forgotten | 1 |" in page
    assert "stale" not in page
    assert (docs / "trust.png").stat().st_size > 10_000
    assert "the interval covers the truth" in capsys.readouterr().out


def test_of_learned_masks_alone_a_table_is_printed_and_no_page_touched(tmp_path, capsys):
    figures = {"truth": 0.02, "beyond_noise": 0.01, "relative_yield": 0.8, "unknown_value": 0.1, "fine": True}
    figures |= {"wrong_value": 0.01, "wrong_low": 0.0, "wrong_high": 0.03, "verdict": "fine"}
    for name, about in (("learned-1", {"kinds": ["hinge"]}), ("robot-FetchPush", {"robot": "FetchPush"})):
        with rows.recording(tmp_path / f"{name}.jsonl", run.Config(1, fitted=5)) as write:
            write(step=0, mask="learned by trees", **figures, **about)
    report.write(tmp_path, tmp_path / "nowhere")
    said = capsys.readouterr().out
    assert "| 1: hinge | learned by trees | 1.0% (2.0%) | 80% |" in said
    assert "| FetchPush | learned by trees |" in said


def test_trees_are_judged_beside_networks():
    world = Zoo(3, kinds=("push",))
    data = collect(world, world.policy, 500, np.random.default_rng(0))
    config = run.Config(3, kinds=("push",), fitted=600, epochs=1, trees=True)
    names = [name for name, _ in run.learned(config, world, data, np.random.default_rng(0))]
    assert names == ["learned by trees", "learned"]
