"""What is particular to Parquet: what others see in our files, what we see in theirs, and no copies."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterpoint import files
from counterpoint.adapters import parquet
from tests.examples import make_factors
from tests.files.examples import assert_same, make_recording


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.parquet"


def test_others_read_plain_columns_and_metadata(path, rng):
    recording = make_recording(rng, factors=make_factors(2, 1))
    files.write(path, recording)
    table = pq.read_table(path)
    assert table.schema.field("state").type == pa.list_(pa.field("element", pa.float32(), nullable=False), 4)
    assert table.schema.field("base").type == pa.int64()
    assert not any(field.nullable for field in table.schema)
    assert table["state"].to_pylist() == recording.transitions.state.tolist()
    header = json.loads(table.schema.metadata[b"counterpoint"])
    assert (header["version"], header["source"], header["nodes"]) == (1, "source.parquet", 3)
    bits = [[byte >> node & 1 for node in range(3)] for (byte,) in table["swapped"].to_pylist()]
    np.testing.assert_array_equal(bits, recording.provenance.swapped)


def test_row_groups_are_large_whatever_the_appends(path, rng, monkeypatch):
    monkeypatch.setattr("counterpoint.files.writing.CHUNK_ROWS", 100)
    part = make_recording(rng, (30,))
    with files.writer(path) as out:
        for _ in range(11):
            out.append(part)
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [100, 100, 100, 30]


def test_wide_rows_make_short_chunks(path, rng, monkeypatch):
    monkeypatch.setattr("counterpoint.files.writing.CHUNK_BYTES", 1000)
    recording = make_recording(rng, (30,))
    files.write(path, recording)
    assert pq.ParquetFile(path).metadata.num_row_groups > 3
    assert_same(files.read(path), recording)


def test_numbers_are_not_copied(rng):
    recording = make_recording(rng, (30,))
    for name, array in parquet._arrow(recording):
        values = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
        if name not in ("terminated", "swapped"):
            assert np.shares_memory(values.to_numpy(), recording.columns()[name]), name
            assert np.shares_memory(parquet.array_of(name, array, 9), recording.columns()[name]), name


def test_slices_start_where_they_should(rng):
    recording = make_recording(rng, (30,))
    for name, array in parquet._arrow(recording):
        np.testing.assert_array_equal(parquet.array_of(name, array[7:19], 9), recording.columns()[name][7:19])


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list])
def test_files_from_elsewhere_may_have_lists_of_any_type(path, rng, kind):
    recording = make_recording(rng, full=False)
    columns = {
        name: pa.array(array.tolist(), kind(pa.float32()) if array.ndim == 2 else None)
        for name, array in recording.columns().items()
    }
    pq.write_table(pa.table({**columns, "remark": ["?"] * len(recording)}), path)
    came = files.read(path)
    assert came.factors is None
    np.testing.assert_array_equal(came.transitions.state, recording.transitions.state)
    for name, wrong, why in (
        ("state", pa.array([[1.0]] + [[1.0, 2.0]] * 10), "state: its lists have between 1 and 2 values"),
        ("state", pa.array([None] + [[1.0, 2.0]] * 10), "state: 1 values are null"),
        ("state", pa.array([[None, 1.0]] + [[1.0, 2.0]] * 10), "state: 1 values are null"),
        ("state", pa.array(["a"] * 11), "state: expected an array of numbers"),
        ("terminated", pa.array([1] * 11), "terminated: expected booleans"),
    ):
        pq.write_table(pa.table({**columns, name: wrong}), path)
        with pytest.raises(files.FileProblem, match=why):
            files.read(path)
    pq.write_table(pa.table({"state": columns["state"]}), path)
    with pytest.raises(files.FileProblem, match="the columns action, reward, next_state, terminated are missing"):
        files.read(path)


def test_wrong_headers(path, rng):
    files.write(path, make_recording(rng))
    table = pq.read_table(path)
    for header in ('{"version": 1, "nodes": "many"}', '{"version": 1, "empty": {"action": "nonsense"}}', "{"):
        pq.write_table(table.replace_schema_metadata({"counterpoint": header}), path)
        with pytest.raises(files.FileProblem):
            files.scan(path)
    with pytest.raises(files.FileProblem, match="keys"):
        files.scan(path, keys=["hand"])


def test_a_file_without_rows(path, rng):
    files.write(path, make_recording(rng))
    pq.write_table(pq.read_table(path)[:0], path)
    assert list(files.chunks(path)) == []
    with pytest.raises(files.FileProblem, match="it holds no transitions"):
        files.read(path)
