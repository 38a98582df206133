"""Every format through the same door: exact round trips, pieces, clear errors, nothing half-written."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint import Augmenter, Factorization, Position, Transitions, files
from counterpoint.core.factors import Factorization as Factors
from counterpoint.files import blocks, d4rl, output, scanning, trees
from counterpoint.files.blocks import Blocks
from counterpoint.files.header import VERSION, head_from_json, head_to_json
from counterpoint.files.recording import joined
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors

# A target is a format and the name of an output in it.
TARGETS = {
    "parquet": "data.parquet",
    "npz": "data.npz",
    "d4rl": "data.hdf5",
    "robomimic": "demos.h5",
    "minari": "minari:robot/data-v0",
}
SINGLE = [kind for kind in TARGETS if kind != "minari"]  # those that are one file
DTYPES = ["float32", "float64", "float16", "int64", "int8", "uint16", "bool"]


@pytest.fixture(autouse=True)
def minari_root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))


def target(folder, kind):
    return TARGETS[kind] if kind == "minari" else f"{folder}/{TARGETS[kind]}"


def put(folder, kind, data, **options):
    """Write and return the path."""
    path = target(folder, kind)
    files.write(path, data, format=kind if kind == "robomimic" else None, **options)
    return path


def assert_same(came, expected):
    mine, theirs = came.columns(), expected.columns()
    assert list(mine) == list(theirs)
    for name, array in theirs.items():
        assert mine[name].dtype == array.dtype, name
        assert mine[name].shape == array.shape, name
        assert mine[name].tobytes() == array.tobytes(), name


def make_recording(rng, lengths=(4, 1, 6), dtype="float32", *, full=True, factors=None):
    """Whole episodes that every format can hold, with all columns if ``full``."""
    width, rows = factors.state_width if factors else 5, sum(lengths)
    chains = [(100 * rng.random((length + 1, width))).astype(dtype) for length in lengths]
    states = [chain[:-1] for chain in chains], [chain[1:] for chain in chains]
    data = Transitions(
        np.concatenate(states[0]),
        (9 * rng.random((rows, factors.action_width if factors else 2))).astype(dtype),
        rng.random(rows).astype("float32"),
        np.concatenate(states[1]),
        rng.random(rows) < 0.2,
        episode=np.repeat(np.arange(len(lengths)), lengths),
        step=np.concatenate([np.arange(length) for length in lengths]),
        noise=rng.random((rows, 3)) if full else None,
    )
    nodes = factors.n + factors.m if factors else 9
    parents = files.Provenance(rng.integers(0, 99, rows), rng.integers(0, 99, rows), rng.random((rows, nodes)) < 0.5)
    filters = {"train": tuple(range(0, len(lengths), 2)), "valid": tuple(range(1, len(lengths), 2))}
    head = files.Head(factors, "source.parquet", filters, {"seed": 3, "why": ["ü", None]})
    return files.Recording(data, head if full else files.Head(factors), parents if full else None)


@st.composite
def factorizations(draw):
    """Any factorisation: shuffled columns, derived ones, contexts, noise, positions, types."""
    owners = draw(st.lists(st.integers(-1, 3), min_size=1, max_size=7).filter(lambda found: max(found) >= 0))
    names = draw(st.lists(st.text(min_size=1, max_size=6), min_size=8, max_size=8, unique=True))
    state = {names[o]: [c for c, owner in enumerate(owners) if owner == o] for o in sorted(set(owners) - {-1})}
    action = {names[4 + i]: (i,) for i in range(draw(st.integers(0, 2)))}
    placed = draw(st.lists(st.sampled_from(list(state)), unique=True))
    number = st.floats(-9, 9, allow_nan=False)
    return Factorization(
        state,
        action,
        derived=tuple(c for c, owner in enumerate(owners) if owner == -1),
        context=draw(st.lists(st.sampled_from(list(state)), unique=True)),
        noise={name: (i,) for i, name in enumerate(draw(st.lists(st.sampled_from(list(state)), unique=True)))},
        positions={name: Position((state[name][0],), draw(number), draw(st.tuples(number))) for name in placed},
        types={name: "kind" for name in state if len(state[name]) == 1},
    )


@st.composite
def recordings(draw, kind):
    """Recordings of any shape and dtype; whole episodes where the format holds nothing else."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    factors = draw(st.none() | factorizations())
    if kind == "minari":
        hypothesis.assume(factors is None or factors.m)
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    made = make_recording(rng, lengths, draw(st.sampled_from(DTYPES)), factors=factors, full=draw(st.booleans()))
    if kind in ("parquet", "npz", "d4rl") and draw(st.booleans()):
        plain = made.transitions.replace(episode=None, step=None, next_state=made.transitions.state[::-1].copy())
        return files.Recording(plain, made.head, made.provenance)
    return made


