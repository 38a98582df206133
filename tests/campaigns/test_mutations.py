"""Every format that we read, damaged in thousands of ways, in a child with little memory and time.

The outcome is the same data, or one error class with the file's name. A difference is allowed only where the format
has no checksum, and in files that are forged, which are well-formed and say something else.
"""

import collections
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.campaigns import specimens
from tests.campaigns.conftest import MUTATIONS
from tests.campaigns.mutations import mutated
from tests.campaigns.readers import READERS

ROOT = Path(__file__).parents[2]
NO_CHECKSUM = {
    "description": "a person writes it",
    "lerobot": "statistics, names and tasks are plain JSON, and others' pages have no checksums",
    "shards": "as parquet; checksums in the manifest are compared when a job goes on, not when data is read",
    "minari": "its metadata is plain JSON, and Minari's own arrays have no checksums",
    "parquet": "pages have checksums, the footer with names and types has none",
    "d4rl": "values and structures have checksums, text in attributes and names has none",
    "robomimic": "as d4rl",
    "npz": "members have checksums, the directory of the archive has none",
    "buffer": "as npz",
}
FEW = 40


class Child:
    """A process that reads files, started again when it dies."""

    def __init__(self):
        self.process = None

    def ask(self, kind, path, *, first=False):
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, "-m", "tests.campaigns.child"]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen(command, cwd=ROOT, text=True, **pipes)
        try:
            self.process.stdin.write(json.dumps({"kind": kind, "path": str(path), "first": first}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "died"
        return self.process.stdout.readline().strip() or f"died {self.process.wait()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()


def campaign(kind, folder, count, tell):
    wholes = {path: specimens.bytes_of(path) for path in specimens.make(folder, kind)}
    victims = [(whole, file) for whole, raw in wholes.items() for file in raw]
    rng, outcomes, bad = np.random.default_rng(20201112), collections.Counter(), []
    with Child() as child:
        assert {child.ask(kind, whole, first=True) for whole in wholes} == {"same"}
        for number in range(count):
            whole, victim = victims[int(rng.integers(len(victims)))]
            content, forged = mutated(wholes[whole][victim], rng, victim.suffix)
            victim.write_bytes(content)
            answer = child.ask(kind, whole)
            word = answer.partition(" ")[0]
            outcomes[f"{word}, forged" if forged else word] += 1
            said_so = forged and kind != "ledger"  # the only one whose checksums are not forged, too
            if word not in ("same", "refused") and not (word == "different" and (said_so or kind in NO_CHECKSUM)):
                bad.append((number, victim.name, answer[-1500:]))
            specimens.restore(wholes[whole])
            if word == "died":
                assert {child.ask(kind, each, first=True) for each in wholes} == {"same"}
        assert {child.ask(kind, whole) for whole in wholes} == {"same"}
    tell(f"mutations of {kind}: {count - len(bad):,} of {count:,} survived; {dict(outcomes)}")
    assert bad == []


@pytest.mark.parametrize("kind", READERS)
def test_a_few(kind, tmp_path, tell):
    campaign(kind, tmp_path, FEW, tell)


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_many(kind, tmp_path, tell):
    campaign(kind, tmp_path, MUTATIONS, tell)
