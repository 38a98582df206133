"""Fitted estimators as files: weights in safetensors, everything else as JSON in its metadata. No pickle.

A new estimator needs nothing from here: ``NetworkEstimator.save`` and ``load`` do it. Its settings must
be numbers, strings, bools, None, or tuples of these.

The same estimator gives the same bytes. A checksum covers weights and metadata, so a file with a flipped bit is
refused instead of being used.
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.files.header import factors_from_json, factors_to_json
from counterpoint.files.output import output
from counterpoint.files.recording import FileProblem
from counterpoint.files.regular import require_regular
from counterpoint.learn.training.fitting import History
from counterpoint.learn.training.scaling import Moments, Scaling

FORMAT = 1  # raised whenever files of the old kind can no longer be read
MOST = 10_000_000  # the largest whole number that a setting may be
_KEY, _CHECKSUM = "counterpoint", "checksum"


@dataclass(frozen=True, eq=False)
class Record:
    """What a file holds."""

    name: str  # of the estimator's class
    settings: Mapping[str, Any]
    factors: Factorization
    scaling: Scaling
    history: History
    weights: Mapping[str, Tensor]


def write(path: str | Path, record: Record, *, force: bool = True) -> None:
    """Write a record. The file appears whole or not at all, and replaces one that is there only by ``force``."""
    history = asdict(record.history)
    del history["seconds"]  # the same training must give the same bytes
    text = json.dumps(
        {
            "format": FORMAT,
            "name": record.name,
            "settings": record.settings,
            "factors": factors_to_json(record.factors),
            "scaling": asdict(record.scaling),
            "history": history,
            "versions": {
                "counterpoint": version("counterpoint-rl"),
                "numpy": np.__version__,
                "python": platform.python_version(),
                "torch": torch.__version__,
            },
        }
    )
    weights = {name: tensor.detach().clone().contiguous() for name, tensor in record.weights.items()}
    with output(Path(path), force=force) as file:
        file.write(_ordered(save(weights, {_KEY: text, _CHECKSUM: _checksum(text, weights)})))


def read(path: str | Path, *, factors: Factorization | None = None) -> Record:
    """Read a record that ``write`` wrote.

    Args:
        path: the file.
        factors: refuse the file unless it is of this factorisation.

    Raises:
        FileNotFoundError: if there is none.
        FileProblem: if it is damaged, of another kind or format, or of other factors.
    """
    _require_readable(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError, KeyError) as error:
        raise FileProblem(
            f"{path}: this is not a complete safetensors file ({error}). It may be cut off or damaged: save it again."
        ) from error
    found = _metadata(path, metadata)
    if _checksum(metadata[_KEY], weights) != metadata.get(_CHECKSUM, _checksum(metadata[_KEY], weights)):
        raise FileProblem(f"{path}: its checksum does not match its contents. It is damaged: save it again.")
    try:
        record = _record(found, weights)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileProblem(f"{path}: its metadata is not valid ({error}). It is damaged: save it again.") from error
    if factors is not None:
        require_same_factors(path, record.factors, factors)
    return record


def _require_readable(path: str | Path) -> None:
    """Raise unless this is a file that may be read: of one that may not, safetensors says that it is not there."""
    if not os.path.lexists(path):
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        require_regular(path)
        open(path, "rb").close()
    except OSError as error:
        raise FileProblem(f"{path}: {error.strerror or error}") from error
    except FileProblem as error:
        raise FileProblem(f"{path}: {error}") from error


def _ordered(content: bytes) -> bytes:
    """Sort the head of a safetensors file, whose order differs from process to process and from call to call."""
    size = int.from_bytes(content[:8], "little")
    head = json.dumps(json.loads(content[8 : 8 + size]), sort_keys=True, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + content[8 + size :]


def _record(found: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Record:
    """Build a record from JSON values that nobody has checked yet."""
    factors = factors_from_json(found["factors"])
    widths = [factors.state_width, factors.action_width, factors.state_width, factors.state_width]
    scaling = Scaling(**{name: _moments(moments) for name, moments in found["scaling"].items()})
    if [len(getattr(scaling, part.name).mean) for part in fields(Scaling)] != widths:
        raise ValueError("the scaling and the factors have different columns")
    history = History(**{"seconds": 0.0, **_with_tuples(found["history"])})
    settings = _with_tuples(found["settings"])
    large = [name for name, value in settings.items() if isinstance(value, int) and abs(value) > MOST]
    if large:
        raise ValueError(f"the settings {listed(large)} are beyond {MOST:,}")
    return Record(str(found["name"]), settings, factors, scaling, history, weights)


def _moments(found: Mapping[str, Any]) -> Moments:
    moments = Moments(tuple(map(float, found["mean"])), tuple(map(float, found["std"])))
    if len(moments.mean) != len(moments.std) or not np.isfinite([*moments.mean, *moments.std]).all():
        raise ValueError("means and standard deviations must be finite numbers, one of each for every column")
    return moments


def _checksum(text: str, weights: Mapping[str, Tensor]) -> str:
    """Return a digest of the metadata and of every weight."""
    found = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(weights):
        array = weights[name].numpy()
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def require_same_factors(path: str | Path, stored: Factorization, factors: Factorization) -> None:
    """Raise unless a file's factorisation is the expected one, node by node."""
    if stored.names != factors.names:
        raise FileProblem(
            f"{path}: it was fitted to the factors {listed(stored.names)}, expected {listed(factors.names)}. "
            "Fit again, or load the file of this factorisation."
        )
    both = [
        (name, {**stored.state, **stored.action}[name], {**factors.state, **factors.action}[name])
        for name in stored.names
    ]
    other = [f"{name!r} had columns {was}, now {now}" for name, was, now in both if was != now]
    if stored.n != factors.n or stored.derived != factors.derived:
        other.append(f"{stored.n} state factors and derived {stored.derived}, now {factors.n} and {factors.derived}")
    if other:
        raise FileProblem(f"{path}: it was fitted to another factorisation: {listed(other)}. Fit again.")


def _metadata(path: str | Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if _KEY not in metadata or not set(metadata) <= {_KEY, _CHECKSUM}:
        raise FileProblem(f"{path}: counterpoint.learn did not write this file: its metadata has no {_KEY!r}.")
    try:
        found = json.loads(metadata[_KEY])
    except (ValueError, RecursionError) as error:
        raise FileProblem(f"{path}: its metadata is damaged ({error}); save it again.") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        came, versions = (found.get("format"), found.get("versions")) if isinstance(found, dict) else (None, None)
        writer = versions.get("counterpoint", "unknown") if isinstance(versions, dict) else "unknown"
        raise FileProblem(
            f"{path}: it has format {came!r} (written by counterpoint {writer}), expected {FORMAT}. "
            "Use the version that wrote it, or fit again."
        )
    return found


def _with_tuples(found: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with its lists as tuples, as settings have them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
