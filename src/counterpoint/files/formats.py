"""The formats: how each is recognised, read, written and fingerprinted.

A format is one row of `FORMATS` and one module, which is imported when it is first needed, so that a library is
needed only by those who use its files. The module has two functions:

- ``scan(path, keys) -> Scan``: what the file or folder says about itself, and a way through its rows;
- ``sink(target, like, head)``: a context manager that gives a function taking recordings, chunk by chunk, the first
  of which is ``like``; when all are there, ``head()`` is what the file shall say about them. The target is an `Output`
  to write into, or for a format of folders a `Folder` to fill.

A format with a prefix, such as ``minari:``, also has ``locate(id) -> Path``, the folder of the data with that id.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from counterpoint.core.arrays import listed
from counterpoint.files.foreign import named
from counterpoint.files.output import Folder, Output, folder_output, output, require_free, require_no_folder
from counterpoint.files.recording import FileProblem
from counterpoint.files.regular import require_regular, require_regular_inside
from counterpoint.files.scanning import Scan


@dataclass(frozen=True)
class Format:
    """A format of files, or of folders.

    Attributes:
        name: what to call it.
        module: where its functions are.
        suffixes: of its files; none for a format of folders.
        magic: how its files begin.
        prefix: in front of an id, for data that has ids instead of file names.
        inside: a folder that holds one of these, which may be patterns, is of this format.
        sink: which function of the module writes it.
        whole_episodes: it holds whole episodes only, no single transitions.
        unbroken: the rows of an episode must follow each other; others in between would cut it in two.
    """

    name: str
    module: str
    suffixes: tuple[str, ...] = ()
    magic: bytes = b""
    prefix: str = ""
    inside: tuple[str, ...] = ()
    sink: str = "sink"
    whole_episodes: bool = False
    unbroken: bool = False

    def owns(self, name: str) -> bool:
        """Say whether a name looks like this format's: by its prefix, by its suffix, or by what is in the folder."""
        if self.prefix and name.startswith(self.prefix):
            return True
        if os.path.isdir(name) and any(next(Path(name).glob(inner), None) for inner in self.inside):
            return True
        return Path(name).suffix.lower() in self.suffixes

    def place(self, name: str) -> Path:
        """Return where the data of that name is, or would be."""
        if self.prefix and name.startswith(self.prefix):
            with named(name):
                return Path(self.function("locate")(name.removeprefix(self.prefix)))
        return Path(name)

    def require_free(self, name: str, *, force: bool) -> None:
        """Raise unless an output of that name may be written."""
        if self.suffixes:
            require_free(self.place(name), force=force)
        else:
            require_no_folder(self.place(name))

    def parts(self, name: str) -> Path:
        """Return the folder in which an unfinished job keeps what it needs to go on."""
        if self.suffixes:
            return Path(f"{name}.parts")
        place = self.place(name).absolute()
        return next(above for above in place.parents if above.is_dir()) / f"{place.name}.parts"

    def scan(self, name: str, keys: tuple[str, ...] | None) -> Scan:
        """Look at a file or folder."""
        place = self.place(name)
        if self.suffixes:
            _require_readable(place, self)
        else:
            require_regular_inside(place)
        found: Scan = self.function("scan")(place, keys)
        return replace(found, path=name, keys=keys)

    @contextmanager
    def output(self, name: str, *, force: bool, folder: Path | None = None) -> Iterator[Output | Folder]:
        """Open a file to write into, or a folder to fill, which gets its name when it is complete."""
        place = self.place(name)
        if self.suffixes:
            with output(place, force=force, folder=folder) as file:
                yield file
        else:
            with folder_output(place) as target:
                yield target

    def function(self, name: str) -> Any:
        """Import the module and return one of its functions."""
        return getattr(import_module(self.module), name)


_HDF5 = b"\x89HDF\r\n\x1a\n"
_ALL = (
    Format("parquet", "counterpoint.adapters.parquet", (".parquet",), b"PAR1"),
    Format("npz", "counterpoint.files.npz", (".npz",), b"PK"),
    Format("d4rl", "counterpoint.adapters.hdf5", (".hdf5", ".h5"), _HDF5, sink="d4rl_sink", unbroken=True),
    Format(
        "robomimic",
        "counterpoint.adapters.hdf5",
        (".hdf5", ".h5"),
        _HDF5,
        sink="robomimic_sink",
        whole_episodes=True,
        unbroken=True,
    ),
    Format(
        "minari",
        "counterpoint.adapters.minari",
        prefix="minari:",
        inside=("metadata.json", "data/metadata.json"),
        whole_episodes=True,
        unbroken=True,
    ),
    Format("lerobot", "counterpoint.adapters.lerobot", prefix="lerobot:", inside=("meta/info.json",), unbroken=True),
    Format("shards", "counterpoint.files.shards", inside=("*.parquet", "*.npz", "*.hdf5", "*.h5")),
)
FORMATS = {found.name: found for found in _ALL}


def chosen(path: str | os.PathLike[str], name: str | None = None) -> Format:
    """Return the format of a file: the first that owns it, or the one called ``name`` if that owns it too."""
    text = os.fspath(path)
    fitting = [kind for kind in FORMATS.values() if kind.owns(text)]
    if name is not None and name in FORMATS and not FORMATS[name].suffixes and not fitting:
        return FORMATS[name]  # a new folder may have any name
    if not fitting:
        raise FileProblem(f"{path}: {_unknown(text)}")
    if name is not None and name not in [kind.name for kind in fitting]:
        names = listed([kind.name for kind in fitting])
        raise FileProblem(f"{path}: its name is that of a {names} file, and format {name!r} was asked for.")
    return FORMATS[name or fitting[0].name]


def look(name: str, keys: Iterable[str] | None) -> Scan:
    """Look at a file without reading its rows, whatever its format."""
    with named(name):
        return chosen(name).scan(name, None if keys is None else tuple(keys))


def _unknown(name: str) -> str:
    """Say why no format owns a name."""
    if os.path.isdir(name):
        if not os.access(name, os.R_OK | os.X_OK):
            return "this folder may not be read."
        folders = [f"{kind.name} ({' or '.join(kind.inside)})" for kind in FORMATS.values() if kind.inside]
        return f"this folder holds no dataset. Folders are recognised by what is in them: {listed(folders)}."
    known = sorted({suffix for kind in FORMATS.values() for suffix in kind.suffixes})
    ids = [f"{kind.prefix}ID" for kind in FORMATS.values() if kind.prefix]
    if not Path(name).suffix:
        return f"give a file ({listed(known)}), {listed(ids)}, or for a new folder of files --format shards."
    return f"no format has the suffix {Path(name).suffix!r}; there are {listed(known)}, and {listed(ids)}."


def _require_readable(path: Path, kind: Format) -> None:
    """Raise unless ``path`` is a regular file that begins as files of that format do."""
    require_regular(path)
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise FileProblem(error.strerror or str(error)) from error
    if start.startswith(kind.magic):
        return
    if not start:
        raise FileProblem("the file is empty.")
    holds = sorted(
        {suffix for other in FORMATS.values() if other.magic and start.startswith(other.magic)
         for suffix in other.suffixes}
    )  # fmt: skip
    hint = f"It begins like a {' or '.join(holds)} file: rename it." if holds else "It is damaged, or something else."
    raise FileProblem(f"it does not begin like a {' or '.join(kind.suffixes)} file. {hint}")
