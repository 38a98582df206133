"""A small healthy file of every kind that we read."""

import os
from pathlib import Path

import numpy as np

from counterpoint import Augmenter
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors
from tests.files.examples import make_recording, put
from tests.test_description import GOOD, ROBOT


def data(folder, kind):
    rng = np.random.default_rng(3)
    if kind == "minari":
        os.environ["MINARI_DATASETS_PATH"] = str(folder)
    path = put(folder, kind, make_recording(rng, factors=make_factors(2, 1)))
    return folder if kind == "minari" else Path(path)


def mask(folder):
    from counterpoint.learn import SandyMixture

    return _fitted(folder, SandyMixture(epochs=1, width=8, allow_constant=True))


def reward(folder):
    from counterpoint.learn import RewardModel

    return _fitted(folder, RewardModel(epochs=1, width=8))


def _fitted(folder, estimator):
    rng = np.random.default_rng(3)
    factors = make_factors(2, 1)
    rows = make_data(factors, 120, rng)
    estimator.fit(rows, factors, rng=rng, progress=False).save(folder / "model.safetensors")
    return folder / "model.safetensors"


def buffer(folder):
    from tests.adapters.sb3.environments import filled

    filled(200, buffer_size=300).save(folder / "buffer.npz")
    return folder / "buffer.npz"


def ledger(folder):
    from counterpoint.files.augmentation import Accepted
    from counterpoint.files.ledger import JobLedger

    rng, factors = np.random.default_rng(3), make_factors(3, 1)
    made = Augmenter(factors, Constant.identity(factors), first_column).fill(make_data(factors, 30, rng), 50, rng=rng)
    job = JobLedger(folder / "out.parts", {"job": 1})
    job.add(0, Accepted(made.provenance, made.funnel))
    job.flush()
    job._stack.close()
    return folder / "out.parts"


def description(folder):
    (folder / "robot.py").write_text(ROBOT)
    (folder / "robot.toml").write_text(GOOD + '\n[augment]\npolicy = "sparse"\nsamples_per_pair = 3\n')
    return folder / "robot.toml"


def make(folder, kind):
    """Write a healthy file of that kind; return its path, or the folder of a dataset."""
    if kind in ("parquet", "npz", "d4rl", "robomimic", "minari"):
        return data(folder, kind)
    return {"mask": mask, "reward": reward, "buffer": buffer, "ledger": ledger, "description": description}[kind](
        folder
    )


def files_of(path):
    """The files to damage: the file itself, or all files of a dataset."""
    return [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())


def restore(raw):
    for path, content in raw.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
