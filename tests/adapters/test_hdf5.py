"""D4RL's and robomimic's layouts as others write them, and files that lead elsewhere."""

import json

import h5py
import numpy as np
import pytest

from counterpoint import Factorization, files
from counterpoint.adapters import hdf5
from counterpoint.files import d4rl
from tests.files.examples import damage_all, make_recording

FIXED = np.bytes_(b"{}")  # text of fixed length


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.hdf5"


def steps(rng, terminals, timeouts):
    """A D4RL-style trajectory file as arrays: row i observes i."""
    rows = len(terminals)
    return {
        "observations": np.arange(rows, dtype=np.float32)[:, None] * [1, 10],
        "actions": rng.random((rows, 2), np.float32),
        "rewards": rng.random(rows, np.float32),
        "terminals": np.array(terminals, bool),
        "timeouts": np.array(timeouts, bool),
    }


def put(path, arrays):
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        file["metadata/algorithm"] = "SAC"
        file["infos/qpos"] = np.zeros(3)


class TestD4rl:
    def test_without_next_observations_the_following_row_is_next(self, path, rng):
        #                          two episodes cut off, one that ended, one that the file's end cuts off
        arrays = steps(rng, [0, 0, 0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0])
        put(path, arrays)
        came = files.read(path)
        kept = [0, 1, 3, 4, 6]
        data = came.transitions
        np.testing.assert_array_equal(data.state, arrays["observations"][kept])
        np.testing.assert_array_equal(data.next_state, arrays["observations"][[1, 2, 4, 5, 7]])
        np.testing.assert_array_equal(data.action, arrays["actions"][kept])
        np.testing.assert_array_equal(data.reward, arrays["rewards"][kept])
        assert data.episode.tolist() == [0, 0, 1, 1, 2]
        assert data.step.tolist() == [0, 1, 0, 1, 0]
        assert not data.terminated.any()
        assert came.head.notes == {"dropped": 3, "not read": ["infos/qpos"]}
        for rows in (1, 2, 3, 99):
            chunks = [chunk.transitions.next_state for chunk in files.chunks(path, rows)]
            np.testing.assert_array_equal(np.concatenate(chunks), data.next_state)

    def test_with_next_observations_every_row_counts(self, path, rng):
        arrays = steps(rng, [0, 0, 1, 0], [0, 1, 0, 0])
        arrays["next_observations"] = arrays["observations"] + 0.5
        put(path, arrays)
        data = files.read(path).transitions
        np.testing.assert_array_equal(data.next_state, data.state + 0.5)
        assert data.terminated.tolist() == [False, False, True, False]
        assert data.episode.tolist() == [0, 0, 1, 2]
        del arrays["timeouts"]
        put(path, arrays)
        assert files.read(path).transitions.episode is None

    def test_flags_and_rewards_come_in_many_shapes(self, path, rng):
        arrays = steps(rng, [0, 0, 0, 1], [0, 1, 0, 0])
        plain = [array for _, array in self.read(path, arrays).columns()]
        arrays["terminals"] = arrays["terminals"].astype(np.float32)[:, None]
        arrays["timeouts"] = arrays["timeouts"].astype(np.uint8)
        arrays["rewards"] = arrays["rewards"][:, None]
        arrays["actions"] = arrays["actions"].astype(np.float32)
        for array, (_, again) in zip(plain, self.read(path, arrays).columns(), strict=True):
            np.testing.assert_array_equal(array, again)
        arrays["actions"] = np.array([0, 1, 2, 1])
        assert self.read(path, arrays).action.shape == (2, 1)

    def read(self, path, arrays):
        put(path, arrays)
        return files.read(path).transitions

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"timeouts": None}, "without next_observations and timeouts it is impossible to tell"),
            ({"rewards": None}, "looks like D4RL data, but rewards is missing"),
            ({"actions": None}, "neither D4RL's arrays .* nor robomimic's groups"),
            ({"rewards": np.zeros(3)}, "same number of rows"),
            ({"terminals": np.full(4, 2)}, "terminals: expected only 0 and 1"),
            ({"rewards": np.zeros((4, 2))}, "rewards: expected one value for each row"),
            ({"rewards": np.float32(3)}, "same number of rows"),
            ({"observations": np.zeros((4, 3, 3, 3))}, r"state: expected shape \(B, columns\)"),
            ({"observations": np.array([b"a"] * 4)}, "state: expected an array of numbers"),
        ],
    )
    def test_what_cannot_be_told_is_refused(self, path, rng, changes, why):
        arrays = {**steps(rng, [0, 0, 0, 1], [0, 1, 0, 0]), **changes}
        put(path, {name: array for name, array in arrays.items() if array is not None})
        with pytest.raises(files.FileProblem, match=why):
            files.read(path)

    def test_there_are_no_keys_to_choose(self, path, rng):
        put(path, steps(rng, [0, 1], [0, 0]))
        with pytest.raises(files.FileProblem, match="keys: its states are flat"):
            files.read(path, keys=["hand"])

    def test_no_rows(self, path, rng):
        put(path, steps(rng, [], []))
        assert files.scan(path).rows == 0

    def test_written_files_mark_where_trajectories_end(self, path, rng, monkeypatch):
        monkeypatch.setattr("counterpoint.files.writing.CHUNK_ROWS", 3)
        recording = make_recording(rng, (5, 4, 1), full=False)
        recording.transitions.terminated[:] = np.arange(10) == 8
        files.write(path, recording)
        with h5py.File(path) as file:
            assert file["timeouts"][:].tolist() == [False] * 4 + [True] + [False] * 4 + [True]
            np.testing.assert_array_equal(file["next_observations"][:], recording.transitions.next_state)
        single = recording.transitions.replace(episode=None, step=None)
        files.write(path, single, force=True)
        with h5py.File(path) as file:  # nobody can take neighbours for a trajectory
            np.testing.assert_array_equal(file["timeouts"][:], ~single.terminated)

    def test_the_flat_dict_is_what_others_exchange(self, rng):
        found = d4rl.arrays(make_recording(rng, full=False))
        assert set(d4rl.RENAMED.values()) | {"timeouts", "episode", "step"} == set(found)

    def test_damage_to_files_of_others(self, path, rng):
        put(path, steps(rng, [0, 0, 0, 1], [0, 1, 0, 0]))
        damage_all(str(path), [path], examples=60)


