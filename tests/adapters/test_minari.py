"""Minari datasets as others make them, whole episodes as we write them."""

import json
import warnings

import gymnasium
import h5py
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple
from minari.data_collector import EpisodeBuffer

from counterpoint import Factorization, files
from counterpoint.files.episodes import runs
from tests.files.examples import damage_all, make_recording

LENGTHS = (3, 1, 6)


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def create(observations, space, *, actions=None, action_space=None, data_format="hdf5", name="robot/data-v0"):
    """Make a dataset with Minari itself; it warns about every detail that is left out."""
    buffers = []
    for number, length in enumerate(LENGTHS):
        ends = np.arange(length) == length - 1
        buffers.append(
            EpisodeBuffer(
                observations=observations(number, length + 1),
                actions=np.ones((length, 2), np.float32) if actions is None else actions(length),
                rewards=np.arange(length, dtype=np.float64),
                terminations=ends & (number == 1),
                truncations=ends & (number != 1),
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            name,
            buffers,
            observation_space=space,
            action_space=action_space or Box(-1, 1, (2,)),
            data_format=data_format,
        )


def ramp(width):
    return lambda number, rows: (100 * number + np.arange(rows)[:, None] + np.zeros(width)).astype(np.float32)


@pytest.mark.parametrize("data_format", ["hdf5", "arrow", "parquet"])
class TestReading:
    def test_flat_observations(self, data_format, root):
        create(ramp(3), Box(-999, 999, (3,)), data_format=data_format)
        for name in ("minari:robot/data-v0", root / "robot/data-v0", root / "robot/data-v0/data"):
            came = files.read(name)
        data = came.transitions
        assert came.factors is None
        assert data.state[:, 0].tolist() == [0, 1, 2, 100, 200, 201, 202, 203, 204, 205]
        np.testing.assert_array_equal(data.next_state, data.state + 1)
        assert data.reward.tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 4, 5]
        assert np.flatnonzero(data.terminated).tolist() == [3]
        assert data.episode.tolist() == [0] * 3 + [1] + [2] * 6
        assert data.state.dtype == np.float32
        assert [len(chunk) for chunk in files.chunks("minari:robot/data-v0", 4)] == [4, 4, 2]

    def test_named_parts_become_factors(self, data_format):
        space = Dict({"observation": Box(-999, 999, (4,)), "desired_goal": Box(-9, 9, (2,))})
        space["achieved_goal"] = Box(-9, 9, (2,))

        def observe(number, rows):
            return {key: ramp(part.shape[0])(number, rows) for key, part in space.items()}

        actions = {"grip": Discrete(3), "move": Box(-1, 1, (2,))}
        create(
            observe,
            space,
            actions=lambda rows: {"grip": np.arange(rows) % 3, "move": np.ones((rows, 2), np.float32)},
            action_space=Dict(actions),
            data_format=data_format,
        )
        came = files.read("minari:robot/data-v0")
        assert set(came.factors.state) == {"observation", "desired_goal"}
        assert len(came.factors.derived) == 2  # what is achieved follows from the rest
        assert came.factors.action == {"grip": (0,), "move": (1, 2)}
        picked = files.read("minari:robot/data-v0", keys=["desired_goal", "observation"])
        assert picked.factors.state == {"desired_goal": (0, 1), "observation": (2, 3, 4, 5)}

    def test_nested_and_numbered_parts(self, data_format):
        space = Tuple((Box(-999, 999, (2, 2)), Dict({"count": Discrete(9)})))

        def observe(number, rows):
            return np.zeros((rows, 2, 2), np.float32), {"count": np.arange(rows)}

        create(observe, space, data_format=data_format)
        came = files.read("minari:robot/data-v0")
        assert came.factors.state == {"0": (0, 1, 2, 3), "1/count": (4,)}
        assert came.transitions.state[:3, 4].tolist() == [0, 1, 2]

    def test_damage(self, data_format, root):
        create(ramp(3), Box(-999, 999, (3,)), data_format=data_format)
        names = [path for path in (root / "robot/data-v0").rglob("*") if path.is_file()]
        damage_all("minari:robot/data-v0", names, examples=50)


