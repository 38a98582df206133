"""Files that are damaged, hostile or simply something else: clear errors, and never a wrong number."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from counterpoint import files
from counterpoint.files import cutting, d4rl, foreign
from counterpoint.files.header import head_from_json
from tests.examples import make_factors
from tests.files.examples import SINGLE, TARGETS, damage_all, make_recording, put


class TestBadInput:
    @pytest.mark.parametrize("kind", TARGETS)
    def test_any_damage_is_a_file_problem(self, kind, tmp_path, rng):
        """Bytes flipped, overwritten or cut off: the file still reads, or there is a clear error."""
        path = put(tmp_path, kind, make_recording(rng, factors=make_factors(2, 1)))
        names = [Path(path)] if kind != "minari" else sorted((tmp_path / "minari/robot").rglob("*.*"))
        damage_all(path, [name for name in names if name.is_file()], examples=30 if kind == "minari" else 50)

    @pytest.mark.parametrize("kind", ["parquet", "npz", "d4rl", "robomimic"])
    def test_damaged_numbers_are_noticed(self, kind, tmp_path, rng):
        """Formats of ours have checksums: a flipped bit in a value never becomes another value."""
        recording = make_recording(rng, (300,))
        path = Path(put(tmp_path, kind, recording))
        raw = bytearray(path.read_bytes())
        raw[raw.index(recording.transitions.noise[:16].tobytes()) + 11] ^= 1
        path.write_bytes(raw)
        with pytest.raises(files.FileProblem):
            files.read(path)

    @pytest.mark.parametrize("kind", TARGETS)
    def test_newer_versions_are_refused(self, kind, tmp_path, rng, monkeypatch):
        monkeypatch.setattr("counterpoint.files.header.VERSION", 99)
        path = put(tmp_path, kind, make_recording(rng))
        monkeypatch.undo()
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
        with pytest.raises(files.FileProblem, match="format version 99, newer than 1.*pip install -U counterpoint-rl"):
            files.read(path)

    @pytest.mark.parametrize("kind", SINGLE)
    @pytest.mark.parametrize("other", SINGLE)
    def test_the_wrong_format_behind_a_suffix(self, kind, other, tmp_path, rng):
        path = Path(put(tmp_path, kind, make_recording(rng)))
        if Path(TARGETS[kind]).suffix == Path(TARGETS[other]).suffix or {kind, other} == {"d4rl", "robomimic"}:
            return
        wrong = path.rename(tmp_path / f"wrong{Path(TARGETS[other]).suffix}")
        with pytest.raises(files.FileProblem, match=f"begins like a .*{path.suffix}.*rename"):
            files.read(wrong)

    def test_files_that_are_no_files(self, tmp_path, make_pipe):
        make_pipe(tmp_path / "pipe.npz")
        (tmp_path / "empty.npz").touch()
        (tmp_path / "folder").mkdir()
        (tmp_path / "noise.npz").write_bytes(b"not a zip")
        (tmp_path / "link.npz").symlink_to(tmp_path / "nowhere.npz")
        for name, why in {
            "missing.npz": "No such file",
            "pipe.npz": "not a regular file",
            "empty.npz": "the file is empty",
            "noise.npz": "does not begin like a .npz file",
            "link.npz": "No such file",
            "data.csv": "no format has the suffix '.csv'; there are .h5, .hdf5, .npz, .parquet, and minari:ID",
            "folder": "this folder holds no dataset",
        }.items():
            with pytest.raises(files.FileProblem, match=why) as found:
                files.read(tmp_path / name)
            assert str(found.value).startswith(str(tmp_path / name))

    def test_a_folder_that_may_not_be_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may read anything
        with pytest.raises(files.FileProblem, match="this folder may not be read"):
            files.read(tmp_path)

    @pytest.mark.parametrize("kind", TARGETS)
    def test_rows_that_are_promised_but_missing(self, kind, tmp_path, rng):
        path = put(tmp_path, kind, make_recording(rng))
        scan = files.scan(path)
        liar = files.Scan(scan.path, scan.format, scan.rows + 1, scan.head, scan.columns)
        with pytest.raises(files.FileProblem, match="promises 12 rows and holds 11"):
            liar.read()

    def test_more_than_memory_is_refused_but_may_be_read_in_chunks(self, tmp_path, rng, monkeypatch):
        path = put(tmp_path, "parquet", make_recording(rng, (70_000,)))
        monkeypatch.setattr(os, "sysconf", lambda name: 1000)
        with pytest.raises(files.FileProblem, match="GB, more than the .* of this machine.*in chunks"):
            files.read(path)
        assert sum(map(len, files.chunks(path, 1000))) == 70_000
        with pytest.raises(ValueError, match="rows: expected a whole number, 1 or more"):
            next(files.chunks(path, 0))

    def test_memory_that_runs_out_is_explained(self, monkeypatch):
        with (
            pytest.raises(files.FileProblem, match="data.npz: it does not fit into memory"),
            foreign.named("data.npz"),
            foreign.foreign(),
        ):
            raise MemoryError

        def unknown(name):
            raise ValueError(name)

        monkeypatch.setattr(os, "sysconf", unknown)
        cutting.require_memory(10**20)

    def test_values_that_are_not_numbers_are_named(self, tmp_path):
        bad = np.array([[0.0], [np.nan]])
        np.savez(tmp_path / "a.npz", state=bad, action=bad, reward=bad[:, 0], next_state=bad, terminated=bad[:, 0] > 1)
        with pytest.raises(files.FileProblem, match=r"a.npz: .*state: 1 values are NaN or infinite, first at row 1"):
            files.read(tmp_path / "a.npz")

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("{", "not readable JSON"),
            ("[" * 100_000, "not readable JSON"),
            (5, "not readable JSON"),
            ("[]", "no format version"),
            ('{"version": "1"}', "no format version"),
            ('{"version": 1, "notes": 3}', "malformed"),
            ('{"version": 1, "filters": {"a": "b"}}', "filters"),
            ('{"version": 1, "filters": {"a": [Infinity]}}', "filters"),
            ('{"version": 1, "factors": 3}', "factorisation is not valid"),
            ('{"version": 1, "factors": {"state": {"a": [0, 99999999999]}}}', "claims column 99999999999"),
            ('{"version": 1, "factors": {"state": {"a": [0, 0]}}}', "factorisation is not valid"),
        ],
    )
    def test_headers_that_are_wrong(self, text, why):
        with pytest.raises(files.FileProblem, match=why):
            head_from_json(text)

    def test_columns_that_do_not_belong_together(self, rng):
        recording = make_recording(rng, factors=make_factors(2, 1))
        columns, assembled = recording.columns(), files.recording.assembled
        for changes, why in (
            ({"state": None}, "the columns state are missing"),
            ({"donor": None}, "provenance needs base, donor, swapped"),
            ({"base": columns["base"][1:]}, "one for each row"),
            ({"base": columns["reward"]}, "whole numbers"),
            ({"reward": columns["reward"][1:]}, "same number of rows"),
            ({"state": columns["state"][:, 1:], "next_state": columns["state"][:, 1:]}, "only 3 columns"),
        ):
            mixed = {name: array for name, array in {**columns, **changes}.items() if array is not None}
            with pytest.raises(ValueError, match=why):
                assembled(mixed, recording.head)
        with pytest.raises(TypeError, match="expected Transitions, Counterfactuals or a Recording, got dict"):
            files.Recording.of(columns)

    @pytest.mark.parametrize("rows", [1, 4, 100])
    @pytest.mark.parametrize("keep", [0, 1])
    def test_columns_that_change_on_the_way(self, keep, rows, rng):
        """As in a dataset in which one episode lacks what the others have, or has less of it."""
        whole = make_recording(rng, (3,))
        noise = {"noise": whole.columns()["noise"][:, :keep]} if keep else {}
        rest = {name: array for name, array in whole.columns().items() if name != "noise"} | noise
        for parts in ([whole.columns(), rest], [rest, whole.columns()]):
            found = files.Scan("data.x", "minari", 6, files.Head(), lambda _, parts=parts: iter(parts))
            with pytest.raises(files.FileProblem, match=r"data.x: from row 3 on, noise is not what it is"):
                list(found.chunks(rows))


class TestNpz:
    def test_pickles_are_never_loaded(self, tmp_path, rng):
        columns = make_recording(rng, full=False).columns()
        columns["reward"] = np.array([print] * len(columns["reward"]), object)
        np.savez(tmp_path / "a.npz", allow_pickle=True, **columns)
        with pytest.raises(files.FileProblem, match="reward.npy holds pickled Python objects.*never loaded"):
            files.read(tmp_path / "a.npz")

    @pytest.mark.parametrize(("was", "becomes"), [(b"(11, 5)", b"(99, 5)"), (b"(11, 5), }", b"(10**9,)}")])
    def test_sizes_are_not_believed(self, tmp_path, rng, was, becomes):
        path = Path(put(tmp_path, "npz", make_recording(rng)))
        changed = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                changed[name] = archive.read(name)
        assert was in changed["state.npy"]
        changed["state.npy"] = changed["state.npy"].replace(was, becomes)
        with zipfile.ZipFile(path, "w") as archive:
            for name, raw in changed.items():
                archive.writestr(name, raw)
        with pytest.raises(files.FileProblem):
            files.read(path)

    def test_headers_of_arrays(self, tmp_path, rng):
        columns = make_recording(rng, full=False).columns()
        np.savez(tmp_path / "a.npz", counterpoint=np.zeros(3), **columns)
        with pytest.raises(files.FileProblem, match="header 'counterpoint' is not text"):
            files.read(tmp_path / "a.npz")
        with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
            archive.writestr("state.npy", b"\x93NUMPY\x09\x00")
        with pytest.raises(files.FileProblem, match=r"state.npy has the unknown .npy version \(9, 0\)"):
            files.read(tmp_path / "b.npz")

    def test_d4rl_names_are_understood(self, tmp_path, rng):
        recording = make_recording(rng, full=False)
        np.savez_compressed(tmp_path / "a.npz", **d4rl.arrays(recording))
        came = files.read(tmp_path / "a.npz")
        np.testing.assert_array_equal(came.transitions.next_state, recording.transitions.next_state)
        with pytest.raises(files.FileProblem, match="keys"):
            files.read(tmp_path / "a.npz", keys=["a"])
