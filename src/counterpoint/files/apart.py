"""No two files of a job may be one: an output must never replace what the job reads, or another output."""

import os
from collections.abc import Mapping
from pathlib import Path

from counterpoint.files.recording import FileProblem


def require_apart(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> None:
    """Raise if two outputs, or an output and an input, are one file, however they are spelled or linked.

    Args:
        outputs: files to be written, by what they are ("the report").
        inputs: files or folders that are read, by what they are. An output may not be inside such a folder either.

    Raises:
        FileProblem: naming both.

    Example:
        >>> require_apart({"the output": Path("a.parquet")}, {"the data": Path("b.parquet")})
    """
    seen: dict[tuple[object, ...], str] = {}
    for what, path in outputs.items():
        for other, place in inputs.items():
            if _same(path, place):
                raise FileProblem(f"{path}: {what} is also {other}, which would be replaced. Choose another name.")
        for identity in _identities(path):
            if identity in seen:
                raise FileProblem(f"{path}: {what} is also {seen[identity]}. Choose another name for one of them.")
            seen[identity] = what


def _same(path: Path, place: Path) -> bool:
    if _identities(path) & _identities(place):
        return True
    return place.is_dir() and path.resolve().is_relative_to(place.resolve())


def _identities(path: Path) -> set[tuple[object, ...]]:
    """Return what identifies a file: its name in its true folder, and its number on the disk if it exists."""
    found: set[tuple[object, ...]] = {("name", str(path.resolve()))}
    try:
        about = os.stat(path)
    except OSError:
        return found
    return found | {("number", about.st_dev, about.st_ino)}
