"""A small healthy file of every kind that we read."""

import json
import os
from dataclasses import fields
from pathlib import Path

import numpy as np

from counterpoint import Augmenter, files
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors
from tests.files.examples import make_recording, put
from tests.test_description import GOOD, ROBOT

DATA = ("parquet", "npz", "d4rl", "robomimic", "minari", "lerobot")
SMALL = {"epochs": 1, "student_epochs": 1, "lessons": 100, "width": 8, "members": 2, "allow_constant": True}


def data(folder, kind):
    """A dataset; of LeRobot's a second one, of others' making, without next states or a head of ours."""
    recording = make_recording(np.random.default_rng(3), factors=make_factors(2, 1))
    if kind == "lerobot":
        files.write(f"lerobot:{folder / 'ours'}", recording)
        files.write(f"lerobot:{folder / 'theirs'}", recording)
        return [folder / "ours", foreign(folder / "theirs")]
    if kind == "minari":
        os.environ["MINARI_DATASETS_PATH"] = str(folder)
    path = put(folder, kind, recording)
    return [folder if kind == "minari" else Path(path)]


def foreign(folder):
    """Take out of a LeRobot dataset what others do not write."""
    from pyarrow import parquet

    (folder / "meta" / "counterpoint.json").unlink()
    about = json.loads((folder / "meta" / "info.json").read_text())
    extra = [name for name in about["features"] if name.startswith(("counterpoint.", "next.observation"))]
    about["features"] = {name: one for name, one in about["features"].items() if name not in extra}
    (folder / "meta" / "info.json").write_text(json.dumps(about))
    for path in (folder / "data").rglob("*.parquet"):
        parquet.write_table(parquet.read_table(path).drop_columns(extra), path)
    return folder


def masks(folder):
    """One of each estimator, fitted a little."""
    from counterpoint.learn.estimators.loading import ESTIMATORS

    return [_fitted(folder / f"{name}.safetensors", kind) for name, kind in ESTIMATORS.items()]


def models(folder):
    """The other models that are saved."""
    from counterpoint.learn import DynamicsEnsemble, RewardModel

    return [_fitted(folder / f"{kind.__name__}.safetensors", kind) for kind in (RewardModel, DynamicsEnsemble)]


def _fitted(path, kind):
    rng, factors = np.random.default_rng(3), make_factors(2, 1)
    small = {field.name for field in fields(kind)} & set(SMALL)
    estimator = kind(**{name: SMALL[name] for name in small})
    estimator.fit(make_data(factors, 120, rng), factors, rng=rng, progress=False).save(path)
    return path


def buffers(folder):
    """Both kinds of replay buffers."""
    from tests.adapters.sb3 import environments, goal_environments

    for name, kind in {"plain.npz": environments, "goals.npz": goal_environments}.items():
        buffer = kind.filled(200, buffer_size=300)
        buffer.counterfactual.seconds = 1.0  # by the clock, so that no two files would be damaged in the same places
        buffer.save(folder / name)
    return [folder / "plain.npz", folder / "goals.npz"]


def ledger(folder):
    from counterpoint.files.augmentation import Accepted
    from counterpoint.files.ledger import JobLedger

    made = counterfactuals(np.random.default_rng(3))
    job = JobLedger(folder / "out.parts", {"job": 1})
    job.add(0, Accepted(made.provenance, made.funnel))
    job.flush()
    job._stack.close()
    return [folder / "out.parts"]


def shards(folder):
    """A folder of files and its manifest."""
    from tests.files import sharded

    sharded.put(folder / "data")
    job = sharded.job(folder)
    files.augment_shards(job, engine=sharded.here)
    return [Path(job.out)]


def counterfactuals(rng):
    factors = make_factors(3, 1)
    augmenter = Augmenter(factors, Constant.identity(factors), first_column)
    return augmenter.fill(make_data(factors, 30, rng), 50, rng=rng)


def description(folder):
    (folder / "robot.py").write_text(ROBOT)
    (folder / "robot.toml").write_text(GOOD + '\n[augment]\npolicy = "sparse"\nsamples_per_pair = 3\n')
    return [folder / "robot.toml"]


OTHERS = {
    "shards": shards,
    "mask": masks,
    "model": models,
    "buffer": buffers,
    "ledger": ledger,
    "description": description,
}


def make(folder, kind):
    """Write healthy specimens of a kind; return what each is read by: a file, or the folder of a dataset."""
    return data(folder, kind) if kind in DATA else OTHERS[kind](folder)


def bytes_of(path):
    """The files to damage, with their bytes: the file itself, or all files of a dataset."""
    every = [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
    return {found: found.read_bytes() for found in every}


def restore(raw):
    """Put files back as they were; those that reading removed, too."""
    for path, content in raw.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
