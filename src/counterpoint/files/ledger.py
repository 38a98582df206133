"""What a long job has accepted so far, in a folder beside its output, so that it can go on after an interruption.

An entry holds which counterfactuals were accepted, not their columns: a tenth of the bytes, and making the columns
again is quick. What takes long is asking the mask, and that is not done again. Every entry says which job it belongs
to and where in it, and has a checksum. An entry that is damaged, forged or out of place is worth nothing: it and those
behind it are removed, and the job makes their rows again.

The folder is locked by the process that works in it, before that process touches anything else. The system lets go of
the lock when the process ends, however it ends.
"""

import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Array, listed
from counterpoint.core.engine import Funnel
from counterpoint.core.factors import Factorization
from counterpoint.core.provenance import Provenance
from counterpoint.files.augmentation import Accepted
from counterpoint.files.locks import PARTIAL, held, is_there, opened
from counterpoint.files.npz import read_arrays
from counterpoint.files.output import output, problem
from counterpoint.files.recording import FileProblem

JOB, OWNER = "job.json", "owner.json"
SECONDS = 1.0  # of work that may be lost


class JobLedger:
    """A folder of entries; the ledger of one job.

    Args:
        folder: such as ``out.parquet.parts``.
        job: plain JSON values that tell jobs apart; only the same job goes on from what is there.
        resume: go on from what is there.
        force: start over, whatever is there.

    Raises:
        FileProblem: if another process works there, or what is there may not be used.
    """

    def __init__(self, folder: Path, job: Mapping[str, Any], *, resume: bool = False, force: bool = False) -> None:
        self.folder, self._job = folder, json.loads(json.dumps(job))
        self._digest = hashlib.blake2b(json.dumps(self._job, sort_keys=True).encode(), digest_size=16).hexdigest()
        self._waiting: list[Accepted] = []
        self._chunk, self._since = 0, time.monotonic()
        self._next: dict[int, int] = {}
        self._stack, self._new = ExitStack(), False
        try:
            self._lock()
            self._begin(resume=resume, force=force)
        except BaseException as error:
            with self._stack:
                if self._new:
                    self._remove()
            if isinstance(error, OSError):
                raise problem(folder, error) from error
            raise

    def _lock(self) -> None:
        """Make the folder if it is not there, and lock it."""
        while True:
            if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
                raise FileProblem(f"{self.folder}: this is in the way, and it is not the folder of a job. Move it.")
            self.folder.mkdir(exist_ok=True)
            with suppress(FileNotFoundError), ExitStack() as stack:
                handle = stack.enter_context(opened(self.folder))
                if not held(handle):
                    raise FileProblem(
                        f"{self.folder}: another process is working on this output{_owner(self.folder)}. "
                        "Wait for it, stop it, or choose another output."
                    )
                if is_there(handle, self.folder):  # nobody removed it between the two steps
                    self._stack = stack.pop_all()
                    return

    def _begin(self, *, resume: bool, force: bool) -> None:
        """Take over the folder: go on with the job in it, or start a new one."""
        entries = list(os.scandir(self.folder))
        there, plain = {entry.name for entry in entries}, all(entry.is_file(follow_symlinks=False) for entry in entries)
        if not plain or (JOB not in there and any(not name.startswith(".") and name != OWNER for name in there)):
            raise FileProblem(f"{self.folder}: this is in the way, and it is not the folder of a job. Move it.")
        self._new = JOB not in there
        if JOB in there and not resume and not force:
            raise FileProblem(
                f"{self.folder}: there is an unfinished job. Continue with --resume, or start over with --force."
            )
        if JOB in there and resume:
            self._require_same()
        for name in there:
            if name.endswith(PARTIAL) or (name not in (JOB, OWNER) and not resume):
                (self.folder / name).unlink()
        owner = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        (self.folder / OWNER).write_text(json.dumps(owner), encoding="utf-8")
        if JOB not in there or not resume:
            with output(self.folder / JOB, force=True) as file:
                file.write(json.dumps(self._job).encode())

    def finished(self, chunk: int, rows: int, factors: Factorization) -> Iterator[Accepted]:
        """Iterate over the entries of a chunk, up to the first that is missing or not right.

        Those behind it are removed: what comes in its place may end elsewhere.

        Args:
            chunk: its number.
            rows: how many real rows it has.
            factors: whose nodes were swapped.
        """
        while (found := self._read(chunk, rows, factors)) is not None:
            self._next[chunk] = self._next.get(chunk, 0) + 1
            yield found
        for late in self.folder.glob(f"{chunk:06d}-*.npz"):
            if late.name >= self._place(chunk).name:
                late.unlink()

    def add(self, chunk: int, made: Accepted) -> None:
        """Remember what was accepted; it is on the disk a second later at most."""
        if chunk != self._chunk:
            self.flush()
            self._chunk = chunk
        self._waiting.append(made)
        if time.monotonic() - self._since >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one entry."""
        if self._waiting:
            self._write(self._waiting)
            self._next[self._chunk] = self._next.get(self._chunk, 0) + 1
        self._waiting, self._since = [], time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Remove the folder of a job that is done or has not got anywhere; keep the entries of any other."""
        with self._stack:
            if kind is None or not any(self.folder.glob("*.npz")):
                self._remove()

    def _remove(self) -> None:
        """Remove the folder; what says that it is a job's goes last, for the next one to find if this one is killed."""
        for entry in sorted(self.folder.iterdir(), key=lambda entry: (entry.name == OWNER, entry.name == JOB)):
            with suppress(OSError):
                entry.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _place(self, chunk: int) -> Path:
        return self.folder / f"{chunk:06d}-{self._next.get(chunk, 0):06d}.npz"

    def _write(self, made: list[Accepted]) -> None:
        provenance = Provenance.concat(*(each.provenance for each in made))
        funnel = np.array(astuple(sum((each.funnel for each in made), Funnel())), np.int64)
        arrays: dict[str, Array] = {**vars(provenance), "funnel": funnel}
        place = self._place(self._chunk)
        with output(place, force=True) as file:
            np.savez(file, allow_pickle=False, **arrays, checksum=np.array(self._checksum(place.name, arrays)))

    def _read(self, chunk: int, rows: int, factors: Factorization) -> Accepted | None:
        """Read the next entry of a chunk; None if it is not there or not right."""
        place = self._place(chunk)
        try:
            found = read_arrays(place)
            checksum = str(found.pop("checksum").item())
            if set(found) != {"base", "donor", "swapped", "funnel"} or checksum != self._checksum(place.name, found):
                return None
            funnel = Funnel(*map(int, found.pop("funnel")))
            provenance = Provenance(**found)
            provenance.require_parents(rows, factors)
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return None
        return Accepted(provenance, funnel) if funnel.accepted == len(provenance) else None

    def _checksum(self, name: str, arrays: Mapping[str, Array]) -> str:
        """Return a digest of an entry's job, place and contents."""
        found = hashlib.blake2b(f"{self._digest} {name}".encode(), digest_size=16)
        for key in sorted(arrays):
            found.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode())
            found.update(np.ascontiguousarray(arrays[key]).data)
        return found.hexdigest()

    def _require_same(self) -> None:
        """Raise unless the unfinished job is this one, and nothing can have changed unnoticed."""
        try:
            there = json.loads((self.folder / JOB).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise FileProblem(f"{self.folder}: its {JOB} is damaged. Start over with --force.") from error
        keys = sorted({*there, *self._job}) if isinstance(there, dict) else [JOB]
        other = [key for key in keys if not isinstance(there, dict) or there.get(key) != self._job.get(key)]
        if other:
            raise FileProblem(
                f"{self.folder}: the unfinished job there is not this one: {listed(other)} changed since. "
                "Give the same data, arguments and code to go on, or start over with --force."
            )
        unknown = [key for key, value in self._job.items() if isinstance(value, dict) and "unknown" in value]
        if unknown:
            raise FileProblem(
                f"{self.folder}: it is impossible to tell whether {listed(unknown)} changed since, because it holds "
                f"{listed([self._job[key]['unknown'] for key in unknown])}. Start over with --force."
            )


def _owner(folder: Path) -> str:
    """Say who works in a folder, as far as that is known."""
    try:
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        return f" (process {int(owner['process'])} on {owner['host']!s:.80}, since {owner['since']!s:.40})"
    except (OSError, ValueError, TypeError, KeyError):
        return ""
