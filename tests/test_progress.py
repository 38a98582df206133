"""A bar on a terminal, one line in a log."""

import sys

from counterpoint import progress
from counterpoint.progress import ProgressBar


class Terminal:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def on_a_terminal(monkeypatch, every=0):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "EVERY", every)
    return terminal


def test_a_terminal_gets_a_bar_and_it_is_wiped_away(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    with ProgressBar("augment", 2000, "rows") as bar:
        bar.reach(1000)
    shown, wiped = terminal.text.split("\x1b[K", 1)
    assert shown.startswith(f"\raugment [{'#' * 15}{'.' * 15}] 1,000 of 2,000 rows, ")
    assert shown.endswith(" a second")
    assert wiped == "\r\x1b[K"


def test_a_note_takes_the_place_of_the_rate(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    with ProgressBar("fit", 2, "epochs") as bar:
        bar.advance("loss 0.5")
        bar.advance("loss 0.25")
    first, second, _ = terminal.text.split("\x1b[K", 2)
    assert first.endswith("1 of 2 epochs, loss 0.5")
    assert second.endswith("2 of 2 epochs, loss 0.25")


def test_a_log_gets_one_line_for_each_stage(capsys):
    with ProgressBar("augment", 2000, "rows") as bar:
        bar.reach(1000)
    assert capsys.readouterr().err == "augment: 2,000 rows\n"


def test_calls_in_quick_succession_print_once(monkeypatch):
    terminal = on_a_terminal(monkeypatch, every=1000)
    with ProgressBar("augment", 2000, "rows") as bar:
        bar.reach(1)
        bar.reach(2)
    assert terminal.text == "\r\x1b[K"


def test_nothing_is_shown_unasked(monkeypatch, capsys):
    with ProgressBar("augment", 2000, "rows", shown=False):
        pass
    assert capsys.readouterr().err == ""
    terminal = on_a_terminal(monkeypatch)
    with ProgressBar("augment", 2000, "rows", shown=False) as bar:
        bar.reach(1000)
    assert terminal.text == ""