class TestRefusals:
    @pytest.mark.parametrize("name", ["minari:robot/data-v9", "minari:../secrets-v0", "minari:no version", "minari:"])
    def test_datasets_that_are_not_there(self, name):
        with pytest.raises(files.FileProblem, match="^minari:"):
            files.read(name)

    def test_pictures_and_text(self):
        space = Dict({"camera": Box(0, 255, (64, 64, 3), np.uint8), "hand": Box(-9, 9, (2,))})

        def observe(number, rows):
            return {"camera": np.zeros((rows, 64, 64, 3), np.uint8), "hand": np.zeros((rows, 2), np.float32)}

        create(observe, space)
        with pytest.raises(files.FileProblem, match="camera holds pictures of 64 x 64 x 3.*keys"):
            files.read("minari:robot/data-v0")
        assert files.read("minari:robot/data-v0", keys=["hand"]).transitions.state.shape == (10, 2)
        create(lambda _, rows: ["a"] * rows, Text(1), name="robot/text-v0")
        with pytest.raises(files.FileProblem, match="expected an array of numbers"):
            files.read("minari:robot/text-v0")

    def test_lengths_are_checked(self, root):
        create(ramp(3), Box(-999, 999, (3,)))
        with h5py.File(root / "robot/data-v0/data/main_data.hdf5", "a") as file:
            del file["episode_2/observations"]
            file["episode_2/observations"] = np.zeros((6, 3), np.float32)
        with pytest.raises(files.FileProblem, match="episode 2 has 6 rewards, so it needs 7 observations.*has 6"):
            files.read("minari:robot/data-v0")

    def test_long_episodes_in_arrow_are_not_cut_silently(self):
        """Minari takes one batch per episode, and Arrow gives several for a long one."""
        length = 140_000
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            minari.create_dataset_from_buffers(
                "robot/long-v0",
                [
                    EpisodeBuffer(
                        observations=np.zeros((length + 1, 1), np.float32),
                        actions=np.zeros((length, 1), np.float32),
                        rewards=np.zeros(length),
                        terminations=np.zeros(length, bool),
                        truncations=np.zeros(length, bool),
                    )
                ],
                observation_space=Box(-1, 1, (1,)),
                action_space=Box(-1, 1, (1,)),
                data_format="arrow",
            )
        with pytest.raises(files.FileProblem, match="episode 0 has .* rewards|promises 140,000 rows and holds"):
            files.read("minari:robot/long-v0")

    def test_nothing_is_run_or_opened_to_read_a_dataset(self, root, monkeypatch):
        create(ramp(3), Box(-999, 999, (3,)))
        place = root / "robot/data-v0/data/metadata.json"
        metadata = json.loads(place.read_text())
        monkeypatch.setattr(gymnasium, "make", lambda *_: pytest.fail("an environment was made"))
        del metadata["observation_space"]
        metadata["env_spec"] = '{"id": "evil:CartPole-v1"}'
        place.write_text(json.dumps(metadata))
        with pytest.raises(files.FileProblem, match="would have to run the environment"):
            files.read("minari:robot/data-v0")

    def test_links_are_refused(self, root):
        create(ramp(3), Box(-999, 999, (3,)))
        with h5py.File(root / "robot/data-v0/data/main_data.hdf5", "a") as file:
            file["episode_2/infos/secret"] = h5py.ExternalLink("/etc/other.hdf5", "/")
        with pytest.raises(files.FileProblem, match="episode_2/infos/secret is a link"):
            files.read("minari:robot/data-v0")

    def test_no_episodes(self, root):
        create(ramp(3), Box(-999, 999, (3,)))
        place = root / "robot/data-v0/data/metadata.json"
        place.write_text(json.dumps({**json.loads(place.read_text()), "total_episodes": 0}))
        with pytest.raises(files.FileProblem, match="no episodes"):
            files.read("minari:robot/data-v0")


