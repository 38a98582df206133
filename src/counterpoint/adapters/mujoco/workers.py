"""Steps from many rows at once, in processes of their own.

A worker is a fresh Python that makes the environment again, takes jobs from its standard input and answers on its
standard output. It never imports the caller's main module, so scripts and notebooks need no guard.
"""

import os
import pickle
import queue
import struct
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, BinaryIO

import cloudpickle
import gymnasium
import numpy as np

from counterpoint.adapters.mujoco.anatomy import Anatomy, anatomy
from counterpoint.adapters.mujoco.rows import Ended, Stepper, packing_of
from counterpoint.core.arrays import Floats, Ints
from counterpoint.progress import Progress

FEW = 400  # rows that are not worth the start of a process
CHUNK = 25  # rows in a job: few, so that all workers end at about the same time


class Bench:
    """An environment, or as many copies of it as there are workers, ready to step from any row."""

    def __init__(self, env: Any, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers: expected at least 1 process, got {workers}.")
        self.recipe: Any = env
        self.env = env if isinstance(env, gymnasium.Env) or not callable(env) else env()
        self.inside: Anatomy = anatomy(self.env)
        self.workers = workers or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else workers or 1
        self._stepper: Stepper | None = None
        self._pool: list[_Worker] = []

    def run(
        self, state: Floats, action: Floats, noise: Floats | None, *, watch: bool, progress: Progress | None = None
    ) -> Ended:
        """Step from each row, and only once from rows that differ in their goal alone.

        ``progress`` is called with the number of rows done.
        """
        if noise is None:
            _ = self.inside.full_state
            return self._run(state, action, noise, watch, progress)
        first, again = _distinct(noise[:, : packing_of(self.inside, noise).width], action)
        told = None if progress is None else lambda done: progress(done * len(state) // max(1, len(first)))
        found = self._run(state[first], action[first], noise[first], watch, told)
        ends, goal = found.next_state[again], self.inside.columns.goal
        ends[:, goal] = state[:, goal]
        return Ended(ends, None if found.ties is None else found.ties[again])

    def _run(
        self, state: Floats, action: Floats, noise: Floats | None, watch: bool, progress: Progress | None
    ) -> Ended:
        jobs = [slice(start, start + CHUNK) for start in range(0, len(state), CHUNK)] or [slice(0, 0)]
        ended: list[Ended] = []
        for part in self._each(jobs, lambda rows: _job(state, action, noise, rows), watch):
            ended.append(part)
            if progress is not None:
                progress(sum(len(each.next_state) for each in ended))
        ties = [each.ties for each in ended if each.ties is not None]
        return Ended(np.concatenate([each.next_state for each in ended]), np.concatenate(ties) if ties else None)

    def _each(self, jobs: list[slice], inputs: Callable[[slice], tuple[Any, ...]], watch: bool) -> Any:
        if self.workers == 1 or jobs[-1].stop <= FEW:
            self._stepper = self._stepper or Stepper(self.env, self.inside)
            stepper = self._stepper
            return (stepper(*inputs(rows), watch=watch) for rows in jobs)
        self._start()
        free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._pool:
            free.put(worker)

        def done(rows: slice) -> Ended:
            worker = free.get()
            try:
                found: Ended = worker.ask((inputs(rows), watch))
                return found
            finally:
                free.put(worker)

        return _mapped(done, jobs, self.workers)

    def _start(self) -> None:
        """Start the workers that are missing, and make sure that they have the same environment."""
        if len(self._pool) < self.workers:
            recipe = _packed(self.recipe)
            self._pool += [_Worker(recipe) for _ in range(self.workers - len(self._pool))]
            signature = _signature(self.inside)
            for worker in self._pool:
                came = worker.answer() if worker.signature is None else worker.signature
                worker.signature = came
                if came != signature:
                    raise ValueError(
                        f"workers: a copy of the environment differs from it ({came} instead of {signature}). Give a "
                        "function that makes the environment instead of the environment, or use workers=1."
                    )

    def close(self) -> None:
        """End the workers."""
        for worker in self._pool:
            worker.end()
        self._pool.clear()


class _Worker:
    """One process and the way to talk to it."""

    def __init__(self, recipe: bytes) -> None:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from counterpoint.adapters.mujoco.workers import serve; serve()"
        )
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.signature: Any = None
        self.end = weakref.finalize(self, _ended, self.process)
        _send(self.process.stdin, recipe)

    def ask(self, job: Any) -> Any:
        """Do a job and wait for what comes out."""
        _send(self.process.stdin, pickle.dumps(job))
        return self.answer()

    def answer(self) -> Any:
        """Wait for an answer; raise what went wrong over there."""
        text = _receive(self.process.stdout)
        if text is None:
            raise RuntimeError(f"workers: a process ended with code {self.process.wait()}. Try workers=1.")
        kind, found = pickle.loads(text)  # noqa: S301
        if kind == "error":
            raise RuntimeError(f"workers: {found}. Try workers=1 to see where.")
        return found


def serve() -> None:
    """Be a worker: make the environment, then step from rows until the input ends."""
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the environment prints must not end up between the answers
    stepper: Stepper | None = None
    while (text := _receive(sys.stdin.buffer)) is not None:
        try:
            if stepper is None:
                env = cloudpickle.loads(text)()
                stepper = Stepper(env, anatomy(env))
                answer: Any = ("done", _signature(stepper.inside))
            else:
                rows, watch = pickle.loads(text)  # noqa: S301
                answer = ("done", stepper(*rows, watch=watch))
        except Exception as error:
            answer = ("error", f"{type(error).__name__}: {error}")
        _send(channel, pickle.dumps(answer))


def _packed(recipe: Any) -> bytes:
    """Return bytes from which a worker can make the environment."""
    make = recipe
    if isinstance(recipe, gymnasium.Env):
        make = partial(gymnasium.make, recipe.spec) if recipe.spec is not None else partial(_same, recipe)
    try:
        return bytes(cloudpickle.dumps(make))
    except Exception as error:
        raise ValueError(
            f"workers: this environment cannot be copied into other processes ({error}). Give a function that "
            "makes it, or use workers=1."
        ) from error


def _same(env: Any) -> Any:
    return env


def _signature(inside: Anatomy) -> tuple[Any, ...]:
    return inside.model, inside.layout.width, inside.packing.width, inside.bodies.names


def _distinct(hidden: Floats, action: Floats) -> tuple[Ints, Ints]:
    """Return one row of each kind, and which of these each row is; the order of the first ones is kept."""
    rows = np.concatenate([hidden, action], axis=1, dtype=np.float64)
    kinds: dict[bytes, int] = {}
    again = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in rows], np.int64)
    return np.unique(again, return_index=True)[1], again


def _job(state: Floats, action: Floats, noise: Floats | None, rows: slice) -> tuple[Any, ...]:
    return state[rows], action[rows], None if noise is None else noise[rows]


def _mapped(function: Callable[[slice], Ended], jobs: list[slice], workers: int) -> Any:
    with ThreadPoolExecutor(workers) as threads:
        yield from threads.map(function, jobs)


def _ended(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


def _send(pipe: BinaryIO | Any, text: bytes) -> None:
    pipe.write(struct.pack("<Q", len(text)) + text)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> bytes | None:
    head = pipe.read(8)
    return bytes(pipe.read(struct.unpack("<Q", head)[0])) if len(head) == 8 else None