class TestRoundTrips:
    @pytest.mark.parametrize("kind", TARGETS)
    def test_what_is_written_is_read_bit_for_bit(self, kind):
        @settings(max_examples=10 if kind == "minari" else 25)
        @given(recordings(kind), st.integers(1, 40))
        def check(recording, rows):
            with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
                patch.setenv("MINARI_DATASETS_PATH", folder)
                path = put(folder, kind, recording)
                scan = files.scan(path)
                assert (scan.format, scan.rows, scan.factors) == (kind, len(recording), recording.factors)
                whole = scan.read()
                assert_same(whole, recording)
                assert whole.head == recording.head
                pieces = list(files.pieces(path, rows))
                assert [len(piece) for piece in pieces[:-1]] == [rows] * (len(pieces) - 1)
                assert_same(joined(pieces), recording)

        check()

    @pytest.mark.parametrize("kind", TARGETS)
    def test_from_any_format_to_any_other(self, kind, tmp_path, rng):
        recording = make_recording(rng, factors=make_factors(2, 1))
        path = put(tmp_path, kind, recording)
        for other in SINGLE:
            (tmp_path / other).mkdir()
            again = files.read(put(tmp_path / other, other, files.read(path)))
            assert_same(again, recording)
            assert again.head == recording.head

    @pytest.mark.parametrize("kind", ["parquet", "npz", "d4rl"])
    def test_counterfactuals_keep_their_parents(self, kind, tmp_path, rng):
        factors = make_factors(3, 1)
        data = make_data(factors, 30, rng)
        made = Augmenter(factors, Constant.identity(factors), first_column).fill(data, 50, rng=rng)
        path = put(tmp_path, kind, made, factors=factors, source="real.parquet")
        came = files.read(path)
        assert came.head == files.Head(factors, "real.parquet")
        for name in ("base", "donor", "swapped"):
            np.testing.assert_array_equal(getattr(came.provenance, name), getattr(made, name))
        assert_same(came, files.Recording.of(made))

    def test_real_rows_are_their_own_parents(self):
        real = files.Provenance.real(3, make_factors(2, 1), first=7)
        assert real.base.tolist() == real.donor.tolist() == [7, 8, 9]
        assert not real.swapped.any()

    @pytest.mark.parametrize("kind", SINGLE)
    def test_written_in_any_parts_it_is_the_same(self, kind, tmp_path, rng, monkeypatch):
        monkeypatch.setattr("counterpoint.files.writing.BLOCK_ROWS", 7)
        recording = make_recording(rng, (5, 9, 1, 12, 2), factors=make_factors(2, 1))
        for cuts in ([], [7, 14], [1, 2, 3, 20], [13]):
            path = f"{tmp_path}/{TARGETS[kind]}"
            format_name = kind if kind == "robomimic" else None
            with files.writer(path, recording.head, format=format_name, force=True) as out:
                for start, stop in zip([0, *cuts], [*cuts, len(recording)], strict=True):
                    part = recording[start:stop]
                    scratch = part.transitions.state.copy()
                    out.append(files.Recording(part.transitions.replace(state=scratch), part.head, part.provenance))
                    scratch[:] = 0  # what was appended may be reused at once
                assert out.rows == len(recording)
            assert_same(files.read(path), recording)

    def test_filters_select_episodes(self, rng):
        recording = make_recording(rng)
        assert set(recording.only("train").transitions.episode) == {0, 2}
        with pytest.raises(ValueError, match="no filter is called 'test'; there are train, valid"):
            recording.only("test")

    @given(factorizations())
    def test_factorisations_survive_json(self, factors):
        again = files.factors_from_json(json.loads(json.dumps(files.factors_to_json(factors))))
        assert again == factors
        assert again.names == factors.names

    def test_blocks_pass_whole_without_a_copy(self, rng):
        recording = make_recording(rng, (20,))
        (first, second), rest = Blocks(10).push(recording), list(Blocks(99).push(recording))
        assert np.shares_memory(first.transitions.state, recording.transitions.state)
        assert len(second) == 10
        assert rest == []


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

    def test_files_that_are_no_files(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.npz")
        (tmp_path / "empty.npz").touch()
        (tmp_path / "noise.npz").write_bytes(b"not a zip")
        (tmp_path / "link.npz").symlink_to(tmp_path / "nowhere.npz")
        for name, why in {
            "missing.npz": "No such file",
            "pipe.npz": "not a regular file",
            "empty.npz": "it is empty",
            "noise.npz": "does not begin as a .npz file does",
            "link.npz": "No such file",
            "data.csv": "no format has the suffix '.csv'; there are .h5, .hdf5, .npz, .parquet, and minari:ID",
            ".": "there is no Minari dataset",
        }.items():
            with pytest.raises(files.FileProblem, match=why) as found:
                files.read(tmp_path / name)
            assert str(found.value).startswith(str(tmp_path / name))

    @pytest.mark.parametrize("kind", TARGETS)
    def test_rows_that_are_promised_but_missing(self, kind, tmp_path, rng):
        path = put(tmp_path, kind, make_recording(rng))
        scan = files.scan(path)
        liar = files.Scan(scan.path, scan.format, scan.rows + 1, scan.head, scan.columns)
        with pytest.raises(files.FileProblem, match="promises 12 rows and holds 11"):
            liar.read()

    def test_more_than_memory_is_refused_but_may_be_read_in_pieces(self, tmp_path, rng, monkeypatch):
        path = put(tmp_path, "parquet", make_recording(rng, (70_000,)))
        monkeypatch.setattr(os, "sysconf", lambda name: 1000)
        with pytest.raises(files.FileProblem, match="GB, more than the .* of this machine.*in pieces"):
            files.read(path)
        assert sum(map(len, files.pieces(path, 1000))) == 70_000
        with pytest.raises(ValueError, match="rows: expected a whole number, 1 or more"):
            next(files.pieces(path, 0))

    def test_memory_that_runs_out_is_explained(self, monkeypatch):
        with (
            pytest.raises(files.FileProblem, match="data.npz: it does not fit into memory"),
            scanning.reading("data.npz"),
        ):
            raise MemoryError

        def unknown(name):
            raise ValueError(name)

        monkeypatch.setattr(os, "sysconf", unknown)
        blocks.require_memory(10**20)

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
            ("[]", "no format version"),
            ('{"version": "1"}', "no format version"),
            ('{"version": 1, "notes": 3}', "malformed"),
            ('{"version": 1, "filters": {"a": "b"}}', "filters"),
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


class TestOutput:
    @pytest.mark.parametrize("kind", SINGLE)
    def test_an_output_that_exists_is_kept_unless_forced(self, kind, tmp_path, rng):
        first, second = make_recording(rng, (3,)), make_recording(rng, (4,))
        path = put(tmp_path, kind, first)
        with pytest.raises(files.FileProblem, match="it exists.*force=True"):
            put(tmp_path, kind, second)
        assert len(files.read(path)) == 3
        put(tmp_path, kind, second, force=True)
        assert len(files.read(path)) == 4
        assert os.stat(path).st_mode & 0o777 == 0o666 & ~current_umask()

    def test_links_folders_and_devices_are_never_written(self, tmp_path, rng):
        recording = make_recording(rng)
        old = put(tmp_path, "npz", recording)
        (tmp_path / "link.npz").symlink_to(old)
        (tmp_path / "nowhere.npz").symlink_to(tmp_path / "not there")
        (tmp_path / "folder.npz").mkdir()
        os.mkfifo(tmp_path / "pipe.npz")
        before = Path(old).read_bytes()
        for name, why in {
            "link.npz": "symbolic link",
            "nowhere.npz": "symbolic link",
            "folder.npz": "folder or a device",
            "pipe.npz": "folder or a device",
            "no/data.npz": "there is no folder",
            "x" * 300 + ".npz": "name is too long",
            "data.csv": "no format has the suffix",
        }.items():
            with pytest.raises(files.FileProblem, match=why):
                files.write(tmp_path / name, recording, force=True)
        with pytest.raises(files.FileProblem, match="'robomimic' is not one of npz"):
            files.write(tmp_path / "data.npz", recording, format="robomimic", force=True)
        assert Path(old).read_bytes() == before
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.parametrize("kind", SINGLE)
    @pytest.mark.parametrize("limit", [0, 100, 3000])
    def test_a_full_disk_leaves_the_old_output(self, kind, limit, tmp_path, rng):
        """The system refuses to write past a limit, as it does on a full disk, in the middle of any library."""
        path = put(tmp_path, kind, make_recording(rng, (3,)))
        before = Path(path).read_bytes()
        large = make_recording(rng, (500, 500))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(files.FileProblem) as found:
                put(tmp_path, kind, large, force=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "not written, the file would be larger than the system allows" in str(found.value)
        assert "What was there before is untouched" in str(found.value)
        assert Path(path).read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == [TARGETS[kind]]

    @pytest.mark.parametrize("place", ["fsync", "replace"])
    @pytest.mark.parametrize(("code", "why"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "Input/output error")])
    def test_failures_at_the_end_leave_the_old_output(self, place, code, why, tmp_path, rng, monkeypatch):
        path = put(tmp_path, "parquet", make_recording(rng, (3,)))

        def fail(*_):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, place, fail)
        with pytest.raises(files.FileProblem, match=why):
            put(tmp_path, "parquet", make_recording(rng, (4,)), force=True)
        monkeypatch.undo()
        assert len(files.read(path)) == 3
        assert [entry.name for entry in tmp_path.iterdir()] == ["data.parquet"]

    @pytest.mark.parametrize(
        ("code", "why"),
        [(errno.EACCES, "may not be written to"), (errno.EROFS, "is read-only"), (errno.ENOSPC, "the disk is full")],
    )
    def test_a_folder_that_cannot_be_written(self, code, why, tmp_path, rng, monkeypatch):
        def refuse(path):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(output, "Output", refuse)
        with pytest.raises(files.FileProblem, match=why):
            put(tmp_path, "npz", make_recording(rng))

    def test_an_error_of_the_caller_passes_and_leaves_nothing(self, tmp_path, rng):
        part = make_recording(rng)
        other = part.transitions.replace(noise=part.transitions.noise.astype("float32"))

        def write(name, *parts, then=None):
            with files.writer(tmp_path / name) as out:
                for found in parts:
                    out.append(found)
                if then is not None:
                    raise then

        with pytest.raises(ZeroDivisionError):
            write("a.parquet", part, then=ZeroDivisionError)
        with pytest.raises(KeyboardInterrupt):
            write("a.hdf5", part, then=KeyboardInterrupt)
        with pytest.raises(files.FileProblem, match="nothing to write"):
            write("a.npz", part[:0])
        with pytest.raises(ValueError, match="append: the columns base, donor, noise, swapped differ"):
            write("a.npz", part, other)
        assert not list(tmp_path.iterdir())

    def test_factors_must_fit(self, tmp_path, rng):
        with pytest.raises(ValueError, match="the factors cover only 4"):
            put(tmp_path, "npz", make_recording(rng), factors=make_factors(2, 1))
        assert not list(tmp_path.iterdir())

    def test_an_output_that_appears_meanwhile_is_kept(self, tmp_path, rng):
        def write():
            with files.writer(tmp_path / "a.npz") as out:
                out.append(make_recording(rng))
                (tmp_path / "a.npz").write_text("mine")

        with pytest.raises(files.FileProblem, match="it exists"):
            write()
        assert (tmp_path / "a.npz").read_text() == "mine"

    @pytest.mark.parametrize("kind", ["parquet", "d4rl", "robomimic"])
    def test_killed_in_the_middle_it_leaves_the_old_output(self, kind, tmp_path, rng):
        path = put(tmp_path, kind, make_recording(rng, (3,)))
        code = f"""
import sys
import numpy as np
from counterpoint import files
import counterpoint.files.writing as writing
writing.BLOCK_ROWS = 2
recording = files.read({path!r})
with files.writer({path!r}, format={kind!r}, force=True) as out:
    out.append(recording)
    print("written", flush=True)
    sys.stdin.read()
"""
        child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "written\n"
        (partial,) = tmp_path.glob(".*.partial")
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert len(files.read(path)) == 3
        put(tmp_path, kind, make_recording(rng, (4,)), force=True)
        assert len(files.read(path)) == 4
        assert partial.exists()


