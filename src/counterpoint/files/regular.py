"""Only regular files are read: a pipe would keep the reader waiting for ever, and a device has no end."""

import os
import stat
from pathlib import Path

from counterpoint.files.recording import FileProblem

MOST_TEXT = 64 * 2**20  # bytes of a JSON file beside data


def require_regular(path: str | os.PathLike[str]) -> None:
    """Raise unless there is a regular file of that name, or a link to one."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise FileProblem(error.strerror or str(error)) from error
    if not stat.S_ISREG(mode):
        raise FileProblem("this is not a regular file.")


def require_regular_inside(folder: Path) -> None:
    """Raise unless a folder of data holds regular files and folders alone, and JSON files of a sensible size."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        try:
            about = path.stat()
        except OSError as error:
            raise FileProblem(f"{name}: {error.strerror or error}") from error
        if not stat.S_ISREG(about.st_mode) and not stat.S_ISDIR(about.st_mode):
            raise FileProblem(f"{name}: this is not a regular file.")
        if path.suffix == ".json" and about.st_size > MOST_TEXT:
            raise FileProblem(f"{name}: it has {about.st_size:,} bytes; a text about data has {MOST_TEXT:,} at most.")
