"""What a demanding user meets on the way from a file to a verdict."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from counterpoint import Factorization, Transitions, files
from counterpoint.command_line.guessing import guess
from counterpoint.command_line.proposal import proposal
from counterpoint.command_line.wording import described
from counterpoint.description import read_description
from counterpoint.worlds import Pong, Room, Sprites, TwoArms, collect, uniform_policy
from tests.command_line.sprites import DESCRIPTION, augment, prepare, run

FORMATS = ("data.parquet", "data.npz", "data.hdf5", "robomimic.hdf5", "lerobot:lerobot", "minari:my/data-v0")
WORLDS = {"sprites": Sprites(), "pong": Pong(), "room": Room(), "two-arms": TwoArms()}


def record(name, data, factors):
    """Write transitions in one of the formats; return how to name them as an input."""
    files.write(name, data, factors=factors, format="robomimic" if name.startswith("robomimic") else None)
    return name


@pytest.mark.parametrize("name", FORMATS)
def test_hidden_state_survives_every_format(name, folder, rng):
    """Noise columns and their owners come back as they were."""
    world = Sprites()
    data = collect(world, uniform_policy(world), 80, rng)
    found = files.read(record(name, data, world.factors))
    for column, array in data.columns():
        np.testing.assert_array_equal(getattr(found.transitions, column), array, err_msg=column)
    assert found.factors == world.factors


@pytest.mark.parametrize(
    ("name", "world"), [*((name, "sprites") for name in FORMATS), *(("data.parquet", world) for world in WORLDS)]
)
def test_from_any_file_to_a_verdict_without_writing_a_line(name, world, folder, capsys, rng):
    """A draft is taken as it is, whatever the format, where a world knows who influences whom."""
    known = WORLDS[world]
    source = record(name, collect(known, uniform_policy(known), 60, rng), known.factors)
    code, out, err = run(capsys, "inspect", source, "--world", world, "--propose", "draft.toml")
    assert code == 0, err
    assert "to be filled in" not in out
    code, _, err = run(capsys, "augment", source, "draft.toml", "--ratio", 0.5, "--out", "more.parquet")
    assert code == 0, err
    code, out, err = run(capsys, "audit", "more.parquet", "--world", world, "--description", "draft.toml")
    assert code == 0, err
    assert "real rows: 100.00% of 60 confirmed\n100.00% of 30 transitions confirmed, 0 wrong" in out
    assert "tried     wrong  confirmed  swapped\n" in out


def test_a_draft_says_what_is_missing(folder, capsys):
    prepare(folder)
    code, out, _ = run(capsys, "inspect", "data.parquet", "--propose", "draft.toml")
    assert code == 0
    assert "to be filled in before `counterpoint augment` takes it: [mask], [reward]" in out
    code, _, err = run(capsys, "augment", "data.parquet", "draft.toml", "--ratio", 1, "--out", "out.parquet")
    assert code == 2
    assert "a section [mask] is needed" in err


def test_goals_derived_columns_and_rewards_are_guessed_and_right(folder, rng, capsys):
    """A goal environment's file: the achieved goal is a copy, the reward and the end depend on the goal."""
    hand, puck, goal = (rng.random((400, 2)) for _ in range(3))
    goal[::3] = puck[::3] + 0.01
    state = np.hstack([hand, puck, goal, puck])
    near = np.linalg.norm(goal - puck, axis=1) <= 0.05
    factors = Factorization(
        {"hand": (0, 1), "puck": (2, 3), "desired_goal": (4, 5)},
        {"motor": (0,)},
        derived=(6, 7),
        static=("desired_goal",),
    )
    data = Transitions(state, rng.random((400, 1)), np.where(near, 0.0, -1.0), state, near)
    found = guess(data, factors)
    assert found.derived == {"columns": (6, 7), "plus": [2, 3]}
    assert found.reward == {"kind": "from-goal", "goal": "desired_goal", "achieved": (6, 7), "tolerance": 0.05}
    assert found.terminal == found.reward
    Path("draft.toml").write_text(
        proposal(8, 1, factors, functions={"mask": "hands:mask"}, guess=found), encoding="utf-8"
    )
    Path("hands.py").write_text(
        "import numpy as np\ndef mask(s, a):\n    m = np.zeros((len(s), 4, 3), bool)\n"
        "    m[:, [0, 1, 2, 3], [0, 1, 2, 0]] = True\n    return m\n"
    )
    files.write("data.npz", data, factors=factors)
    assert run(capsys, "augment", "data.npz", "draft.toml", "--ratio", 1, "--out", "out.npz")[0] == 0
    made = files.read("out.npz").transitions
    np.testing.assert_array_equal(made.state[:, 6:], made.state[:, 2:4])
    scaled = guess(data.replace(reward=np.where(near, 10.0, 3.0)), factors)
    assert (scaled.reward["reached"], scaled.reward["missed"]) == (10.0, 3.0)
    assert guess(data.replace(reward=rng.random(400)), factors).reward == {}
    assert guess(data.replace(reward=np.full(400, 2.0)), factors).reward == {"kind": "constant", "value": 2.0}