class TestMissingLibraries:
    @pytest.mark.parametrize(("kind", "library"), [("parquet", "pyarrow"), ("d4rl", "h5py"), ("minari", "minari")])
    def test_a_missing_library_is_named_with_its_install_line(self, kind, library, tmp_path, rng):
        path = put(tmp_path, kind, make_recording(rng))
        extra = {"d4rl": "hdf5"}.get(kind, kind)
        code = f"""
import sys
sys.modules[{library!r}] = None
from counterpoint import files
try:
    files.read({path!r})
except ImportError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert f"pip install counterpoint-rl[{extra}]" in done.stdout

    def test_npz_needs_no_library(self, tmp_path, rng):
        path = put(tmp_path, "npz", make_recording(rng))
        code = f"""
import sys
sys.modules.update(dict.fromkeys(["pyarrow", "h5py", "minari", "gymnasium", "stable_baselines3", "torch"]))
from counterpoint import files
import counterpoint.goals, counterpoint.adapters.d3rlpy, counterpoint.adapters.torchrl
print(len(files.read({path!r})))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "11\n"


class TestTrees:
    def test_there_and_back(self, rng):
        tree = {"b": rng.random((5, 2, 3)), "a": {"x": rng.random(5), "y": rng.random((5, 1)).astype("float32")}}
        named = dict(trees.parts(tree))
        assert list(named) == ["b", "a/x", "a/y"]
        columns = trees.flat(named)
        again = trees.nested(columns, trees.shapes_of(named))
        np.testing.assert_array_equal(again["b"], tree["b"])
        np.testing.assert_array_equal(again["a"]["x"], tree["a"]["x"])
        assert columns.shape == (5, 8)

    def test_pictures_are_refused(self):
        with pytest.raises(files.FileProblem, match=r"camera holds pictures of 64 x 64 x 3.*keys"):
            trees.flat({"camera": np.zeros((2, 64, 64, 3), np.uint8)})
        assert trees.flat({"grid": np.zeros((2, 7, 7, 3), np.uint8)}).shape == (2, 147)

    def test_the_proposal_has_one_factor_per_part(self):
        shapes = (("hand", (2,)), ("achieved_goal", (1,)), ("nothing", (0,)), ("desired_goal", (1,)))
        factors = trees.proposal(shapes, (("", (2,)),))
        assert factors == Factors({"hand": (0, 1), "desired_goal": (3,)}, {"action": (0, 1)}, derived=(2,))
        assert trees.proposal((("", (4,)),), ()) is None
        assert trees.proposal((("action", (1,)), ("hand", (1,))), (("", (1,)),)).names == (
            "action",
            "hand",
            "action/action",
        )


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def damage_all(path, names, examples):
    """Damage one of the files in many ways; every time, reading works or raises ``FileProblem``."""
    raw = {name: name.read_bytes() for name in names}
    edit = st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255))
    seen = []

    @settings(max_examples=examples, suppress_health_check=list(hypothesis.HealthCheck))
    @given(st.sampled_from(names), st.lists(edit, max_size=4), st.none() | st.floats(0, 1, exclude_max=True))
    def check(name, edits, cut):
        damaged = bytearray(raw[name])
        for place, value in edits:
            damaged[int(place * len(damaged))] = value
        name.write_bytes(damaged if cut is None else damaged[: int(cut * len(damaged))])
        try:
            files.read(path)
        except files.FileProblem as problem:
            seen.append(str(problem))
        finally:
            name.write_bytes(raw[name])

    check()
    assert seen
    assert all(problem.startswith(path) for problem in seen)
    files.read(path)


def test_the_header_says_its_version():
    assert json.loads(head_to_json(files.Head()))["version"] == VERSION == 1
    assert scanning.ROWS == 65536