def put_demos(path, rng, *, lengths=(3, 5), next_obs=True, env_args=FIXED):
    """A file as robomimic makes it: alphabetic keys, integer dones; its text is of variable length if it is a str."""
    demos = {}
    with h5py.File(path, "w") as file:
        file.create_group("data").attrs["env_args"] = env_args
        for number, length in zip((2, 10), lengths, strict=True):
            group = file.create_group(f"data/demo_{number}")
            group.attrs["num_samples"] = length
            group.attrs["model_file"] = "<mujoco/>"
            arrays = {"object": rng.random((length + 1, 3)), "robot0_eef_pos": rng.random((length + 1, 2))}
            for key, array in arrays.items():
                group[f"obs/{key}"] = array[:-1]
                if next_obs:
                    group[f"next_obs/{key}"] = array[1:]
            group["actions"], group["rewards"] = rng.random((length, 2)), rng.random(length)
            group["dones"], group["states"] = (np.arange(length) == length - 1).astype(int), np.zeros((length, 7))
            demos[number] = np.concatenate([arrays["object"], arrays["robot0_eef_pos"]], axis=1)
        file["mask/train"], file["mask/valid"] = np.array(["demo_10"], "S8"), np.array(["demo_2"], "S8")
    return demos


class TestRobomimic:
    def test_keys_become_factors_and_filters_are_kept(self, path, rng):
        demos = put_demos(path, rng, env_args='{"env_name": "Lift"}')
        came = files.read(path)
        data = came.transitions
        np.testing.assert_array_equal(data.state, np.concatenate([demos[2][:-1], demos[10][:-1]]))
        np.testing.assert_array_equal(data.next_state, np.concatenate([demos[2][1:], demos[10][1:]]))
        assert data.episode.tolist() == [2] * 3 + [10] * 5
        assert data.terminated.tolist() == [False, False, True] + [False] * 4 + [True]
        assert came.factors == Factorization.blocks(state={"object": 3, "robot0_eef_pos": 2}, action={"action": 2})
        assert came.head.filters == {"train": (10,), "valid": (2,)}
        assert came.head.notes == {"env_args": '{"env_name": "Lift"}', "not read": ["states"]}
        assert len(came.only("train")) == 5

    def test_without_next_obs_the_following_row_is_next(self, path, rng):
        demos = put_demos(path, rng, next_obs=False, lengths=(3, 1))
        came = files.read(path)
        np.testing.assert_array_equal(came.transitions.next_state, demos[2][1:3])
        assert came.head.notes["dropped"] == 2

    def test_keys_choose_parts_in_their_order(self, path, rng):
        put_demos(path, rng)
        whole = files.read(path).transitions.state
        came = files.read(path, keys=["robot0_eef_pos"])
        np.testing.assert_array_equal(came.transitions.state, whole[:, 3:])
        swapped = files.read(path, keys=["robot0_eef_pos", "object"])
        np.testing.assert_array_equal(swapped.transitions.state, whole[:, [3, 4, 0, 1, 2]])
        assert swapped.factors.state == {"robot0_eef_pos": (0, 1), "object": (2, 3, 4)}
        with pytest.raises(files.FileProblem, match="there is no part camera; there are object, robot0_eef_pos"):
            files.read(path, keys=["camera"])

    def test_what_we_write_has_their_layout(self, path, rng):
        factors = Factorization({"hand": (0, 2), "a/b": (1,)}, {"motor": (0, 1)}, derived=(3, 4))
        recording = make_recording(rng, (4, 2), factors=factors)
        recording = files.Recording(recording.transitions, files.Head(factors, filters={"train": (1,)}))
        files.write(path, recording, format="robomimic")
        with h5py.File(path) as file:
            assert sorted(file["data"]) == ["demo_0", "demo_1"]
            assert (file["data"].attrs["total"], file["data/demo_0"].attrs["num_samples"]) == (6, 4)
            assert sorted(file["data/demo_0/obs"]) == ["%derived", "a%2Fb", "hand"]
            np.testing.assert_array_equal(file["data/demo_1/obs/hand"][:], recording.transitions.state[4:, [0, 2]])
            assert file["mask/train"][:].tolist() == [b"demo_1"]
        files.write(path, files.Recording(recording.transitions), format="robomimic", force=True)
        with h5py.File(path) as file:
            assert list(file["data/demo_0/obs"]) == ["flat"]
        with h5py.File(path, "a") as file:
            del file["counterpoint"]
        assert files.read(path).factors is None

    def test_only_whole_episodes_are_written(self, path, rng):
        data = make_recording(rng, (4, 2), full=False).transitions
        with pytest.raises(files.FileProblem, match="do not belong to any.*to .parquet instead"):
            files.write(path, data.replace(episode=None), format="robomimic")
        for episode in ([0, 0, 1, 1, 0, 0], [-1] * 6):
            with pytest.raises(files.FileProblem, match="negative or in two places"):
                files.write(path, data.replace(episode=np.array(episode)), format="robomimic")
        assert not path.exists()

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            (lambda file: file.move("data/demo_2", "data/first"), "called demo_0, demo_1 and so on, got first"),
            (lambda file: file.__delitem__("data/demo_10/obs/object"), "demo_10 has no array obs/object"),
            (lambda file: file.__delitem__("data/demo_2/obs"), "no observations or no actions"),
            (lambda file: file.__delitem__("data/demo_10/dones"), "demo_10 has no array dones"),
            (lambda file: file["data/demo_2/dones"].write_direct(np.array([7, 7, 7])), "dones of demo_2"),
            (lambda file: widen(file, "data/demo_10/obs/object"), "demo_10 are not as wide"),
            (lambda file: empty(file, "data/demo_10/obs/object"), "demo_10 differ in length: object has 0 rows"),
            (lambda file: file["mask"].create_dataset("x", data=np.array(["bad"], "S")), "got bad"),
            (lambda file: pictures(file, "data/demo_2/obs/camera"), "camera holds pictures of 64 x 64 x 3.*keys"),
        ],
    )
    def test_what_is_not_as_it_should_be(self, path, rng, change, why):
        put_demos(path, rng)
        with h5py.File(path, "a") as file:
            change(file)
        with pytest.raises(files.FileProblem, match=why):
            files.read(path)

    def test_damaged_text_that_makes_hdf5_loop_for_ever(self, path, rng, monkeypatch):
        put_demos(path, rng, env_args="{}")
        raw = bytearray(path.read_bytes())
        raw[raw.index(b"GCOL") + 24] ^= 0xFF  # the length of the text
        path.write_bytes(raw)
        monkeypatch.setattr(hdf5, "TEXT_SECONDS", 3)
        with pytest.raises(files.FileProblem, match="env_args cannot be read"):
            files.read(path)

    def test_the_environment_is_kept(self, path, rng):
        put_demos(path, rng, env_args='{"env_name": "Lift"}')
        files.write(path.with_suffix(".h5"), files.read(path), format="robomimic")
        with h5py.File(path.with_suffix(".h5")) as file:
            assert json.loads(file["data"].attrs["env_args"]) == {"env_name": "Lift"}
        assert files.read(path.with_suffix(".h5")).head == files.read(path).head


