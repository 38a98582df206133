"""Locks that the system lets go of when their owner ends, however it ends."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

try:
    import fcntl
except ImportError:  # only Unix has it; elsewhere nothing is locked and nothing swept
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".partial"


def held(handle: int, *, shared: bool = False) -> bool:
    """Lock an open file or folder for this process, alone or with others that share it; False if that cannot be."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def is_there(handle: int, path: Path) -> bool:
    """Say whether an open file is still the one that has this name."""
    try:
        there, mine = os.lstat(path), os.fstat(handle)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """Open a file or folder just to lock it."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a pipe in its place is not waited for
    try:
        yield handle
    finally:
        os.close(handle)


def sweep(folder: Path, name: str) -> None:
    """Remove what killed processes left behind while they wrote ``name``: unfinished files that nobody holds."""
    if fcntl is None:
        return
    for late in folder.glob(f".{escape(name)}.*{PARTIAL}"):
        with suppress(OSError), opened(late) as handle:
            if held(handle) and is_there(handle, late):
                if late.is_dir():
                    shutil.rmtree(late)
                else:
                    late.unlink()
