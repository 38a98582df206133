"""An output is complete or not there, and what was there before stays until then."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from counterpoint import files
from counterpoint.files import output
from counterpoint.files.ledger import JobLedger
from tests.examples import make_factors
from tests.files.examples import SINGLE, TARGETS, current_umask, make_recording, put


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

    def test_links_folders_and_devices_are_never_written(self, tmp_path, rng, make_pipe):
        recording = make_recording(rng)
        old = put(tmp_path, "npz", recording)
        (tmp_path / "link.npz").symlink_to(old)
        (tmp_path / "nowhere.npz").symlink_to(tmp_path / "not there")
        (tmp_path / "folder.npz").mkdir()
        make_pipe(tmp_path / "pipe.npz")
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
        with pytest.raises(files.FileProblem, match="name is that of a npz file, and format 'robomimic'"):
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

    @pytest.mark.parametrize("kind", ["parquet", "minari"])
    def test_contents_and_names_are_on_the_disk(self, kind, tmp_path, rng, monkeypatch):
        """The machine may lose power as soon as the command has ended."""
        synced, sync = set(), os.fsync
        monkeypatch.setattr(os, "fsync", lambda handle: (synced.add(os.fstat(handle).st_ino), sync(handle)))
        put(tmp_path, kind, make_recording(rng, (3,)))
        written = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "namespace_metadata.json"]
        assert written
        assert {path.stat().st_ino for path in written} <= synced
        assert {path.parent.stat().st_ino for path in written} <= synced

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

    @pytest.mark.parametrize("name", ["minari:robot/data-v0", "lerobot:out"])
    def test_a_folder_that_appears_meanwhile_is_kept(self, name, tmp_path, rng, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
        theirs = tmp_path / name.partition(":")[2] / "theirs"

        def write():
            with files.writer(name) as out:
                out.append(make_recording(rng))
                theirs.parent.mkdir(parents=True)
                theirs.write_text("mine")

        with pytest.raises(files.FileProblem, match="it exists, and a folder of data is never replaced"):
            write()
        assert [path.name for path in theirs.parent.iterdir()] == ["theirs"]
        assert not list(tmp_path.rglob(".*"))

    @pytest.mark.parametrize("kind", ["parquet", "d4rl", "robomimic"])
    def test_killed_in_the_middle_it_leaves_the_old_output(self, kind, tmp_path, rng):
        path = put(tmp_path, kind, make_recording(rng, (3,)))
        code = f"""
import sys
import numpy as np
from counterpoint import files
import counterpoint.files.writing as writing
writing.CHUNK_ROWS = 2
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
        assert not partial.exists()


class TestFoldersOfJobs:
    """A folder of a job that somebody else has filled."""

    @pytest.mark.parametrize("name", ["owner.json", "job.json", "000000-000000.npz"])
    @pytest.mark.parametrize("what", ["pipe", "link"])
    def test_pipes_and_links_in_it_are_not_touched(self, name, what, tmp_path, make_pipe):
        (tmp_path / "precious").write_text("mine")
        folder = tmp_path / "out.parts"
        folder.mkdir()
        if what == "pipe":
            make_pipe(folder / name)
        else:
            (folder / name).symlink_to(tmp_path / "precious")
        with pytest.raises(files.FileProblem, match="this is in the way, and it is not the folder of a job"):
            JobLedger(folder, {"job": 1}, resume=True)
        assert (tmp_path / "precious").read_text() == "mine"
        assert [path.name for path in folder.iterdir()] == [name]

    def test_killed_while_it_is_removed_it_is_still_a_job(self, tmp_path, monkeypatch):
        """Whatever the order of names on the disk, what says that it is a job's goes last but for the owner."""
        removed = []
        monkeypatch.setattr(Path, "unlink", lambda path, **_: removed.append(path.name))
        with JobLedger(tmp_path / "out.parts", {"job": 1}):
            for number in range(3):
                (tmp_path / "out.parts" / f"000000-00000{number}.npz").touch()
            removed.clear()
        assert removed[-2:] == ["job.json", "owner.json"]
        assert len(removed) == 5

    def test_a_pipe_that_looks_like_a_leftover_is_not_waited_for(self, tmp_path, rng, make_pipe):
        start = time.monotonic()
        make_pipe(tmp_path / ".data.npz.00000000.partial")
        put(tmp_path, "npz", make_recording(rng))
        assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]
        assert time.monotonic() - start < 20  # seconds, after which the pipe lets go of those who wait
