"""`augment` on a folder: three engines, one set of bytes."""

import shlex
import subprocess
import sys

import numpy as np
import pytest

from counterpoint import files
from counterpoint.command_line import main
from counterpoint.worlds import Place, collect, uniform_policy
from tests.command_line.sprites import DESCRIPTION, FUNCTIONS, WORLD, augment, run
from tests.files.sharded import contents

COUNTING = """
import os
with open("loads.txt", "a") as file:
    file.write(f"{os.getpid()}\\n")
"""


@pytest.fixture
def shards(folder):
    """Five shards of sprites, with their description; the module of its functions counts how often it is loaded."""
    (folder / "data").mkdir()
    for number in range(5):
        rng = np.random.default_rng(number)
        rows = collect(WORLD, uniform_policy(WORLD), 60 + 10 * number, rng, reward_fn=Place(4))
        files.write(folder / "data" / f"part-{number}.parquet", rows)
    (folder / "sprite_functions.py").write_text(FUNCTIONS + COUNTING)
    (folder / "robot.toml").write_text(DESCRIPTION)
    return folder


def made(capsys, *words, out, data="data"):
    code, told, error = augment(capsys, "--ratio", 2, *words, out=out, data=data)
    assert code == 0, error
    return told


def test_a_folder_is_augmented_audited_and_reported(shards, capsys):
    pytest.importorskip("matplotlib")
    told = made(capsys, "--workers", 2, "--report", "page.html", out="more/", data="data/")
    assert told.startswith("more: 400 real transitions and 800 counterfactuals in 5 shards\n")
    processes = (shards / "loads.txt").read_text().split()
    assert len(processes) == len(set(processes)) <= 3  # once in each of two workers, and here
    code, told, _ = run(capsys, "audit", "more", "--simulator", "sprite_functions:step")
    assert code == 0
    assert "\n100.00% of 800 transitions conf" in told
    assert (shards / "page.html").exists()
    assert run(capsys, "inspect", "more")[1].splitlines()[1:3] == [
        "  format          shards",
        "  transitions     1,200",
    ]


def test_printed_commands_and_resume_make_the_same_bytes(shards, capsys):
    made(capsys, "--workers", 1, out="more")
    told = made(capsys, "--engine", "commands", out="again")
    lines = told.splitlines()
    assert len(lines) == 5
    for line in (lines[4], lines[1]):
        words = shlex.split(line)
        assert words[0] == "counterpoint"
        assert main(words[1:]) == 0
    assert not (shards / "again").exists()
    made(capsys, "--resume", "--workers", 1, out="again")
    assert contents("again") == contents("more")


def test_ray_makes_the_same_bytes(shards, capsys):
    pytest.importorskip("ray")
    made(capsys, "--workers", 1, out="more")
    words = ["augment", "data", "robot.toml", "--ratio", "2", "--out", "rays", "--engine", "ray", "--workers", "1"]
    line = [sys.executable, "-m", "counterpoint.command_line", *words]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert contents("rays") == contents("more")


def test_noise_that_is_left_out_on_purpose(shards, capsys):
    for part in (shards / "data").iterdir():
        rows = files.read(part).transitions
        noise = np.random.default_rng(0).random((len(rows), 2))
        files.write(part, rows.replace(noise=noise), force=True)
    code, _, error = augment(capsys, "--ratio", 2, "--workers", 1, out="more", data="data")
    assert code == 2
    assert "To leave them out, write noise = false." in error
    (shards / "robot.toml").write_text("noise = false\n" + DESCRIPTION)
    made(capsys, "--workers", 1, out="more")
    assert files.read(shards / "more").transitions.noise is None
    assert run(capsys, "audit", "more", "--simulator", "sprite_functions:step")[0] == 0


def test_one_shard_is_one_shard(shards, capsys):
    for number in range(1, 5):
        (shards / "data" / f"part-{number}.parquet").unlink()
    assert "60 transitions in 1 shard\n" in made(capsys, "--dry-run", out="more")
    assert made(capsys, "--workers", 1, out="more").startswith(
        "more: 60 real transitions and 120 counterfactuals in 1 shard\n"
    )


def test_the_size_is_that_of_the_whole_output(shards, capsys):
    code, _, _ = augment(capsys, "--size", 1001, "--workers", 1, out="more", data="data")
    assert (code, files.scan("more").rows) == (0, 1001)


def test_a_folder_may_become_one_file(shards, capsys):
    made(capsys, out="one.parquet")
    found = files.scan("one.parquet")
    assert (found.rows, found.head.source) == (1200, "data")


def test_a_dry_run_writes_nothing(shards, capsys):
    told = made(capsys, "--dry-run", out="more")
    assert "400 real transitions and 800 counterfactuals" in told
    assert "runs    [mask] sprite_functions:mask in sprite_functions.py\n" in told
    assert "runs    [reward] sprite_functions:reward in sprite_functions.py\n" in told
    assert not (shards / "more").exists()
    assert not (shards / "loads.txt").exists()


def test_no_two_files_are_one(shards, capsys):
    made(capsys, "--workers", 1, out="more")
    (shards / "more" / "robot.toml").write_text(DESCRIPTION)
    before = {str(path): path.read_bytes() for path in shards.rglob("*") if path.is_file()}
    for words, message in (
        (("robot.toml", "--report", "data/part-0.parquet"), "the report is also the data"),
        (("robot.toml", "--report", "data/page.html"), "the report is also the data"),
        (("robot.toml", "--report", "robot.toml"), "the report is also the description"),
        (("robot.toml", "--report", "more/manifest.json"), "the report is also the output"),
        (("more/robot.toml",), "more: the output is also the description"),
        (("robot.toml",), "more: it also holds robot.toml, which would be lost"),
    ):
        code, _, error = run(capsys, "augment", "data", *words, "--ratio", 1, "--out", "more", "--force")
        assert (code, message in error) == (2, True), error
    assert {str(path): path.read_bytes() for path in shards.rglob("*") if path.is_file()} == before


def test_a_mask_is_fitted_to_a_sample_of_the_folder(shards, capsys):
    pytest.importorskip("torch")
    words = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--setting", "width=8", "--rows", 100)
    code, told, error = run(capsys, "fit-mask", "data", "robot.toml", "--out", "mask.safetensors", *words)
    assert (code, "fitted to 100 transitions" in told) == (0, True), error
    code, told, error = run(capsys, "score-mask", "mask.safetensors", "data", "--world", "sprites", "--rows", 100)
    assert (code, told[:5]) == (0, "edges"), error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", 0), "workers: expected a whole number, 1 or more, got 0"),
        (("--address", "auto"), "--address: it is the address of a Ray cluster. Give --engine ray, too."),
        (("--shard", 9), "number: the dataset has the shards 0 to 4, got 9"),
    ],
)
def test_wrong_options_are_explained(words, message, shards, capsys):
    code, _, error = augment(capsys, "--ratio", 2, *words, out="more", data="data")
    assert (code, message in error) == (2, True)
    assert not (shards / "more").exists()


def test_options_of_folders_are_refused_for_one_file(shards, capsys):
    code, _, error = augment(capsys, "--ratio", 2, "--workers", 2, out="x.parquet", data="data/part-0.parquet")
    assert (code, "--workers: it is for a folder of files" in error) == (2, True)
