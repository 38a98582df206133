"""Rows of experiments: a file per run, runs side by side, finished ones skipped.

Nothing heavy is imported here, because the processes that are started import this module.
"""

import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import numpy as np
import pytest

pytest.importorskip("rich")

from experiments import command, rows


@dataclass(frozen=True)
class Job:
    number: int


def double(config, write):
    """What the runs of these tests do; a function of a module, so that other processes find it."""
    if config.number < 0:
        raise ValueError("no negative numbers")
    for step in range(3):
        write(step=step, reward=np.float32(2 * config.number), share=float("nan"))


@dataclass(frozen=True)
class Watch:
    pipe: str


def hold(config, write):
    """Say that it has begun, then go on for ever; whoever reads the pipe sees it close when this process ends."""
    with Path(config.pipe).open("w") as pipe:
        pipe.write("begun\n")
        pipe.flush()
        Event().wait()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_is_a_header_rows_and_an_end(tmp_path):
    path = tmp_path / "run.jsonl"
    with rows.recording(path, Job(4)) as write:
        double(Job(4), write)
        assert not path.exists()
    first, *middle, last = lines(path)
    assert first["config"] == {"number": 4}
    assert {"commit", "versions", "machine"} <= set(first)
    assert middle == [{"step": step, "reward": 8.0, "share": None} for step in range(3)]
    assert last["finished"]
    assert rows.read(path) == (first, middle)


def test_a_run_that_breaks_off_does_not_count(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(ValueError, match="no negative"), rows.recording(path, Job(-1)) as write:
        double(Job(-1), write)
    assert not path.exists()


def test_names_of_an_option_must_be_known():
    names = command.some_of(("sun", "moon", "earth"))
    assert names("moon,sun") == ("moon", "sun")
    with pytest.raises(ArgumentTypeError, match=r"no mars, venus here; there are sun, moon, earth"):
        names("mars,sun,venus")


def test_runs_go_parallel_failures_are_named_and_finished_ones_skipped(tmp_path, capfd):
    environment = dict(os.environ)
    jobs = {"one": Job(1), "bad": Job(-1), "two": Job(2)}
    with pytest.raises(SystemExit, match="1 of 3 runs failed: bad"):
        rows.run_all(double, jobs, tmp_path, processes=2)
    assert "no negative numbers" in capfd.readouterr().err
    assert os.environ == environment
    before = (tmp_path / "one.jsonl").stat().st_mtime_ns
    rows.run_all(double, {"one": Job(5), "three": Job(3)}, tmp_path)
    assert "1 finished already" in capfd.readouterr().out
    assert (tmp_path / "one.jsonl").stat().st_mtime_ns == before
    assert sorted(path.stem for path in tmp_path.glob("*.jsonl")) == ["one", "three", "two"]


def test_a_run_ends_with_the_process_that_started_it(tmp_path):
    pipe, here = tmp_path / "pipe", Path(__file__).parents[2]
    os.mkfifo(pipe)
    program = (
        "from pathlib import Path; from experiments import rows; from tests.experiments.test_rows import Watch, hold\n"
        f"if __name__ == '__main__': rows.run_all(hold, {{'run': Watch({str(pipe)!r})}}, Path({str(tmp_path)!r}))"
    )
    (tmp_path / "program.py").write_text(program)
    path = os.pathsep.join([str(here), *sys.path])
    command, env = [sys.executable, tmp_path / "program.py"], os.environ | {"PYTHONPATH": path}
    with subprocess.Popen(command, env=env) as driver, pipe.open() as told:
        assert told.readline() == "begun\n"
        driver.send_signal(signal.SIGKILL)
        assert told.read() == ""  # the end of the pipe: nobody holds it any more
    assert not (tmp_path / "run.jsonl").exists()
