"""Real rows and counterfactuals of an augmented file, thinned to what fits into memory, with all parents."""

from collections.abc import Iterator

import numpy as np

from counterpoint.core.arrays import Ints
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.funnel import Funnel
from counterpoint.core.provenance import Provenance
from counterpoint.core.transitions import Transitions
from counterpoint.files.notes import noted_static, noted_window, numbers
from counterpoint.files.recording import FileProblem, Recording, joined
from counterpoint.files.scanning import Scan

MOST_ROWS = 500_000  # of a file that a report looks at, parents of counterfactuals not counted


def gathered(source: Scan) -> tuple[Transitions, Counterfactuals]:
    """Return real rows and counterfactuals of an augmented file, thinned to a bounded number, with all parents."""
    every = -(-source.rows // MOST_ROWS)
    window = noted_window(source.head)
    made = _joined(_thinned(source, every, made=True, window=window))
    if made is None or made.provenance is None:
        raise FileProblem(f"{source.path}: it holds no counterfactuals. Give a file that `counterpoint augment` wrote.")
    parents = np.unique([made.provenance.base, made.provenance.donor])
    real = _joined(_thinned(source, every, made=False, always=parents))
    if real is None or real.provenance is None or not np.isin(parents, real.provenance.base).all():
        raise FileProblem(f"{source.path}: the real rows that its counterfactuals come from are not in it.")
    rows = real.provenance.base  # rising, as in the file
    base, donor = (np.searchsorted(rows, parent) for parent in (made.provenance.base, made.provenance.donor))
    provenance = Provenance(base, donor, made.provenance.swapped)
    funnel = _funnel(source, len(made) // window)
    return real.transitions, Counterfactuals(made.transitions, provenance, funnel, window, noted_static(source.head))


def _funnel(source: Scan, accepted: int) -> Funnel:
    """Return what the file says of the proposals behind it."""
    noted = source.head.notes.get("funnel", {"accepted": accepted})
    try:
        return Funnel(**{str(name): int(count) for name, count in noted.items()})
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise FileProblem(f"{source.path}: the funnel in its header is malformed; the file is damaged.") from error


def _joined(chunks: Iterator[Recording]) -> Recording | None:
    """Join recordings; None if there are none."""
    every = list(chunks)
    return joined(every) if every else None


def _thinned(
    source: Scan, every: int, *, made: bool, always: Ints | None = None, window: int = 1
) -> Iterator[Recording]:
    """Yield one in so many of the counterfactuals (of the windows), or of the real rows and all that are asked for."""
    start = 0
    for chunk in source.chunks():
        parents = chunk.provenance
        if parents is None:
            return
        chosen = numbers(chunk, start, window) % every == 0
        if always is not None:
            chosen |= np.isin(parents.base, always)
        chosen &= parents.swapped.any(axis=1) == made
        if chosen.any():
            yield chunk[chosen]
        start += len(chunk)
