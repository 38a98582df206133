"""LeRobot datasets: what is written comes back, those of others are read with care or refused with a reason."""

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from counterpoint import Augmenter, Factorization, Transitions, files
from counterpoint.command_line import main
from counterpoint.files.statistics import MOST_ROWS, NAMES, Pooled, by_episode
from counterpoint.worlds import Place, Sprites, collect, uniform_policy

WORLD = Sprites()


@pytest.fixture
def data(rng):
    return collect(WORLD, uniform_policy(WORLD), 300, rng, reward_fn=Place(2))


@pytest.fixture
def foreign(tmp_path):
    """Write a dataset as others do: two episodes of 4 and 3 frames, two observations, no next states, two files."""
    folder = tmp_path / "foreign"
    names = ["left_waist", "left_elbow", "right_waist", "right_elbow"]
    lengths, rng = [4, 3], np.random.default_rng(7)
    rows = sum(lengths)
    columns = {
        "observation.state": rng.random((rows, 4), np.float32),
        "observation.environment_state": rng.random((rows, 2), np.float32),
        "action": rng.random((rows, 4), np.float32),
        "next.reward": np.arange(rows, dtype=np.float32),
        "next.done": np.array([0, 0, 0, 1, 0, 0, 1], bool),
        "next.success": np.zeros(rows, bool),
        "timestamp": np.array([0, 1, 2, 3, 0, 1, 2], np.float32) / 30,
        "frame_index": np.array([0, 1, 2, 3, 0, 1, 2]),
        "episode_index": np.array([0, 0, 0, 0, 1, 1, 1]),
        "index": np.arange(rows),
        "task_index": np.array([0, 0, 0, 0, 1, 1, 1]),
    }
    described = {"observation.state": names, "action": {"motors": names}, "observation.environment_state": ["x", "y"]}
    features = {
        name: {"dtype": str(array.dtype), "shape": list(array.shape[1:]) or [1], "names": described.get(name)}
        for name, array in columns.items()
    }
    info = {"codebase_version": "v3.0", "fps": 30, "robot_type": "aloha", "features": features, "total_frames": rows}
    for part in ("meta/episodes/chunk-000", "data/chunk-000"):
        (folder / part).mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps(info))
    tasks = [["push"], ["pull"]]
    about = pa.table({"episode_index": [0, 1], "tasks": tasks, "length": lengths})
    pq.write_table(about, folder / "meta/episodes/chunk-000/file-000.parquet")
    for number, part in enumerate((slice(0, 4), slice(4, 7))):
        table = {name: array[part].tolist() for name, array in columns.items()}
        pq.write_table(pa.table(table), folder / f"data/chunk-000/file-{number:03d}.parquet")
    return folder, columns


def change(folder, **values):
    path = folder / "meta/info.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def same(one, other):
    return all(
        np.array_equal(array, other.columns()[name]) and array.dtype == other.columns()[name].dtype
        for name, array in one.columns().items()
    ) and set(one.columns()) == set(other.columns())


def test_what_is_written_comes_back(data, tmp_path):
    files.write(f"lerobot:{tmp_path}/set", data, factors=WORLD.factors, source="here")
    for name in (f"{tmp_path}/set", f"lerobot:{tmp_path}/set"):
        found = files.read(name)
        assert same(found, files.Recording.of(data))
        assert (found.factors, found.head.source) == (WORLD.factors, "here")


def test_counterfactuals_keep_their_parents_and_are_episodes_of_one_frame(data, tmp_path, rng):
    made = Augmenter(WORLD.factors, WORLD.mask, Place(2)).fill(data, 200, rng=rng)
    files.write(f"lerobot:{tmp_path}/set", made, factors=WORLD.factors)
    assert same(files.read(f"{tmp_path}/set"), files.Recording.of(made))
    about = pq.read_table(tmp_path / "set/meta/episodes").to_pydict()
    assert about["length"] == [1] * 200


