"""How each kind of file is read, as a digest of what it says; the one error class of each becomes ``Refused``."""

import hashlib
import os
import pickle
from pathlib import Path

from counterpoint import files
from counterpoint.description import DescriptionError, read_description

DATA = ("parquet", "npz", "d4rl", "robomimic", "minari")
KINDS = (*DATA, "mask", "reward", "buffer", "ledger", "description")
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
    name = "minari:robot/data-v0" if Path(path).is_dir() else path
    if Path(path).is_dir():
        os.environ["MINARI_DATASETS_PATH"] = path
    try:
        found = files.read(name)
    except files.FileProblem as error:
        raise refused(name, error) from error
    columns = {key: (str(array.dtype), array.shape, array.tobytes()) for key, array in found.columns().items()}
    return digest(sorted(columns.items()), repr(found.head))


def read_mask(path):
    from counterpoint.learn import load

    try:
        found = load(path)
    except files.FileProblem as error:
        raise refused(path, error) from error
    return digest(repr(found), {name: tensor.numpy().tobytes() for name, tensor in weights(found).items()})


def read_reward(path):
    from counterpoint.learn import RewardModel

    try:
        found = RewardModel.load(path)
    except files.FileProblem as error:
        raise refused(path, error) from error
    return digest(repr(found), {name: tensor.numpy().tobytes() for name, tensor in weights(found).items()})


def weights(found):
    return found.learned().network.state_dict()


def read_buffer(path):
    from tests.adapters.sb3.environments import filled

    buffer = filled(0, buffer_size=300)
    try:
        buffer.load(path)
    except files.FileProblem as error:
        if buffer.pos or buffer.observations.any() or len(buffer.counterfactual.ring):
            raise AssertionError("a refused file has changed the buffer") from error
        raise refused(path, error) from error
    real, made = buffer.real_transitions(), buffer.counterfactual_transitions()
    return digest([(name, array.tobytes()) for half in (real, made) for name, array in half.columns()], buffer.pos)


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
    return digest([[array.tobytes() for array in entry.provenance.arrays()] for entry in entries])


def read_toml(path):
    try:
        found = read_description(path, KEYS)
        augmenter = found.augmenter()
    except DescriptionError as error:
        raise refused(path, error) from error
    return digest(repr(found.factors), repr(augmenter.policy), augmenter.samples_per_pair)


READERS = {
    **dict.fromkeys(DATA, read_data),
    "mask": read_mask,
    "reward": read_reward,
    "buffer": read_buffer,
    "ledger": read_ledger,
    "description": read_toml,
}
