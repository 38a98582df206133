"""A job that is interrupted, however rudely, leaves the old output, and goes on from what it has accepted."""

import importlib
import json
import signal
import subprocess
import sys
from itertools import islice

import numpy as np
import pytest

from counterpoint import files
from counterpoint.core import engine
from counterpoint.description import read_description
from counterpoint.files import augmentation, fingerprints, header, ledger, scanning
from counterpoint.files.npz import read_arrays
from tests.command_line.sprites import DESCRIPTION, augment, run

SIZE = 20_000
COUNTING = """
calls, stop = 0, None

def counted(state, action):
    global calls
    calls += 1
    if calls == stop:
        raise KeyboardInterrupt
    return world.mask(state, action)
"""
CHILD = """
import os, sys
import counterpoint.files.ledger as ledger
from counterpoint.command_line import main
from counterpoint.core import engine

engine.CHUNK_BYTES, ledger.SECONDS = 0, 0
moment, calls = sys.argv[1], 0

def wait():
    print("now", flush=True)
    sys.stdin.read()

def after(module, name, count):
    function = getattr(module, name)
    def counted(*arguments):
        global calls
        calls += 1
        if calls == count:
            wait()
        return function(*arguments)
    setattr(module, name, counted)

import counterpoint.files.writing as writing
if moment in ("sync", "rename"):
    finish = writing.Writer.finish
    def finished(self):
        after(os, "fsync" if moment == "sync" else "replace", 1)
        finish(self)
    writing.Writer.finish = finished
else:
    after(ledger.JobLedger, "_write", int(moment))
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def many(data, folder, monkeypatch):
    """Chunks of a few proposals, each an entry of the ledger; a mask that counts its calls, and can interrupt."""
    monkeypatch.setattr(engine, "CHUNK_BYTES", 0)
    monkeypatch.setattr(ledger, "SECONDS", 0)
    with (folder / "sprite_functions.py").open("a") as file:
        file.write(COUNTING)
    (folder / "robot.toml").write_text(DESCRIPTION.replace(":mask", ":counted"))
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("sprite_functions")
    return folder


def functions():
    return sys.modules["sprite_functions"]


def interrupted(capsys, calls, *words):
    """Run a job that is interrupted when the mask is called for the so-manieth time."""
    functions().calls, functions().stop = 0, calls
    assert augment(capsys, "--size", SIZE, *words)[0] == (130 if calls else 0)
    return functions().calls


def spoil(damage, entries):
    """Damage the second entry of a ledger."""
    raw = bytearray(entries[1].read_bytes())
    if damage in ("empty", "nonsense"):
        entries[1].write_bytes(b"" if damage == "empty" else b"PK\x03\x04nonsense")
    elif damage == "bit":
        raw[len(raw) // 2] ^= 1
        entries[1].write_bytes(raw)
    elif damage == "swapped":
        entries[1].write_bytes(entries[2].read_bytes())
        entries[2].write_bytes(raw)
    elif damage == "forged":
        arrays = read_arrays(entries[1])
        np.savez(entries[1], **{**arrays, "donor": arrays["donor"][::-1]})
    else:
        job = entries[1].with_name("job.json")
        before = job.read_text()
        other = ledger.JobLedger(entries[1].parent.with_name("other.parts"), {"another": "job"})
        arrays = read_arrays(entries[1])
        del arrays["checksum"]
        np.savez(entries[1], **arrays, checksum=np.array(other._checksum(entries[1].name, arrays)))
        other.__exit__(None)
        assert job.read_text() == before


@pytest.fixture
def whole(many, capsys):
    """The bytes of a job that nobody interrupts, and how often it asks the mask."""
    assert augment(capsys, "--size", SIZE)[0] == 0
    content, calls = (many / "out.parquet").read_bytes(), functions().calls
    (many / "out.parquet").unlink()
    assert not list(many.glob("*.parts"))
    return content, calls


class TestResume:
    def test_it_goes_on_and_asks_the_mask_no_more_than_it_must(self, whole, many, capsys):
        content, calls = whole
        for stop in (6, 5, 9):
            interrupted(capsys, stop, "--resume")
            assert not (many / "out.parquet").exists()
        entries = sorted(path.name for path in (many / "out.parquet.parts").glob("*.npz"))
        assert entries == [f"000000-{number:06d}.npz" for number in range(len(entries))]
        assert len(entries) > 5
        rest = interrupted(capsys, None, "--resume")
        assert (many / "out.parquet").read_bytes() == content
        assert rest <= calls - len(entries)
        assert not list(many.glob("*.parts"))

    def test_chunks_and_their_entries(self, many, capsys, monkeypatch):
        monkeypatch.setattr(augmentation, "CHUNK_BYTES", 20_000)
        assert augment(capsys, "--size", SIZE)[0] == 0
        content = (many / "out.parquet").read_bytes()
        interrupted(capsys, 20, "--force")
        assert (many / "out.parquet").read_bytes() == content
        assert {path.name[:6] for path in (many / "out.parquet.parts").glob("*.npz")} > {"000000"}
        interrupted(capsys, None, "--force", "--resume")
        assert (many / "out.parquet").read_bytes() == content

    def test_real_rows_are_written_while_they_are_read(self, data, folder, capsys, monkeypatch):
        """How far reading has come when they are handed on leaves no trace in the bytes."""
        monkeypatch.setattr(augmentation, "CHUNK_BYTES", 20_000)
        assert augment(capsys, "--size", SIZE)[0] == 0
        content = (folder / "out.parquet").read_bytes()
        monkeypatch.setattr(augmentation, "CHUNK_ROWS", 7)
        monkeypatch.setattr(scanning, "ROWS", 5)
        plan = augmentation.Plan(files.scan("data.parquet"), read_description("robot.toml").augmenter(), SIZE)
        (first, _), (second, _) = islice(augmentation.augmented(plan), 2)
        assert (len(first), len(second)) == (10, 10)
        assert plan.chunk_rows > 20
        assert augment(capsys, "--size", SIZE, "--force")[0] == 0
        assert (folder / "out.parquet").read_bytes() == content

    def test_another_job_is_refused_and_told_apart(self, whole, many, data, capsys):
        interrupted(capsys, 6)
        before = sorted((many / "out.parquet.parts").iterdir())
        for words, message in (
            ([], "there is an unfinished job. Continue with --resume, or start over with --force"),
            (["--resume", "--seed", 1], "seed changed since"),
            (["--resume", "--size", SIZE + 1], "size changed since"),
        ):
            code, _, err = augment(capsys, "--size", SIZE, *words)
            assert code == 2
            assert message in err
        description = many / "robot.toml"
        description.write_text(description.read_text() + '\n[augment]\npolicy = "sparse"\n')
        files.write("data.parquet", data, force=True)
        assert "data, policy changed since" in augment(capsys, "--size", SIZE, "--resume")[2]
        assert sorted((many / "out.parquet.parts").iterdir()) == before
        description.write_text(description.read_text().replace("sparse", "uniform"))
        interrupted(capsys, None, "--force")
        assert (many / "out.parquet").read_bytes() == whole[0]

    def test_another_version_is_refused(self, many, capsys, monkeypatch):
        interrupted(capsys, 6)
        with monkeypatch.context() as patch:
            patch.setattr(fingerprints, "of_package", lambda: "another")
            assert "counterpoint changed since" in augment(capsys, "--size", SIZE, "--resume")[2]
        monkeypatch.setattr(header, "VERSION", header.VERSION + 1)
        assert "versions changed since" in augment(capsys, "--size", SIZE, "--resume")[2]

    @pytest.mark.parametrize("damage", ["empty", "nonsense", "bit", "swapped", "forged", "of another job"])
    def test_entries_that_are_not_right_are_made_again(self, damage, whole, many, capsys):
        interrupted(capsys, 9)
        entries = sorted((many / "out.parquet.parts").glob("*.npz"))
        spoil(damage, entries)
        interrupted(capsys, 3, "--resume")
        assert len(list((many / "out.parquet.parts").glob("*.npz"))) < len(entries)
        interrupted(capsys, None, "--resume")
        assert (many / "out.parquet").read_bytes() == whole[0]

    def test_a_folder_that_is_no_job_stays(self, many, capsys):
        (many / "out.parquet.parts").mkdir()
        (many / "out.parquet.parts" / "mine.txt").write_text("mine")
        for words in ([], ["--force"], ["--resume"]):
            code, _, err = augment(capsys, "--size", SIZE, *words)
            assert code == 2
            assert "this is in the way, and it is not the folder of a job" in err
        assert (many / "out.parquet.parts" / "mine.txt").read_text() == "mine"

    @pytest.mark.parametrize("text", ["{", "[]", "{}"])
    def test_a_damaged_job_file(self, text, many, capsys):
        interrupted(capsys, 9)
        (many / "out.parquet.parts" / "job.json").write_text(text)
        code, _, err = augment(capsys, "--size", SIZE, "--resume")
        assert code == 2
        assert "start over with --force" in err.lower()

    def test_a_mistake_does_not_cost_the_entries(self, whole, many, capsys):
        interrupted(capsys, 9)
        before = sorted((many / "out.parquet.parts").iterdir())
        (many / "out.parquet").write_text("in the way")
        assert augment(capsys, "--size", SIZE, "--resume")[0] == 2
        assert sorted((many / "out.parquet.parts").iterdir()) == before

    def test_entries_are_a_fraction_of_the_output(self, many, capsys):
        interrupted(capsys, 9)
        (entry, *_) = sorted((many / "out.parquet.parts").glob("*.npz"))
        rows = len(read_arrays(entry)["base"])
        assert entry.stat().st_size / rows < 200 / 7  # of the 200 bytes of a row
        assert set(json.loads((many / "out.parquet.parts" / "job.json").read_text())) >= {"data", "mask_fn", "seed"}

    def test_quick_chunks_share_an_entry(self, many, capsys, monkeypatch):
        monkeypatch.setattr(ledger, "SECONDS", 1000)
        written = []
        monkeypatch.setattr(ledger.JobLedger, "_write", lambda self, made: written.append(made))
        assert augment(capsys, "--size", SIZE)[0] == 0
        assert written == []

    def test_a_full_disk_keeps_what_is_finished(self, whole, many, capsys, monkeypatch):
        write = ledger.JobLedger._write

        def full(self, made):
            if self._place(0).name.endswith("3.npz"):
                raise files.FileProblem(f"{self.folder}: not written, the disk is full.")
            write(self, made)

        monkeypatch.setattr(ledger.JobLedger, "_write", full)
        code, _, err = augment(capsys, "--size", SIZE)
        assert code == 2
        assert "the disk is full" in err
        monkeypatch.setattr(ledger.JobLedger, "_write", write)
        assert len(list((many / "out.parquet.parts").glob("*.npz"))) == 3
        interrupted(capsys, None, "--resume")
        assert (many / "out.parquet").read_bytes() == whole[0]

    def test_a_minari_dataset_goes_on_too(self, many, data, capsys):
        assert run(capsys, "convert", "data.parquet", "minari:sprites/random-v0")[0] == 0
        assert augment(capsys, "--size", SIZE, data="minari:sprites/random-v0")[0] == 0
        content = (many / "out.parquet").read_bytes()
        functions().calls, functions().stop = 0, 9
        assert augment(capsys, "--size", SIZE, "--force", data="minari:sprites/random-v0")[0] == 130
        functions().calls, functions().stop = 0, None
        assert augment(capsys, "--size", SIZE, "--force", "--resume", data="minari:sprites/random-v0")[0] == 0
        assert (many / "out.parquet").read_bytes() == content

    def test_folders_have_fingerprints_too(self, tmp_path):
        (tmp_path / "a").write_text("one")
        before = fingerprints.of_file(str(tmp_path))
        assert fingerprints.of_file(str(tmp_path)) == before
        (tmp_path / "b").write_text("two")
        assert fingerprints.of_file(str(tmp_path)) != before


class TestKilled:
    @pytest.mark.parametrize("old", [b"the old output", None])
    @pytest.mark.parametrize("moment", ["1", "7", "sync", "rename"])
    def test_at_any_moment_it_leaves_the_old_output(self, moment, old, data, folder, monkeypatch, capsys):
        """SIGKILL before the first chunk, among them, when all is written, and just before it gets its name."""
        out = folder / "out.parquet"
        if old is not None:
            out.write_bytes(old)
        words = ["augment", "data.parquet", "robot.toml", "--out", "out.parquet", "--size", str(SIZE), "--force"]
        command = [sys.executable, "-c", CHILD, moment, *words]
        child = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "now\n"
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert (out.read_bytes() if out.exists() else None) == old
        assert len(list((folder / "out.parquet.parts").glob(".*.partial"))) == 1
        monkeypatch.setattr(engine, "CHUNK_BYTES", 0)
        assert augment(capsys, "--size", SIZE, "--force", "--resume")[0] == 0
        resumed = out.read_bytes()
        assert augment(capsys, "--size", SIZE, "--force")[0] == 0
        assert out.read_bytes() == resumed
        assert len(files.read(out)) == SIZE
        assert not [path for path in folder.iterdir() if "part" in path.suffix]


def test_the_thread_that_writes_tells_its_failures(folder):
    from counterpoint.files.writing import behind

    def fail(recording):
        raise files.FileProblem("the disk is full")

    def puts(count):
        with behind(fail) as put:
            for _ in range(count):
                put(np.zeros(3))

    for count in (1, 5):
        with pytest.raises(files.FileProblem, match="the disk is full"):
            puts(count)
