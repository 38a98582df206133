"""The verbs that write reports, and those that learn masks and judge them."""

import errno
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from counterpoint import Augmenter, files, learn
from counterpoint.files import gathering, scanning
from counterpoint.learn import load
from counterpoint.metrics import Estimate
from counterpoint.worlds import Place
from tests.command_line.sprites import WORLD, augment, run
from tests.files.examples import current_umask

ROOT = Path(__file__).parents[2]


class TestReport:
    def test_augment_and_report_write_the_same_page(self, data, folder, capsys):
        code, out, _ = augment(capsys, "--ratio", 3, "--report", "one.html")
        assert code == 0
        assert out.endswith("report: one.html\n")
        code, out, _ = run(capsys, "report", "out.parquet", "robot.toml", "--out", "two.html")
        assert (code, out) == (0, "report: two.html\n")
        one, two = ((folder / name).read_text() for name in ("one.html", "two.html"))
        commands = [re.search(r"counterpoint (augment|report) [^<]*", page)[0] for page in (one, two)]  # alone differ
        assert one.replace(commands[0], commands[1]) == two
        assert (folder / "one.html").stat().st_mode & 0o777 == 0o666 & ~current_umask()
        words = ("--world", "sprites", "--out", "three.html")
        assert run(capsys, "report", "out.parquet", "robot.toml", *words)[0] == 0
        assert "100%" in (folder / "three.html").read_text()

    def test_a_page_that_appears_while_another_is_drawn_is_kept(self, data, folder, capsys, monkeypatch):
        augment(capsys, "--ratio", 1)

        def drawn(_):
            (folder / "page.html").write_text("mine")
            return "another"

        monkeypatch.setattr("counterpoint.report.page.page", drawn)
        code, _, err = run(capsys, "report", "out.parquet", "robot.toml", "--out", "page.html")
        assert (code, (folder / "page.html").read_text()) == (2, "mine")
        assert "page.html: it exists" in err
        assert run(capsys, "report", "out.parquet", "robot.toml", "--out", "page.html", "--force")[0] == 0
        assert (folder / "page.html").read_text() == "another"

    def test_a_page_that_exists_is_found_before_the_work(self, data, folder, capsys):
        (folder / "page.html").write_text("mine")
        code, _, err = augment(capsys, "--ratio", 3, "--report", "page.html")
        assert (code, (folder / "page.html").read_text()) == (2, "mine")
        assert "page.html: it exists" in err
        assert not (folder / "out.parquet").exists()

    @pytest.mark.parametrize("most", [10_000, 400])
    def test_large_files_are_thinned_with_all_parents(self, most, data, monkeypatch, capsys):
        augment(capsys, "--ratio", 3)
        monkeypatch.setattr(gathering, "MOST_ROWS", most)
        monkeypatch.setattr(scanning, "ROWS", 64)
        real, made = gathering.gathered(files.scan("out.parquet"))
        assert len(made) == (900 if most > 1200 else 300)
        again = Augmenter(WORLD.factors, WORLD.mask, Place(4)).rebuild(real, made.provenance)
        np.testing.assert_array_equal(again.state, made.transitions.state)
        np.testing.assert_array_equal(again.next_state, made.transitions.next_state)
        assert made.funnel.accepted == 900

    def test_files_without_counterfactuals_or_parents(self, data, capsys):
        augment(capsys, "--ratio", 3)
        files.write("made.parquet", files.read("out.parquet")[300:])
        for name, message in (("data.parquet", "it holds no counterfactuals"), ("made.parquet", "are not in it")):
            code, _, err = run(capsys, "report", name, "robot.toml", "--out", "page.html")
            assert code == 2
            assert message in err


