"""A process that has loaded everything once and forks a child for each command, so that thousands take minutes.

It reads one JSON line per request from its input, a list of jobs to run at once, and answers with one JSON line, a list
of what became of them: ``code`` (as a shell has it), ``err``, and ``steps``. A job says ``folder``, ``words``, ``mode``
and ``stop``. If there are two, the second starts when the first is at step ``stop``; if the first ``waits``, it stays
there until the second has ended. A job that is ``undrawn`` leaves the figures of its report empty: they take seconds,
and nothing is written meanwhile.
"""

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import MagicMock

ROOT = Path(__file__).parents[2]
SECONDS = 600  # for a job, on a machine that has other things to do; then it is killed, which counts as a failure
STEPS = "steps: "
HEAVY = ("adapters.parquet", "adapters.hdf5", "adapters.minari", "adapters.lerobot", "learn", "report", "worlds")


class Nursery:
    """The process, as those who ask it see it."""

    def __init__(self):
        self.process = None

    def run(self, *jobs):
        """Run jobs at once; return what became of each."""
        if self.process is None:
            command = [sys.executable, "-m", "tests.campaigns.nursery"]
            settings = {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}", "OMP_NUM_THREADS": "1"}
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.process = subprocess.Popen(command, cwd=ROOT, text=True, env=settings, **pipes)
        self.process.stdin.write(json.dumps(jobs) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    load()
    for line in sys.stdin:
        print(json.dumps(together(json.loads(line))), file=answers, flush=True)


def load():
    """Load libraries and compiled loops; start no thread, because threads do not survive a fork."""
    import numpy as np

    from counterpoint.command_line import shards
    from counterpoint.core import engine
    from counterpoint.files import ledger, writing
    from tests.campaigns import specimens
    from tests.files import sharded

    for name in ("torch._dynamo", "counterpoint.command_line", *(f"counterpoint.{name}" for name in HEAVY)):
        importlib.import_module(name)
    shards._engine = lambda _: sharded.here  # a worker's steps count, too
    engine.CHUNK_BYTES, ledger.SECONDS, writing.CHUNK_ROWS = 0, 0, 100
    specimens.counterfactuals(np.random.default_rng(3))
    gc.collect()
    gc.freeze()  # a child that collects garbage would copy all of it


def together(jobs):
    """Run jobs at once, and wait for all."""
    begun, begin = os.pipe()  # what is open only in a child is closed when it ends, however it ends
    ended, end = os.pipe()
    children = []
    for number, job in enumerate(jobs):
        said, saying = os.pipe()
        child = os.fork()
        if not child:
            born(job, saying, second(begun, begin) if number else first(begin, ended, end, waits=job.get("waits")))
        os.close(saying)
        children.append((child, said))
    os.close(begin)
    os.close(end)
    found = [outcome(child, said) for child, said in children]
    os.close(begun)
    os.close(ended)
    return found


def first(begin, ended, end, *, waits):
    """Return what the first child does at its step: let the second one begin, and wait for its end if told to."""
    os.close(end)

    def tell():
        os.close(begin)
        if waits:
            select.select([ended], [], [])

    return tell


def second(begun, begin):
    """Wait in the second child until the first one is far enough or has ended; it has nobody to tell."""
    os.close(begin)
    select.select([begun], [], [])


def born(job, saying, tell):
    """Be a child: run the command, and end without a trace of the parent."""
    from counterpoint.command_line import main as command
    from tests.campaigns.steps import Steps

    code = 99
    try:
        os.chdir(job["folder"])
        os.environ["MINARI_DATASETS_PATH"] = str(Path(job["folder"]) / "minari")
        os.dup2(saying, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if job.get("undrawn"):
            draw_nothing()
        steps = Steps(job["mode"], job["stop"], tell)
        sys.argv = ["counterpoint", *job["words"]]
        code = command()
        sys.stdout.flush()
        steps.end()
        if job["mode"] in ("count", "calls"):
            print(f"{STEPS}{steps.count}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def draw_nothing():
    from counterpoint.report import figures

    figures._canvas = lambda *_, **__: nullcontext((MagicMock(), MagicMock()))
    figures._finish = lambda _, slug, title: figures.Html(f"<!-- {slug}: {title} -->")


def outcome(child, said):
    """Wait for a child; return its exit code, negative for a signal, and what it said."""
    handle = os.pidfd_open(child)
    if not select.select([handle], [], [], SECONDS)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(handle)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(said) as stream:
        err, _, steps = stream.read().partition(STEPS)
    return {"code": code, "err": err, "steps": int(steps) if steps else None}


if __name__ == "__main__":
    main()