class TestWriting:
    def test_minari_reads_what_we_write(self, rng):
        factors = Factorization.blocks(state={"hand": 2, "cup": 3}, action={"motor": 2})
        recording = make_recording(rng, (3, 2), factors=factors)
        recording.transitions.terminated[:] = np.arange(5) == 2
        files.write("minari:robot/data-v0", recording)
        dataset = minari.load_dataset("robot/data-v0")
        assert dataset.total_steps == 5
        first, second = dataset
        np.testing.assert_array_equal(first.observations[:-1], recording.transitions.state[:3])
        np.testing.assert_array_equal(first.observations[1:], recording.transitions.next_state[:3])
        assert first.terminations.tolist() == [False, False, True]
        assert first.truncations.tolist() == [False, False, False]
        assert second.truncations.tolist() == [False, True]
        assert dataset.observation_space.shape == (5,)
        assert list(minari.list_local_datasets()) == ["robot/data-v0"]

    def test_single_transitions_belong_into_parquet(self, rng):
        data = make_recording(rng, full=False).transitions
        with pytest.raises(
            files.FileProblem, match="holds whole episodes.*Write single transitions to .parquet instead"
        ):
            files.write("minari:robot/data-v0", data.replace(episode=None, step=None))
        broken = data.replace(next_state=data.next_state + 1)
        with pytest.raises(files.FileProblem, match="row 1 does not start where the row before it ended"):
            files.write("minari:robot/data-v0", broken)

    def test_datasets_are_never_replaced(self, rng, root):
        recording = make_recording(rng, full=False)
        files.write("minari:robot/data-v0", recording)
        with pytest.raises(
            files.FileProblem, match="it exists, and a folder of data is never replaced. Choose another"
        ):
            files.write("minari:robot/data-v0", recording, force=True)
        for wrong in ("data", "../data-v0", "a b-v0"):
            with pytest.raises(files.FileProblem, match="a Minari id looks like robot/pushes-v0"):
                files.write(f"minari:{wrong}", recording)
        with pytest.raises(files.FileProblem, match="at least one column"):
            files.write("minari:data-v1", recording.transitions.replace(action=np.zeros((11, 0))))
        assert sorted(path.name for path in root.iterdir()) == ["robot"]

    def test_a_full_disk_leaves_nothing(self, rng, root, monkeypatch):
        recording = make_recording(rng, full=False)

        def fail(*_, **__):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100}))
            with pytest.raises(files.FileProblem, match="the disk is full: about .* bytes more are needed"):
                files.write("minari:data-v0", recording)
        monkeypatch.setattr("os.rename", fail)
        with pytest.raises(files.FileProblem, match="the disk is full"):
            files.write("minari:data-v0", recording)
        assert not list(root.iterdir())

    def test_namespaces_are_written_whole_or_not_at_all(self, rng, root, monkeypatch):
        recording = make_recording(rng, full=False)

        def fail(*_, **__):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.replace", fail)
            with pytest.raises(files.FileProblem, match="the disk is full"):
                files.write("minari:one/two/data-v0", recording)
        assert not [path for path in root.rglob("*") if path.is_file()]
        files.write("minari:one/two/data-v0", recording)
        assert minari.namespace.list_local_namespaces() == ["one", "one/two"]
        assert [minari.namespace.get_namespace_metadata(name) for name in ("one", "one/two")] == [{}, {}]

    def test_runs_are_the_episodes_in_order(self, rng):
        data = make_recording(rng, (3, 1, 2), full=False).transitions.replace(episode=np.array([5, 5, 5, 2, 9, 9]))
        assert runs(data) == [slice(0, 3), slice(3, 4), slice(4, 6)]
