"""The folder of a job that is under way: which job it is, and who works on it.

The folder is locked by the process that works in it, before that process touches anything else. The system lets go of
the lock when the process ends, however it ends.
"""

import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import Any

from counterpoint.core.arrays import listed
from counterpoint.core.augment import Augmenter
from counterpoint.files import fingerprints, header
from counterpoint.files.locks import PARTIAL, held, is_there, opened
from counterpoint.files.output import output, problem
from counterpoint.files.recording import FileProblem

JOB, OWNER = "job.json", "owner.json"


class JobFolder:
    """A folder such as ``out.parquet.parts``, locked, that belongs to one job.

    Args:
        folder: its place; made if it is not there.
        job: plain JSON values that tell jobs apart; only the same job goes on from what is there.
        resume: go on from what is there.
        force: start over, whatever is there.
        shared: work there beside others that do the same.

    Raises:
        FileProblem: if another process works there, or what is there may not be used.
    """

    def __init__(
        self,
        folder: Path,
        job: Mapping[str, Any],
        *,
        resume: bool = False,
        force: bool = False,
        shared: bool = False,
    ) -> None:
        self.folder, self._job = folder, json.loads(json.dumps(job))
        self.digest = hashlib.blake2b(json.dumps(self._job, sort_keys=True).encode(), digest_size=16).hexdigest()
        self._stack, self._new = ExitStack(), False
        try:
            self._lock(shared=shared)
            self._begin(resume=resume, force=force, shared=shared)
        except BaseException as error:
            with self._stack:
                if self._new and not shared:
                    self.remove()
            if isinstance(error, OSError):
                raise problem(folder, error) from error
            raise

    def _lock(self, *, shared: bool) -> None:
        """Make the folder if it is not there, and lock it."""
        while True:
            if self.folder.is_symlink() or (self.folder.exists() and not self.folder.is_dir()):
                raise FileProblem(f"{self.folder}: this is in the way, and it is not the folder of a job. Move it.")
            self.folder.mkdir(exist_ok=True)
            with suppress(FileNotFoundError), ExitStack() as stack:
                handle = stack.enter_context(opened(self.folder))
                if not held(handle, shared=shared):
                    raise FileProblem(
                        f"{self.folder}: another process is working on this output{_owner(self.folder)}. "
                        "Wait for it, stop it, or choose another output."
                    )
                if is_there(handle, self.folder):  # nobody removed it between the two steps
                    self._stack = stack.pop_all()
                    return

    def _begin(self, *, resume: bool, force: bool, shared: bool) -> None:
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
            require_same(self.folder, self._job)
        for name in there:
            if (name.endswith(PARTIAL) and not shared) or (name not in (JOB, OWNER) and not resume):
                (self.folder / name).unlink()
        owner = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        (self.folder / OWNER).write_text(json.dumps(owner), encoding="utf-8")
        if JOB not in there or not resume:
            with output(self.folder / JOB, force=True) as file:
                file.write(json.dumps(self._job).encode())

    def remove(self) -> None:
        """Remove the folder; what says that it is a job's goes last, for the next one to find if this one is killed."""
        for entry in sorted(self.folder.iterdir(), key=lambda entry: (entry.name == OWNER, entry.name == JOB)):
            with suppress(OSError):
                entry.unlink()
        shutil.rmtree(self.folder, ignore_errors=True)


def require_same(folder: Path, job: Mapping[str, Any]) -> None:
    """Raise unless the job of a folder is this one, and nothing can have changed unnoticed."""
    try:
        there = json.loads((folder / JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileProblem(f"{folder}: its {JOB} is damaged. Start over with --force.") from error
    keys = sorted({*there, *job}) if isinstance(there, dict) else [JOB]
    other = [key for key in keys if not isinstance(there, dict) or there.get(key) != job.get(key)]
    if other:
        raise FileProblem(
            f"{folder}: the unfinished job there is not this one: {listed(other)} changed since. "
            "Give the same data, arguments and code to go on, or start over with --force."
        )
    unknown = [key for key, value in job.items() if isinstance(value, dict) and "unknown" in value]
    if unknown:
        raise FileProblem(
            f"{folder}: it is impossible to tell whether {listed(unknown)} changed since, because it holds "
            f"{listed([job[key]['unknown'] for key in unknown])}. Start over with --force."
        )


def identity(augmenter: Augmenter, **about: Any) -> dict[str, Any]:
    """Return what tells a job apart from any other, as JSON values: arguments, functions, code and versions."""
    parts = {part.name: getattr(augmenter, part.name) for part in fields(augmenter) if part.name != "pairs"}
    found = {
        "counterpoint": fingerprints.of_package(),
        "versions": {name: metadata.version(name) for name in ("numpy", "numba")} | {"format": header.VERSION},
        **about,
        **{name: _known(part) for name, part in parts.items()},
    }
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _known(part: object) -> str | dict[str, str]:
    try:
        return fingerprints.of_value(part)
    except fingerprints.NoFingerprint as error:
        return {"unknown": str(error)}


def _owner(folder: Path) -> str:
    """Say who works in a folder, as far as that is known."""
    try:
        owner = json.loads((folder / OWNER).read_text(encoding="utf-8"))
        return f" (process {int(owner['process'])} on {owner['host']!s:.80}, since {owner['since']!s:.40})"
    except (OSError, ValueError, TypeError, KeyError):
        return ""
