"""Processes on this machine that call a function again and again, and are replaced if they die.

A worker is a fresh Python that takes numbers from its standard input and answers on its standard output. It never
imports the caller's main module, so scripts and notebooks need no guard. It uses one thread, and it ends when its input
does: when nobody needs it any more, or when the process that started it is gone, however that ended.
"""

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from counterpoint.core.require import require_count

ONE_THREAD = dict.fromkeys(
    ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
)  # a worker is one core
# Every shard needs the memory that the last one needed. Given back in between, the system would clear it each time,
# and clearing memory is what several workers are slowest at: they share its bandwidth.
KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(2**30),
    "MALLOC_TRIM_THRESHOLD_": str(2**32),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


class Died(ChildProcessError):
    """A worker ended before it answered; the message says how."""


class Chances:
    """Decides whether a shard is tried again whose worker died.

    Workers are killed for reasons of their own, so a shard gets another chance, after all that wait, as long as others
    are finished in between. One that ends its worker every time is given up when nothing else gets on.
    """

    def __init__(self, tries: int) -> None:
        self._tries = tries
        self._deaths: Counter[int] = Counter()  # since a shard was finished
        self._lock = threading.Lock()

    def finished(self) -> None:
        """Take note that a shard is finished."""
        with self._lock:
            self._deaths.clear()

    def died(self, number: int, why: object) -> Died | None:
        """Take note that the worker of a shard died; return what to raise if that is to be the end."""
        with self._lock:
            self._deaths[number] += 1
            if self._deaths[number] < self._tries:
                return None
        return Died(
            f"shard {number}: its worker died {self._tries} times ({why}), and nothing else was finished meanwhile. If "
            "the system killed it, memory is the usual reason: use fewer workers or smaller shards. What is finished "
            "stays; --resume goes on from there."
        )


@dataclass(frozen=True)
class Pool:
    """Calls a function in processes of this machine.

    Attributes:
        workers: how many processes, each of which uses one core; as many as there are cores, by default.
        tries: how often the worker of a call may die while no other call gets finished, before all is given up.
    """

    workers: int | None = None
    tries: int = 3

    def __post_init__(self) -> None:
        require_count("tries", self.tries)
        if self.workers is not None:
            require_count("workers", self.workers)

    def __call__(self, task: Callable[[int], Any], numbers: Sequence[int]) -> Iterator[Any]:
        """Call the function with each number; yield the results as they come, and raise what a call raised."""
        waiting, found = deque(numbers), queue.SimpleQueue[Any]()
        crew = [_Worker(pickle.dumps(task)) for _ in range(min(self.workers or cores(), len(numbers)))]
        shared = (waiting, Chances(self.tries), found.put)
        hands = [threading.Thread(target=_work, args=(worker, *shared), daemon=True) for worker in crew]
        try:
            for hand in hands:
                hand.start()
            for _ in numbers:
                answer = found.get()
                if isinstance(answer, BaseException):
                    raise answer
                yield answer
        finally:
            waiting.clear()
            for worker in crew:
                worker.end()
            for hand in hands:
                if hand.is_alive():
                    hand.join()
            for worker in crew:
                worker.close()


def _work(worker: "_Worker", waiting: deque[int], chances: Chances, put: Callable[[Any], None]) -> None:
    """Have one worker make whatever waits, until nothing does."""
    while True:
        try:
            number = waiting.popleft()
        except IndexError:
            return
        try:
            answer = worker.ask(number)
            chances.finished()
        except Died as error:
            answer = chances.died(number, error)
            if answer is None:
                waiting.append(number)
                continue
        except BaseException as error:
            answer = error
        put(answer)


class _Worker:
    """One process and the way to talk to it; after a death, the next question starts another."""

    def __init__(self, task: bytes) -> None:
        self._task, self._told, self._ended = task, False, False
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, number: int) -> Any:
        """Have a number worked on, and wait for what comes out; raise what went wrong over there."""
        process = self._started()
        try:
            if not self._told:
                _send(process.stdin, self._task)
                self._told = True
            _send(process.stdin, pickle.dumps(number))
            text = _receive(process.stdout)
        except OSError:
            text = None
        if text is None:
            code = _closed(process)
            self._process, self._told = None, False
            raise Died(f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")
        kind, found = pickle.loads(text)  # noqa: S301
        if kind == "raised":
            raise found
        return found

    def end(self) -> None:
        """End the process at once."""
        with self._lock:
            self._ended = True
            process = self._process
        if process is not None:
            process.kill()  # the hand that waits for its answer then closes the pipes
            process.wait()

    def close(self) -> None:
        """Close the pipes of a process that has ended, when nobody waits for it any more."""
        if self._process is not None:
            _closed(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        """Return the process, which is started if there is none."""
        with self._lock:
            if self._ended:
                raise Died("it was stopped")
            if self._process is None:
                code = f"import sys; sys.path[:] = {sys.path!r}; from counterpoint.files.pool import serve; serve()"
                self._process = subprocess.Popen(  # noqa: S603
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**KEPT_MEMORY, **os.environ, **ONE_THREAD},
                )
            return self._process


def _closed(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process, close its pipes, and return how it ended."""
    code = process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # something may wait in it for a reader that is gone
                pipe.close()
    return code


def serve() -> None:
    """Be a worker: take a function, then call it with numbers until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a function prints must not end up between the answers
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_to_the_end, args=(inbox,), daemon=True).start()
    task = None
    while True:
        text = inbox.get()
        try:
            if task is None:
                task = pickle.loads(text)  # noqa: S301
                continue
            answer = ("done", task(pickle.loads(text)))  # noqa: S301
        except Exception as error:
            answer = ("raised", _portable(error))
        _send(channel, pickle.dumps(answer))


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read_to_the_end(inbox: "queue.SimpleQueue[bytes]") -> None:
    """Take messages off the input, and end the process with it, whatever it is doing."""
    while (text := _receive(sys.stdin.buffer)) is not None:
        inbox.put(text)
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """Return an error that survives the way to another process, with the place where it happened."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)))
    return error


def _send(pipe: BinaryIO | Any, text: bytes) -> None:
    pipe.write(struct.pack("<Q", len(text)) + text)
    pipe.flush()


def _receive(pipe: BinaryIO | Any) -> bytes | None:
    head = pipe.read(8)
    if len(head) < 8:
        return None
    text = bytes(pipe.read(struct.unpack("<Q", head)[0]))
    return text if len(text) == struct.unpack("<Q", head)[0] else None
