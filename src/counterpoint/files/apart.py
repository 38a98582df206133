"""No two files of a job may be one: an output must never replace what the job reads, or another output."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from counterpoint.files.recording import FileProblem


def require_apart(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Raise if two outputs, or an output and an input, are one, however they are spelled or linked.

    Nor may one of them be inside the other, or be what a link inside the other leads to: to replace a folder is to
    replace what is in it.

    Args:
        outputs: files or folders to be written, by what they are ("the report").
        inputs: files or folders that are read, by what they are.

    Raises:
        FileProblem: naming both.

    Example:
        >>> require_apart({"the output": Path("a.parquet")}, {"the data": Path("b.parquet")})
    """
    seen: dict[str, Path] = {}
    for what, path in outputs.items():
        for other, place in inputs.items():
            if _overlap(path, place):
                raise FileProblem(f"{path}: {what} is also {other}, which would be replaced. Choose another name.")
        for other, place in seen.items():
            if _overlap(path, place):
                raise FileProblem(f"{path}: {what} is also {other}. Choose another name for one of them.")
        seen[what] = path


def _overlap(one: Path, other: Path) -> bool:
    if _numbers(one) & _numbers(other):
        return True
    return any(
        first.is_relative_to(second) or second.is_relative_to(first)
        for first in _names(one)
        for second in _names(other)
    )


def _names(path: Path) -> list[Path]:
    """Return the true name of a file or folder, and those of what links inside a folder lead to."""
    return [path.resolve(), *(inner.resolve() for inner in _inside(path) if inner.is_symlink())]


def _numbers(path: Path) -> set[tuple[int, int]]:
    """Return the numbers on the disk of a file, or of a folder and all that is in it."""
    found = set[tuple[int, int]]()
    for each in (path, *_inside(path)):
        with suppress(OSError):
            about = os.stat(each)
            found.add((about.st_dev, about.st_ino))
    return found


def _inside(folder: Path) -> list[Path]:
    return list(folder.rglob("*")) if folder.is_dir() else []
