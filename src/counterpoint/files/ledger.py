"""What a long job has accepted so far, in a folder beside its output, so that it can go on after an interruption.

An entry holds which counterfactuals were accepted, not their columns: a tenth of the bytes, and making the columns
again is quick. What takes long is asking the mask, and that is not done again. Every entry says which job it belongs
to and where in it, and has a checksum. An entry that is damaged, forged or out of place is worth nothing: it and those
behind it are removed, and the job makes their rows again. So nobody waits for an entry to reach the disk: it survives
the end of the process, and if it does not survive that of the machine, its rows are made again.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any, Self

import numpy as np

from counterpoint.core.arrays import Array
from counterpoint.core.factors import Factorization
from counterpoint.core.funnel import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.files.augmentation import Accepted
from counterpoint.files.bits import packed, unpacked
from counterpoint.files.job_folder import JobFolder
from counterpoint.files.npz import read_arrays
from counterpoint.files.output import output

SECONDS = 1.0  # of work that may be lost


class JobLedger(JobFolder):
    """A folder of entries; the ledger of one job. Arguments and errors are those of `JobFolder`."""

    def __init__(self, folder: Path, job: Mapping[str, Any], *, resume: bool = False, force: bool = False) -> None:
        self._waiting: list[Accepted] = []
        self._chunk, self._since = 0, time.monotonic()
        self._next: dict[int, int] = {}
        super().__init__(folder, job, resume=resume, force=force)

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
        """Remember what was accepted; it is in an entry a second later at most."""
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
                self.remove()

    def _place(self, chunk: int) -> Path:
        return self.folder / f"{chunk:06d}-{self._next.get(chunk, 0):06d}.npz"

    def _write(self, made: list[Accepted]) -> None:
        provenance = Provenance.concat(*(each.provenance for each in made))
        funnel = np.array(astuple(sum((each.funnel for each in made), Funnel())), np.int64)
        arrays: dict[str, Array] = {**vars(provenance), "swapped": packed(provenance.swapped), "funnel": funnel}
        if max(provenance.base.max(initial=0), provenance.donor.max(initial=0)) < 2**31:
            arrays |= {name: arrays[name].astype(np.int32) for name in ("base", "donor")}  # half the bytes
        place = self._place(self._chunk)
        with output(place, force=True, sync=False) as file:
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
            wide = {name: found[name].astype(np.int64) for name in ("base", "donor") if found[name].dtype.kind == "i"}
            provenance = Provenance(**wide, swapped=unpacked(found["swapped"], len(factors.names)))
            provenance.require_parents(rows, factors)
        except (OSError, ValueError, TypeError, KeyError, OverflowError):
            return None
        return Accepted(provenance, funnel) if funnel.accepted == len(provenance) else None

    def _checksum(self, name: str, arrays: Mapping[str, Array]) -> str:
        """Return a digest of an entry's job, place and contents."""
        found = hashlib.sha256(f"{self.digest} {name}".encode())  # which processors have instructions for
        for key in sorted(arrays):
            found.update(f"{key} {arrays[key].dtype} {arrays[key].shape}".encode())
            found.update(np.ascontiguousarray(arrays[key]).data)
        return found.hexdigest()
