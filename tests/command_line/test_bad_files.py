"""What the library refuses, the command refuses: exit code 2, one line, and nothing left behind."""

import errno
import os
import resource
from pathlib import Path

import pytest

from counterpoint import files
from counterpoint.files import output
from tests.command_line.sprites import DESCRIPTION, augment, run

QUICK = ("--estimator", "SandyMixture", "--setting", "epochs=1")


class TestBadFiles:
    def refused(self, capsys, folder, *words, out="out.parquet", data="data.parquet"):
        before = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}
        code, text, err = augment(capsys, "--ratio", 2, *words, out=out, data=data)
        assert (code, text) == (2, "")
        assert err.splitlines()[-1].startswith("counterpoint augment: ")
        assert {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()} == before
        assert not list(folder.glob("*.parts"))
        return err

    def test_an_output_that_exists(self, data, folder, capsys):
        (folder / "out.parquet").write_text("mine")
        assert "--force" in self.refused(capsys, folder)
        assert augment(capsys, "--ratio", 2, "--force")[0] == 0
        assert len(files.read("out.parquet")) == 900

    def test_links_folders_and_missing_folders(self, data, folder, capsys):
        (folder / "link.parquet").symlink_to(folder / "elsewhere.parquet")
        (folder / "folder.parquet").mkdir()
        assert "symbolic link" in self.refused(capsys, folder, "--force", out="link.parquet")
        assert "a folder or a device" in self.refused(capsys, folder, "--force", out="folder.parquet")
        assert "there is no folder" in self.refused(capsys, folder, out="nowhere/out.parquet")
        assert not (folder / "elsewhere.parquet").exists()

    def test_wrong_suffixes_and_formats(self, data, folder, capsys):
        assert "no format has the suffix '.csv'" in self.refused(capsys, folder, out="out.csv")
        assert "no format has the suffix '.txt'" in self.refused(capsys, folder, data="data.txt")
        (folder / "fake.npz").write_bytes((folder / "data.parquet").read_bytes())
        assert "begins like a .parquet file" in self.refused(capsys, folder, data="fake.npz")
        assert "No such file" in self.refused(capsys, folder, data="nothing.parquet")

    def test_a_newer_format(self, data, folder, capsys, monkeypatch):
        monkeypatch.setattr("counterpoint.files.header.VERSION", 99)
        files.write("data.parquet", data, force=True)
        monkeypatch.setattr("counterpoint.files.header.VERSION", 1)
        assert "format version 99, newer than 1" in self.refused(capsys, folder)

    def test_a_truncated_file(self, data, folder, capsys):
        raw = (folder / "data.parquet").read_bytes()
        (folder / "data.parquet").write_bytes(raw[:-9])
        assert "damaged" in self.refused(capsys, folder)

    def test_a_wrong_description(self, data, folder, capsys):
        (folder / "robot.toml").write_text(DESCRIPTION.replace("[mask]", "[maks]"))
        assert "line 11: unknown section 'maks'; did you mean 'mask'?" in self.refused(capsys, folder)
        (folder / "robot.toml").write_text(DESCRIPTION.replace('"12:16"', '"12:15"'))
        assert "the factors cover only 15" in self.refused(capsys, folder)

    @pytest.mark.parametrize("limit", [0, 2000, 20_000])
    def test_a_full_disk(self, limit, data, folder, capsys):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            err = self.refused(capsys, folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "the file would be larger than the system allows" in err

    @pytest.mark.parametrize(("code", "why"), [(errno.EROFS, "is read-only"), (errno.EACCES, "may not be written to")])
    def test_a_folder_that_cannot_be_written(self, code, why, data, folder, capsys, monkeypatch):
        def refuse(*_, **__):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(Path, "mkdir", refuse)
        assert why in self.refused(capsys, folder)
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        monkeypatch.setattr("counterpoint.files.output.Output", refuse)
        assert why in self.refused(capsys, folder)


class TestOtherVerbs:
    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (("convert", "augmented.npz", "old.npz"), "write"),
            (("convert", "augmented.npz", "old.npz"), "Output"),
            (("fit-mask", "data.parquet", "robot.toml", "--out", "old.safetensors", *QUICK), "write"),
            (("report", "augmented.npz", "robot.toml", "--out", "old.html"), "Output"),
            (("inspect", "data.parquet", "--propose", "old.toml"), "write"),
        ],
        ids=lambda found: found if isinstance(found, str) else found[0],
    )
    def test_a_disk_that_is_full_or_read_only(self, words, what, data, folder, capsys, monkeypatch):
        """A sentence with the file, exit code 2, the old file intact, and nothing beside it."""
        assert augment(capsys, "--ratio", 1, out="augmented.npz")[0] == 0
        (old,) = (word for word in words if word.startswith("old"))
        (folder / old).write_text("old")
        there = sorted(os.listdir(folder))
        code, why = {"write": (errno.ENOSPC, "the disk is full"), "Output": (errno.EROFS, "is read-only")}[what]

        def refuse(*_, **__):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os if what == "write" else output, what, refuse)
        found, _, err = run(capsys, *words, "--force")
        assert (found, (folder / old).read_text(), sorted(os.listdir(folder))) == (2, "old", there)
        assert f"{old}: not written, " in err.splitlines()[-1]
        assert why in err.splitlines()[-1]
