"""What an attack once found: data lost or wrong, code that runs unannounced, files of a job that are one."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from counterpoint import Augmenter, files
from counterpoint.core import engine
from counterpoint.description import read_description
from counterpoint.files import fingerprints, ledger
from counterpoint.user_code import load
from counterpoint.worlds import Place
from tests.command_line.sprites import DESCRIPTION, FUNCTIONS, WORLD, augment, run

SIZE = 20_000
PROPOSE = ("inspect", "data.parquet", "--description", "robot.toml", "--force", "--propose")
WAITING = """
import sys, time
import counterpoint.files.ledger as ledger
from counterpoint.command_line import main
from counterpoint.core import engine

engine.CHUNK_BYTES, ledger.SECONDS = 0, 0
write, count = ledger.JobLedger._write, 0

def waiting(self, made):
    global count
    write(self, made)
    count += 1
    if count == 3:
        print("now", flush=True)
        time.sleep(600)  # until a signal comes

ledger.JobLedger._write = waiting
sys.exit(main(sys.argv[1:]))
"""


def started(folder, *words):
    """Start a job in a child that waits after its third entry."""
    job = ["augment", "data.parquet", "robot.toml", "--out", "out.parquet", "--size", str(SIZE), *words]
    command = [sys.executable, "-c", WAITING, *job]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(command, cwd=folder, text=True, **pipes)
    assert child.stdout.readline() == "now\n"
    return child


class TestOneFile:
    @pytest.fixture(autouse=True)
    def before(self, data, folder):
        os.link("data.parquet", "hard.parquet")
        (folder / "helpers.py").write_text("")
        (folder / "simulator.py").write_text("import helpers\n\ndef step(state, action):\n    return state\n")
        with (folder / "sprite_functions.py").open("a") as file:
            file.write("import helpers, my_world\n")
        (folder / "my_world.py").write_text("")
        (folder / "sub").mkdir()
        (folder / "soft").symlink_to(folder)
        self.kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        yield
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == self.kept

    @pytest.mark.parametrize("out", ["data.parquet", "./sub/../data.parquet", "soft/data.parquet", "hard.parquet"])
    def test_the_output_is_not_the_data(self, out, capsys):
        code, _, err = augment(capsys, "--ratio", 1, "--force", out=out)
        assert code == 2
        assert "the output is also the data, which would be replaced" in err

    @pytest.mark.parametrize(
        ("page", "what"),
        [
            ("out.parquet", "the report is also the output"),
            ("soft/out.parquet", "the report is also the output"),
            ("out.parquet.parts", "the report is also the folder of the job"),
            ("data.parquet", "the report is also the data"),
            ("robot.toml", "the report is also the description"),
            ("sprite_functions.py", r"the report is also the code of [mask]"),
            ("helpers.py", r"the report is also helpers.py, which the code of [mask] imports"),
        ],
    )
    def test_the_report_is_nothing_else(self, page, what, capsys):
        code, _, err = augment(capsys, "--ratio", 1, "--force", "--report", page)
        assert code == 2
        assert what in err

    def test_other_verbs(self, capsys):
        for words in (
            ("convert", "data.parquet", "hard.parquet", "--force"),
            ("fit-mask", "data.parquet", "robot.toml", "--out", "robot.toml", "--force"),
            ("report", "data.parquet", "robot.toml", "--out", "data.parquet", "--force"),
            ("inspect", "data.parquet", "--description", "robot.toml", "--propose", "soft/robot.toml", "--force"),
            ("inspect", "data.parquet", "--propose", "data.parquet", "--force"),
            (*PROPOSE, "sprite_functions.py"),
            (*PROPOSE, "helpers.py"),
            (*PROPOSE, "my.toml", "--world", "sprites"),
            ("inspect", "--environment", "simulator:step", "--propose", "simulator.py", "--force"),
        ):
            code, _, err = run(capsys, *words)
            assert code == 2
            assert re.search("is also (the d|the code of|[a-z_]+[.]py, which)", err)

    def test_a_proposal_is_written_whole_or_not_at_all(self, capsys):
        """It may be two files: if one of them is in the way, the other is not written either."""
        code, _, err = run(capsys, "inspect", "data.parquet", "--world", "sprites", "--propose", "robot.toml")
        assert code == 2
        assert "robot.toml: it exists" in err

    @pytest.mark.parametrize("page", ["simulator.py", "helpers.py"])
    def test_the_report_is_not_the_simulator(self, page, capsys):
        words = ("data.parquet", "robot.toml", "--out", page, "--force", "--simulator", "simulator:step")
        code, _, err = run(capsys, "report", *words)
        assert code == 2
        assert f"{page}: the report is also " in err

    def test_an_output_inside_a_dataset_of_many_files(self, capsys, folder, monkeypatch):
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "sub"))
        run(capsys, "convert", "data.parquet", "minari:sprites/random-v0")
        inside = "sub/sprites/random-v0/data/main_data.hdf5"
        code, _, err = run(capsys, "convert", "minari:sprites/random-v0", inside, "--force")
        assert code == 2
        assert "the output is also the data" in err

    @pytest.mark.parametrize("link", [os.link, os.symlink])
    def test_an_output_that_a_folder_of_data_has_a_link_to(self, link, capsys, folder):
        (folder / "sub" / "data").mkdir()
        link(folder / "hard.parquet", folder / "sub" / "data" / "one.parquet")
        for words in (("convert", "sub/data", "data.parquet"), ("convert", "sub/data", "hard.parquet")):
            code, _, err = run(capsys, *words, "--force")
            assert code == 2
            assert "the output is also the data, which would be replaced" in err


class TestCodeThatChanges:
    @pytest.mark.parametrize("changed", ["sprite_functions.py", "helpers.py", "lazy.py"])
    def test_resume_refuses_what_was_made_with_other_code(self, changed, data, folder, monkeypatch, capsys):
        """Also if the change is in a local module that the function imports, be it only when it is called."""
        (folder / "helpers.py").write_text("number = 1\n")
        (folder / "lazy.py").write_text("number = 1\n")
        text = (
            FUNCTIONS
            + "\nimport helpers\n\ndef slow(state, action):\n    import lazy\n    return mask(state, action)\n"
        )
        (folder / "sprite_functions.py").write_text(text)
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":mask", ":slow"))
        monkeypatch.syspath_prepend(folder)
        child = started(folder)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        (folder / changed).write_text((folder / changed).read_text() + "\nextra = 3\n")
        code, _, err = augment(capsys, "--size", SIZE, "--resume")
        assert code == 2
        assert "[mask] changed since" in err
        assert not (folder / "out.parquet").exists()

    def test_what_cannot_be_told_is_asked_for(self, data, monkeypatch):
        """Nobody can see whether an iterator is the same as before, so the job starts over only when told to."""
        monkeypatch.setattr(engine, "CHUNK_BYTES", 0)
        monkeypatch.setattr(ledger, "SECONDS", 0)
        mask, odd = WORLD.mask, iter(())

        def masked(state, action):
            assert odd is not None
            return mask(state, action)

        def stop(rows):
            if rows > SIZE // 2:
                raise KeyboardInterrupt

        augmenter = Augmenter(WORLD.factors, masked, Place(4))
        with pytest.raises(KeyboardInterrupt):
            files.augment("data.parquet", augmenter, "out.parquet", size=SIZE, progress=stop)
        with pytest.raises(
            files.FileProblem, match="impossible to tell whether mask_fn changed.*builtins.tuple_iterator"
        ):
            files.augment("data.parquet", augmenter, "out.parquet", size=SIZE, resume=True)
        assert files.augment("data.parquet", augmenter, "out.parquet", size=SIZE, force=True).real == 300

    @pytest.mark.parametrize("way", ['importlib.import_module("lazy")', '__import__("lazy")'])
    def test_a_module_that_is_imported_by_its_name_counts(self, way, tmp_path):
        (tmp_path / "lazy.py").write_text("number = 1\n")
        (tmp_path / "mine.py").write_text(f"import importlib\n\ndef mask(state, action):\n    return {way}.number\n")
        before = fingerprints.of_value(load("mine:mask", tmp_path))
        (tmp_path / "lazy.py").write_text("number = 2\n")
        assert fingerprints.of_value(load("mine:mask", tmp_path)) != before

    @pytest.mark.parametrize("way", ["import_module(state)", "runpy.run_path('lazy.py')", "exec('import lazy')"])
    def test_code_that_is_loaded_in_other_ways_is_asked_for(self, way, tmp_path):
        text = "import runpy\nfrom importlib import import_module\n\ndef mask(state, action):\n    state.eval()\n"
        (tmp_path / "plain.py").write_text(text)
        (tmp_path / "mine.py").write_text(f"{text}    return {way}\n")
        assert fingerprints.of_value(load("plain:mask", tmp_path))
        with pytest.raises(fingerprints.NoFingerprint, match=r"code that is loaded by \w+ in mine[.]py"):
            fingerprints.of_value(load("mine:mask", tmp_path))

    def test_two_descriptions_have_each_its_own_module(self, tmp_path):
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "my_robot.py").write_text(
                "import my_helper\n\ndef reward():\n    return my_helper.name\n"
            )
            (tmp_path / name / "my_helper.py").write_text(f"name = {name!r}\n")
        found = [load("my_robot:reward", tmp_path / name) for name in ("one", "two", "one")]
        assert [function() for function in found] == ["one", "two", "one"]
        assert found[0] is found[2]
        (tmp_path / "one" / "my_helper.py").write_text("name = 'three'\n")
        assert load("my_robot:reward", tmp_path / "one")() == "three"


class TestTwoProcesses:
    @pytest.mark.parametrize("words", [[], ["--resume"], ["--force"], ["--force", "--resume"]])
    def test_beside_a_running_job_nothing_is_touched(self, words, data, folder, capsys):
        child = started(folder)
        before = sorted(path.name for path in (folder / "out.parquet.parts").iterdir())
        code, _, err = augment(capsys, "--size", SIZE, *words)
        assert code == 2
        assert f"another process is working on this output (process {child.pid} on " in err
        assert sorted(path.name for path in (folder / "out.parquet.parts").iterdir()) == before
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert augment(capsys, "--size", SIZE, "--resume")[0] == 0
        assert len(files.read("out.parquet")) == SIZE


class TestSignals:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_it_stops_with_one_line_and_goes_on(self, number, code, data, folder, monkeypatch, capsys):
        child = started(folder)
        child.send_signal(number)
        _, err = child.communicate()
        assert child.returncode == code
        lines = err.splitlines()
        assert lines[-1] == "counterpoint augment: stopped. The same command with --resume continues it."
        assert len(lines) == 2
        there = sorted(path.name for path in folder.iterdir())
        assert [name for name in there if name.startswith(".")] == []
        assert [p.name for p in (folder / "out.parquet.parts").glob(".*")] == []
        monkeypatch.setattr(engine, "CHUNK_BYTES", 0)
        assert augment(capsys, "--size", SIZE, "--resume")[0] == 0

    def test_output_that_nobody_reads_any_more(self, data, folder):
        code = "import sys; from counterpoint.command_line import main; sys.exit(main(['inspect', 'data.parquet']))"
        command = f'{sys.executable} -c "{code}" | head -1'
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout == "data.parquet\n"
        assert done.stderr == "inspect: 300 rows\n"


class TestWhatRuns:
    @pytest.fixture(autouse=True)
    def loud(self, data, folder):
        with (folder / "sprite_functions.py").open("a") as file:
            file.write(
                "\nimport pathlib, helpers\npathlib.Path('ran').touch()\n\ndef leave(*_):\n    raise SystemExit\n"
            )
        (folder / "helpers.py").write_text("")

    def test_a_dry_run_says_it_all_and_runs_nothing(self, folder, capsys):
        before = sorted(path.name for path in folder.iterdir())
        code, out, _ = augment(capsys, "--ratio", 3, "--dry-run", "--report", "page.html")
        assert code == 0
        assert out.splitlines() == [
            "reads   data.parquet: 300 transitions (parquet)",
            "runs    [mask] sprite_functions:mask in sprite_functions.py",
            "        which imports helpers.py",
            "runs    [reward] sprite_functions:reward in sprite_functions.py",
            "        which imports helpers.py",
            "writes  out.parquet: 300 real transitions and 900 counterfactuals, made in chunks of 300 rows (1 in all)",
            "writes  page.html: the report",
            "nothing was run or written",
        ]
        assert sorted(path.name for path in folder.iterdir()) == before

    def test_inspect_convert_and_fit_mask_run_none(self, folder, capsys):
        words = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--setting", "allow_constant=True")
        assert run(capsys, "inspect", "data.parquet", "--description", "robot.toml")[0] == 0
        assert run(capsys, "convert", "data.parquet", "b.npz")[0] == 0
        assert run(capsys, "fit-mask", "data.parquet", "robot.toml", "--out", "m.safetensors", *words)[0] == 0
        assert not (folder / "ran").exists()

    def test_a_function_that_ends_the_program_is_an_error(self, folder, capsys):
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":mask", ":leave"))
        code, out, err = augment(capsys, "--ratio", 1)
        assert (code, out) == (2, "")
        assert "a function ended the program (SystemExit None)" in err
        assert not (folder / "out.parquet").exists()


class TestWrongFunctions:
    def test_a_reward_that_contradicts_the_data(self, data, folder, capsys):
        with (folder / "sprite_functions.py").open("a") as file:
            file.write("\ndef one(state, action, next_state):\n    return np.ones(len(state))\n")
            file.write("\ndef never(state, action, next_state):\n    return np.zeros(len(state), bool)\n")
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":reward", ":one"))
        code, _, err = augment(capsys, "--ratio", 1)
        assert code == 2
        assert "[reward]: it differs from the data in 100.0% of the rows; worst is row" in err
        assert augment(capsys, "--ratio", 1, "--trust-reward")[0] == 0
        ended = data.replace(terminated=np.arange(300) == 7)
        files.write("data.parquet", ended, force=True)
        terminal = '\n[terminal]\nkind = "function"\nfunction = "sprite_functions:never"\n'
        (folder / "robot.toml").write_text(DESCRIPTION + terminal)
        code, _, err = augment(capsys, "--ratio", 1, "--force")
        assert code == 2
        assert "[terminal]: it differs from the data in 0.3% of the rows, first in row 7" in err

    def test_a_reward_that_does_not_fit_its_column(self, data, folder, capsys):
        """Finite as float64, infinite as float32."""
        files.write("data.parquet", data.replace(reward=data.reward.astype(np.float32)), force=True)
        with (folder / "sprite_functions.py").open("a") as file:
            file.write("\ndef large(state, action, next_state):\n    return np.full(len(state), 1e300)\n")
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":reward", ":large"))
        code, _, err = augment(capsys, "--ratio", 1, "--trust-reward")
        assert code == 2
        assert "[reward]: 1e+300 in row 0 of the batch does not fit into float32" in err
        assert not (folder / "out.parquet").exists()

    def test_an_amount_that_no_data_could_give_is_refused_at_once(self, data, folder, capsys):
        (folder / "robot.toml").write_text(DESCRIPTION.replace(":mask", ":broken"))
        code, _, err = augment(capsys, "--ratio", "1e9")
        assert code == 2
        assert "size: at most 448,500 counterfactuals could be made of 300 transitions" in err


class TestEpisodes:
    def test_real_rows_keep_theirs_and_counterfactuals_go_beyond(self, data, folder, capsys):
        episode, step = np.repeat([3, 9, 4], 100).astype(np.int32), np.tile(np.arange(100), 3)
        files.write("data.parquet", data.replace(episode=episode, step=step), force=True)
        assert augment(capsys, "--ratio", 2)[0] == 0
        found = files.read("out.parquet").transitions
        np.testing.assert_array_equal(found.episode[:300], episode)
        np.testing.assert_array_equal(found.step[:300], step)
        np.testing.assert_array_equal(found.episode[300:], np.arange(10, 610))
        assert not found.step[300:].any()
        code, _, err = run(capsys, "convert", "out.parquet", "demos.hdf5", "--format", "robomimic")
        assert code == 2
        assert "Write single transitions to .parquet instead" in err

    def test_damaged_parents_are_refused_on_reading(self, data, folder, capsys):
        assert augment(capsys, "--ratio", 2)[0] == 0
        found = files.read("out.parquet")
        for wrong in (300, -1, 2**40):
            donor = found.provenance.donor.copy()
            donor[777] = wrong
            parents = files.Provenance(found.provenance.base, donor, found.provenance.swapped)
            files.write("bad.npz", files.Recording(found.transitions, found.head, parents), force=True)
            with pytest.raises(
                files.FileProblem, match=rf"donor of row 777 is {wrong}, which is not a row of the source"
            ):
                files.read("bad.npz")


class TestAugmentSection:
    def test_policy_samples_and_pairing(self, data, folder):
        (folder / "robot.toml").write_text(
            DESCRIPTION + '\n[augment]\npolicy = { sparse = 2 }\nsamples_per_pair = 3\npairing = "sharing"\n'
        )
        augmenter = read_description("robot.toml").augmenter()
        assert (augmenter.policy.components, augmenter.samples_per_pair, augmenter.pairing) == (2, 3, "sharing")
