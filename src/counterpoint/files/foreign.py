"""Where the libraries that read files are called, and how their failures become words.

Only what happens inside ``foreign`` counts as damage to the file. A finding of ours (a NaN in row 7) reaches the user
as it is, with the file's name in front, and a bug of ours stays a bug.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from counterpoint.files.recording import FileProblem

T = TypeVar("T")
_END: Any = object()


@contextmanager
def foreign() -> Iterator[None]:
    """Turn whatever a library stumbles over into a ``FileProblem``.

    Damaged files make libraries fail in many ways (Minari by assertions, HDF5 by ``KeyError``, ``RuntimeError`` or
    ``OSError``), so everything is caught, except for a missing library.
    """
    try:
        yield
    except (FileProblem, ImportError):
        raise
    except MemoryError as error:
        raise FileProblem("it does not fit into memory. Read it in chunks.") from error
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__  # one line, whatever the library says
        raise FileProblem(f"it is damaged, incomplete, or not what its name says: {words}") from error


def guarded(items: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Iterate over what a library gives when it is called, all of it under ``foreign``."""
    with foreign():
        iterator = iter(items())
    while True:
        with foreign():
            item = next(iterator, _END)
        if item is _END:
            return
        yield item


@contextmanager
def named(path: str) -> Iterator[None]:
    """Put the file's name in front of a ``FileProblem``."""
    try:
        yield
    except FileProblem as error:
        if str(error).startswith(path):
            raise
        raise FileProblem(f"{path}: {error}") from error