@pytest.mark.parametrize("width", [0, 1])
def test_narrow_columns_come_back(width, tmp_path):
    data = Transitions(np.ones((6, 1)), np.ones((6, width)), np.zeros(6), np.zeros((6, 1)), np.zeros(6, bool))
    files.write(f"lerobot:{tmp_path}/set", data)
    assert same(files.read(f"{tmp_path}/set"), files.Recording.of(data))


@pytest.mark.parametrize("out", ["a.parquet", "a.npz", "a.hdf5"])
def test_it_is_converted_from_and_to_others(out, data, tmp_path, capsys):
    pytest.importorskip("h5py")
    files.write(tmp_path / "data.parquet", data, factors=WORLD.factors)
    assert main(["convert", str(tmp_path / "data.parquet"), f"lerobot:{tmp_path}/set"]) == 0
    assert main(["convert", f"{tmp_path}/set", str(tmp_path / out)]) == 0
    assert "300 transitions" in capsys.readouterr().out
    assert same(files.read(tmp_path / out), files.Recording.of(data))


def test_episodes_are_contiguous_whatever_the_chunks(data, tmp_path):
    with files.writer(f"lerobot:{tmp_path}/set", files.Head(WORLD.factors)) as out:
        for start in range(0, 300, 7):
            out.append(data[start : start + 7])
    table = pq.read_table(tmp_path / "set/data").to_pydict()
    about = pq.read_table(tmp_path / "set/meta/episodes").to_pydict()
    assert table["index"] == list(range(300))
    assert about["dataset_from_index"] == [0, *about["dataset_to_index"][:-1]]
    for episode, (start, stop) in enumerate(zip(about["dataset_from_index"], about["dataset_to_index"], strict=True)):
        assert set(table["episode_index"][start:stop]) == {episode}
        assert table["frame_index"][start:stop] == list(range(stop - start))


def test_statistics_are_those_of_the_rows(data, tmp_path):
    files.write(f"lerobot:{tmp_path}/set", data, factors=WORLD.factors)
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())
    about = pq.read_table(tmp_path / "set/meta/episodes").to_pydict()
    first = data.state[data.episode == data.episode[0]].astype(float)
    for rows, found in (
        (data.state.astype(float), stats["observation.state"]),
        (first, {name: about[f"stats/observation.state/{name}"][0] for name in NAMES}),
    ):
        expected = {"min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0)}
        expected |= {
            name: np.quantile(rows, int(name[1:]) / 100, axis=0) for name in ("q01", "q10", "q50", "q90", "q99")
        }
        assert found["count"] == [len(rows)]
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)
    assert set(stats) == set(json.loads((tmp_path / "set/meta/info.json").read_text())["features"])


def test_statistics_of_many_rows_need_little_memory():
    rng = np.random.default_rng(3)
    pooled, rows = Pooled(), rng.normal(size=(3 * MOST_ROWS, 2))
    for part in np.array_split(rows, 17):
        pooled.add(part)
    found = pooled.result()
    np.testing.assert_allclose(found["mean"], rows.mean(0))
    np.testing.assert_allclose(found["std"], rows.std(0))
    np.testing.assert_allclose(found["q10"], np.quantile(rows, 0.1, axis=0), atol=0.02)
    assert found["count"] == [len(rows)]
    assert by_episode(rows[:6], np.array([1, 3, 2]))["mean"][1].tolist() == rows[1:4].mean(0).tolist()


def test_others_are_read_without_their_last_frames(foreign):
    folder, columns = foreign
    found = files.read(folder)
    rows = [0, 1, 2, 4, 5]
    assert len(found) == 5
    state = np.hstack([columns["observation.state"], columns["observation.environment_state"]])
    assert np.array_equal(found.transitions.state, state[rows])
    assert np.array_equal(found.transitions.next_state, state[[row + 1 for row in rows]])
    assert found.transitions.reward.tolist() == rows
    assert found.transitions.episode.tolist() == [0, 0, 0, 1, 1]
    assert not found.transitions.terminated.any()
    assert found.head.filters == {"push": (0,), "pull": (1,)}
    assert found.head.notes == {"fps": 30, "robot_type": "aloha", "not read": ["next.success"], "dropped": 2}


