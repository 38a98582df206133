"""From an augmented file to a report, in bounded memory: large files are thinned evenly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.checks import audit
from counterpoint.core.arrays import Ints
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.engine import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.core.transitions import Transitions
from counterpoint.files import FileProblem, Recording, Scan
from counterpoint.files.recording import joined

MOST_ROWS = 500_000  # of a file that a report looks at, parents of counterfactuals not counted


def write(
    page: str, source: Scan, augmenter: Augmenter, *, step: Any = None, atol: float = 1e-6, draw: Any = None
) -> Path:
    """Write a report about an augmented file.

    Args:
        page: where to write it.
        source: the file, with real rows and counterfactuals.
        augmenter: what they were made with.
        step: a simulator that the counterfactuals are put back into.
        atol: as for ``counterpoint.checks.audit``.
        draw: draws a transition.
    """
    from counterpoint.report import Extras, write_report  # noqa: PLC0415  (needs Matplotlib)

    data, made = gathered(source)
    notes, looked = source.head.notes, f"{len(data) + len(made):,} of {source.rows:,}"
    about = {"file": source.path, "made from": source.head.source, "seed": notes.get("seed"), "rows seen": looked}
    return write_report(
        page,
        data,
        made,
        augmenter,
        rng=np.random.default_rng(0),
        audit=None if step is None else audit(made, step, atol=atol),
        extras=Extras(draw=draw, about=about),
    )


def gathered(source: Scan) -> tuple[Transitions, Counterfactuals]:
    """Return real rows and counterfactuals of an augmented file, thinned to a bounded number, with all parents."""
    every = -(-source.rows // MOST_ROWS)
    made = _joined(_thinned(source, every, made=True))
    if made is None or made.provenance is None:
        raise FileProblem(f"{source.path}: it holds no counterfactuals. Give a file that `counterpoint augment` wrote.")
    parents = np.unique([made.provenance.base, made.provenance.donor])
    real = _joined(_thinned(source, every, made=False, always=parents))
    if real is None or real.provenance is None or not np.isin(parents, real.provenance.base).all():
        raise FileProblem(f"{source.path}: the real rows that its counterfactuals come from are not in it.")
    rows = real.provenance.base  # rising, as in the file
    base, donor = (np.searchsorted(rows, parent) for parent in (made.provenance.base, made.provenance.donor))
    provenance = Provenance(base, donor, made.provenance.swapped)
    funnel = Funnel(**source.head.notes.get("funnel", {"accepted": len(made)}))
    return real.transitions, Counterfactuals(made.transitions, provenance, funnel)


def _joined(parts: Iterator[Recording]) -> Recording | None:
    """Join recordings; None if there are none."""
    every = list(parts)
    return joined(every) if every else None


def _thinned(source: Scan, every: int, *, made: bool, always: Ints | None = None) -> Iterator[Recording]:
    """Yield one in so many of the counterfactuals, or of the real rows and all that are asked for."""
    start = 0
    for piece in source.pieces():
        parents = piece.provenance
        if parents is None:
            return
        chosen = (start + np.arange(len(piece))) % every == 0
        if always is not None:
            chosen |= np.isin(parents.base, always)
        chosen &= parents.swapped.any(axis=1) == made
        if chosen.any():
            yield piece[chosen]
        start += len(piece)
