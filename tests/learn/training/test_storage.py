"""Saving and loading: the same scores again, and a clear word about every file that is not right."""

import errno
import json
import os

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.nn.modules.module import register_module_parameter_registration_hook

from counterpoint import Factorization, Position
from counterpoint.files import FileProblem
from counterpoint.learn import SandyMixture, SandyTransformer, load
from tests.files.examples import current_umask
from tests.learn.examples import Linear, make_data

FACTORS = Factorization.blocks(
    state={"cart": 2, "pole": 1, "goal": 1}, action={"push": 1}, derived=(4,), context=("goal",),
    noise={"cart": (0,)}, positions={"cart": Position((0, 1), scale=(1.0, 2.0)), "pole": (2, 2)}, types={"pole": "rod"},
)  # fmt: skip
SMALL = {"epochs": 1, "width": 8}


@pytest.fixture
def data(rng):
    return make_data(rng, rows=120, factors=FACTORS)


@pytest.fixture
def fitted(data, rng):
    return SandyTransformer(**SMALL).fit(data, FACTORS, rng=rng, progress=False)


def rewrite(path, **changes):
    """Change entries of the JSON in a file's metadata."""
    with safe_open(path, framework="pt") as file:
        found = json.loads(file.metadata()["counterpoint"])
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(weights, path, metadata={"counterpoint": json.dumps({**found, **changes})})


@pytest.mark.parametrize("kind", [SandyMixture, SandyTransformer])
def test_a_round_trip_gives_the_same_bits(data, rng, tmp_path, kind):
    fitted = kind(**SMALL).fit(data, FACTORS, rng=rng, progress=False)
    fitted.save(tmp_path / "mask.safetensors")
    again = load(str(tmp_path / "mask.safetensors"), factors=FACTORS)
    assert type(again) is kind
    assert again == fitted
    assert again.learned().history == fitted.learned().history
    assert again.learned().scaling == fitted.learned().scaling
    assert again.learned().factors == FACTORS
    np.testing.assert_array_equal(again.scores(data.state, data.action), fitted.scores(data.state, data.action))
    assert kind.load(tmp_path / "mask.safetensors") == fitted


def test_the_file_is_plain(fitted, tmp_path):
    """Readable without this package, and nothing is left beside it."""
    fitted.save(tmp_path / "mask.safetensors")
    fitted.save(tmp_path / "mask.safetensors")
    assert os.listdir(tmp_path) == ["mask.safetensors"]
    with safe_open(tmp_path / "mask.safetensors", framework="numpy") as file:
        found = json.loads(file.metadata()["counterpoint"])
    assert found["format"] == 1
    assert found["name"] == "SandyTransformer"
    assert found["settings"]["width"] == 8
    assert set(found["versions"]) == {"counterpoint", "numpy", "python", "torch"}


def test_a_failed_save_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(FileProblem, match=r"mask.safetensors: not written, disk full"):
        fitted.save(path)
    assert os.listdir(tmp_path) == ["mask.safetensors"]
    assert path.read_bytes() == before


def test_damaged_files_are_refused(fitted, tmp_path):
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    whole = path.read_bytes()
    for cut in (0, 5, 100, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"mask.safetensors: this is not a complete safetensors file .* cut off"):
            load(path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        load(tmp_path / "none.safetensors")


def test_what_may_not_be_read_is_said(fitted, tmp_path, make_pipe, monkeypatch):
    make_pipe(tmp_path / "pipe.safetensors")
    with pytest.raises(FileProblem, match=r"pipe.safetensors: this is not a regular file"):
        load(tmp_path / "pipe.safetensors")
    fitted.save(tmp_path / "mask.safetensors")

    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(FileProblem, match=r"mask.safetensors: Permission denied"):
        load(tmp_path / "mask.safetensors")


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"width": 2**40}},
        {"settings": {"layers": 10**9}},
        {"settings": {"width": 8, "epochs": 2**70}},
        {"settings": {"width": "8"}},
        {"settings": [8]},
        {"factors": {"state": {"cart": [0, 2**70]}}},
        {"factors": 3},
        {"scaling": {}},
        {"scaling": {"state": {"mean": [float("nan")], "std": [1]}}},
        {"history": None},
        {"name": ["SandyTransformer"]},
    ],
    ids=str,
)
def test_what_a_file_claims_is_checked(fitted, tmp_path, changes):
    """No claim of a file takes memory or time beyond its size, and every wrong one is named with the file."""
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    rewrite(path, **changes)
    with pytest.raises(FileProblem, match=r"mask.safetensors: "):
        load(path)


