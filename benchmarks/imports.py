"""How long the names of ``counterpoint`` take to load in a fresh interpreter, beside NumPy and Numba alone."""

import subprocess
import sys

from benchmarks import measure
from experiments import pages


def main() -> None:
    def fresh(code: str) -> float:
        return measure.best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)  # noqa: S603

    bare = fresh("pass")
    codes = ("import numpy", "import numpy, numba", "import counterpoint", "from counterpoint import Augmenter")
    rows = [[code, fresh(code) - bare] for code in codes]
    pages.print_table("Import, seconds beyond a bare interpreter (goal: below 1)", ["code", "seconds"], rows)


if __name__ == "__main__":
    main()
