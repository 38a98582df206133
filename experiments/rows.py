"""What experiments write: one JSON-lines file per run, and several runs at a time, each in a process of its own.

The first line of a file is the header: configuration, commit, versions and machine. Then one line per
measurement, and a last one that says how long it took. A run writes to ``<name>.jsonl.tmp`` and renames it
at the end, so a ``.jsonl`` file is a finished run, and is skipped when the experiment is started again.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments import machine

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
# Activations are given back and asked for again at each step; left to itself, the system clears them each time.
KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}

Row = dict[str, Any]
Write = Callable[..., None]  # write(step=1000, reward=0.5)


def header(config: Any) -> Row:
    """Return the first line of a run: what was run, with what, and where."""
    return {
        "config": asdict(config),
        "commit": machine.commit(),
        "versions": machine.versions(),
        "machine": machine.machine(),
    }


@contextmanager
def recording(path: Path, config: Any) -> Iterator[Write]:
    """Give a function that appends rows to a run; the run counts as finished when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part, start = _part(path), time.time()
    with part.open("w") as file:

        def write(**row: Any) -> None:
            file.write(json.dumps({name: _plain(value) for name, value in row.items()}) + "\n")
            file.flush()

        write(**header(config))
        yield write
        write(finished=True, seconds=time.time() - start)
    part.replace(path)


def read(path: Path) -> tuple[Row, list[Row]]:
    """Return header and measurements of a run, finished or not."""
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return lines[0], [line for line in lines[1:] if "finished" not in line]


def run_all(
    work: Callable[[Any, Any], None],
    runs: Mapping[str, Any],
    folder: Path,
    *,
    processes: int = 2,
    steps: int = 1,
    together: int | None = None,
) -> None:
    """Run what is not finished; if runs fail, do the others, then leave the program with their names.

    Args:
        work: ``(config, write)``, a function of a module, for other processes must find it; with ``together``,
            ``(configs, writes)`` of several runs.
        runs: configuration by name of the run, in the order in which they start.
        folder: where the files are.
        processes: how many runs at a time; each has one thread.
        steps: the ``step`` of the last measurement, for the progress display.
        together: how many runs a process does in step.
    """
    todo = {name: config for name, config in runs.items() if not (folder / f"{name}.jsonl").exists()}
    print(f"{len(runs)} runs, {len(runs) - len(todo)} finished already; files in {folder}", flush=True)
    context = get_context("spawn")
    failed: list[str] = []
    with _one_thread_each(), ProcessPoolExecutor(processes, mp_context=context, max_tasks_per_child=1) as pool:
        futures = {}
        for names in _groups(list(todo), together or 1):
            configs, paths = [todo[name] for name in names], [folder / f"{name}.jsonl" for name in names]
            job = (_several, work, configs, paths) if together else (_one, work, configs[0], paths[0])
            futures[pool.submit(*job)] = names
        for future in _watched(futures, folder, steps):
            error = future.exception()
            if error is not None:
                failed.extend(futures[future])
                print(
                    f"{', '.join(futures[future])} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True
                )
    if failed:
        raise SystemExit(f"{len(failed)} of {len(runs)} runs failed: {', '.join(failed)}")


def _groups(names: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(names), size):
        yield tuple(names[start : start + size])


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started meanwhile have one thread and keep their memory: they inherit it at birth."""
    before = {name: os.environ.get(name) for name in (*THREADS, *KEPT_MEMORY)}
    os.environ.update(dict.fromkeys(THREADS, "1") | KEPT_MEMORY)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _one(work: Callable[[Any, Write], None], config: Any, path: Path) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    with recording(path, config) as write:
        work(config, write)


def _several(work: Callable[[Any, Any], None], configs: Sequence[Any], paths: Sequence[Path]) -> None:
    Thread(target=_end_with_parent, daemon=True).start()
    with ExitStack() as stack:
        pairs = zip(paths, configs, strict=True)
        work(configs, [stack.enter_context(recording(path, config)) for path, config in pairs])


def _end_with_parent() -> None:
    """End this process once the one that started it is gone: nobody would wait for the run, and it would go on."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _watched(futures: dict["Future[None]", tuple[str, ...]], folder: Path, steps: int) -> Iterator["Future[None]"]:
    """Give runs as they end, and meanwhile show how far each one is; without a screen, a line per finished run."""
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        shown = {future: ", ".join(names) for future, names in futures.items()}
        bars = {
            future: progress.add_task(text, total=steps, start=False, visible=False) for future, text in shown.items()
        }
        open_runs = set(futures)
        while open_runs:
            ended, open_runs = wait(open_runs, timeout=2.0, return_when=FIRST_COMPLETED)
            for future in open_runs if console.is_terminal else ():
                _advance(progress, bars[future], _part(folder / f"{futures[future][0]}.jsonl"))
            for future in ended:
                progress.update(bars[future], completed=steps)
                if not console.is_terminal:
                    print(f"{time.strftime('%H:%M:%S')} {shown[future]} ended, {len(open_runs)} to go", flush=True)
                yield future


def _advance(progress: Progress, bar: Any, path: Path) -> None:
    if path.exists() and (lines := read(path)[1:][0]):
        if not progress.tasks[bar].started:
            progress.start_task(bar)
        progress.update(bar, completed=lines[-1].get("step", 0), visible=True)


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def _plain(value: Any) -> Any:
    """Return numbers of NumPy as Python's, floats to six digits; what is not a number becomes null."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value
