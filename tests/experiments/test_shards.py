import pytest

from experiments import pages, rows
from experiments.shards import report
from experiments.shards.run import presets, run_all


@pytest.mark.slow
def test_the_smoke_preset_runs_and_fills_its_page(tmp_path, monkeypatch):
    run_all("smoke", tmp_path / "place", tmp_path / "rows")
    alone, pair = (rows.read(tmp_path / "rows" / "smoke" / f"{name}.jsonl")[1][0] for name in presets()["smoke"])
    assert alone["manifest"] == pair["manifest"]
    assert alone["confirmed"] == pair["confirmed"] == 1.0
    assert [code for code, _ in pair["refused"]] == [2]
    page = tmp_path / "page.md"
    page.write_text(f"{pages.BEGIN}{pages.END}")
    monkeypatch.setattr(report, "PAGE", page)
    report.report(tmp_path / "rows" / "smoke")
    assert "A second driver ended with exit code 2" in page.read_text()
