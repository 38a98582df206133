"""Files of transitions: one way to read them all, one way to write them all.

Each format says for itself how it is recognised, read and written (`counterpoint.files.formats`). All else is common:
checks, chunks, errors, and that an output is either complete or not there.

Example:
    >>> import tempfile
    >>> import numpy as np
    >>> from counterpoint import Factorization, Transitions
    >>> data = Transitions(np.zeros((5, 4)), np.zeros((5, 1)), np.zeros(5), np.zeros((5, 4)), np.zeros(5, bool))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/data.npz"
    ...     write(path, data, factors=Factorization.blocks(state={"left": 2, "right": 2}, action={"push": 1}))
    ...     recording = read(path)
    >>> len(recording), recording.factors.names
    (5, ('left', 'right', 'push'))
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from counterpoint.core.augment import Counterfactuals
from counterpoint.core.factors import Factorization
from counterpoint.core.provenance import Provenance
from counterpoint.core.transitions import Transitions
from counterpoint.files.formats import FORMATS, Format, look
from counterpoint.files.header import factors_from_json, factors_to_json
from counterpoint.files.jobs import Augmented, audit, augment, report
from counterpoint.files.pool import Pool
from counterpoint.files.recording import FileProblem, Head, Recording
from counterpoint.files.sampling import check_task, sample
from counterpoint.files.scanning import ROWS, Scan
from counterpoint.files.shard_jobs import ShardJob, augment_shards
from counterpoint.files.sharding import augment_shard
from counterpoint.files.shards import Shards, shards_of
from counterpoint.files.writing import Writer, writer

__all__ = [
    "FORMATS",
    "Augmented",
    "FileProblem",
    "Format",
    "Head",
    "Pool",
    "Provenance",
    "Recording",
    "Scan",
    "ShardJob",
    "Shards",
    "Writer",
    "audit",
    "augment",
    "augment_shard",
    "augment_shards",
    "check_task",
    "chunks",
    "factors_from_json",
    "factors_to_json",
    "read",
    "report",
    "sample",
    "scan",
    "shards_of",
    "write",
    "writer",
]


def scan(path: str | os.PathLike[str], *, keys: Iterable[str] | None = None) -> Scan:
    """Look at a file without reading its rows.

    Args:
        path: a ``.parquet``, ``.npz``, ``.hdf5`` or ``.h5`` file (D4RL or robomimic, told apart by what is in it),
            ``minari:`` and the id of a local dataset, or the folder of one.
        keys: where observations have named parts (robomimic, Minari), those to take as the state; all by default.

    Raises:
        FileProblem: if it cannot be read; the message says why.
    """
    return look(os.fspath(path), keys)


def read(path: str | os.PathLike[str], *, keys: Iterable[str] | None = None) -> Recording:
    """Read a whole file; arguments and errors are those of `scan`."""
    return scan(path, keys=keys).read()


def chunks(path: str | os.PathLike[str], rows: int = ROWS, *, keys: Iterable[str] | None = None) -> Iterator[Recording]:
    """Iterate over a file ``rows`` rows at a time; arguments and errors are those of `scan`."""
    return scan(path, keys=keys).chunks(rows)


def write(
    path: str | os.PathLike[str],
    data: Transitions | Counterfactuals | Recording,
    *,
    factors: Factorization | None = None,
    source: str | None = None,
    format: str | None = None,  # noqa: A002
    force: bool = False,
) -> None:
    """Write transitions to a file; it is either complete or not there.

    Args:
        path: the output; its suffix chooses the format. ``minari:`` and an id write a new Minari dataset, which never
            replaces an old one.
        data: transitions, counterfactuals with their provenance, or what `read` gave.
        factors: how columns split into factors, kept in the file.
        source: the file that counterfactuals were made from.
        format: ``robomimic`` for that layout of ``.hdf5`` (``d4rl`` is the default there).
        force: replace a file that exists.

    Raises:
        FileProblem: if it exists, or cannot be written; what was there before is untouched.
    """
    recording = Recording.of(data)
    given = recording.head
    head = replace(given, factors=factors or given.factors, source=source or given.source)
    with writer(path, head, format=format, force=force) as out:
        out.append(recording)
