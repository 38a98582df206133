"""Tables to print, and result pages: what an experiment writes between two marks of a page written by hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[1] / "docs" / "results"
BEGIN, END = "<!-- begin of report -->", "<!-- end of report -->"


def fill(page: Path, text: str) -> None:
    """Put text between the marks of a page, which must exist and have them, and print it too."""
    print(text)
    before, rest = page.read_text().split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rows = [list(head), ["---"] * len(head), *map(list, lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with aligned columns."""
    cells = [
        head,
        *[
            [f"{x:.3g}" if isinstance(x, float) else f"{x:,}" if isinstance(x, int) else str(x) for x in row]
            for row in rows
        ],
    ]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
        if not number:
            print("  " + "  ".join("-" * width for width in widths))


def spread(values: Sequence[float], form: str = ".3f") -> str:
    """Return mean ± standard deviation of what was measured, the mean alone of one value, a dash of none."""
    known = [value for value in values if value is not None and not np.isnan(value)]
    if not known:
        return "–"
    return f"{np.mean(known):{form}}" + (f" ± {np.std(known, ddof=1):{form.lstrip('+')}}" if len(known) > 1 else "")


def plotting() -> Any:
    """Return pyplot, set up to draw into files."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    return plt
