"""The demonstration, at a small size: every mask has its row, the audit tells them apart, the report is there."""

import re

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from counterpoint import demonstration
from counterpoint.checks import audit
from counterpoint.masks import Threshold
from counterpoint.worlds import collect, uniform_policy


def test_it_ends_with_a_table_and_a_report(tmp_path, monkeypatch):
    said = []
    world = demonstration.WORLD

    def exact(data, held, rng):  # fitting is tested elsewhere, and takes half a minute
        return Threshold(lambda state, action: 1.0 * world.mask(state, action), 0.5), "as good as the exact one"

    monkeypatch.setattr(demonstration, "learned_mask", exact)
    size = demonstration.Size(real=300, made=600, held=300, test=200, epochs=2)
    page = demonstration.run(tmp_path / "demo", 0, size, said.append)
    table = {line.split()[0]: line.split() for line in said if re.match(r"(none|identity|learned|exact) ", line)}
    assert set(table) == {"none", "identity", "learned", "exact"}
    assert [table[name][1] for name in table] == ["300", "900", "900", "900"]
    assert float(table["identity"][2].rstrip("%")) < 50
    assert table["learned"][2] == table["exact"][2] == "100.00%"
    assert table["none"][-1] == "1.00"
    assert all(float(row[-3]) <= float(row[-2]) for row in table.values())  # the best error is no larger than the last
    text = page.read_text()
    assert page == tmp_path / "demo" / "report.html"
    assert "as good as the exact one" in text


@pytest.mark.slow
def test_the_mask_is_learned_well_enough_to_be_useful():
    rng, world = np.random.default_rng(0), demonstration.WORLD
    data, held = (collect(world, uniform_policy(world), 2000, rng, reward_fn=demonstration.TASK) for _ in range(2))
    mask, verdict = demonstration.learned_mask(data, held, rng)
    made, _ = demonstration.augmented(mask, data, 5000, rng)
    assert "fine" in verdict
    assert audit(made, world.step).confirmed > 0.9
