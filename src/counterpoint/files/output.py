"""Output that is either complete or not there: written under a temporary name, synced, then renamed."""

import errno
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.files.locks import PARTIAL, held, is_there, opened, sweep
from counterpoint.files.recording import FileProblem

WRITE_BACK = 32 * 2**20  # bytes after which the system is asked to begin to write


class Output(io.RawIOBase):
    """A new file that remembers its first failure instead of raising it.

    Libraries written in C do not all survive a write that fails: HDF5 ends the process when it cannot flush on
    closing. So writes seem to succeed, and whoever owns the file asks for ``problem``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.raw = io.FileIO(path, "x+")
        self.problem: OSError | None = None
        self._waiting = 0  # bytes that the system holds back

    def write(self, data: Any, /) -> int:
        """Write all of ``data``; after the first failure, nothing."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while len(left) and self.problem is None:
                left = left[os.write(self.raw.fileno(), left) :]
            self._write_back(size)
        except OSError as error:
            self.problem = error
        return size

    def _write_back(self, size: int) -> None:
        """Have the disk begin with what was written last, so that nobody waits for all of it in the end."""
        self._waiting += size
        if self._waiting >= WRITE_BACK and hasattr(os, "posix_fadvise"):
            start = max(0, self.raw.tell() - self._waiting)
            os.posix_fadvise(self.raw.fileno(), start, self._waiting, os.POSIX_FADV_DONTNEED)
            self._waiting = 0

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or extend the file."""
        try:
            return self.raw.truncate(size)
        except OSError as error:
            self.problem = self.problem or error
            return size or 0

    def readinto(self, buffer: Any, /) -> int | None:
        """Read what has been written."""
        return self.raw.readinto(buffer)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move to a place in the file."""
        return self.raw.seek(offset, whence)

    def tell(self) -> int:
        """Return the place in the file."""
        return self.raw.tell()

    def readable(self) -> bool:
        """It can be read."""
        return True

    def writable(self) -> bool:
        """It can be written."""
        return True

    def seekable(self) -> bool:
        """It can be moved in."""
        return True

    def require_written(self) -> None:
        """Raise the first failure, if there was one."""
        if self.problem is not None:
            raise self.problem

    def finish(self) -> None:
        """Make sure that all of it is on the disk."""
        try:
            os.fsync(self.raw.fileno())
        except OSError as error:
            self.problem = self.problem or error
        self.require_written()


@contextmanager
def output(path: Path, *, force: bool, folder: Path | None = None, sync: bool = True) -> Iterator[Output]:
    """Open a file that takes the name ``path`` at the end of the block, if all went well.

    Killed at any moment, it leaves the old file or the complete new one. A killed process may also leave a hidden
    ``.name.xxxxxxxx.partial``, which the next one that writes the same output sweeps away.

    Args:
        path: the name of the output.
        force: replace a file that exists.
        folder: where it is until it is complete, on the same disk; beside the output by default.
        sync: wait until it is on the disk. Without that it survives the end of the process, but not of the machine.

    Raises:
        FileProblem: if the output may not or cannot be written.
    """
    require_free(path, force=force)
    sweep(folder or path.parent, path.name)
    try:
        file = _new(path, folder or path.parent)
    except OSError as error:
        raise problem(path, error) from error
    try:
        try:
            yield file
            file.require_written()
            if sync:
                file.finish()
        except Exception as error:
            if file.problem is None:
                raise
            raise problem(path, file.problem) from error
        require_free(path, force=force)
        _rename(file.path, path, force=force, sync=sync)
    finally:
        with suppress(OSError):
            file.path.unlink()
        file.raw.close()


@dataclass(frozen=True)
class Folder:
    """A folder to fill: where it is now, and the name that it gets when it is complete."""

    path: Path
    final: Path


