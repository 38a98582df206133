"""Every verb of the command line does what the library does, says so, and refuses what it cannot do."""

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from counterpoint import Augmenter, files
from counterpoint.command_line import EXPECTED, VERBS, main, parser
from counterpoint.description import read_description
from counterpoint.files import augmentation
from counterpoint.worlds import Place
from tests.command_line.sprites import DESCRIPTION, WORLD, augment, prepare, run
from tests.files.examples import assert_same, make_recording

ROOT = Path(__file__).parents[2]


class TestAll:
    @pytest.mark.parametrize("verb", VERBS)
    def test_help_has_an_example_that_parses(self, verb, capsys):
        with pytest.raises(SystemExit) as stopped:
            main([verb, "--help"])
        assert stopped.value.code == 0
        lines = [line.strip() for line in capsys.readouterr().out.partition("Example:")[2].splitlines()]
        examples = [line for line in lines if line.startswith(f"counterpoint {verb}")]
        assert examples
        for line in examples:
            assert parser().parse_args(line.split()[1:]).verb == verb

    def test_the_script_and_the_module_are_this_command(self):
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
        module, _, name = scripts["counterpoint"].partition(":")
        assert getattr(importlib.import_module(module), name) is main
        done = subprocess.run(
            [sys.executable, "-m", "counterpoint.command_line", "--version"], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "0.1.0"

    def test_only_verbs_that_need_them_load_heavy_libraries(self):
        heavy = {"torch", "matplotlib", "pyarrow", "h5py", "counterpoint.command_line.proposal"}
        code = f"""
import sys
from counterpoint.command_line import parser
assert parser("augment").parse_args("augment a b --ratio 1 --out c".split()).verb == "augment"
print({heavy} & set(sys.modules))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "set()"

    def test_only_a_process_of_its_own_is_set_up_for_it(self, data, folder):
        """A program that calls `main` with arguments keeps its settings."""
        code = """
import gc, sys
from counterpoint.command_line import main
settings = lambda: (gc.get_threshold(), sys.getswitchinterval(), gc.get_freeze_count())
before = settings()
assert main(["inspect", "data.parquet"]) == 0 and settings() == before
sys.argv[1:] = ["inspect", "data.parquet"]
assert main() == 0
print([one != other for one, other in zip(settings(), before)])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
        assert done.stdout.splitlines()[-1] == "[True, True, True]"

    def test_a_verb_that_is_none_is_answered_with_all_of_them(self, capsys):
        with pytest.raises(SystemExit):
            main(["augmnt", "data.parquet"])
        error = capsys.readouterr().err
        assert all(repr(verb) in error for verb in VERBS)

    def test_what_is_no_verb_is_bad_input(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(["agument"])
        assert stopped.value.code == 2
        assert "invalid choice" in capsys.readouterr().err

    def test_a_mistake_in_a_function_of_the_user_shows_where(self, data, folder, capsys):
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":mask", ":broken"))
        code, out, err = augment(capsys, "--ratio", 3)
        assert (code, out) == (2, "")
        assert "my own mistake" in err
        assert "sprite_functions.py" in err
        assert KeyError not in EXPECTED
        assert sorted(entry.name for entry in folder.iterdir() if entry.name.startswith((".", "out"))) == []

    def test_an_interruption_is_told(self, monkeypatch, capsys, data):
        monkeypatch.setattr(
            "counterpoint.command_line.convert.writer", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        code, out, err = run(capsys, "convert", "data.parquet", "out.npz")
        assert (code, out) == (130, "")
        assert err.splitlines()[-1] == "counterpoint convert: stopped. Run the same command again."


class TestAugment:
    def test_it_is_what_the_library_makes(self, data, capsys):
        code, out, err = augment(capsys, "--ratio", 3, "--seed", 5)
        assert (code, err) == (0, "augment: 1,200 rows\n")
        made = Augmenter(WORLD.factors, WORLD.mask, Place(4)).fill(data, 900, rng=np.random.default_rng([5, 0]))
        found = files.read("out.parquet")
        real, counterfactual = found[:300], found[300:]
        assert not real.provenance.swapped.any()
        np.testing.assert_array_equal(real.provenance.base, np.arange(300))
        for name in ("state", "action", "reward", "next_state", "terminated"):
            np.testing.assert_array_equal(getattr(real.transitions, name), getattr(data, name))
            np.testing.assert_array_equal(getattr(counterfactual.transitions, name), getattr(made.transitions, name))
        for name in ("base", "donor", "swapped"):
            np.testing.assert_array_equal(getattr(counterfactual.provenance, name), getattr(made, name))
        assert str(made.funnel) in out
        assert found.head.notes["funnel"]["accepted"] == 900
        assert (found.head.source, found.head.notes["seed"]) == ("data.parquet", 5)
        assert found.factors.names == ("one", "two", "three", "four", "click")

    @pytest.mark.parametrize("name", ["out.parquet", "out.npz", "out.hdf5"])
    def test_the_same_arguments_give_the_same_bytes(self, name, data, folder, capsys):
        seen = []
        for seed in (1, 1, 2):
            assert augment(capsys, "--size", 700, "--seed", seed, "--force", out=name)[0] == 0
            seen.append((folder / name).read_bytes())
        assert seen[0] == seen[1] != seen[2]

    def test_threads_make_no_difference(self, data, folder, capsys):
        assert augment(capsys, "--size", 30_000)[0] == 0
        words = ["augment", "data.parquet", "robot.toml", "--size", "30000", "--out", "alone.parquet"]
        alone = {**os.environ, "NUMBA_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "counterpoint.command_line", *words], env=alone, check=True)
        assert (folder / "alone.parquet").read_bytes() == (folder / "out.parquet").read_bytes()

    def test_every_format_holds_the_same_rows(self, data, capsys):
        found = []
        for name in ("out.parquet", "out.npz", "out.h5"):
            assert augment(capsys, "--size", 700, out=name)[0] == 0
            found.append(files.read(name))
        for other in found[1:]:
            assert_same(other, found[0])
            assert other.head == found[0].head

    def test_a_file_larger_than_memory_is_cut_into_chunks(self, data, monkeypatch, capsys):
        monkeypatch.setattr(augmentation, "CHUNK_BYTES", 20_000)
        assert augment(capsys, "--size", 1001)[0] == 0
        found = files.read("out.parquet")
        swapped = found.provenance.swapped.any(axis=1)
        augmenter = Augmenter(WORLD.factors, WORLD.mask, Place(4))
        rows = augmentation.Plan(files.scan("data.parquet"), augmenter, 1001).chunk_rows
        assert len(found) == 1001
        assert 1 < 300 // rows < 300
        np.testing.assert_array_equal(found.transitions.state[~swapped], data.state)
        np.testing.assert_array_equal(found.provenance.base[swapped] // rows, found.provenance.donor[swapped] // rows)
        assert run(capsys, "audit", "out.parquet", "--world", "sprites")[0] == 0

    def test_noise_travels_with_its_factor(self, folder, capsys):
        prepare(folder)
        noisy = type(WORLD)(noise_std=0.1)
        from counterpoint.worlds import collect, uniform_policy

        rows = collect(noisy, uniform_policy(noisy), 300, np.random.default_rng(0), reward_fn=Place(4))
        files.write("noisy.parquet", rows, factors=noisy.factors)
        renamed = DESCRIPTION
        for mine, theirs in zip(("one", "two", "three", "four"), noisy.factors.state, strict=True):
            renamed = renamed.replace(f"{mine} =", f"{theirs} =")
        (folder / "robot.toml").write_text(renamed.replace(":mask", ":noisy"))
        with (folder / "sprite_functions.py").open("a") as file:
            file.write("noisy = Sprites(noise_std=0.1).mask\n")
        assert augment(capsys, "--ratio", 2, data="noisy.parquet")[0] == 0
        found = files.read("out.parquet").transitions
        assert found.noise.shape == (900, noisy.factors.noise_width)
        assert run(capsys, "audit", "out.parquet", "--world", "sprites", "--setting", "noise_std=0.1")[0] == 0

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--size", 300], "size: you asked for 300 rows, and the data alone has 300"),
            (["--ratio", 0], "ratio: expected a positive number"),
            (["--ratio", "nan"], "ratio: expected a positive number"),
            (["--ratio", 2, "--seed", -1], "seed: expected a whole number, 0 or more"),
            (["--ratio", 100_000], "could be made"),
        ],
    )
    def test_amounts_that_cannot_be(self, words, message, data, folder, capsys):
        if words[1] == 100_000:
            files.write("data.parquet", data[:2], force=True)
        code, out, err = augment(capsys, *words)
        assert (code, out) == (2, "")
        assert message in err
        assert not [entry for entry in folder.iterdir() if "out" in entry.name]

    def test_one_amount_is_needed(self, capsys):
        for words in ([], ["--ratio", "3", "--size", "9"]):
            with pytest.raises(SystemExit) as stopped:
                main(["augment", "a.parquet", "b.toml", "--out", "c.parquet", *words])
            assert stopped.value.code == 2

    def test_episodes_only_formats_are_explained(self, data, capsys):
        code, _, err = augment(capsys, "--ratio", 1, out="minari:robot/pushes-v0")
        assert code == 2
        assert "Write single transitions to .parquet instead" in err

    def test_terminal_rows_need_a_function(self, data, capsys):
        files.write("data.parquet", data.replace(terminated=data.reward >= 0), force=True)
        code, _, err = augment(capsys, "--ratio", 1)
        assert code == 2
        assert "[terminal]: 300 of 300 transitions are terminal" in err

    def test_observation_keys_are_those_of_the_recording(self, folder, capsys):
        """Factors given by keys are found in the augmented file too, though its factors have other names."""
        data = prepare(folder)
        episodes = np.zeros(len(data), np.int64)
        whole = data.replace(episode=episodes, step=np.arange(len(data)))
        files.write("demos.hdf5", whole, factors=read_description("robot.toml").factors, format="robomimic")
        raw = files.read("demos.hdf5", keys=["one", "two", "three", "four"])
        assert list(raw.factors.state) == ["one", "two", "three", "four"]
        keyed = DESCRIPTION.replace('one = "0:4"', 'first = { keys = ["one"] }')
        (folder / "robot.toml").write_text(keyed)
        words = ("--keys", "one,two,three,four")
        assert augment(capsys, "--ratio", 1, *words, data="demos.hdf5")[0] == 0
        assert "first" in files.scan("out.parquet").factors.state
        assert run(capsys, "report", "out.parquet", "robot.toml", "--out", "page.html")[0] == 0


class TestConvert:
    @pytest.mark.parametrize("name", ["b.npz", "b.hdf5", "b.parquet", "minari:robot/b-v0"])
    def test_all_columns_are_kept(self, name, folder, rng, capsys):
        recording = make_recording(rng)
        files.write("a.parquet", recording)
        code, out, _ = run(capsys, "convert", "a.parquet", name)
        assert (code, out) == (0, f"{name}: 11 transitions from a.parquet\n")
        assert_same(files.read(name), recording)
        assert files.read(name).head == recording.head

    def test_layouts_and_keys(self, folder, rng, capsys):
        files.write("a.parquet", make_recording(rng))
        assert run(capsys, "convert", "a.parquet", "b.hdf5", "--format", "robomimic")[0] == 0
        assert files.scan("b.hdf5").format == "robomimic"
        code, _, err = run(capsys, "convert", "b.hdf5", "c.npz", "--keys", "hand")
        assert code == 2
        assert "keys: there is no part hand; there are flat" in err
        assert run(capsys, "convert", "b.hdf5", "c.npz", "--keys", "flat")[0] == 0
        assert run(capsys, "convert", "b.hdf5", "c.npz")[0] == 2
        assert run(capsys, "convert", "b.hdf5", "c.npz", "--force")[0] == 0


class TestAudit:
    def test_the_exact_mask_is_confirmed_and_none_is_not(self, data, folder, capsys):
        augment(capsys, "--ratio", 3)
        for words in (["--world", "sprites"], ["--simulator", "sprite_functions:step"]):
            code, out, _ = run(capsys, "audit", "out.parquet", *words)
            *told, head = out.splitlines()[:3]
            assert (code, told, head.split()) == (
                0,
                [
                    "real rows: 100.00% of 300 confirmed",
                    "100.00% of 900 transitions confirmed, 0 wrong; expected at least 100.00%",
                ],
                ["tried", "wrong", "confirmed", "swapped"],
            )
            sets = [line.replace(",", "").split()[:3] for line in out.splitlines()[3:]]
            assert sum(int(tried) for tried, _, _ in sets) == 900
            assert all(found == ["0", "100.00%"] for _, *found in sets)
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":mask", ":nothing"))
        augment(capsys, "--ratio", 3, "--force")
        code, out, _ = run(capsys, "audit", "out.parquet", "--world", "sprites")
        assert code == 1
        assert "columns that differ most: " in out
        wrong = int(out.split(" confirmed, ")[1].split()[0].replace(",", ""))
        bound = 1 - wrong / 900
        assert run(capsys, "audit", "out.parquet", "--world", "sprites", "--at-least", f"{bound - 0.001}")[0] == 0
        assert run(capsys, "audit", "out.parquet", "--world", "sprites", "--at-least", f"{bound + 0.001}")[0] == 1
        assert run(capsys, "audit", "out.parquet", "--world", "sprites", "--atol", "9")[0] == 0

    def test_plain_data_is_audited_whole(self, data, capsys):
        assert "of 300 transitions confirmed" in run(capsys, "audit", "data.parquet", "--world", "sprites")[1]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ([], "give a simulator: --world NAME, --environment ID, or --simulator module:function"),
            (
                ["--world", "sprites", "--simulator", "a:b"],
                "--world and --environment: give only one of them",
            ),
            (["--setting", "n=3"], "--setting: it belongs to --world"),
            (["--world", "sprites", "--setting", "m=3"], "--setting: sprites does not take this"),
            (["--world", "sprites", "--setting", "n=3"], "expected"),
            (["--simulator", "sprite_functions:stop"], "has no attribute 'stop'. Give module:function"),
            (["--simulator", "nowhere:step"], "there is no module 'nowhere'"),
            (["--simulator", "step"], "step: expected module:function"),
            (["--simulator", "sprite_functions:world"], "expected a function"),
            (["--world", "sprites", "--at-least", "2"], "--at-least: expected a share"),
        ],
    )
    def test_simulators_that_cannot_be(self, words, message, data, capsys):
        code, out, err = run(capsys, "audit", "data.parquet", *words)
        assert (code, out) == (2, "")
        assert message in err

    def test_settings_are_names_and_values(self, capsys):
        with pytest.raises(SystemExit) as stopped:
            main(["audit", "a.parquet", "--setting", "noise"])
        assert stopped.value.code == 2
        assert "expected NAME=VALUE, got 'noise'" in capsys.readouterr().err

    def test_no_counterfactuals_no_audit(self, data, capsys):
        augment(capsys, "--ratio", 3)
        found = files.read("out.parquet")
        files.write("real.parquet", found[:300])
        code, _, err = run(capsys, "audit", "real.parquet", "--world", "sprites")
        assert code == 2
        assert "no counterfactuals to audit" in err


def test_the_demo_is_the_demonstration(monkeypatch, folder, capsys):
    """The verb hands over folder and seed; what the demonstration does is tested with it."""
    called = []

    class Demonstration:
        @staticmethod
        def run(out, seed):
            called.append((out, seed))
            return Path(out) / "report.html"

    monkeypatch.setitem(sys.modules, "counterpoint.demonstration", Demonstration)
    code, out, _ = run(capsys, "demo", "--out", "here", "--seed", 3)
    assert (code, called) == (0, [("here", 3)])
    assert out.strip() == f"report: {folder / 'here' / 'report.html'}"
