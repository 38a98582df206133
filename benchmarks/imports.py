"""How long ``import counterpoint`` takes in a fresh interpreter, beside NumPy and Numba alone."""

import subprocess
import sys

from benchmarks import measure
from experiments import pages


def main() -> None:
    def fresh(code: str) -> float:
        return measure.best(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)  # noqa: S603

    bare = fresh("pass")
    rows = [[code, fresh(code) - bare] for code in ("import numpy", "import numpy, numba", "import counterpoint")]
    pages.print_table("Import, seconds beyond a bare interpreter (goal: below 1)", ["code", "seconds"], rows)


if __name__ == "__main__":
    main()
