"""Which format belongs to a file, and where its functions are."""

import os
import stat
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from counterpoint.core.arrays import listed
from counterpoint.files.recording import FileProblem

MINARI = "minari:"


@dataclass(frozen=True)
class Format:
    """A format of single files: its two functions as ``module:function``, and how such a file begins."""

    scan: str
    sink: str
    suffixes: tuple[str, ...]
    magic: bytes


_HDF5 = b"\x89HDF\r\n\x1a\n"
FORMATS = {
    "parquet": Format(
        "counterpoint.adapters.parquet:scan", "counterpoint.adapters.parquet:sink", (".parquet",), b"PAR1"
    ),
    "npz": Format("counterpoint.files.npz:scan", "counterpoint.files.npz:sink", (".npz",), b"PK"),
    "d4rl": Format("counterpoint.adapters.hdf5:scan", "counterpoint.adapters.hdf5:d4rl_sink", (".hdf5", ".h5"), _HDF5),
    "robomimic": Format(
        "counterpoint.adapters.hdf5:scan", "counterpoint.adapters.hdf5:robomimic_sink", (".hdf5", ".h5"), _HDF5
    ),
}


def chosen_format(path: str | os.PathLike[str], name: str | None = None) -> str:
    """Return the name of the format of a file: the first that has its suffix, or ``name`` if that has it too."""
    suffix = Path(path).suffix.lower()
    fitting = [kind for kind, found in FORMATS.items() if suffix in found.suffixes]
    if not fitting:
        known = sorted({suffix for found in FORMATS.values() for suffix in found.suffixes})
        raise FileProblem(f"{path}: no format has the suffix {suffix!r}; there are {listed(known)}, and minari:ID.")
    if name is not None and name not in fitting:
        raise FileProblem(f"{path}: format {name!r} is not one of {listed(fitting)}, which have the suffix {suffix!r}.")
    return name or fitting[0]


def function(place: str) -> Any:
    """Import ``module:function`` and return it."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def require_readable(path: Path, kind: Format) -> None:
    """Raise unless ``path`` is a regular file that begins as files of that format do."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise FileProblem("it is not a regular file.")
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise FileProblem(error.strerror or str(error)) from error
    if start.startswith(kind.magic):
        return
    if not start:
        raise FileProblem("it is empty.")
    holds = sorted({s for found in FORMATS.values() if start.startswith(found.magic) for s in found.suffixes})
    hint = f"It begins like a {' or '.join(holds)} file: rename it." if holds else "It is damaged, or something else."
    raise FileProblem(f"it does not begin as a {' or '.join(kind.suffixes)} file does. {hint}")
