"""A buffer in a file: it goes on as if nothing had happened, and a bad file changes nothing."""

import errno
import os

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from counterpoint.files import FileProblem
from tests.adapters.sb3 import goal_environments
from tests.adapters.sb3.environments import coda, filled, td3


def test_save_and_load(tmp_path):
    buffer, other = filled(noise_key="noise"), filled(0, noise_key="noise")
    buffer.save(tmp_path / "buffer.npz")
    other.load(tmp_path / "buffer.npz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["buffer.npz"]
    for name in ("state", "action", "reward", "next_state", "noise"):
        for half in ("real_transitions", "counterfactual_transitions"):
            np.testing.assert_array_equal(getattr(getattr(buffer, half)(), name), getattr(getattr(other, half)(), name))
    samples = []
    for each in (buffer, other):
        np.random.seed(0)  # noqa: NPY002 (the real half is drawn by Stable-Baselines3, from the global state)
        samples.append(each.sample(100).observations.numpy())
    np.testing.assert_array_equal(*samples)


def test_a_full_ring_is_loaded_in_place(tmp_path):
    buffer, other = filled(700, buffer_size=500), filled(0, buffer_size=500)
    buffer.save(tmp_path / "buffer.npz")
    other.load(tmp_path / "buffer.npz")
    assert (other.pos, other.full) == (buffer.pos, True)
    np.testing.assert_array_equal(other.observations, buffer.observations)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"buffer_size": 50}, r"has room for \(\d+, 1, 16\), this buffer for \(50, 1, 16\)"),
        (coda(capacity=10), "room for 4000000 counterfactual rows, this buffer has room for 10"),
        ({"noise_key": "noise"}, "this buffer has .*noise"),
    ],
)
def test_a_file_of_another_buffer_is_refused(tmp_path, settings, message):
    filled(200).save(tmp_path / "buffer.npz")
    other = filled(0, **settings)
    with pytest.raises(ValueError, match=rf"buffer.npz: .*{message}"):
        other.load(tmp_path / "buffer.npz")
    assert (other.pos, other.observations.any(), len(other.counterfactual.ring)) == (0, False, 0)


def test_a_truncated_file_is_refused_and_the_buffer_stays(tmp_path):
    path, buffer = tmp_path / "buffer.npz", filled(200)
    buffer.save(path)
    before = buffer.observations.copy()
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"buffer.npz: it is damaged, incomplete"):
        buffer.load(path)
    np.testing.assert_array_equal(buffer.observations, before)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        buffer.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"places": np.array([300, 9999])}, "cannot go to place"),
        ({"places": np.array([300, -1])}, "cannot go to place"),
        ({"places": np.array([300, 200, 3])}, "expected 1"),
        ({"rewards": np.full((200, 1), np.nan, np.float32)}, "rewards holds NaN"),
        ({"rewards": np.zeros((150, 1), np.float32)}, "different numbers of rows"),
        ({"rewards": np.array([["a"]] * 200)}, "rewards holds NaN, infinity, or no numbers"),
        ({"counterfactual_counts": np.array([4_000_000, 9, 200, 1])}, "do not fit together"),
        ({"counterfactual_counts": np.array([1])}, "damaged"),
        ({"counterfactual_measured": np.array([np.nan, 0.5])}, "do not fit together"),
        ({"counterfactual_generator": np.array("{}")}, "damaged"),
    ],
)
def test_a_forged_file_changes_nothing(tmp_path, changes, message):
    """Well-formed and wrong: all of it is checked before any of it is assigned."""
    path, buffer = tmp_path / "buffer.npz", filled(200, buffer_size=300)
    buffer.save(path)
    with np.load(path) as file:
        arrays = {**file, **changes}
    np.savez(path, **arrays)
    other = filled(100, buffer_size=300)
    before = {name: array.copy() for name, array in other._stored().items()}
    rows = other.counterfactual
    with pytest.raises(FileProblem, match=rf"buffer.npz: .*{message}"):
        other.load(path)
    assert (other.pos, other.full, other.counterfactual) == (100, False, rows)
    for name, array in other._stored().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ep_length", lambda a: put(a, 7, 2**40), "row 7 cannot lie in an episode of 1099511627776 rows"),
        ("ep_length", lambda a: put(a, 7, 3), "row 7 cannot lie in an episode of 3 rows that begins in row 0"),
        ("ep_length", lambda a: put(a, 199, 300), "row 199 cannot lie in an episode of 300 rows"),
        ("ep_start", lambda a: put(a, 7, -1), "begins in row -1"),
        ("ep_start", lambda a: put(a, 0, 250), "begins in row 250"),
        ("next_achieved_goal", lambda a: put(a, 7, 5.0), "achieved: column 0 of the achieved goal is not a column"),
        ("places", lambda a: put(a, 2, -1), "cannot go to place"),
        ("places", lambda a: put(a, 2, 201), "cannot go to place"),
        ("both states", lambda a: a[:, :3], "observations have 3 columns, this buffer's 4"),
        ("counterfactual_action", lambda a: np.hstack([a, a]), "actions have 4 columns, this buffer's 2"),
    ],
)
def test_forged_episodes_and_widths_change_nothing(tmp_path, name, change, message):
    """What hindsight looks up, now or when an episode is overwritten, lies in the buffer."""
    path = tmp_path / "buffer.npz"
    goal_environments.filled(200, buffer_size=300).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    names = ["counterfactual_state", "counterfactual_next_state"] if name == "both states" else [name]
    np.savez(path, **{**arrays, **{each: change(arrays[each]) for each in names}})
    other = goal_environments.filled(100, buffer_size=300)
    before = {each: array.copy() for each, array in other._stored().items()}
    with pytest.raises(FileProblem, match=rf"buffer.npz: .*{message}"):
        other.load(path)
    for each, array in other._stored().items():
        np.testing.assert_array_equal(array, before[each])


def put(array, place, value):
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("rows", [30, 130, 333, 471])
def test_episodes_of_any_ring_are_right(tmp_path, rows, n_envs):
    """Also those that go round the end of it, or were overwritten in part."""
    sizes = {"n_envs": n_envs, "length": 7, "buffer_size": 40 * n_envs}
    buffer = goal_environments.filled(rows, **sizes)
    buffer.save(tmp_path / "buffer.npz")
    goal_environments.filled(0, **sizes).load(tmp_path / "buffer.npz")


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    path, buffer = tmp_path / "buffer.npz", filled(200)
    buffer.save(path)
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(ValueError, match=r"buffer.npz: not written, the disk is full"):
        buffer.save(path)
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == ["buffer.npz"]
    assert path.read_bytes() == before


def test_stable_baselines_own_saving_works_too(tmp_path):
    agent = td3().learn(250)
    agent.save_replay_buffer(tmp_path / "buffer")
    other = td3()
    other.load_replay_buffer(tmp_path / "buffer")
    before, after = agent.replay_buffer.counterfactual_transitions(), other.replay_buffer.counterfactual_transitions()
    np.testing.assert_array_equal(before.state, after.state)
    other.learn(50, reset_num_timesteps=False)
