"""What is written is what is read, in every format, in any chunks, and from any format to any other."""

import json
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint import Augmenter, files
from counterpoint.files import scanning
from counterpoint.files.cutting import Cutter
from counterpoint.files.header import VERSION, head_to_json
from counterpoint.files.recording import joined
from counterpoint.masks import Constant
from tests.examples import first_column, make_data, make_factors
from tests.files.examples import SINGLE, TARGETS, assert_same, factorizations, make_recording, put, recordings


class TestRoundTrips:
    @pytest.mark.parametrize("kind", TARGETS)
    def test_what_is_written_is_read_bit_for_bit(self, kind):
        @settings(max_examples=10 if kind == "minari" else 25)
        @given(recordings(kind), st.integers(1, 40))
        def check(recording, rows):
            with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
                patch.setenv("MINARI_DATASETS_PATH", folder)
                path = put(folder, kind, recording)
                scan = files.scan(path)
                assert (scan.format, scan.rows, scan.factors) == (kind, len(recording), recording.factors)
                whole = scan.read()
                assert_same(whole, recording)
                assert whole.head == recording.head
                chunks = list(files.chunks(path, rows))
                assert [len(chunk) for chunk in chunks[:-1]] == [rows] * (len(chunks) - 1)
                assert_same(joined(chunks), recording)

        check()

    @pytest.mark.parametrize("kind", TARGETS)
    def test_from_any_format_to_any_other(self, kind, tmp_path, rng):
        recording = make_recording(rng, factors=make_factors(2, 1))
        path = put(tmp_path, kind, recording)
        for other in SINGLE:
            (tmp_path / other).mkdir()
            again = files.read(put(tmp_path / other, other, files.read(path)))
            assert_same(again, recording)
            assert again.head == recording.head

    @pytest.mark.parametrize("kind", ["parquet", "npz", "d4rl"])
    def test_counterfactuals_keep_their_parents(self, kind, tmp_path, rng):
        factors = make_factors(3, 1)
        data = make_data(factors, 30, rng)
        made = Augmenter(factors, Constant.identity(factors), first_column).fill(data, 50, rng=rng)
        path = put(tmp_path, kind, made, factors=factors, source="real.parquet")
        came = files.read(path)
        assert came.head == files.Head(factors, "real.parquet")
        for name in ("base", "donor", "swapped"):
            np.testing.assert_array_equal(getattr(came.provenance, name), getattr(made, name))
        assert_same(came, files.Recording.of(made))

    def test_real_rows_are_their_own_parents(self):
        real = files.Provenance.real(3, make_factors(2, 1), first=7)
        assert real.base.tolist() == real.donor.tolist() == [7, 8, 9]
        assert not real.swapped.any()

    @pytest.mark.parametrize("kind", SINGLE)
    def test_written_in_any_parts_it_is_the_same(self, kind, tmp_path, rng, monkeypatch):
        monkeypatch.setattr("counterpoint.files.writing.CHUNK_ROWS", 7)
        recording = make_recording(rng, (5, 9, 1, 12, 2), factors=make_factors(2, 1))
        for cuts in ([], [7, 14], [1, 2, 3, 20], [13]):
            path = f"{tmp_path}/{TARGETS[kind]}"
            format_name = kind if kind == "robomimic" else None
            with files.writer(path, recording.head, format=format_name, force=True) as out:
                for start, stop in zip([0, *cuts], [*cuts, len(recording)], strict=True):
                    part = recording[start:stop]
                    scratch = part.transitions.state.copy()
                    out.append(files.Recording(part.transitions.replace(state=scratch), part.head, part.provenance))
                    scratch[:] = 0  # what was appended may be reused at once
                assert out.rows == len(recording)
            assert_same(files.read(path), recording)

    def test_filters_select_episodes(self, rng):
        recording = make_recording(rng)
        assert set(recording.only("train").transitions.episode) == {0, 2}
        with pytest.raises(ValueError, match="no filter is called 'test'; there are train, valid"):
            recording.only("test")

    @given(factorizations())
    def test_factorisations_survive_json(self, factors):
        again = files.factors_from_json(json.loads(json.dumps(files.factors_to_json(factors))))
        assert again == factors
        assert again.names == factors.names

    def test_chunks_pass_whole_without_a_copy(self, rng):
        recording = make_recording(rng, (20,))
        (first, second), rest = Cutter(10).push(recording), list(Cutter(99).push(recording))
        assert np.shares_memory(first.transitions.state, recording.transitions.state)
        assert len(second) == 10
        assert rest == []

    def test_a_chunk_is_seen_while_it_grows(self, tmp_path, rng, monkeypatch):
        monkeypatch.setattr(scanning, "ROWS", 4)
        recording = make_recording(rng, (25,))
        scan = files.scan(put(tmp_path, "parquet", recording))
        seen = list(scan.growing(10))
        assert [(len(chunk), whole) for chunk, whole in seen] == [
            (4, False), (8, False), (10, True), (2, False), (6, False), (10, True), (4, False), (5, False), (5, True)
        ]  # fmt: skip
        assert np.shares_memory(seen[0][0].transitions.state, seen[2][0].transitions.state)
        assert_same(joined(chunk for chunk, whole in seen if whole), recording)


def test_the_header_says_its_version():
    assert json.loads(head_to_json(files.Head()))["version"] == VERSION == 1
    assert scanning.ROWS == 65536
