"""What is in a file is what `inspect` shows, in one pass; its proposal describes the file."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from counterpoint import Factorization, files
from counterpoint.command_line.proposal import proposal
from counterpoint.description import read_description
from counterpoint.files import scanning
from tests.command_line.sprites import DESCRIPTION, prepare, run
from tests.files.examples import factorizations, make_recording

ROOT = Path(__file__).parents[2]


class TestInspect:
    def test_it_shows_what_is_there(self, folder, rng, capsys, monkeypatch):
        monkeypatch.setattr("counterpoint.files.contents.ROWS", 7)
        recording = make_recording(rng, (4, 1, 60, 7), factors=None)
        files.write("data.parquet", recording)
        code, out, err = run(capsys, "inspect", "data.parquet")
        assert (code, err) == (0, "inspect: 72 rows\n")
        data = recording.transitions
        made = int(recording.provenance.swapped.any(axis=1).sum())
        for line in (
            "transitions     72",
            "episodes        4, of 1 to 60 steps, median 6",
            f"terminals       {int(data.terminated.sum())} ({data.terminated.mean():.2%})",
            "NaN             none",
            f"counterfactuals {made}, made from source.parquet",
            "filter train    2 episodes",
        ):
            assert f"  {line}\n" in out
        rows = [line.split() for line in out.partition("array")[2].partition("\n\n")[0].splitlines()[1:]]
        assert len(rows) == 5 + 2 + 1 + 5 + 3
        for name, column, _, least, mean, largest, dtype in rows:
            values = getattr(data, name).reshape(72, -1)[:, int(column)].astype(np.float64)
            expected = [values.min(), values.mean(), values.max()]
            np.testing.assert_allclose([float(least), float(mean), float(largest)], expected, rtol=1e-4)
            assert dtype == str(getattr(data, name).dtype)

    def test_values_that_are_no_numbers_are_counted_not_refused(self, folder, capsys):
        bad = np.array([[0.0, np.nan], [1.0, np.nan], [np.inf, np.nan]])
        arrays = {"state": bad, "action": np.zeros((3, 1)), "reward": bad[:, 0], "next_state": bad}
        np.savez(folder / "data.npz", **arrays, terminated=np.zeros(3, bool))
        code, out, _ = run(capsys, "inspect", "data.npz")
        assert code == 0
        assert "NaN             9 values are NaN or infinite" in out
        assert "state             0  -                               0          0.5            1  1 NaN\n" in out
        assert "state             1  -                             nan          nan          nan  3 NaN\n" in out
        with pytest.raises(files.FileProblem, match="NaN or infinite"):
            files.read("data.npz")

    def test_the_proposal_describes_the_file(self, folder, capsys):
        prepare(folder)
        factors = read_description("robot.toml").factors
        files.write("named.parquet", files.read("data.parquet"), factors=factors)
        assert run(capsys, "inspect", "named.parquet", "--propose", "mine.toml")[0] == 0
        assert read_description("mine.toml").factors == factors
        code, _, err = run(capsys, "inspect", "named.parquet", "--propose", "mine.toml")
        assert code == 2
        assert "it exists" in err
        _, out, _ = run(capsys, "inspect", "named.parquet")
        assert out.endswith((folder / "mine.toml").read_text())

    @given(factorizations())
    def test_any_factors_can_be_proposed(self, factors):
        """All that is known of a file is in the proposal."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.toml"
            path.write_text(proposal(factors.state_width, factors.action_width, factors), encoding="utf-8")
            found = read_description(path).factors
        assert found == factors

    def test_positions_types_and_static_factors_are_proposed_too(self, tmp_path):
        factors = Factorization(
            {"hand": (0, 1, 2), "a cup": (3, 4, 5)},
            {"motor": (0,)},
            positions={"hand": (0, 1), "a cup": (3, 5)},
            types={"hand": "thing", "a cup": "thing"},
            static=("a cup",),
        )
        (tmp_path / "a.toml").write_text(proposal(6, 1, factors))
        assert read_description(tmp_path / "a.toml").factors == factors

    def test_a_description_is_checked_against_the_file(self, folder, capsys):
        prepare(folder)
        code, out, _ = run(capsys, "inspect", "data.parquet", "--description", "robot.toml")
        assert code == 0
        assert "state             4  two[0]  " in out
        (folder / "robot.toml").write_text(DESCRIPTION.replace('"12:16"', '"12:15"'))
        code, _, err = run(capsys, "inspect", "data.parquet", "--description", "robot.toml")
        assert code == 2
        assert "the factors cover only 15" in err

    def test_missing_columns_and_rows_left_out(self, folder, capsys):
        np.savez(folder / "a.npz", state=np.zeros((3, 2)))
        code, _, err = run(capsys, "inspect", "a.npz")
        assert code == 2
        assert "a.npz: the columns action, reward, next_state, terminated are missing" in err
        d4rl = {"observations": np.zeros((6, 2)), "actions": np.zeros((6, 1)), "rewards": np.zeros(6)}
        np.savez(folder / "b.npz", **d4rl, terminals=np.zeros(6), timeouts=np.array([0, 0, 1, 0, 0, 1]))
        assert "left out        2 rows whose next state was not recorded" in run(capsys, "inspect", "b.npz")[1]

    def test_it_reads_in_chunks(self, folder, capsys, monkeypatch):
        prepare(folder)
        seen = []
        scan = files.scan("data.parquet")

        def columns(rows):
            for part in scan.columns(rows):
                seen.append(len(part["state"]))
                yield part

        monkeypatch.setattr("counterpoint.files.contents.ROWS", 50)
        monkeypatch.setattr("counterpoint.command_line.inspect.SAMPLE", 50)
        monkeypatch.setattr(
            "counterpoint.command_line.arguments.scan",
            lambda *_, **__: scanning.Scan(scan.path, scan.format, scan.rows, scan.head, columns),
        )
        assert run(capsys, "inspect", "data.parquet")[0] == 0
        assert max(seen) <= 50
        assert sum(seen) == 300 + 50  # all rows once, and some of them for guesses
