"""Killed, stopped, out of disk or disturbed at every stage: nothing is lost, doubled or half-written.

Every verb that writes, into every format, is disturbed at steps spread over its whole way. Then the same command, with
``--resume`` where there is such a thing, gives the bytes that it gives undisturbed.
"""

import re
import shutil

import numpy as np
import pytest

from counterpoint import files
from counterpoint.description import read_description
from tests.campaigns.conftest import APART, TIMES
from tests.campaigns.nursery import Nursery
from tests.command_line.sprites import prepare

MASK = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--setting", "allow_constant=True")
DATA = ("data.parquet", "robot.toml")
SHARDS = ("shards", "robot.toml", "--out", "out", "--ratio", "1", "--workers", "1", "--resume")
VERBS = {
    "augment": ("augment", *DATA, "--out", "out.parquet", "--size", "700", "--resume"),
    "augment and report": ("augment", *DATA, "--out", "out.npz", "--ratio", "1", "--report", "out.html", "--resume"),
    "augment windows": ("augment", *DATA, "--out", "out.hdf5", "--ratio", "1", "--window", "3", "--resume"),
    "augment shards": ("augment", *SHARDS),
    "convert to parquet": ("convert", "data.parquet", "out.parquet"),
    "convert to npz": ("convert", "data.parquet", "out.npz"),
    "convert to d4rl": ("convert", "data.parquet", "out.hdf5"),
    "convert to robomimic": ("convert", "data.parquet", "out.hdf5", "--format", "robomimic"),
    "convert to minari": ("convert", "data.parquet", "minari:sprites/out-v0"),
    "convert to lerobot": ("convert", "data.parquet", "lerobot:out"),
    "convert to shards": ("convert", "data.parquet", "out", "--format", "shards"),
    "fit-mask": ("fit-mask", *DATA, "--out", "out.safetensors", *MASK),
    "report": ("report", "augmented.parquet", "robot.toml", "--out", "out.html"),
    "inspect": ("inspect", "data.parquet", "--propose", "out.toml"),
}
FOLDERS = ("augment shards", "convert to shards", "convert to minari", "convert to lerobot")  # are made, not replaced
DRAWING = ("report",)  # takes seconds, so it is disturbed a third as often; other reports are made without figures
MODES = {"kill": 18, "limit": 3, "SIGINT": 3, "SIGTERM": 3}  # and how many of each for every verb
FEW = {"rows": 120, "environments": 4, "reset_probability": 0.0}  # episodes: HDF5 takes dozens of steps for each
FEWEST = 3  # of each, however few are asked for: at the beginning, between, and at the end
PAIRS = 4  # for every verb; 2 at least, with and without --force
OLD = b"the old output"
SAYS = {"full": "the disk is full", "limit": "the file would be larger than the system allows"}


@pytest.fixture(scope="module")
def nursery():
    found = Nursery()
    yield found
    found.close()


def furnished(folder, **schedule):
    """Put into a folder what the commands read."""
    data = prepare(folder, **schedule)
    (folder / "shards").mkdir()
    cut = 2 * len(data) // 3
    files.write(folder / "shards" / "one.parquet", data[:cut])
    files.write(folder / "shards" / "two.parquet", data[cut:])
    augmenter = read_description(folder / "robot.toml").augmenter()
    files.augment(folder / "data.parquet", augmenter, folder / "augmented.parquet", ratio=1)
    return folder


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    return furnished(tmp_path_factory.mktemp("campaign"))


