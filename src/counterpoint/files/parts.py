"""The finished pieces of a long job, in a folder beside its output, so that it can go on after an interruption.

A piece holds which counterfactuals were accepted, not their columns: a tenth of the bytes, and making the columns
again is quick. What takes long is asking the mask, and that is not done again.
"""

import hashlib
import json
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import listed
from counterpoint.core.engine import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.files.augmentation import Accepted
from counterpoint.files.npz import read_arrays
from counterpoint.files.output import problem
from counterpoint.files.recording import FileProblem

JOB = "job.json"
SECONDS = 1.0  # of work that may be lost


class Parts:
    """A folder of finished pieces; a ledger for `counterpoint.files.augmentation.augmented`.

    Args:
        folder: such as ``out.parquet.parts``.
        job: plain JSON values that tell jobs apart; only the same job goes on from finished pieces.
        resume: go on from what is there.
        force: start over, whatever is there.
    """

    def __init__(self, folder: Path, job: Mapping[str, Any], *, resume: bool = False, force: bool = False) -> None:
        self.folder, self._job = folder, json.loads(json.dumps(job))
        self._waiting: list[Accepted] = []
        self._block, self._since = 0, time.monotonic()
        self._next: dict[int, int] = {}
        try:
            if force and not resume and _is_job(folder):
                shutil.rmtree(folder)
            if os.path.lexists(folder):
                self._require_same(resume)
                for late in folder.glob(".*.partial"):  # of outputs that were not completed
                    late.unlink()
            else:
                self._begin()
        except OSError as error:
            raise problem(folder, error) from error

    def _begin(self) -> None:
        """Make the folder; it has its name only when the job's own file is in it."""
        new = Path(tempfile.mkdtemp(prefix=f".{self.folder.name}.", dir=self.folder.parent))
        try:
            (new / JOB).write_text(json.dumps(self._job), encoding="utf-8")
            new.chmod(0o755)
            new.rename(self.folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def finished(self, block: int) -> Iterator[Accepted]:
        """Iterate over the pieces of a block that are there, up to the first that is missing or damaged.

        Those behind it are removed: what comes in its place may end elsewhere.
        """
        while (piece := _read(self._place(block))) is not None:
            self._next[block] = self._next.get(block, 0) + 1
            yield piece
        for late in self.folder.glob(f"{block:06d}-*.npz"):
            if late.name >= self._place(block).name:
                late.unlink()

    def add(self, block: int, made: Accepted) -> None:
        """Remember what was accepted; it is on the disk a second later at the most."""
        if block != self._block:
            self.flush()
            self._block = block
        self._waiting.append(made)
        if time.monotonic() - self._since >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one piece."""
        if self._waiting:
            _write(self._place(self._block), self._waiting)
            self._next[self._block] = self._next.get(self._block, 0) + 1
        self._waiting, self._since = [], time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the folder of a job that is done or has not got anywhere; keep the pieces of any other."""
        if kind is None or not any(self.folder.glob("*.npz")):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _place(self, block: int) -> Path:
        return self.folder / f"{block:06d}-{self._next.get(block, 0):06d}.npz"

    def _require_same(self, resume: bool) -> None:
        if not _is_job(self.folder):
            raise FileProblem(f"{self.folder}: it is in the way, and no folder of a job. Move it.")
        if not resume:
            raise FileProblem(
                f"{self.folder}: there is an unfinished job. Go on with --resume, or start over (--force)."
            )
        try:
            there = json.loads((self.folder / JOB).read_text(encoding="utf-8"))
        except ValueError as error:
            raise FileProblem(f"{self.folder}: its {JOB} is damaged. Start over with --force.") from error
        keys = sorted({*there, *self._job}) if isinstance(there, dict) else [JOB]
        other = [key for key in keys if not isinstance(there, dict) or there.get(key) != self._job.get(key)]
        if other:
            raise FileProblem(
                f"{self.folder}: the unfinished job there is another one; it differs in {listed(other)}. "
                "Give the same arguments and data to go on, or start over with --force."
            )


def fingerprint(path: str) -> str:
    """Return a text that changes when a file or folder does: sizes, times, and a hash of both ends."""
    found = hashlib.blake2b(digest_size=16)
    files = sorted(file for file in Path(path).rglob("*") if file.is_file()) if os.path.isdir(path) else [Path(path)]
    for file in files:
        about = file.stat()
        found.update(f"{file.name} {about.st_size} {about.st_mtime_ns}".encode())
        with open(file, "rb") as stream:
            found.update(stream.read(2**16))
            stream.seek(max(0, about.st_size - 2**16))
            found.update(stream.read(2**16))
    return found.hexdigest()


def _is_job(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and (folder / JOB).is_file()


def _write(path: Path, made: list[Accepted]) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        with open(temporary, "wb") as file:
            np.savez(
                file,
                **vars(Provenance.concat(*(part.provenance for part in made))),
                funnel=np.array(astuple(sum((part.funnel for part in made), Funnel())), np.int64),
            )
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise problem(path, error) from error


def _read(path: Path) -> Accepted | None:
    """Read a piece; None if it is not there, or damaged (checksums tell)."""
    try:
        found = read_arrays(path)
        parents = Provenance(found["base"], found["donor"], found["swapped"])
        return Accepted(parents, Funnel(*map(int, found["funnel"])))
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        return None
