"""Progress on the error stream: a bar if that is a terminal, otherwise one line for each stage, to suit a log."""

import sys
from typing import Any

from tqdm import tqdm


def progress_bar(stage: str, total: int, unit: str, *, shown: bool) -> "tqdm[Any]":
    """Return a bar to be updated; where there is no terminal, it is only announced.

    Args:
        stage: what takes time.
        total: of how many units.
        unit: of what.
        shown: whether anything is shown at all.
    """
    if shown and not sys.stderr.isatty():
        print(f"{stage}: at most {total:,} {unit}s", file=sys.stderr, flush=True)
    return tqdm(total=total, desc=stage, unit=unit, disable=None if shown else True)
