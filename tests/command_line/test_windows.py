"""Counterfactual windows in files: whole episodes, read again by the formats' own readers."""

import h5py
import minari
import numpy as np
import pytest

from counterpoint import files
from counterpoint.checks import audit
from counterpoint.worlds import Place, collect, uniform_policy
from tests.command_line.sprites import WORLD, augment, prepare, run


@pytest.fixture
def data(folder):
    """Episodes of 30 rows, as a file with its description."""
    prepare(folder)
    rows = collect(
        WORLD, uniform_policy(WORLD), 300, np.random.default_rng(0), reward_fn=Place(4),
        episode_length=30, reset_probability=0.0, environments=10,
    )  # fmt: skip
    files.write(folder / "data.parquet", rows, force=True)
    return rows


def parts(found, data):
    """The real rows and the counterfactual windows of an augmented file."""
    rows = found.transitions
    real = rows.episode <= data.episode.max()
    return rows[real], rows[~real]


def test_windows_become_episodes_and_real_rows_keep_theirs(data, capsys):
    code, out, _ = augment(capsys, "--ratio", 2, "--window", 4)
    assert code == 0
    assert "600 counterfactuals" in out
    found = files.read("out.parquet")
    real, made = parts(found, data)
    np.testing.assert_array_equal(real.episode, data.episode)
    np.testing.assert_array_equal(real.step, data.step)
    np.testing.assert_array_equal(made.episode, data.episode.max() + 1 + np.arange(600) // 4)
    np.testing.assert_array_equal(made.step, np.arange(600) % 4)
    inner = np.flatnonzero(made.step < 3)
    np.testing.assert_array_equal(made.next_state[inner], made.state[inner + 1])
    assert audit(made, WORLD.step).confirmed == 1.0


@pytest.mark.parametrize("rows", [None, 100])
def test_an_audit_starts_once_for_each_window(rows, data, capsys, monkeypatch):
    assert augment(capsys, "--ratio", 2, "--window", 4)[0] == 0
    monkeypatch.setattr("counterpoint.files.jobs.ROWS", 50)  # cuts windows
    asked = []

    def step(state, action, noise=None):
        asked.append(state)
        return WORLD.step(state, action, noise)

    found = files.audit("out.parquet", step, rows=rows)
    assert found.confirmed == 1.0
    assert len(found.error) == 150 if rows is None else 5 <= len(found.error) < 40
    made = files.read("out.parquet")[300:].transitions
    firsts, seen = made.state[made.step == 0], np.concatenate(asked[::4])
    assert len(seen) == len(found.error)
    assert {row.tobytes() for row in seen} <= {row.tobytes() for row in firsts}


def test_single_counterfactuals_get_numbers_beyond_the_real_ones(data, capsys):
    assert augment(capsys, "--ratio", 1)[0] == 0
    real, made = parts(files.read("out.parquet"), data)
    np.testing.assert_array_equal(real.episode, data.episode)
    assert len(np.unique(made.episode)) == 300


def test_what_does_not_fill_a_window_is_left_out(data, capsys):
    assert augment(capsys, "--size", 335, "--window", 8)[0] == 0
    assert files.scan("out.parquet").rows == 332
    code, _, err = augment(capsys, "--size", 304, "--window", 8, out="none.parquet")
    assert code != 0
    assert "a window alone has 8 rows" in err


def counted(transitions):
    """How many episodes there are of each length."""
    lengths = np.unique(transitions.episode, return_counts=True)[1]
    return dict(zip(*np.unique(lengths, return_counts=True), strict=True))


def test_formats_of_whole_episodes_take_windows(data, capsys):
    assert augment(capsys, "--ratio", 1, "--window", 5)[0] == 0
    for name, words in (("out.hdf5", ("--format", "robomimic")), ("d4rl.hdf5", ()), ("minari:robot/more-v0", ())):
        code, _, err = run(capsys, "convert", "out.parquet", name, *words)
        assert code == 0, err
        assert counted(files.read(name).transitions) == {5: 60, 30: 10}
    lengths = [len(episode.actions) for episode in minari.load_dataset("robot/more-v0").iterate_episodes()]
    assert sorted(set(lengths)) == [5, 30]
    with h5py.File("out.hdf5") as file:
        assert sorted(int(demo.attrs["num_samples"]) for demo in file["data"].values()) == [5] * 60 + [30] * 10


def test_without_windows_they_say_what_to_do(data, capsys):
    assert augment(capsys, "--ratio", 1)[0] == 0
    code, _, err = run(capsys, "convert", "out.parquet", "minari:robot/more-v0")
    assert code != 0
    assert "--window 16" in err


def test_a_killed_job_goes_on_with_its_windows(data, capsys, monkeypatch):
    assert augment(capsys, "--ratio", 2, "--window", 3)[0] == 0
    whole = files.read("out.parquet")
    from counterpoint import Augmenter

    calm = Augmenter.stream

    def fickle(self, *given, **more):
        for number, made in enumerate(calm(self, *given, **more)):
            yield made
            if number == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr("counterpoint.core.engine.Recipe.chunk_rows", lambda *_: 1024)
    monkeypatch.setattr(Augmenter, "stream", fickle)
    assert augment(capsys, "--ratio", 2, "--window", 3, out="again.parquet")[0] != 0
    monkeypatch.setattr(Augmenter, "stream", calm)
    assert augment(capsys, "--ratio", 2, "--window", 3, "--resume", out="again.parquet")[0] == 0
    again = files.read("again.parquet")
    for name, column in whole.columns().items():
        np.testing.assert_array_equal(again.columns()[name], column)