def test_noise_that_nobody_owns_is_refused_or_left_out_on_purpose(folder, capsys, rng):
    prepare(folder)
    world = Sprites()
    files.write("noisy.parquet", collect(world, uniform_policy(world), 60, rng))
    text = DESCRIPTION.replace("sprite_functions:reward", "sprite_functions:nothing_at_all")
    text = text[: text.index("[reward]")] + '[reward]\nkind = "constant"\nvalue = 0\n'
    (folder / "robot.toml").write_text(text)
    code, _, err = augment(capsys, "--ratio", 1, data="noisy.parquet")
    assert code == 2
    assert "noise: noisy.parquet holds 8 columns of noise or hidden state, and the factors own 0" in err
    assert "write a section [noise]" in err
    assert "Factorization" not in err
    (folder / "robot.toml").write_text("noise = false\n" + text)
    assert augment(capsys, "--ratio", 1, data="noisy.parquet")[0] == 0
    assert files.read("out.parquet").transitions.noise is None
    owners = "".join(f'{name} = "{2 * k}:{2 * k + 2}"\n' for k, name in enumerate(("one", "two", "three", "four")))
    (folder / "robot.toml").write_text(text + f"[noise]\n{owners}")
    assert augment(capsys, "--ratio", 1, "--force", data="noisy.parquet")[0] == 0
    found = files.read("out.parquet")
    made = found[found.provenance.swapped.any(axis=1)].transitions
    np.testing.assert_array_equal(world.step(made.state, made.action, made.noise), made.next_state)


def test_what_is_left_behind_is_named(folder, capsys):
    count = 5
    d4rl = {"observations": np.zeros((count, 2)), "actions": np.zeros((count, 1)), "rewards": np.zeros(count)}
    d4rl |= {
        "next_observations": d4rl["observations"],
        "terminals": np.zeros(count),
        "infos/qpos": np.zeros((count, 3)),
    }
    np.savez(folder / "a.npz", **d4rl, noise=np.ones((count, 2)))
    assert "  not read        infos/qpos\n" in run(capsys, "inspect", "a.npz")[1]
    code, _, err = run(capsys, "convert", "a.npz", "b.parquet")
    assert code == 0
    assert "left behind, not part of the transitions: infos/qpos" in err
    assert "not read" not in run(capsys, "inspect", "b.parquet")[1]
    np.testing.assert_array_equal(files.read("b.parquet").transitions.noise, np.ones((count, 2)))