def test_no_more_is_built_than_the_file_holds(fitted, tmp_path):
    """Settings that ask for thousands of layers are refused before there are as many."""
    path, built = tmp_path / "mask.safetensors", []
    fitted.save(path)
    rewrite(path, settings={"width": 8, "layers": 3000})
    handle = register_module_parameter_registration_hook(lambda *_: built.append(1))
    try:
        with pytest.raises(FileProblem, match=r"mask.safetensors: .* more weights than the file holds"):
            load(path)
    finally:
        handle.remove()
    assert len(built) < 1000


def test_any_flipped_bit_is_noticed(fitted, tmp_path):
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    whole = path.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 60).astype(int):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(FileProblem, match=r"mask.safetensors: "):
            load(path)


def test_the_same_training_gives_the_same_bytes(data, tmp_path):
    for name in ("one", "two"):
        found = SandyTransformer(**SMALL).fit(data, FACTORS, rng=np.random.default_rng(3), progress=False)
        found.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert os.stat(tmp_path / "one").st_mode & 0o077 == 0o066 & ~current_umask()


def test_files_of_others_are_refused(fitted, tmp_path):
    path = tmp_path / "mask.safetensors"
    save_file({"x": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match="counterpoint.learn did not write this file"):
        load(path)
    save_file({"x": torch.zeros(3)}, path, metadata={"counterpoint": "{"})
    with pytest.raises(ValueError, match="metadata is damaged"):
        load(path)


def test_another_format_or_class_is_refused(fitted, tmp_path):
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    with pytest.raises(ValueError, match="expected a SandyMixture, it holds a SandyTransformer"):
        SandyMixture.load(path)
    rewrite(path, name="os.system")
    with pytest.raises(ValueError, match="it holds a 'os.system'; the estimators are .*SandyTransformer"):
        load(path)
    rewrite(path, format=2, versions={"counterpoint": "9.9"})
    with pytest.raises(ValueError, match=r"it has format 2 \(written by counterpoint 9.9\), expected 1"):
        load(path)


def test_settings_that_do_not_fit_the_weights_are_refused(fitted, tmp_path):
    path = tmp_path / "mask.safetensors"
    fitted.save(path)
    rewrite(path, settings={"width": 9})
    with pytest.raises(ValueError, match="do not make a SandyTransformer: .*size mismatch"):
        load(path)
    rewrite(path, settings={"wdth": 9})
    with pytest.raises(ValueError, match="do not make a SandyTransformer: .*wdth"):
        load(path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (Factorization.blocks(state={"cart": 2, "pole": 1, "aim": 1}, action={"push": 1}, derived=(4,)),
         "fitted to the factors cart, pole, goal, push, expected cart, pole, aim, push"),
        (Factorization.blocks(state={"cart": 1, "pole": 2, "goal": 1}, action={"push": 1}, derived=(4,)),
         r"'cart' had columns \(0, 1\), now \(0,\)"),
        (Factorization.blocks(state={"cart": 2, "pole": 1, "goal": 1}, action={"push": 1}), r"derived \(4,\), now"),
    ],
)  # fmt: skip
def test_another_factorisation_is_refused(fitted, tmp_path, other, message):
    fitted.save(tmp_path / "mask.safetensors")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "mask.safetensors", factors=other)


def test_only_our_own_classes_are_loaded(data, rng, tmp_path):
    one = Linear().fit(data, FACTORS, rng=rng, progress=False)
    one.save(tmp_path / "mask.safetensors")
    with pytest.raises(ValueError, match="it holds a 'Linear'"):
        load(tmp_path / "mask.safetensors")
