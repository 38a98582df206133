"""Signals at moments that no campaign reaches: while the command loads, and where somebody wants them ignored."""

import signal
import subprocess
import sys

import pytest

LOADING = """
import os, signal, sys

def hook(event, words):
    if event == "import" and words[0] == "numba":
        os.kill(os.getpid(), signal.{name})

sys.addaudithook(hook)
from counterpoint.command_line import main

sys.exit(main())
"""
IGNORED = """
import os, signal, sys

from counterpoint.command_line import main
from counterpoint.files import contents

show = contents.Contents.__init__

def shown(*words, **options):
    os.kill(os.getpid(), signal.SIGINT)
    show(*words, **options)

contents.Contents.__init__ = shown
sys.exit(main())
"""


def child(code, folder, *words, **options):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_while_it_loads(name, code, folder):
    done = child(LOADING.format(name=name), folder, "inspect", "data.parquet")
    assert done.returncode == code
    assert done.stderr == "counterpoint: stopped. Run the same command again.\n"


def test_a_job_in_the_background_leaves_ignored_signals_alone(data, folder):
    """A shell starts jobs in the background so that Ctrl-C does not reach them."""

    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    done = child(IGNORED, folder, "inspect", "data.parquet", preexec_fn=ignore)
    assert done.returncode == 0
    assert "transitions     300" in done.stdout
    assert child(IGNORED, folder, "inspect", "data.parquet").returncode == 130