@pytest.fixture
def folder(workplace, tmp_path):
    shutil.copytree(workplace, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__py*"))
    return tmp_path


class Command:
    """A verb in a folder, its undisturbed outcome, and what is in the folder now."""

    def __init__(self, verb, folder, nursery):
        self.verb, self.folder, self.nursery = verb, folder, nursery
        self.inputs = set(self.there())
        done = self.run("count")
        assert done["code"] == 0, done["err"]
        self.steps, self.content = done["steps"], self.there()
        assert self.content

    def job(self, mode, stop=None, *, force=True, waits=False):
        words = [*VERBS[self.verb], *(("--force",) if force else ())]
        job = {"folder": str(self.folder), "words": words, "mode": mode, "stop": stop, "waits": waits}
        return {**job, "undrawn": self.verb not in DRAWING}

    def run(self, mode, stop=None):
        return self.nursery.run(self.job(mode, stop))[0]

    def there(self):
        """All files but the inputs, with their bytes."""
        found = {str(path.relative_to(self.folder)): path for path in self.folder.rglob("*") if path.is_file()}
        known = getattr(self, "inputs", ())
        there = {name: path.read_bytes() for name, path in found.items() if name not in known and "__py" not in name}
        return {name: raw.replace(b" --force", b"") for name, raw in there.items()}  # a page shows its command

    def hidden(self):
        """Unfinished files and folders, by name."""
        return [path.name for path in self.folder.rglob(".*")]

    def reset(self):
        """Put the old outputs back, or nothing where a folder is made, which is never replaced."""
        for path in self.folder.iterdir():
            if path.is_dir() and path.name != "shards":
                shutil.rmtree(path)
            elif path.is_file() and path.name not in self.inputs:
                path.unlink()
        if self.verb not in FOLDERS:
            for name in self.content:
                (self.folder / name).write_bytes(OLD)

    def check_nothing_lost(self, note):
        """Every output is the old one or complete; a folder is complete or not there."""
        there = {name: raw for name, raw in self.there().items() if name in self.content}
        if self.verb in FOLDERS:
            above = {name: raw for name, raw in self.content.items() if name.endswith("namespace_metadata.json")}
            assert there in ({}, self.content) or there.items() <= above.items(), note
        else:
            assert all(there.get(name) in (OLD, raw) for name, raw in self.content.items()), note

    def check_goes_on(self, note):
        """The same command gives what it gives undisturbed, and leaves nothing else behind."""
        if self.verb not in FOLDERS or not set(self.content) <= set(self.there()):
            done = self.run("count")
            assert done["code"] == 0, (note, done)
        assert self.there() == self.content, (note, sorted(set(self.there()) ^ set(self.content)))

    def check_said(self, mode, done, note):
        """A disturbance that the command notices is told in one line, with the right exit code."""
        if done["code"] == 0:  # it was done before, or had finished its output
            return
        assert done["err"].strip(), note
        line = done["err"].strip().splitlines()[-1]
        assert "Traceback" not in done["err"], note
        assert not self.hidden(), (note, self.hidden())
        if mode in SAYS:
            assert done["code"] == 2, note
            assert "not written" in line, note
            assert SAYS[mode] in line, note
        elif mode in ("SIGINT", "SIGTERM"):
            assert done["code"] == {"SIGINT": 130, "SIGTERM": 143}[mode], note
            assert re.match(rf"counterpoint( {VERBS[self.verb][0]})?: stopped\. [RT].*\.$", line), note

    def check_both(self, note, both, *, force):
        """Of two at once, one made the output, whole, and the other says why it did not, unless it replaced it."""
        codes = sorted(each["code"] for each in both)
        again = force or self.verb == "augment shards"  # a job that goes on may find that nothing is left to do
        assert codes == [0, 2] or (codes == [0, 0] and again), note
        refusals = ("it exists", "another process", "there is an unfinished job")
        assert all(each["code"] == 0 or any(why in each["err"] for why in refusals) for each in both), note
        assert self.there() == self.content, note
        assert not self.hidden(), note


def spread(mode, count, command):
    """Return so many places from the first to the last at which a command may be disturbed; a single one is between."""
    most = {"kill": command.steps, "full": command.steps, "limit": max(map(len, command.content.values()))}.get(mode)
    if most is None:
        command.reset()
        most = command.run("calls")["steps"]
    first = 0 if mode == "limit" else 1
    return sorted({int(stop) for stop in np.linspace(first, most, count)}) if count > 1 else [(first + most) // 2]


def disturbed(verb, mode, stops, command, tell):
    """Disturb a verb at these places, each time over an old output."""
    bad = []
    for stop in stops:
        command.reset()
        done = command.run(mode, stop)
        note = (verb, mode, stop, done)
        try:
            command.check_nothing_lost(note)
            if mode != "kill":
                command.check_said(mode, done, note)
            command.check_goes_on(note)
        except AssertionError as error:
            bad.append(str(error))
    tell(f"{mode} in {verb}: {len(stops) - len(bad)} of {len(stops)} survived, at steps up to {stops[-1]:,}")
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize(
    ("verb", "mode"),
    [
        ("augment", "kill"),
        ("convert to d4rl", "full"),
        ("convert to minari", "full"),
        ("convert to minari", "limit"),
        ("convert to d4rl", "SIGTERM"),
    ],
)
def test_a_few(verb, mode, folder, nursery, tell):
    command = Command(verb, folder, nursery)
    disturbed(verb, mode, spread(mode, 3, command), command, tell)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("mode", MODES)
def test_many(verb, mode, folder, nursery, tell):
    command, count = Command(verb, folder, nursery), max(FEWEST, int(MODES[mode] * TIMES))
    disturbed(verb, mode, spread(mode, count // (3 if verb in DRAWING else 1), command), command, tell)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk(verb, tmp_path, nursery, tell):
    """At every step, or every so many; of data with few episodes, because some formats take dozens for each."""
    command = Command(verb, furnished(tmp_path, **FEW), nursery)
    disturbed(verb, "full", range(1, command.steps + 1, APART), command, tell)


def pairs(verb, count, command, tell):
    """Two processes on one output: the second starts when the first is at some step. One of them makes it, whole.

    Every other two the first waits there, so that all of the second happens in the middle of the first.
    """
    bad = []
    for number in range(count):
        force, waits = bool(number % 2) and verb not in FOLDERS, number % 4 < 2
        command.reset()
        for name in command.content if not force else ():
            (command.folder / name).unlink(missing_ok=True)
        stop = int(np.linspace(1, command.steps, count + 2)[number + 1])
        first = command.job("count", stop, force=force, waits=waits)
        both = command.nursery.run(first, command.job("count", force=force))
        try:
            command.check_both((verb, stop, both), both, force=force)
        except AssertionError as error:
            bad.append(str(error))
    tell(f"pairs of {verb}: {count - len(bad)} of {count} survived")
    assert not bad, "\n".join(bad)


def test_a_few_pairs(folder, nursery, tell):
    pairs("augment", 4, Command("augment", folder, nursery), tell)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_many_pairs(verb, folder, nursery, tell):
    pairs(verb, max(2, int(PAIRS * TIMES)), Command(verb, folder, nursery), tell)