@contextmanager
def folder_output(final: Path) -> Iterator[Folder]:
    """Make a folder that takes the name ``final`` at the end of the block, if all went well.

    What holds for `output` holds here too, except that a folder which exists is never replaced: no system can do
    that in one step.

    Raises:
        FileProblem: if there is something of that name, or the folder cannot be written.
    """
    require_no_folder(final)
    above = next(folder for folder in final.absolute().parents if folder.is_dir())
    sweep(above, final.name)
    partial = above / f".{final.name}.{secrets.token_hex(4)}{PARTIAL}"
    try:
        partial.mkdir()
        with opened(partial) as handle:
            held(handle)
            yield Folder(partial, final)
            for file in partial.rglob("*"):
                synced(file)
            final.parent.mkdir(parents=True, exist_ok=True)
            os.rename(partial, final)
            synced(final.parent)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # somebody else was quicker
            require_no_folder(final)
        raise problem(final, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def require_free(path: Path, *, force: bool) -> None:
    """Raise unless a regular file may be put there."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        if path.parent.is_dir():
            return
        raise FileProblem(f"{path}: there is no folder {path.parent}. Create it first.") from None
    except OSError as error:
        raise problem(path, error) from error
    if stat.S_ISLNK(mode):
        raise FileProblem(
            f"{path}: this is a symbolic link, and links are never written through. Name the file itself."
        )
    if not stat.S_ISREG(mode):
        raise FileProblem(f"{path}: this is a folder or a device, not a file. Choose another name.")
    if not force:
        raise exists(path)


def require_no_folder(final: Path) -> None:
    """Raise if there is something where a folder of data shall be."""
    if os.path.lexists(final):
        raise FileProblem(
            f"{final}: it exists, and a folder of data is never replaced. Choose another name or version."
        )


def exists(path: Path) -> FileProblem:
    """Say that an output is there already."""
    return FileProblem(
        f"{path}: it exists. Choose another name, or replace it: force=True, or --force on the command line."
    )


def problem(path: Path, error: OSError) -> FileProblem:
    """Say in words why the system refused to write."""
    why = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EFBIG: "the file would be larger than the system allows",
        errno.EROFS: f"the folder {path.parent} is read-only",
        errno.EACCES: f"the folder {path.parent} may not be written to",
        errno.EPERM: f"the folder {path.parent} may not be written to",
        errno.ENAMETOOLONG: "the name is too long",
    }.get(error.errno or 0, str(error))
    if "temporary directory" in str(error):  # Python keeps to itself why it found none
        why = "the disk is full or read-only: there is no room for temporary files"
    return FileProblem(f"{path}: not written, {why}. What was there before is untouched.")


def synced(path: Path) -> None:
    """Make sure that a file, or the names in a folder, are on the disk."""
    try:
        with opened(path) as handle:
            os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some systems cannot sync a folder
            raise


@contextmanager
def leading_to(path: Path) -> Iterator[None]:
    """Say of a failure of the system on the way to an output that this is not written."""
    try:
        yield
    except OSError as error:
        raise problem(path, error) from error


def _new(path: Path, folder: Path) -> Output:
    """Make an unfinished file and lock it, so that nobody sweeps it away."""
    while True:
        file = Output(folder / f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
        with suppress(OSError):  # not every disk can lock; then nobody sweeps there either
            held(file.raw.fileno())
        if is_there(file.raw.fileno(), file.path):
            return file
        file.raw.close()  # swept between the two steps


def _rename(partial: Path, path: Path, *, force: bool, sync: bool) -> None:
    """Give the complete file its name, and see to it that the name is on the disk."""
    try:
        if force:
            os.replace(partial, path)
        else:
            _link(partial, path)
    except OSError as error:
        raise problem(path, error) from error
    if sync:
        synced(path.parent)


def _link(partial: Path, path: Path) -> None:
    """Give a file its name, unless another one has got it meanwhile."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise exists(path) from None
    except OSError:  # a disk without links
        os.replace(partial, path)
