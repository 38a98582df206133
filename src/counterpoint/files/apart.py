"""No two files of a job may be one: an output must never replace what the job reads, or another output."""

import os
from collections.abc import Mapping
from pathlib import Path

from counterpoint.files.recording import FileProblem


def require_apart(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Raise if two outputs, or an output and an input, are one, however they are spelled or linked.

    Nor may one of them be inside the other: to replace a folder is to replace what is in it.

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
    if _identities(one) & _identities(other):
        return True
    first, second = one.resolve(), other.resolve()
    return first.is_relative_to(second) or second.is_relative_to(first)


def _identities(path: Path) -> set[tuple[object, ...]]:
    """Return what identifies a file: its name in its true folder, and its number on the disk if it exists."""
    found: set[tuple[object, ...]] = {("name", str(path.resolve()))}
    try:
        about = os.stat(path)
    except OSError:
        return found
    return found | {("number", about.st_dev, about.st_ino)}
