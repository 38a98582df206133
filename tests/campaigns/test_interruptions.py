"""Killed, stopped, out of disk or disturbed at every step: nothing is lost, doubled or half-written.

Every verb that writes is stopped at every stage, by counting its steps towards the disk. Then the same command, with
``--resume`` where there is such a thing, gives the bytes that it gives undisturbed.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command_line.sprites import prepare

ROOT = Path(__file__).parents[2]
MASK = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--setting", "allow_constant=True")
VERBS = {
    "augment": ("augment", "data.parquet", "robot.toml", "--out", "out.parquet", "--size", "6000", "--resume"),
    "convert": ("convert", "data.parquet", "out.hdf5"),
    "fit-mask": ("fit-mask", "data.parquet", "robot.toml", "--out", "out.safetensors", *MASK),
    "report": ("report", "augmented.parquet", "robot.toml", "--out", "out.html"),
    "inspect": ("inspect", "data.parquet", "--propose", "out.toml"),
}
OLD = b"the old output"


def output(verb, folder):
    words = VERBS[verb]
    name = words[2] if verb == "convert" else words[words.index("--propose" if verb == "inspect" else "--out") + 1]
    return folder / name


def command(verb, mode, number):
    force = () if mode == "count new" else ("--force",)
    return [sys.executable, "-m", "tests.campaigns.steps", mode.split()[0], str(number), *VERBS[verb], *force]


def environment():
    return {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"}


def run(verb, folder, mode="count", number=0):
    done = subprocess.run(
        command(verb, mode, number), cwd=folder, capture_output=True, text=True, check=False, env=environment()
    )
    return done.returncode, done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    from counterpoint.command_line import main

    assert main(["augment", "data.parquet", "robot.toml", "--out", "augmented.parquet", "--ratio", "2"]) == 0
    return tmp_path


def whole(verb, folder):
    """The bytes of an undisturbed run, and how many steps it takes."""
    code, err = run(verb, folder)
    assert code == 0, err
    content = output(verb, folder).read_bytes()
    return content, int(err.rsplit("steps ", 1)[1])


def leftovers(verb, folder):
    known = {"data.parquet", "robot.toml", "sprite_functions.py", "augmented.parquet", "__pycache__"}
    return sorted({path.name for path in folder.iterdir()} - known - {output(verb, folder).name})


def spread(steps, count):
    """So many different steps, from the first to the last."""
    return sorted({int(step) for step in np.linspace(1, steps, count)})


def disturbed(verb, folder, mode, count):
    """Disturb a verb at so many steps, each time over an old output; return how many it survived."""
    content, steps = whole(verb, folder)
    tried = spread(steps, count)
    for number in tried:
        output(verb, folder).write_bytes(OLD)
        code, err = run(verb, folder, mode, number)
        there = output(verb, folder).read_bytes()
        assert there in (OLD, content), (verb, number)
        if mode == "full":
            assert code in (0, 2), (verb, number, err)
            assert code == 0 or (err.count("\n") <= 3 and "the disk is full" in err), (verb, number, err)
        if mode == "signal":
            assert code in (0, 143), (verb, number, err)
            assert code == 0 or "stopped." in err, (verb, number, err)
            assert not [name for name in leftovers(verb, folder) if name.startswith(".")], (verb, number)
        code, err = run(verb, folder)
        assert code == 0, (verb, number, err)
        assert output(verb, folder).read_bytes() == content, (verb, number)
        assert leftovers(verb, folder) == [], (verb, number)
    output(verb, folder).unlink()
    print(f"\n{mode} in {verb}: {len(tried)} of {len(tried)} survived, at {steps} steps")


@pytest.mark.parametrize(("verb", "mode"), [("augment", "kill"), ("convert", "full"), ("convert", "signal")])
def test_a_few(verb, mode, folder):
    disturbed(verb, folder, mode, 2)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("mode", "count"), [("kill", 40), ("full", 8), ("signal", 8)])
def test_many(verb, mode, count, folder):
    disturbed(verb, folder, mode, count)


def started(verb, folder, *words):
    line = [sys.executable, "-m", "counterpoint.command_line", *VERBS[verb], *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(line, cwd=folder, text=True, env=environment(), **pipes)


def pairs(verb, folder, count):
    """Two processes on one output at once: it is complete afterwards, and the same as that of one alone."""
    alone = started(verb, folder)
    assert alone.communicate()[1].count("\n") == 1
    content = output(verb, folder).read_bytes()
    for number in range(count):
        output(verb, folder).unlink()
        both = [started(verb, folder, *(("--force",) if number % 2 else ())) for _ in range(2)]
        said = [each.communicate()[1] for each in both]
        codes = sorted(each.returncode for each in both)
        assert codes == [0, 2] or (codes == [0, 0] and number % 2), (verb, said)
        assert codes == [0, 0] or any("it exists" in text or "another process" in text for text in said), said
        assert output(verb, folder).read_bytes() == content, verb
        assert leftovers(verb, folder) == [], verb
    print(f"\npairs of {verb}: {count} of {count} survived")


def test_one_pair(folder):
    pairs("convert", folder, 2)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_many_pairs(verb, folder):
    pairs(verb, folder, 10)