def test_wrong_rewards_and_ends_are_named_by_section_and_true_row(folder, capsys, monkeypatch):
    data = prepare(folder)
    monkeypatch.setattr("counterpoint.files.sampling.ROWS", 64)  # looks at every fifth row
    reward = data.reward.copy()
    reward[250] += 7.0
    files.write("wrong.parquet", data.replace(reward=reward))
    code, _, err = augment(capsys, "--ratio", 1, data="wrong.parquet")
    assert code == 2
    assert "[reward]: it differs from the data in 1.7% of the rows; worst is row 250:" in err
    assert err.rstrip().endswith("skip this check: --trust-reward.")
    assert augment(capsys, "--ratio", 1, "--trust-reward", data="wrong.parquet")[0] == 0
    ended = np.zeros(300, bool)
    ended[200] = True
    files.write("ended.parquet", data.replace(terminated=ended))
    code, _, err = augment(capsys, "--ratio", 1, "--force", data="ended.parquet")
    assert "[terminal]: 1 of 300 transitions are terminal" in err
    assert "Add a section [terminal] to the description" in err
    (folder / "robot.toml").write_text(DESCRIPTION + '[terminal]\nkind = "constant"\nvalue = false\n')
    code, _, err = augment(capsys, "--ratio", 1, "--force", data="ended.parquet")
    assert (code, "[terminal]: it differs from the data in 1.7% of the rows, first in row 200" in err) == (2, True)


def test_libraries_and_descriptions_have_words_of_their_own():
    assert described("terminal_fn: returned no booleans") == "[terminal]: returned no booleans"
    assert described("derive: it does not reproduce") == "derived: it does not reproduce"
    assert described("mask_fn: expected booleans") == "[mask]: expected booleans"


def test_a_reader_that_has_seen_enough_is_no_error(folder):
    prepare(folder)
    words = [sys.executable, "-m", "counterpoint.command_line", "inspect", "data.parquet"]
    paths = os.pathsep.join(str(Path(part).resolve()) for part in sys.path if part)
    child = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
    )
    child.stdout.close()
    _, err = child.communicate()
    assert b"Traceback" not in err
    assert b"Exception" not in err
    assert child.returncode == 0


def test_columns_that_mix_factors_are_warned_of(folder, capsys, rng):
    state, after = rng.normal(size=(500, 4)), rng.normal(size=(500, 4))
    for rows in (state, after):
        rows[:, 3] = rows[:, 2] - rows[:, 0]
    factors = Factorization.blocks(state={"hand": 2, "puck": 2}, action={"motor": 1})
    files.write("a.npz", Transitions(state, state[:, :1], state[:, 0], after, state[:, 0] > 9), factors=factors)
    out = run(capsys, "inspect", "a.npz")[1]
    assert "warning: puck[1] (column 3) follows a difference of " in out
    assert "hand[0] (column 0)" in out
    assert "Declare differences derived" in out


def test_the_report_has_its_command_a_drawing_and_a_line_about_rewards(folder, capsys):
    prepare(folder)
    places = "".join(f'{name} = "{4 * k}:{4 * k + 2}"\n' for k, name in enumerate(("one", "two", "three", "four")))
    (folder / "robot.toml").write_text(DESCRIPTION + f"[positions]\n{places}")
    assert augment(capsys, "--ratio", 1, "--report", "page.html")[0] == 0
    page = (folder / "page.html").read_text()
    assert "counterpoint augment data.parquet robot.toml --out out.parquet --ratio 1 --report page.html" in page
    assert "Drawing of the base" in page
    assert "<strong>Rewards</strong>" in page
    assert "one[0] (column 0)" in page
    words = ("report", "out.parquet", "robot.toml", "--out", "b.html", "--simulator", "sprite_functions:step")
    code, _, err = run(capsys, *words)
    assert code == 0, err
    assert "counterpoint report out.parquet robot.toml --out b.html" in (folder / "b.html").read_text()


def test_a_draft_of_scaled_positions_is_complete(folder):
    world = Pong()
    Path("a.toml").write_text(proposal(12, 2, world.factors))
    assert read_description("a.toml").factors == world.factors
