"""How many instructions the engine takes for 100,000 counterfactuals: clocks of a busy machine cannot tell to 3%.

Needs valgrind. Counts those of 110,000 counterfactuals from 20,000 rows less those of 10,000, in one thread, under a
mask that is a constant. It imports nothing but the package, so that an older version can be counted in the same way:

    PYTHONPATH=OLDER/src python benchmarks/instructions.py 4 10
"""

import os
import re
import subprocess
import sys
import tempfile

import numpy as np

from counterpoint import Augmenter, Factorization, Transitions
from counterpoint.masks import Constant

ROWS, FEW, MANY = 20_000, 10_000, 110_000
# The processor that loops are compiled for is named, because valgrind shows them another one than there is.
SETTINGS = {
    **dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+fma,+popcnt,+sse4.2",
    "PYTHONHASHSEED": "0",
}


def made(n: int, size: int) -> None:
    """Make so many counterfactuals of n factors with four columns each."""
    rng = np.random.default_rng(0)
    factors = Factorization.blocks(state={f"ball{i}": 4 for i in range(n)}, action={"push": 2})
    wide, narrow = (ROWS, 4 * n), (ROWS, 2)
    state, action, next_state = (rng.random(shape, np.float32) for shape in (wide, narrow, wide))
    data = Transitions(state, action, np.zeros(ROWS, np.float32), next_state, np.zeros(ROWS, bool))
    augmenter = Augmenter(factors, Constant.identity(factors), lambda _, __, next_state: next_state[:, 0])
    augmenter.fill(data, size, rng=np.random.default_rng(1))


def counted(n: int, size: int) -> int:
    """Return how many instructions a process takes that does nothing else."""
    again = [sys.executable, __file__, "--made", str(n), str(size)]
    with tempfile.TemporaryDirectory() as cache:
        settings = {**os.environ, **SETTINGS, "NUMBA_CACHE_DIR": cache}
        subprocess.run(again, env=settings, check=True)  # noqa: S603 (compiles)
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={cache}/out", *again]
        done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)  # noqa: S603
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"valgrind does not say how much it counted: {done.stderr}")
    return int(found.group(1))


def main() -> None:
    """Print a line for each number of factors."""
    if sys.argv[1] == "--made":
        made(int(sys.argv[2]), int(sys.argv[3]))
        return
    for n in map(int, sys.argv[1:]):
        print(f"{n} factors: {(counted(n, MANY) - counted(n, FEW)) / 1e6:,.1f} million instructions", flush=True)


if __name__ == "__main__":
    main()