class TestMasks:
    @pytest.fixture
    def mask(self, data, folder, capsys):
        words = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--setting", "allow_constant=True")
        code, out, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", "--out", "mask.safetensors", *words)
        assert (code, err) == (0, "fit-mask: SandyMixture, 300 rows\n")
        assert "SandyMixture, fitted to 300 transitions with 4 state factors" in out
        return folder / "mask.safetensors"

    def test_the_same_seed_gives_the_same_mask(self, mask, data, capsys):
        words = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--setting", "allow_constant=True")
        for name, seed in (("same", 0), ("other", 1)):
            run(
                capsys, "fit-mask", "data.parquet", "robot.toml", "--out", f"{name}.safetensors", *words, "--seed", seed
            )
        paths = (mask, "same.safetensors", "other.safetensors")
        first, same, other = (load(path).scores(data.state, data.action) for path in paths)
        np.testing.assert_array_equal(first, same)
        assert not np.array_equal(first, other)
        assert mask.read_bytes() == (mask.parent / "same.safetensors").read_bytes()

    @pytest.mark.parametrize("best", ["SandyMixture", "InputGradient"])
    def test_of_several_the_one_that_is_judged_best_is_kept(self, data, capsys, monkeypatch, best):
        def judged(fitted, held, factors, *, rng, progress):
            assert 70 < len(held) < 80
            mine = type(fitted).__name__ == best
            wrong = Estimate(0.0, 0.0, 0.04 if mine else 0.5)
            return learn.Calibration(
                0.1, wrong, wrong, wrong, 0.5, 0.0, 0.01, (), (), fine=mine, verdict="so so", fine_if_supported=mine
            )

        monkeypatch.setattr(learn, "calibrate", judged)
        monkeypatch.setattr("counterpoint.learn.calibration.calibrate.FEWEST_ROWS", 50)
        names = ("--estimator", "SandyMixture,InputGradient", "--setting", "epochs=1", "--out", "mask.safetensors")
        code, out, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *names)
        assert code == 0, err
        assert "SandyMixture: so so" in out
        assert "InputGradient: so so" in out
        assert f"mask.safetensors: {best}, fitted to 22" in out
        assert type(load("mask.safetensors")).__name__ == best

    @pytest.mark.parametrize(("more", "kept"), [(1.1, "TreeAttribution"), (1.5, "ResidualAttribution")])
    def test_trees_are_kept_unless_a_network_yields_much_more(self, data, capsys, monkeypatch, more, kept):
        def judged(fitted, *_, **__):
            accepted = 0.4 * (more if isinstance(fitted, learn.ResidualAttribution) else 1.0)
            nothing = Estimate(0.0, 0.0, 0.01)
            return learn.Calibration(
                0.1,
                nothing,
                nothing,
                nothing,
                accepted,
                0.0,
                0.01,
                (),
                (),
                fine=True,
                verdict="x",
                fine_if_supported=True,
            )

        monkeypatch.setattr(learn, "calibrate", judged)
        monkeypatch.setattr("counterpoint.learn.calibration.calibrate.FEWEST_ROWS", 50)
        words = ("--setting", "epochs=1", "--setting", "halvings=1", "--out", "mask.safetensors")
        code, out, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *words)
        assert code == 0, err
        assert f"mask.safetensors: {kept}, fitted to 22" in out

    def test_where_nothing_can_be_compared_trees_are_fitted(self, data, capsys):
        words = ("--setting", "halvings=1", "--out", "mask.safetensors")
        code, out, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *words)
        assert code == 0, err
        assert "mask.safetensors: TreeAttribution, fitted to 300" in out

    def test_a_mask_is_not_lost_if_it_cannot_be_judged(self, data, capsys, monkeypatch):
        def judged(*_, **__):
            raise ValueError("estimator: all scores are 0.5")

        monkeypatch.setattr(learn, "calibrate", judged)
        monkeypatch.setattr("counterpoint.learn.calibration.calibrate.FEWEST_ROWS", 50)
        names = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--out", "mask.safetensors")
        code, _, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *names)
        assert code == 2
        assert "all scores are 0.5" in err
        assert type(load("mask.safetensors")).__name__ == "SandyMixture"

    def test_several_cannot_be_compared_without_rows_to_judge_them_by(self, data, capsys):
        names = ("--estimator", "SandyMixture,InputGradient", "--out", "mask.safetensors")
        code, _, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *names)
        assert code == 2
        assert "cannot be compared, because no rows are held out to judge them by" in err

    def test_columns_that_never_vary_are_carried(self, data, capsys):
        data.state[:, 0] = data.next_state[:, 0] = 0.5
        files.write("still.parquet", data)
        words = ("--estimator", "SandyMixture", "--setting", "epochs=1", "--out", "still.safetensors")
        assert run(capsys, "fit-mask", "still.parquet", "robot.toml", *words)[0] == 0
        code, _, err = run(
            capsys, "fit-mask", "still.parquet", "robot.toml", *words, "--setting", "allow_constant=False"
        )
        assert (code, "it exists" in err or "constant" in err) == (2, True)

    def test_a_mask_that_appears_while_another_is_fitted_is_kept(self, data, folder, capsys, monkeypatch):
        fit = learn.SandyMixture.fit

        def fitted(*given, **settings):
            (folder / "mask.safetensors").write_text("mine")
            return fit(*given, **settings)

        monkeypatch.setattr(learn.SandyMixture, "fit", fitted)
        words = ("--out", "mask.safetensors", "--estimator", "SandyMixture", "--setting", "epochs=1")
        code, _, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *words)
        assert (code, (folder / "mask.safetensors").read_text()) == (2, "mine")
        assert "mask.safetensors: it exists" in err

    def test_a_full_disk_keeps_the_old_mask(self, mask, capsys, monkeypatch):
        """PyTorch asks Python for a place for temporary files, which says neither whose nor why there is none."""
        before = mask.read_bytes()

        def fit(*_, **__):
            raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

        monkeypatch.setattr(learn.SandyMixture, "fit", fit)
        words = ("--out", mask.name, "--force", "--estimator", "SandyMixture")
        code, _, err = run(capsys, "fit-mask", "data.parquet", "robot.toml", *words)
        assert (code, mask.read_bytes()) == (2, before)
        assert f"{mask.name}: not written, the disk is full or read-only: there is no room for temporary files" in err

    def test_a_world_or_labels_score_it_alike(self, mask, data, capsys):
        code, world, _ = run(capsys, "score-mask", mask, "data.parquet", "--world", "sprites")
        assert code == 0
        np.savez("labels.npz", mask=WORLD.mask(data.state, data.action))
        assert run(capsys, "score-mask", mask, "data.parquet", "--labels", "labels.npz") == (0, world, "")
        assert [line.split()[0] for line in world.splitlines()[1:]] == [
            "off-diagonal", "object-object", "action-object", "all",
        ]  # fmt: skip
        code, out, _ = run(capsys, "score-mask", mask, "data.parquet", "--world", "sprites", "--tau", 1e9)
        assert code == 0
        assert "missed edges: off-diagonal 100.00%, object-object 100.00%" in out
        assert "of the accepted counterfactuals confirmed" in out

    def test_without_labels_the_data_decides(self, mask, capsys, monkeypatch):
        class Verdict:
            def __init__(self, fine):
                self.fine = fine

            def __str__(self):
                return "the verdict"

        def calibrate(*_, derive, **__):
            return Verdict(derive is math.hypot)

        monkeypatch.setattr(learn, "calibrate", calibrate)
        assert run(capsys, "score-mask", mask, "data.parquet") == (1, "the verdict\n", "")
        words = ("--derive", "math:hypot")  # is passed on
        assert run(capsys, "score-mask", mask, "data.parquet", *words) == (0, "the verdict\n", "")

    def test_the_mask_of_a_description_is_judged_too(self, data, capsys, monkeypatch):
        asked = []

        def calibrate(mask, rows, factors, **_):
            asked.append(mask(rows.state, rows.action).shape == (len(rows), factors.n + factors.m, factors.n))
            return SimpleNamespace(fine=True)

        monkeypatch.setattr(learn, "calibrate", calibrate)
        assert run(capsys, "score-mask", "robot.toml", "data.parquet")[0] == 0
        assert asked == [True]
        code, _, err = run(capsys, "score-mask", "robot.toml", "data.parquet", "--tau", 1)
        assert code == 2
        assert "--tau: the mask of a description is judged from data alone" in err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--tau", "1"], "--tau: a threshold of yours is judged by the true edges"),
            (["--labels", "a.npz", "--world", "sprites"], "--labels and --world: give one of them, not both"),
            (
                ["--labels", "wrong.npz"],
                "expected an array called mask, booleans of shape (300, 5, 4), got float64 (3,)",
            ),
            (["--labels", "none.npz"], "got none"),
            (["--labels", "missing.npz"], "missing.npz"),
        ],
    )
    def test_labels_that_cannot_be(self, words, message, mask, capsys):
        np.savez("wrong.npz", mask=np.zeros(3))
        np.savez("none.npz", other=np.zeros(3))
        code, out, err = run(capsys, "score-mask", mask, "data.parquet", *words)
        assert (code, out) == (2, "")
        assert message in err

    def test_estimators_that_cannot_be(self, data, capsys):
        fit = ("fit-mask", "data.parquet", "robot.toml", "--out", "m.safetensors")
        code, _, err = run(capsys, *fit, "--estimator", "Sandy")
        assert code == 2
        assert "--estimator: there is no 'Sandy'; there are " in err
        code, _, err = run(capsys, *fit, "--estimator", "SandyMixture", "--setting", "epoch=1")
        assert code == 2
        assert "--setting: SandyMixture does not take " in err
        Path("m.safetensors").write_text("mine")
        assert "it exists" in run(capsys, *fit)[2]
        assert Path("m.safetensors").read_text() == "mine"