def test_factors_are_proposed_from_names(foreign, capsys):
    folder, _ = foreign
    expected = Factorization(
        {"left": (0, 1), "right": (2, 3), "environment_state": (4, 5)}, {"action/left": (0, 1), "action/right": (2, 3)}
    )
    assert files.read(folder).factors == expected
    assert main(["inspect", str(folder)]) == 0
    assert "lerobot" in capsys.readouterr().out
    only = files.read(folder, keys=["observation.environment_state"])
    assert only.factors.state == {"environment_state": (0, 1)}


def test_cameras_are_refused_with_the_reason_and_a_way_out(foreign):
    folder, _ = foreign
    features = json.loads((folder / "meta/info.json").read_text())["features"]
    camera = {"dtype": "video", "shape": [96, 96, 3], "names": ["height", "width", "channel"]}
    change(folder, features={**features, "observation.image": camera})
    with pytest.raises(
        files.FileProblem, match="observation.image: pictures .* shows all factors .* --keys observation.st"
    ):
        files.read(folder)
    assert len(files.read(folder, keys=["observation.state"])) == 5


@pytest.mark.parametrize(
    ("version", "words"), [("v2.1", "version v2.1, .*convert_dataset_v21"), ("v4.0", "v4.0, .* newer")]
)
def test_other_versions_are_recognised_and_named(foreign, version, words):
    folder, _ = foreign
    change(folder, codebase_version=version)
    with pytest.raises(files.FileProblem, match=words):
        files.read(folder)


def damage(folder, **columns):
    path = folder / "data/chunk-000/file-001.parquet"
    table = pq.read_table(path).to_pydict()
    pq.write_table(pa.table({**table, **columns}), path)


def test_damage_is_named(foreign):
    folder, _ = foreign
    whole = folder.with_name("whole")
    shutil.copytree(folder, whole)
    damage(folder, index=[4, 6, 5])
    with pytest.raises(files.FileProblem, match="index: .* on from 4"):
        files.read(folder)
    shutil.rmtree(folder)
    shutil.copytree(whole, folder)
    damage(folder, frame_index=[0, 2, 3])
    with pytest.raises(files.FileProblem, match="frame_index"):
        files.read(folder)
    damage(folder, action=[[1.0]] * 3)
    with pytest.raises(files.FileProblem, match="action: expected 4 values"):
        files.read(folder)
    for name, shape in (("action", [2**40]), ("observation.state", [2**70]), ("action", [1024, 1025])):
        features = json.loads((whole / "meta/info.json").read_text())["features"]
        change(folder, features={**features, name: {**features[name], "shape": shape}})
        with pytest.raises(files.FileProblem, match=rf"{name}: it claims more than 1,048,576 columns"):
            files.read(folder)
    (folder / "meta/info.json").write_text("{")
    with pytest.raises(files.FileProblem, match="damaged"):
        files.read(folder)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"next.done": ["no"] * 3}, "next.done: expected flags"),
        ({"index": [4.0, 5.0, 6.0]}, "index: expected numbers"),
        ({"action": None}, "action"),
    ],
)
def test_columns_of_another_kind_are_named(columns, words, foreign):
    folder, _ = foreign
    path = folder / "data/chunk-000/file-001.parquet"
    table = {**pq.read_table(path).to_pydict(), **columns}
    pq.write_table(pa.table({name: values for name, values in table.items() if values is not None}), path)
    with pytest.raises(files.FileProblem, match=words):
        files.read(folder)


