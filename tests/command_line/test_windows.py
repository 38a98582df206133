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
    monkeypatch.setattr("counterpoint.files.sampling.ROWS", 50)  # cuts windows
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


CHUNK_BYTES = 12_000  # of real rows: several chunks, cut in the middle of episodes
OUTPUTS = [
    ("out.parquet", ()),
    ("out.npz", ()),
    ("out.hdf5", ()),
    ("mimic.hdf5", ("--format", "robomimic")),
    ("minari:robot/more-v0", ()),
    ("lerobot:more", ()),
]


@pytest.mark.parametrize(("out", "words"), OUTPUTS, ids=lambda value: str(value))
def test_every_format_takes_windows_at_once(out, words, data, capsys, monkeypatch):
    """Real episodes stay whole, each window is an episode, and audit and report read what was written."""
    monkeypatch.setattr("counterpoint.files.augmentation.CHUNK_BYTES", CHUNK_BYTES)
    code, said, err = augment(capsys, "--ratio", 1, "--window", 5, *words, out=out)
    assert code == 0, err
    assert "300 real transitions and 300 counterfactuals" in said
    found = files.read("more" if out.startswith("lerobot") else out)
    assert counted(found.transitions) == {5: 60, 30: 10}
    real = found[~found.provenance.swapped.any(axis=1)]
    order = np.lexsort((real.transitions.step, real.transitions.episode))
    np.testing.assert_array_equal(real[order].transitions.state, data.state)
    np.testing.assert_array_equal(real[order].transitions.episode, data.episode)
    whole = "more" if out.startswith("lerobot") else out
    code, said, err = run(capsys, "audit", whole, "--world", "sprites", "--setting", "noise_std=0.0")
    assert code == 0, err
    assert "100.00% of 60 windows of 5 rows confirmed" in said
    assert "windows         60 of 5 rows, each an episode" in run(capsys, "inspect", whole)[1]


def test_chunks_do_not_cut_episodes(data, capsys, monkeypatch):
    """With several chunks, all real rows come first where rows of an episode must follow each other."""
    monkeypatch.setattr("counterpoint.files.augmentation.CHUNK_BYTES", CHUNK_BYTES)
    assert augment(capsys, "--ratio", 1, "--window", 5, out="out.hdf5")[0] == 0
    with h5py.File("out.hdf5") as file:
        assert np.flatnonzero(file["timeouts"][:300]).tolist() == list(range(29, 300, 30))


def test_minaris_own_reader_takes_windows(data, capsys):
    assert augment(capsys, "--ratio", 1, "--window", 5, out="minari:robot/more-v0")[0] == 0
    dataset = minari.load_dataset("robot/more-v0")
    episodes = list(dataset.iterate_episodes())
    assert sorted(len(episode.actions) for episode in episodes) == [5] * 60 + [30] * 10
    for episode in episodes:
        assert len(episode.observations) == len(episode.actions) + 1
        assert episode.truncations.tolist() == [False] * (len(episode.actions) - 1) + [True]
        np.testing.assert_allclose(
            WORLD.step(episode.observations[:-1], episode.actions, None), episode.observations[1:], atol=1e-6
        )
    assert len(dataset.sample_episodes(7)) == 7


@pytest.mark.parametrize("windows", ["straight", "converted"])
def test_robomimics_own_loader_takes_windows(windows, data, capsys):
    """Action chunks of five steps, from real demonstrations and from windows alike."""
    loading = pytest.importorskip("robomimic.utils.dataset")
    observations = pytest.importorskip("robomimic.utils.obs_utils")
    if windows == "straight":
        assert augment(capsys, "--ratio", 1, "--window", 5, "--format", "robomimic", out="out.hdf5")[0] == 0
    else:
        assert augment(capsys, "--ratio", 1, "--window", 5)[0] == 0
        assert run(capsys, "convert", "out.parquet", "out.hdf5", "--format", "robomimic")[0] == 0
    keys = ("one", "two", "three", "four")
    observations.initialize_obs_modality_mapping_from_dict({"low_dim": list(keys)})
    dataset = loading.SequenceDataset(
        "out.hdf5", keys, ("actions", "rewards", "dones"), seq_length=5, pad_seq_length=False, hdf5_cache_mode="all"
    )
    assert dataset.n_demos == 70
    assert len(dataset) == 60 + 10 * 26
    found = files.read("out.hdf5").transitions
    last = dataset[len(dataset) - 1]
    np.testing.assert_array_equal(last["actions"], found.action[-5:])
    np.testing.assert_array_equal(np.hstack([last["obs"][key] for key in keys]), found.state[-5:])
    np.testing.assert_array_equal(np.hstack([last["next_obs"][key] for key in keys]), found.next_state[-5:])


def test_without_windows_they_say_what_to_do(data, capsys):
    for out, words in (("minari:robot/more-v0", ()), ("out.hdf5", ("--format", "robomimic"))):
        code, _, err = augment(capsys, "--ratio", 1, *words, out=out)
        assert code != 0
        assert "single counterfactuals never do" in err
        assert "--window 16" in err
    assert augment(capsys, "--ratio", 1)[0] == 0
    code, _, err = run(capsys, "convert", "out.parquet", "minari:robot/more-v0")
    assert code != 0
    assert "--window 16" in err


@pytest.mark.parametrize(("out", "words"), OUTPUTS[2:], ids=lambda value: str(value))
def test_an_output_that_is_there_is_not_replaced(out, words, data, capsys):
    for expected in (0, 2):
        code, _, err = augment(capsys, "--ratio", 1, "--window", 5, *words, out=out)
        assert bool(code) == bool(expected)
    assert "it exists" in err


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
