"""Fitted estimators as files: weights in safetensors, everything else as JSON in its metadata. No pickle.

A new estimator needs nothing from here: ``NetworkEstimator.save`` and ``load`` do it. Its settings must
be numbers, strings, bools, None, or tuples of these.
"""

import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from counterpoint.core.arrays import listed
from counterpoint.core.factors import Factorization
from counterpoint.core.positions import Position
from counterpoint.learn.training.fitting import History
from counterpoint.learn.training.inputs import Moments, Scaling

FORMAT = 1  # raised whenever files of the old kind can no longer be read
_KEY = "counterpoint"


@dataclass(frozen=True, eq=False)
class Record:
    """What a file holds."""

    name: str  # of the estimator's class
    settings: Mapping[str, Any]
    factors: Factorization
    scaling: Scaling
    history: History
    weights: Mapping[str, Tensor]


def write(path: str | Path, record: Record) -> None:
    """Write a record, first under a temporary name beside ``path``, so that no half file is ever found there."""
    path = Path(path)
    text = json.dumps(
        {
            "format": FORMAT,
            "name": record.name,
            "settings": record.settings,
            "factors": _factors_to_json(record.factors),
            "scaling": asdict(record.scaling),
            "history": asdict(record.history),
            "versions": {
                "counterpoint": version("counterpoint-rl"),
                "numpy": np.__version__,
                "python": platform.python_version(),
                "torch": torch.__version__,
            },
        }
    )
    weights = {name: tensor.detach().clone().contiguous() for name, tensor in record.weights.items()}
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        save_file(weights, temporary, metadata={_KEY: text})
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: str | Path, *, factors: Factorization | None = None) -> Record:
    """Read a record that ``write`` wrote.

    Args:
        path: the file.
        factors: refuse the file unless it is of this factorisation.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is damaged, of another kind or format, or of other factors.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: there is no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except SafetensorError as error:
        raise ValueError(
            f"{path}: it is no whole safetensors file ({error}). It may be cut off, or of another kind; save it again."
        ) from error
    found = _metadata(path, metadata)
    stored = _factors_from_json(found["factors"])
    if factors is not None:
        require_same_factors(path, stored, factors)
    scaling = Scaling(**{name: Moments(*map(tuple, moments.values())) for name, moments in found["scaling"].items()})
    history = History(**_with_tuples(found["history"]))
    return Record(found["name"], _with_tuples(found["settings"]), stored, scaling, history, weights)


def require_same_factors(path: str | Path, stored: Factorization, factors: Factorization) -> None:
    """Raise unless a file's factorisation is the expected one, node by node."""
    if stored.names != factors.names:
        raise ValueError(
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
        raise ValueError(f"{path}: it was fitted to another factorisation: {listed(other)}. Fit again.")


def _metadata(path: str | Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if _KEY not in metadata:
        raise ValueError(f"{path}: it was not written by counterpoint.learn: its metadata has no {_KEY!r}.")
    try:
        found: dict[str, Any] = json.loads(metadata[_KEY])
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: its metadata is damaged ({error}); save it again.") from error
    if found.get("format") != FORMAT:
        raise ValueError(
            f"{path}: it has format {found.get('format')!r} (written by counterpoint "
            f"{found.get('versions', {}).get('counterpoint', 'unknown')}), expected {FORMAT}. "
            "Use the version that wrote it, or fit again."
        )
    return found


def _factors_to_json(factors: Factorization) -> dict[str, Any]:
    return {
        "state": dict(factors.state),
        "action": dict(factors.action),
        "derived": factors.derived,
        "context": factors.context,
        "noise": dict(factors.noise),
        "positions": {name: asdict(position) for name, position in factors.positions.items()},
        "types": dict(factors.types),
    }


def _factors_from_json(found: dict[str, Any]) -> Factorization:
    positions = {name: Position(**_with_tuples(place)) for name, place in found.pop("positions").items()}
    return Factorization(**found, positions=positions)


def _with_tuples(found: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with its lists as tuples, as settings have them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