@pytest.mark.parametrize("columns", [{"length": [4, None]}, {"length": [4, -3]}, {"tasks": [["a"], None]}])
def test_episodes_of_another_kind_are_named(columns, foreign):
    folder, _ = foreign
    path = folder / "meta/episodes/chunk-000/file-000.parquet"
    pq.write_table(pa.table({**pq.read_table(path).to_pydict(), **columns}), path)
    with pytest.raises(files.FileProblem, match="what it says about its episodes is incomplete"):
        files.read(folder)


@pytest.mark.parametrize("name", ["meta/info.json", "data/chunk-000/file-001.parquet", "meta/odd"])
def test_pipes_and_devices_are_not_waited_for(name, foreign, make_pipe):
    folder, _ = foreign
    (folder / name).unlink(missing_ok=True)
    make_pipe(folder / name)
    with pytest.raises(files.FileProblem, match=rf"{name}: this is not a regular file"):
        files.read(f"lerobot:{folder}")
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(files.FileProblem, match=rf"{name}: this is not a regular file"):
        files.read(f"lerobot:{folder}")


def test_a_text_without_end_is_not_read(foreign):
    folder, _ = foreign
    os.truncate(folder / "meta/info.json", 2**40)  # sparse: it takes no room
    with pytest.raises(files.FileProblem, match=r"meta/info.json: it has 1,099,511,627,776 bytes"):
        files.read(folder)


def test_a_dataset_that_exists_is_never_replaced(data, tmp_path):
    files.write(f"lerobot:{tmp_path}/set", data)
    with pytest.raises(files.FileProblem, match="never replaced"):
        files.write(f"lerobot:{tmp_path}/set", data)
    with pytest.raises(files.FileProblem):
        files.write(f"lerobot:{tmp_path}/none", data[:0])
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


THEIRS = """
import sys
from pathlib import Path
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset
ours, windows, theirs = map(Path, sys.argv[1:])
found = LeRobotDataset("local/ours", root=ours)
print(len(found), found.num_episodes, tuple(found[0]["observation.state"].shape), found[0]["task"])
found = LeRobotDataset("local/windows", root=windows)
print("windows", len(found), found.num_episodes)
names = ["left_waist", "right_waist", "right_elbow"]
kind = {"dtype": "float32", "shape": (3,), "names": names}
made = LeRobotDataset.create("local/theirs", 30, {"observation.state": kind, "action": kind}, theirs, use_videos=False)
for length in (5, 6):
    for _ in range(length):
        made.add_frame({"observation.state": np.ones(3, np.float32), "action": np.ones(3, np.float32), "task": "lift"})
    made.save_episode()
made.finalize()
"""


@pytest.mark.skipif(
    "COUNTERPOINT_LEROBOT" not in os.environ, reason="needs a Python with lerobot: COUNTERPOINT_LEROBOT"
)
def test_lerobot_itself_reads_ours_and_we_read_what_it_writes(data, tmp_path):
    files.write(f"lerobot:{tmp_path}/ours", data, factors=WORLD.factors)
    made = Augmenter(WORLD.factors, WORLD.mask, Place(2), window=3).fill(data, 20, rng=np.random.default_rng(0))
    files.write(f"lerobot:{tmp_path}/windows", made, factors=WORLD.factors)
    paths = [str(tmp_path / name) for name in ("ours", "windows", "theirs")]
    words = [os.environ["COUNTERPOINT_LEROBOT"], "-c", THEIRS, *paths]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.environ.get("COUNTERPOINT_LEROBOT_PATH", "")}
    printed = subprocess.run(words, env=offline, capture_output=True, text=True, check=True).stdout
    assert f"300 {len(np.unique(data.episode))} (16,) counterpoint" in printed
    assert "windows 60 20" in printed
    found = files.read(tmp_path / "theirs")
    assert len(found) == 4 + 5
    assert list(found.factors.state) == ["left", "right"]
    assert found.head.notes["task"] == "lift"
