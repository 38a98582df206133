"""Observations made of named parts, and libraries that are not installed."""

import subprocess
import sys

import numpy as np
import pytest

from counterpoint import files
from counterpoint.core.factors import Factorization as Factors
from counterpoint.files import trees
from tests.files.examples import make_recording, put


class TestMissingLibraries:
    @pytest.mark.parametrize(("kind", "library"), [("parquet", "pyarrow"), ("d4rl", "h5py"), ("minari", "minari")])
    def test_a_missing_library_is_named_with_its_install_line(self, kind, library, tmp_path, rng):
        path = put(tmp_path, kind, make_recording(rng))
        extra = {"d4rl": "hdf5"}.get(kind, kind)
        code = f"""
import sys
sys.modules[{library!r}] = None
from counterpoint import files
try:
    files.read({path!r})
except ImportError as error:
    print(error)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert f"pip install counterpoint-rl[{extra}]" in done.stdout

    def test_npz_needs_no_library(self, tmp_path, rng):
        path = put(tmp_path, "npz", make_recording(rng))
        code = f"""
import sys
sys.modules.update(dict.fromkeys(["pyarrow", "h5py", "minari", "gymnasium", "stable_baselines3", "torch"]))
from counterpoint import files
import counterpoint.goals, counterpoint.adapters.d3rlpy, counterpoint.adapters.torchrl
print(len(files.read({path!r})))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "11\n"


class TestTrees:
    def test_there_and_back(self, rng):
        tree = {"b": rng.random((5, 2, 3)), "a": {"x": rng.random(5), "y": rng.random((5, 1)).astype("float32")}}
        named = dict(trees.leaves(tree))
        assert list(named) == ["b", "a/x", "a/y"]
        columns = trees.flat(named)
        again = trees.nested(columns, trees.shapes_of(named))
        np.testing.assert_array_equal(again["b"], tree["b"])
        np.testing.assert_array_equal(again["a"]["x"], tree["a"]["x"])
        assert columns.shape == (5, 8)

    def test_pictures_are_refused(self):
        with pytest.raises(files.FileProblem, match=r"camera holds pictures of 64 x 64 x 3.*keys"):
            trees.flat({"camera": np.zeros((2, 64, 64, 3), np.uint8)})
        assert trees.flat({"grid": np.zeros((2, 7, 7, 3), np.uint8)}).shape == (2, 147)

    def test_the_proposal_has_one_factor_per_part(self):
        shapes = (("hand", (2,)), ("achieved_goal", (1,)), ("nothing", (0,)), ("desired_goal", (1,)))
        factors = trees.proposal(shapes, (("", (2,)),))
        assert factors == Factors({"hand": (0, 1), "desired_goal": (3,)}, {"action": (0, 1)}, derived=(2,))
        assert trees.proposal((("", (4,)),), ()) is None
        assert trees.proposal((("action", (1,)), ("hand", (1,))), (("", (1,)),)).names == (
            "action",
            "hand",
            "action/action",
        )
