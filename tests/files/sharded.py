"""A small dataset in shards, and ways to make an augmented one of it."""

import os
import signal
from pathlib import Path

import numpy as np

from counterpoint import Augmenter, Transitions, files
from counterpoint.masks import Proximity
from tests.examples import first_column, make_factors

FACTORS = make_factors(3, 1)
ROWS = (40, 25, 60, 33)


def step(state, action):
    """A world to audit by: every factor moves on by itself; the action moves the first."""
    after = 0.9 * state + 0.01
    after[:, 0] += action[:, 0]
    return after


def augmenter():
    mask = Proximity(FACTORS, dict(FACTORS.state), radius=0.05, attached=["s0"])
    return Augmenter(FACTORS, mask, first_column)


def windowed():
    made = augmenter()
    return Augmenter(made.factors, made.mask_fn, made.reward_fn, window=4)


def shard(rows, seed, episodes=True):
    rng = np.random.default_rng(seed)
    state, action = rng.random((rows, 6)), rng.random((rows, 1))
    after = step(state, action)
    counted = {"episode": np.arange(rows) // 5, "step": np.arange(rows) % 5} if episodes else {}
    return Transitions(state, action, after[:, 0], after, np.zeros(rows, bool), **counted)


def put(folder, rows=ROWS, suffix="parquet", **settings):
    """Write a dataset; return it as one batch."""
    folder.mkdir()
    parts = [shard(count, seed, **settings) for seed, count in enumerate(rows)]
    for number, part in enumerate(parts):
        files.write(folder / f"part-{number}.{suffix}", part, factors=FACTORS)
    return Transitions.concat(*parts)


def job(tmp_path, out="more", make=augmenter, ratio=2.5, seed=3, **others):
    return files.ShardJob(files.shards_of(tmp_path / "data"), make, str(tmp_path / out), ratio, seed, **others)


def here(task, numbers):
    """The simplest engine: one after another, in this process."""
    return (task(number) for number in numbers)


def backwards(task, numbers):
    return here(task, numbers[::-1])


def contents(folder):
    """Every file of an output but the fingerprints of its job, with its bytes."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.name != "job.json"}


class Deadly:
    """A task that kills its process, at every call or only at the first one."""

    def __init__(self, task, marker, always=False):
        self.task, self.marker, self.always = task, str(marker), always

    def __call__(self, number):
        if number == 1 and (self.always or not os.path.exists(self.marker)):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.task(number)


class Killing:
    """An engine whose workers are killed while they make the second shard."""

    def __init__(self, engine, marker, always=False):
        self.engine, self.marker, self.always = engine, marker, always

    def __call__(self, task, numbers):
        return self.engine(Deadly(task, self.marker, self.always), numbers)


def process(number):
    """What a worker is: its process, its threads and what it was asked."""
    from counterpoint.core import threads

    return os.getpid(), threads.THREADS, number


def failing(number):
    raise KeyError(f"mistake {number}")
