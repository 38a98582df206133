"""How each kind of file is read, as a digest of what it says; the one error class of each becomes ``Refused``."""

import hashlib
import os
import pickle
from pathlib import Path

import numpy as np

from counterpoint import files
from counterpoint.description import DescriptionError, read_description
from counterpoint.files.manifest import read_manifest

KEYS = {"goal": (5,)}


class Refused(Exception):
    """The one error class of a kind of file, with the file's name in front."""


def digest(*values):
    return hashlib.blake2b(pickle.dumps(values)).hexdigest()


def refused(path, error):
    message = str(error)
    if not message.startswith(str(path)):
        raise AssertionError(f"the message does not name the file: {message}") from error
    return Refused(message)


def read_data(path):
    found = data_of(path)
    columns = {key: (str(array.dtype), array.shape, array.tobytes()) for key, array in found.columns().items()}
    return digest(sorted(columns.items()), repr(found.head))


def read_minari(path):
    os.environ["MINARI_DATASETS_PATH"] = path
    return read_data("minari:robot/data-v0")


def read_shards(path):
    """Its rows, and what its manifest says, which is what an interrupted job believes."""
    rows = read_data(path)
    try:
        return digest(rows, read_manifest(Path(path)))
    except files.FileProblem as error:
        raise refused(path, error) from error


def data_of(name):
    try:
        return files.read(name)
    except files.FileProblem as error:
        raise refused(name, error) from error


def read_mask(path):
    from counterpoint.learn import load

    return read_model(path, load)


def read_other_model(path):
    from counterpoint import learn

    return read_model(path, getattr(learn, Path(path).stem).load)


def read_model(path, load):
    try:
        found = load(path)
    except files.FileProblem as error:
        raise refused(path, error) from error
    learned = found.learned()
    weights = learned.network.state_dict() if hasattr(learned, "network") else learned.influences.weights()
    return digest(repr(found), {name: tensor.numpy().tobytes() for name, tensor in weights.items()})


def read_buffer(path):
    from tests.adapters.sb3 import environments, goal_environments

    kind = {"plain": environments, "goals": goal_environments}[Path(path).stem]
    buffer = kind.filled(0, buffer_size=300)
    before = contents(buffer)
    try:
        buffer.load(path)
    except files.FileProblem as error:
        if contents(buffer) != before:
            raise AssertionError("a refused file has changed the buffer") from error
        raise refused(path, error) from error
    if buffer.size():
        np.random.seed(0)  # noqa: NPY002 (Stable-Baselines3 draws from the global state)
        buffer.sample(20)  # a buffer that was accepted can be used
    return contents(buffer)


def contents(buffer):
    found = (value for value in vars(buffer).values() if isinstance(value, np.ndarray | dict))
    every = [array for value in found for array in (value.values() if isinstance(value, dict) else [value])]
    arrays = [array for array in every if isinstance(array, np.ndarray) and not array.dtype.hasobject]
    made = buffer.counterfactual_transitions().columns() if len(buffer.counterfactual.ring) else ()
    return digest([array.tobytes() for array in arrays], [a.tobytes() for _, a in made], buffer.pos)


def read_ledger(path):
    """A wrong entry is worth nothing, and its rows are made again; a wrong job is refused."""
    from counterpoint.files.ledger import JobLedger
    from tests.examples import make_factors

    try:
        job = JobLedger(Path(path), {"job": 1}, resume=True)
    except files.FileProblem as error:
        raise refused(path, error) from error
    try:
        entries = list(job.finished(0, 30, make_factors(3, 1)))
    finally:
        job._stack.close()
    if not entries:
        raise Refused(f"{path}: no entry is right, so all rows are made again")
    return digest([(repr(entry.funnel), [array.tobytes() for array in entry.provenance.arrays()]) for entry in entries])


def read_toml(path):
    try:
        found = read_description(path, KEYS)
        augmenter = found.augmenter()
    except DescriptionError as error:
        raise refused(path, error) from error
    return digest(repr(found.factors), repr(augmenter.policy), augmenter.samples_per_pair)


READERS = {
    **dict.fromkeys(("parquet", "npz", "d4rl", "robomimic", "lerobot"), read_data),
    "minari": read_minari,
    "shards": read_shards,
    "mask": read_mask,
    "model": read_other_model,
    "buffer": read_buffer,
    "ledger": read_ledger,
    "description": read_toml,
}
