"""A small dataset of sprites with its description, for tests of the command line."""

import numpy as np

from counterpoint import files
from counterpoint.command_line import main
from counterpoint.worlds import Place, Sprites, collect, uniform_policy

WORLD = Sprites(noise_std=0.0)
FUNCTIONS = """
import numpy as np
from counterpoint.worlds import Place, Sprites

world = Sprites(noise_std=0.0)
mask, reward, step = world.mask, Place(4), world.step

def nothing(state, action):
    return np.broadcast_to(np.eye(5, 4, dtype=bool), (len(state), 5, 4)).copy()

def broken(state, action):
    raise KeyError("my own mistake")
"""
DESCRIPTION = """
[state]
one = "0:4"
two = "4:8"
three = "8:12"
four = "12:16"

[action]
click = "0:2"

[mask]
kind = "function"
function = "sprite_functions:mask"

[reward]
kind = "function"
function = "sprite_functions:reward"
"""


def prepare(folder, rows=300, name="data.parquet", **schedule):
    """Write data, description and functions into a folder; return the real transitions."""
    data = collect(WORLD, uniform_policy(WORLD), rows, np.random.default_rng(0), reward_fn=Place(4), **schedule)
    (folder / "sprite_functions.py").write_text(FUNCTIONS)
    (folder / "robot.toml").write_text(DESCRIPTION)
    files.write(folder / name, data)
    return data


def run(capsys, *words):
    """Run the command; return its exit code, output and error stream."""
    code = main([str(word) for word in words])
    found = capsys.readouterr()
    return code, found.out, found.err


def augment(capsys, *words, out="out.parquet", data="data.parquet"):
    return run(capsys, "augment", data, "robot.toml", "--out", out, *words)
