"""Texts that change when a thing does: files, and the functions that a job calls.

A function's fingerprint covers its code, the source of its module and of the local modules which that imports, what
it closes over, and the object that it is bound to. An installed module counts by its file and the version of its
package, this package by its version and source. What cannot be fingerprinted (an open connection, say) is named.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache, cached_property, partial
from importlib import metadata
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from counterpoint.user_code import digest, hidden, installed, sources

PACKAGE = Path(__file__).parents[1]
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type(Ellipsis), Path)


class NoFingerprint(ValueError):
    """Something cannot be fingerprinted; the message names it."""


def of_file(path: str | os.PathLike[str]) -> str:
    """Return a text that changes when a file or folder does: sizes, times, and a hash of both ends."""
    found = hashlib.blake2b(digest_size=16)
    files = sorted(file for file in Path(path).rglob("*") if file.is_file()) if os.path.isdir(path) else [Path(path)]
    for file in files:
        about = file.stat()
        found.update(f"{file.name} {about.st_size} {about.st_mtime_ns}".encode())
        with open(file, "rb") as stream:
            found.update(stream.read(2**16))
            stream.seek(max(0, about.st_size - 2**16))
            found.update(stream.read(2**16))
    return found.hexdigest()


def of_value(value: object) -> str:
    """Return a text that changes when a value does, or a function's code.

    Raises:
        NoFingerprint: if there is something in it whose changes would go unnoticed.

    Example:
        >>> one, two = (lambda x: x + 1), (lambda x: x + 2)
        >>> of_value(one) == of_value(one), of_value(one) == of_value(two)
        (True, False)
    """
    walk = _Walk()
    walk.add(value)
    return walk.hash.hexdigest()


@cache
def of_package() -> str:
    """Return a text that changes with the version of this package, or with its source."""
    return f"{metadata.version('counterpoint-rl')} {digest(*PACKAGE.rglob('*.py'))}"


class _Walk:
    """Goes through a value and all that belongs to it, once."""

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, object]] = {}  # the object too, so that its number is not given away

    def add(self, value: Any) -> None:
        if isinstance(value, PLAIN):
            self._put(type(value).__name__, repr(value))
            return
        if id(value) in self._seen:
            self._put("again", self._seen[id(value)][0])
            return
        self._seen[id(value)] = len(self._seen), value
        for inner in self._inside(value):
            self.add(inner)

    def _put(self, *words: object) -> None:
        self.hash.update("\0".join(map(str, words)).encode() + b"\1")

    def _inside(self, value: Any) -> Iterator[Any]:
        """Yield what a value consists of, after its kind has been noted."""
        self._put(type(value).__module__, type(value).__qualname__)
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self._put(value.dtype.str, value.shape)
            self.hash.update(np.ascontiguousarray(value).data)
        elif isinstance(value, Mapping):
            yield from (inner for item in sorted(value.items(), key=lambda item: repr(item[0])) for inner in item)
        elif isinstance(value, Set):
            yield from sorted(value, key=repr)
        elif isinstance(value, Sequence):
            yield from value
        elif isinstance(value, FunctionType | CodeType | MethodType | BuiltinFunctionType | partial | np.ufunc | type):
            yield from self._code(value)
        elif isinstance(value, ModuleType):
            self._put(value.__name__)
        else:
            yield from self._object(value)

    def _code(self, value: Any) -> Iterator[Any]:
        if isinstance(value, CodeType):
            self.hash.update(value.co_code)
            yield from (value.co_names, value.co_consts)
        elif isinstance(value, FunctionType):
            path = Path(value.__code__.co_filename)
            self._put(value.__qualname__)
            self._source(path)
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            yield from (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
            if not path.is_file():  # typed in, so that what it refers to stands in no file
                yield {name: value.__globals__[name] for name in value.__code__.co_names if name in value.__globals__}
        elif isinstance(value, MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, partial):
            yield from (value.func, value.args, value.keywords)
        else:  # classes, and functions without Python source
            owner = getattr(value, "__self__", None)
            name = getattr(value, "__module__", None) or type(value).__module__
            self._put(name, getattr(value, "__qualname__", getattr(value, "__name__", "")))
            self._module(name)
            if owner is not None and not isinstance(owner, ModuleType):
                yield owner

    def _object(self, value: Any) -> Iterator[Any]:
        """Yield the class and the attributes of an object."""
        yield type(value)
        if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor
            yield value.detach().cpu().numpy()
        elif callable(getattr(value, "state_dict", None)):  # a network
            yield dict(value.state_dict())
        elif is_dataclass(value):
            yield from (getattr(value, field.name) for field in fields(value))
        elif hasattr(value, "__dict__"):
            cached = {name for kind in type(value).__mro__ for name, found in vars(kind).items()
                      if isinstance(found, cached_property)}  # fmt: skip
            yield {name: found for name, found in vars(value).items() if name not in cached}
        elif getattr(type(value), "__slots__", None):
            yield [getattr(value, name, None) for name in type(value).__slots__]
        else:
            raise NoFingerprint(f"{type(value).__module__}.{type(value).__qualname__}")

    def _module(self, name: str) -> None:
        import sys  # noqa: PLC0415

        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            self._put(name)
        else:
            self._source(Path(file))

    def _source(self, path: Path) -> None:
        """Note the source of a module: of local ones all that they import, of installed ones their version."""
        if path.is_relative_to(PACKAGE):
            self._put("counterpoint")  # of_package covers it
        elif installed(path):
            self._put(path.name, _version(path), digest(path) if path.suffix == ".py" else "")
        elif path.is_file():
            local = sources(path)
            if (call := hidden(*local)) is not None:
                raise NoFingerprint(f"code that is loaded by {call}")
            self._put(digest(*local))


@cache
def _version(path: Path) -> str:
    """Return the version of the distribution that an installed file belongs to, if that can be told."""
    for name in path.parts[::-1]:
        for known in metadata.packages_distributions().get(Path(name).stem, ()):
            return f"{known} {metadata.version(known)}"
    return ""
