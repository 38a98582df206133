import os
import signal
import subprocess

import hypothesis
import numba
import numpy as np
import pytest

hypothesis.settings.register_profile("counterpoint", deadline=None, derandomize=True, max_examples=60)
hypothesis.settings.register_profile("interpreted", deadline=None, derandomize=True, max_examples=15)
hypothesis.settings.load_profile("interpreted" if numba.config.DISABLE_JIT else "counterpoint")


def pytest_configure(config):
    if numba.config.DISABLE_JIT:  # the hash relies on wrapping; interpreted NumPy scalars warn of it, in every thread
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered in scalar:RuntimeWarning")


# Tests interrupt commands they start. Where the tests themselves run in the background, an interrupt is ignored, and
# commands would inherit that and go on.
signal.signal(signal.SIGINT, signal.default_int_handler)

OTHER_SEEDS = int(os.environ.get("OTHER_SEEDS", "0"))
if OTHER_SEEDS:  # every seed that a test names becomes another one, so that nothing holds by luck
    as_named = np.random.default_rng
    np.random.default_rng = lambda seed=None: as_named(seed + OTHER_SEEDS if isinstance(seed, int) else seed)


@pytest.fixture
def rng():
    return np.random.default_rng(20201112)


@pytest.fixture
def make_pipe():
    """Give a function that makes a pipe. Whoever waits at it is let go in the end, so that a test fails, not hangs."""
    helpers = []

    def make(path):
        os.mkfifo(path)
        wait = 'sleep 20; while :; do : <> "$0"; sleep 0.1; done'  # opens it for both, so that nobody lacks the other
        helpers.append(subprocess.Popen(["sh", "-c", wait, str(path)], start_new_session=True))

    yield make
    for helper in helpers:
        os.killpg(helper.pid, signal.SIGKILL)
        helper.wait()


def pytest_collection_modifyitems(config, items):
    """Tests marked `compiled` need the compiled loops: too slow, or about them."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        skip = pytest.mark.skip(reason="needs compiled loops")
        for item in items:
            if "compiled" in item.keywords:
                item.add_marker(skip)
