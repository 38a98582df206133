"""A folder of files is one dataset; its shards are augmented one by one, and nobody can tell who made which."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint import files
from counterpoint.checks import CheckFailed
from counterpoint.files.pool import Chances, Died, Pool
from counterpoint.files.shard_jobs import augment_one
from counterpoint.files.sharding import donor_shard
from tests.files import sharded
from tests.files.sharded import FACTORS, ROWS, augmenter, backwards, contents, here, job, put, step


@pytest.fixture
def data(tmp_path):
    return put(tmp_path / "data")


def made(tmp_path, **settings):
    """Augment the dataset; return the output, opened."""
    engine = settings.pop("engine", here)
    how = {name: settings.pop(name) for name in ("resume", "force", "progress") if name in settings}
    found = job(tmp_path, **settings)
    done = files.augment_shards(found, engine=engine, **how)
    assert (done.real, done.shards) == (sum(ROWS), len(ROWS))
    return files.scan(found.out)


# --- reading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "npz", "hdf5"])
def test_a_folder_reads_as_its_files_one_after_another(suffix, tmp_path):
    data = put(tmp_path / "data", suffix=suffix)
    found = files.read(tmp_path / "data").transitions
    for name in ("state", "action", "reward", "next_state", "terminated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name))
    chunked = [len(chunk) for chunk in files.chunks(tmp_path / "data", 50)]
    assert chunked == [50, 50, 50, 8]


def test_episodes_of_different_shards_stay_apart(tmp_path, data):
    episode = files.read(tmp_path / "data").transitions.episode
    starts = np.flatnonzero(np.diff(episode)) + 1
    assert len(np.unique(episode)) == len(starts) + 1 == sum(-(-rows // 5) for rows in ROWS)
    assert files.scan(tmp_path / "data").last_episode() == episode.max()


def test_episodes_that_are_counted_on_keep_their_numbers(tmp_path):
    whole = sharded.shard(100, 0)
    (tmp_path / "data").mkdir()
    for number in range(2):
        files.write(tmp_path / "data" / f"{number}.npz", whole[number * 50 : number * 50 + 50])
    np.testing.assert_array_equal(files.read(tmp_path / "data").transitions.episode, whole.episode)


def test_a_file_can_be_cut_into_shards(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.files.shards.SHARD_ROWS", 50)
    monkeypatch.setattr("counterpoint.files.writing.CHUNK_ROWS", 30)
    whole = sharded.shard(100, 0)
    files.write(tmp_path / "data", whole, format="shards", factors=FACTORS)
    assert files.shards_of(tmp_path / "data").rows == (60, 40)
    np.testing.assert_array_equal(files.read(tmp_path / "data").transitions.state, whole.state)


def test_shards_must_be_alike(tmp_path, data):
    files.write(tmp_path / "data" / "part-9.parquet", sharded.shard(5, 9, episodes=False), factors=FACTORS)
    with pytest.raises(files.FileProblem, match=r"part-9.parquet: episode, step differ in presence, width or dtype"):
        files.read(tmp_path / "data")


def test_shards_have_one_factorisation(tmp_path, data):
    files.write(tmp_path / "data" / "part-9.parquet", sharded.shard(5, 9))
    with pytest.raises(files.FileProblem, match=r"part-9.parquet: its factors are not those of .*part-0.parquet"):
        files.scan(tmp_path / "data")


def test_a_sample_is_spread_evenly_over_all_shards(tmp_path, data):
    some = files.sample(tmp_path / "data", 50).transitions
    np.testing.assert_array_equal(some.state, data.state[::4])
    assert len(files.sample(tmp_path / "data", 1000)) == len(data)


# --- one shard --------------------------------------------------------------------------------------


@given(st.integers(0, 2**64), st.integers(2, 50))
def test_every_shard_gives_donors_to_one_other(seed, count):
    given_by = [donor_shard(seed, number, count) for number in range(count)]
    assert sorted(given_by) == list(range(count))
    assert all(donor != number for number, donor in enumerate(given_by))


def test_one_shard_is_a_pure_function(tmp_path, data):
    settings = {"augmenter": augmenter(), "ratio": 2.5, "number": 2, "seed": 3}
    one = files.augment_shard(tmp_path / "data", tmp_path / "one.parquet", **settings)
    listed = [str(path) for path in sorted((tmp_path / "data").iterdir())]
    two = files.augment_shard(listed, tmp_path / "two.parquet", **settings)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    assert one.sha256 == two.sha256
    assert one.donors != one.source == "part-2.parquet"
    other = files.augment_shard(tmp_path / "data", tmp_path / "other.parquet", **{**settings, "seed": 4})
    assert other.sha256 != one.sha256


def test_a_shard_may_be_its_own_donor_alone(tmp_path, data):
    settings = {"augmenter": augmenter(), "ratio": 2.5, "number": 2, "donors": 2}
    files.augment_shard(tmp_path / "data", tmp_path / "alone.parquet", **settings)
    found = files.read(tmp_path / "alone.parquet").provenance
    assert found.donor.min() >= sum(ROWS[:2])
    assert found.donor.max() < sum(ROWS[:3])
    for wrong, number, donors in (("number", 4, None), ("donors", 0, 4)):
        with pytest.raises(ValueError, match=f"{wrong}: the dataset has the shards 0 to 3, got 4"):
            files.augment_shard(
                tmp_path / "data",
                tmp_path / "x.parquet",
                **{**settings, "number": number, "donors": donors},
            )


@pytest.mark.parametrize("chunk_bytes", [2**28, 4000])
def test_provenance_counts_the_rows_of_the_dataset(chunk_bytes, tmp_path, data, monkeypatch):
    """Every factor of every row is that of the row that its provenance names, wherever that is."""
    monkeypatch.setattr("counterpoint.files.augmentation.CHUNK_BYTES", chunk_bytes)
    found = made(tmp_path).read()
    origin = found.provenance.origin
    for node, columns in enumerate(FACTORS.state.values()):
        for name in ("state", "next_state"):
            expected = getattr(data, name)[origin[:, node]][:, list(columns)]
            np.testing.assert_array_equal(getattr(found.transitions, name)[:, list(columns)], expected)
    np.testing.assert_array_equal(found.transitions.action, data.action[origin[:, 3]])
    real = ~found.provenance.swapped.any(axis=1)
    np.testing.assert_array_equal(found.provenance.base[real], np.arange(len(data)))
    shard_of = np.searchsorted(np.cumsum(ROWS), np.arange(len(data)), side="right")
    base, donor = (shard_of[parent[~real]] for parent in (found.provenance.base, found.provenance.donor))
    second = [donor_shard(3, number, len(ROWS)) for number in range(len(ROWS))]
    assert np.isin(donor - base, 0).any()
    assert (donor != base).mean() > 0.3
    assert all(other in (own, second[own]) for own, other in zip(base, donor, strict=True))


# --- the whole job ----------------------------------------------------------------------------------


def test_the_amount_is_that_of_the_dataset_and_every_row_is_confirmed(tmp_path, data):
    found = made(tmp_path)
    assert found.rows == len(data) + round(2.5 * len(data))
    assert files.audit(found, step).confirmed == 1.0
    noted = json.loads((tmp_path / "more" / "manifest.json").read_text())
    assert [shard["first_row"] for shard in noted["shards"]] == np.cumsum((0, *ROWS[:-1])).tolist()
    assert sum(shard["funnel"]["accepted"] for shard in noted["shards"]) == found.head.notes["funnel"]["accepted"]
    assert len({shard["seed"] for shard in noted["shards"]}) == len(ROWS)


def test_windows_stay_whole(tmp_path, data):
    found = made(tmp_path, make=sharded.windowed)
    assert files.audit(found, step, atol=1e-6).confirmed < 1.0  # the world has no memory of what a window swaps ...
    rows = found.read()
    new = rows.provenance.swapped.any(axis=1)
    base = rows.provenance.base[new].reshape(-1, 4)
    np.testing.assert_array_equal(base - base[:, :1], np.broadcast_to(np.arange(4), base.shape))
    shard_of = np.searchsorted(np.cumsum(ROWS), base, side="right")
    assert (shard_of == shard_of[:, :1]).all()
    assert len(np.unique(rows.transitions.episode[new])) == len(base)


def test_a_report_takes_the_folder(tmp_path, data):
    pytest.importorskip("matplotlib")
    page = files.report(made(tmp_path), augmenter(), tmp_path / "page.html")
    assert str(tmp_path / "data") in page.read_text()


def test_bytes_do_not_depend_on_the_order(tmp_path, data):
    made(tmp_path)
    made(tmp_path, out="again", engine=backwards)
    assert contents(tmp_path / "more") == contents(tmp_path / "again")


def interrupted(after):
    def engine(task, numbers):
        for number in numbers[:after]:
            yield task(number)
        raise KeyboardInterrupt

    return engine


def test_a_job_goes_on_and_what_is_damaged_is_made_again(tmp_path, data):
    made(tmp_path, out="whole")
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path, engine=interrupted(3))
    parts = tmp_path / "more.parts"
    assert not (tmp_path / "more").exists()
    with pytest.raises(files.FileProblem, match="there is an unfinished job"):
        made(tmp_path)
    with pytest.raises(files.FileProblem, match="the unfinished job there is not this one: seed changed since"):
        made(tmp_path, seed=4, resume=True)
    raw = bytearray((parts / "part-0.parquet").read_bytes())
    raw[100] ^= 1
    (parts / "part-0.parquet").write_bytes(raw)
    entry = parts / "part-1.parquet.shard.json"
    entry.write_text(entry.read_text().replace('"number": 1', '"number": 2'))
    asked = []

    def watched(task, numbers):
        asked.extend(numbers)
        return here(task, numbers)

    made(tmp_path, engine=watched, resume=True)
    assert asked == [0, 1, 3]
    assert contents(tmp_path / "more") == contents(tmp_path / "whole")
    assert not parts.exists()


def test_a_job_that_has_made_nothing_leaves_nothing(tmp_path, data):
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path, engine=interrupted(0))
    assert sorted(os.listdir(tmp_path)) == ["data"]


@pytest.mark.parametrize("harm", ["removed", "changed"])
def test_a_complete_output_is_verified_and_mended(harm, tmp_path, data):
    made(tmp_path)
    before, victim = contents(tmp_path / "more"), tmp_path / "more" / "part-2.parquet"

    def never(task, numbers):
        raise AssertionError("nothing is missing")

    made(tmp_path, engine=never, resume=True)
    if harm == "removed":
        victim.unlink()
        with pytest.raises(files.FileProblem, match="manifest.json and its files do not agree on part-2.parquet"):
            files.scan(tmp_path / "more")
    else:
        victim.write_bytes(victim.read_bytes()[:-1] + b"\0")
    made(tmp_path, resume=True)
    assert contents(tmp_path / "more") == before


def test_an_output_is_replaced_only_by_force_and_only_if_it_is_ours(tmp_path, data):
    made(tmp_path)
    with pytest.raises(files.FileProblem, match=r"more: it exists"):
        made(tmp_path, seed=4)
    with pytest.raises(files.FileProblem, match="seed changed since"):
        made(tmp_path, seed=4, resume=True)
    made(tmp_path, seed=4, force=True)
    made(tmp_path, out="fresh", seed=4)
    assert contents(tmp_path / "more") == contents(tmp_path / "fresh")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(files.FileProblem, match="mine: this is in the way"):
        made(tmp_path, out="mine", force=True)
    with pytest.raises(files.FileProblem, match="the output is also the data"):
        made(tmp_path, out="data/more")


@pytest.mark.parametrize("text", ["{", '{"version": 1}', '{"version": 1, "shards": [{"file": "../x.npz"}]}', "[]"])
def test_a_forged_manifest_is_refused(text, tmp_path, data):
    made(tmp_path)
    (tmp_path / "more" / "manifest.json").write_text(text)
    with pytest.raises(files.FileProblem, match=r"manifest.json .*damaged"):
        files.scan(tmp_path / "more")
    with pytest.raises(files.FileProblem, match=r"manifest.json is damaged .*--force"):
        made(tmp_path, resume=True)


def test_a_second_driver_refuses(tmp_path, data):
    refused = []

    def engine(task, numbers):
        for start in (lambda: made(tmp_path, resume=True), lambda: augment_one(job(tmp_path), 0)):
            with pytest.raises(files.FileProblem, match=r"another process is working on this output \(process \d+"):
                start()
            refused.append(start)
        return here(task, numbers)

    made(tmp_path, engine=engine)
    assert len(refused) == 2


def test_single_shards_add_up_to_the_job(tmp_path, data):
    made(tmp_path, out="whole")
    for number in (3, 0, 3):
        augment_one(job(tmp_path), number)
    made(tmp_path, resume=True)
    assert contents(tmp_path / "more") == contents(tmp_path / "whole")
    with pytest.raises(files.FileProblem, match="it exists"):
        augment_one(job(tmp_path), 1)


def test_a_wrong_reward_is_found_and_the_shard_named(tmp_path, data):
    files.write(
        tmp_path / "data" / "part-2.parquet",
        sharded.shard(60, 2).replace(reward=np.ones(60)),
        factors=FACTORS,
        force=True,
    )
    with pytest.raises(ValueError, match=r"data/part-2.parquet: reward_fn: it differs") as found:
        made(tmp_path, checked=("reward",))
    assert isinstance(found.value.__cause__, CheckFailed)


def test_two_files_of_one_name_are_refused(tmp_path, data):
    files.write(tmp_path / "data" / "part-2.npz", sharded.shard(5, 9), factors=FACTORS)
    with pytest.raises(files.FileProblem, match=r"two of its files would be written as part-2.parquet"):
        job(tmp_path)


# --- processes --------------------------------------------------------------------------------------


def test_workers_are_processes_of_one_thread_that_are_used_again():
    found = list(Pool(2)(sharded.process, range(6)))
    assert sorted(number for _, _, number in found) == list(range(6))
    assert {threads for _, threads, _ in found} == {1}
    assert os.getpid() not in {process for process, _, _ in found}
    assert len({process for process, _, _ in found}) <= 2
    assert list(Pool(2)(sharded.process, [])) == []


def test_what_a_worker_raises_arrives_with_its_place():
    with pytest.raises(KeyError, match="mistake 0") as found:
        list(Pool(1)(sharded.failing, [0]))
    assert "in failing" in found.value.__notes__[0]


def test_a_worker_that_is_killed_is_replaced_and_the_bytes_are_the_same(tmp_path, data):
    made(tmp_path, out="whole")
    made(tmp_path, engine=sharded.Killing(Pool(2), tmp_path / "killed"))
    assert (tmp_path / "killed").exists()
    assert contents(tmp_path / "more") == contents(tmp_path / "whole")


def test_deaths_that_hit_one_shard_by_chance_do_not_end_a_job_that_gets_on():
    chances = Chances(tries=3)
    for _ in range(10):
        assert chances.died(7, "signal SIGKILL") is None
        assert chances.died(8, "signal SIGKILL") is None
        assert chances.died(7, "signal SIGKILL") is None
        chances.finished()
    assert [chances.died(7, "signal SIGKILL") is None for _ in range(3)] == [True, True, False]


def test_a_shard_that_kills_every_worker_ends_the_job_with_a_reason(tmp_path, data):
    with pytest.raises(Died, match=r"shard 1: its worker died 2 times \(signal SIGKILL\), and nothing else was fin"):
        made(tmp_path, engine=sharded.Killing(Pool(1, tries=2), tmp_path / "killed", always=True))
    assert (tmp_path / "more.parts" / "part-0.parquet").exists()
    assert (tmp_path / "more.parts" / "part-2.parquet").exists(), "all others are made before it is given up"
    made(tmp_path, resume=True)
