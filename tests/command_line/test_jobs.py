"""A job that is interrupted, however rudely, leaves the old output, and goes on from its finished pieces."""

import importlib
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from counterpoint import files
from counterpoint.core import engine
from counterpoint.files import augmentation, parts
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
import counterpoint.files.augmentation as augmentation, counterpoint.files.parts as parts
from counterpoint.command_line import main
from counterpoint.core import engine

engine.CHUNK_BYTES, parts.SECONDS = 0, 0
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

if moment == "sync":
    after(os, "fsync", 1)
elif moment == "rename":
    after(os, "replace", 22)
else:
    after(parts, "_write", int(moment))
sys.exit(main(sys.argv[2:]))
"""


@pytest.fixture
def many(data, folder, monkeypatch):
    """Small chunks, each of them a piece; a mask that counts its calls, and can interrupt."""
    monkeypatch.setattr(engine, "CHUNK_BYTES", 0)
    monkeypatch.setattr(parts, "SECONDS", 0)
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
        pieces = sorted(path.name for path in (many / "out.parquet.parts").glob("*.npz"))
        assert pieces == [f"000000-{number:06d}.npz" for number in range(len(pieces))]
        assert len(pieces) > 5
        rest = interrupted(capsys, None, "--resume")
        assert (many / "out.parquet").read_bytes() == content
        assert rest <= calls - len(pieces)
        assert not list(many.glob("*.parts"))

    def test_blocks_and_their_pieces(self, many, capsys, monkeypatch):
        monkeypatch.setattr(augmentation, "BLOCK_BYTES", 20_000)
        assert augment(capsys, "--size", SIZE)[0] == 0
        content = (many / "out.parquet").read_bytes()
        interrupted(capsys, 20, "--force")
        assert (many / "out.parquet").read_bytes() == content
        assert {path.name[:6] for path in (many / "out.parquet.parts").glob("*.npz")} > {"000000"}
        interrupted(capsys, None, "--force", "--resume")
        assert (many / "out.parquet").read_bytes() == content

    def test_another_job_is_refused_and_told_apart(self, whole, many, data, capsys):
        interrupted(capsys, 6)
        before = sorted((many / "out.parquet.parts").iterdir())
        for words, message in (
            ([], "there is an unfinished job. Go on with --resume, or start over"),
            (["--resume", "--seed", 1], "it differs in seed"),
            (["--resume", "--size", SIZE + 1], "it differs in size"),
        ):
            code, _, err = augment(capsys, "--size", SIZE, *words)
            assert code == 2
            assert message in err
        description = many / "robot.toml"
        description.write_text(description.read_text() + "\n# changed")
        files.write("data.parquet", data, force=True)
        assert "it differs in data, description" in augment(capsys, "--size", SIZE, "--resume")[2]
        assert sorted((many / "out.parquet.parts").iterdir()) == before
        interrupted(capsys, None, "--force")
        assert (many / "out.parquet").read_bytes() == whole[0]

    @pytest.mark.parametrize("damage", [b"", b"PK\x03\x04nonsense", None])
    def test_damaged_pieces_are_made_again(self, damage, whole, many, capsys):
        interrupted(capsys, 9)
        pieces = sorted((many / "out.parquet.parts").glob("*.npz"))
        raw = bytearray(pieces[1].read_bytes())
        raw[len(raw) // 2] ^= 1
        pieces[1].write_bytes(bytes(raw) if damage is None else damage)
        interrupted(capsys, 3, "--resume")
        assert len(list((many / "out.parquet.parts").glob("*.npz"))) < len(pieces)
        interrupted(capsys, None, "--resume")
        assert (many / "out.parquet").read_bytes() == whole[0]

    def test_a_folder_that_is_no_job_stays(self, many, capsys):
        (many / "out.parquet.parts").mkdir()
        (many / "out.parquet.parts" / "mine.txt").write_text("mine")
        for words in ([], ["--force"], ["--resume"]):
            code, _, err = augment(capsys, "--size", SIZE, *words)
            assert code == 2
            assert "it is in the way, and no folder of a job" in err
        assert (many / "out.parquet.parts" / "mine.txt").read_text() == "mine"

    @pytest.mark.parametrize("text", ["{", "[]", "{}"])
    def test_a_damaged_job_file(self, text, many, capsys):
        interrupted(capsys, 9)
        (many / "out.parquet.parts" / "job.json").write_text(text)
        code, _, err = augment(capsys, "--size", SIZE, "--resume")
        assert code == 2
        assert "start over with --force" in err.lower()

    def test_a_mistake_does_not_cost_the_pieces(self, whole, many, capsys):
        interrupted(capsys, 9)
        before = sorted((many / "out.parquet.parts").iterdir())
        (many / "out.parquet").write_text("in the way")
        assert augment(capsys, "--size", SIZE, "--resume")[0] == 2
        assert sorted((many / "out.parquet.parts").iterdir()) == before

    def test_pieces_are_a_fraction_of_the_output(self, many, capsys):
        interrupted(capsys, 9)
        (piece, *_) = sorted((many / "out.parquet.parts").glob("*.npz"))
        rows = len(parts._read(piece).base)
        assert piece.stat().st_size / rows < 200 / 7  # of the 200 bytes of a row
        assert set(json.loads((many / "out.parquet.parts" / "job.json").read_text())) >= {"data", "description", "seed"}

    def test_quick_chunks_share_a_piece(self, many, capsys, monkeypatch):
        monkeypatch.setattr(parts, "SECONDS", 1000)
        written = []
        monkeypatch.setattr(parts, "_write", lambda path, made: written.append(path))
        assert augment(capsys, "--size", SIZE)[0] == 0
        assert written == []

    def test_a_full_disk_keeps_what_is_finished(self, whole, many, capsys, monkeypatch):
        write = parts._write

        def full(path, made):
            if path.name.endswith("3.npz"):
                raise files.FileProblem(f"{path}: not written, the disk is full.")
            write(path, made)

        monkeypatch.setattr(parts, "_write", full)
        code, _, err = augment(capsys, "--size", SIZE)
        assert code == 2
        assert "the disk is full" in err
        monkeypatch.setattr(parts, "_write", write)
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
        before = parts.fingerprint(str(tmp_path))
        assert parts.fingerprint(str(tmp_path)) == before
        (tmp_path / "b").write_text("two")
        assert parts.fingerprint(str(tmp_path)) != before


class TestKilled:
    @pytest.mark.parametrize("old", [b"the old output", None])
    @pytest.mark.parametrize("moment", ["1", "7", "sync", "rename"])
    def test_at_any_moment_it_leaves_the_old_output(self, moment, old, data, folder, monkeypatch, capsys):
        """SIGKILL before the first piece, among them, when all is written, and just before it gets its name."""
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