def empty(file, name):
    del file[name]
    file[name] = np.zeros((0, 3))


def widen(file, name):
    rows = len(file[name])
    del file[name]
    file[name] = np.zeros((rows, 9))


def pictures(file, name):
    file[name] = np.zeros((3, 64, 64, 3), np.uint8)


class TestLinks:
    @pytest.mark.parametrize(
        ("lead", "why"),
        [
            (lambda file, other: file.__setitem__("x", h5py.ExternalLink(other, "/observations")), "x is a link"),
            (lambda file, other: file.__setitem__("x", h5py.SoftLink("/observations")), "x is a link"),
            (lambda file, other: virtual(file, other), "x keeps its values in another file"),
            (lambda file, other: external(file, other), "x keeps its values in another file"),
            (lambda file, other: file["g"].__setitem__("again", file["g"]), "g/again/ contains itself"),
        ],
    )
    def test_what_leads_elsewhere_is_refused(self, tmp_path, path, rng, lead, why):
        other = str(tmp_path / "other.hdf5")
        put(other, steps(rng, [0, 0, 1], [0, 0, 0]))
        put(path, steps(rng, [0, 0, 1], [0, 0, 0]))
        with h5py.File(path, "a") as file:
            file.create_group("g")
            lead(file, other)
        with pytest.raises(files.FileProblem, match=why):
            files.read(path)

    def test_absurd_sizes_are_refused(self, path, rng):
        put(path, steps(rng, [0, 0, 1], [0, 0, 0]))
        with h5py.File(path, "a") as file:
            del file["observations"]
            file.create_dataset("observations", (10**13, 4), "f4", chunks=(1024, 4))
        with pytest.raises(files.FileProblem, match="claims to hold 160,000.0 GB"):
            files.read(path)


def virtual(file, other):
    layout = h5py.VirtualLayout(shape=(3, 2), dtype="f4")
    layout[:] = h5py.VirtualSource(other, "observations", shape=(3, 2))
    file.create_virtual_dataset("x", layout)


def external(file, other):
    file.create_dataset("x", (3,), "f4", external=[(other, 0, 12)])
