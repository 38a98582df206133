from dataclasses import replace

import pytest

from experiments import pages, rows, window_yield


@pytest.mark.parametrize("world", ["Sprites", "TwoArms"])
def test_a_small_run_writes_rows_and_a_page(world, tmp_path):
    config = replace(window_yield.PRESETS["smoke"], world=world)
    written = []
    window_yield.work(config, lambda **row: written.append(row))
    assert [(row["step"], row["pairing"]) for row in written] == [
        (length, pairing) for length in config.lengths for pairing in window_yield.PAIRINGS
    ]
    for row in written:
        assert row["wrong"] in (0, None)
        assert row["windows"] >= row["audited"]
    (tmp_path / "windows.md").write_text(f"{pages.BEGIN}\n{pages.END}")
    folder = tmp_path / "rows"

    with rows.recording(folder / f"{config.name}.jsonl", config) as write:
        for row in written:
            write(**row)
    window_yield.report(folder, tmp_path)
    page = (tmp_path / "windows.md").read_text()
    assert f"| {world} | sharing |" in page
    assert "0 were wrong" in page
    assert (tmp_path / "windows.png").stat().st_size > 1000
