"""Whole jobs on files of any size: augment, audit, report. The command line is a thin layer over these."""

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.checks import Audit, check_reward_fn, check_terminal_fn
from counterpoint.checks import audit as audit_rows
from counterpoint.core.arrays import Array
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.funnel import Funnel
from counterpoint.core.require import require_count
from counterpoint.files import augmentation, fingerprints, header
from counterpoint.files.apart import require_apart
from counterpoint.files.augmentation import Plan
from counterpoint.files.episodes import SINGLE_TRANSITIONS
from counterpoint.files.formats import chosen, look
from counterpoint.files.gathering import gathered
from counterpoint.files.ledger import JobLedger
from counterpoint.files.output import require_free
from counterpoint.files.recording import FileProblem, Head, Recording
from counterpoint.files.scanning import ROWS, Scan
from counterpoint.files.writing import behind, writer

Progress = Callable[[int], object] | None


@dataclass(frozen=True)
class Augmented:
    """What an augment job wrote."""

    path: str
    real: int  # rows that were there
    counterfactuals: int  # rows that were added
    funnel: Funnel

    def __str__(self) -> str:
        rows = f"{self.path}: {self.real:,} real transitions and {self.counterfactuals:,} counterfactuals"
        return f"{rows}\n\n{self.funnel}\n{'acceptance':<10}{self.funnel.acceptance:>14.1%}"


def augment(  # noqa: PLR0913
    source: str | os.PathLike[str] | Scan,
    augmenter: Augmenter,
    out: str | os.PathLike[str],
    *,
    size: int | None = None,
    ratio: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002
    resume: bool = False,
    force: bool = False,
    progress: Progress = None,
) -> Augmented:
    """Add counterfactual transitions to a file, in bounded memory.

    The output holds the real rows and the counterfactuals, each row with its provenance. The same arguments give the
    same bytes. An interrupted job leaves no output, only what it has accepted so far, in a folder ``OUT.parts``.

    Args:
        source: a file of transitions, or what `scan` returned.
        augmenter: makes the counterfactuals.
        out: the output; its suffix chooses the format.
        size: rows of the output, real ones included. Give this or ``ratio``.
        ratio: counterfactuals for each real row.
        seed: of all randomness.
        format: ``robomimic`` for that layout of ``.hdf5``. It holds whole episodes, and so does Minari; for these, make
            windows (``Augmenter(window=16)``), each of which becomes an episode.
        resume: go on with the same job where it was interrupted. It refuses if data, arguments or code changed since.
        force: replace an output that exists, and start over if there is an unfinished job.
        progress: called with the number of rows written so far, now and then.

    Raises:
        FileProblem: if a file cannot be read or written; an old output is untouched.
        ValueError: if the job cannot be done; the message says why.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from counterpoint import Factorization, Transitions, files
        >>> from counterpoint.masks import Constant
        >>> factors = Factorization.blocks(state={"left": 2, "right": 2}, action={"push": 1})
        >>> s, a, rng = np.arange(36.0).reshape(9, 4), np.zeros((9, 1)), np.random.default_rng(0)
        >>> data = Transitions(s, a, np.zeros(9), s + 1, np.zeros(9, bool))
        >>> augmenter = Augmenter(factors, Constant.identity(factors), lambda s, a, s2: s2[:, 0])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files.write(f"{folder}/data.npz", data)
        ...     done = files.augment(f"{folder}/data.npz", augmenter, f"{folder}/more.npz", ratio=2)
        >>> done.real, done.counterfactuals
        (9, 18)
    """
    plan = planned(source, augmenter, out, size=size, ratio=ratio, seed=seed, format=format)
    name, kind = os.fspath(out), chosen(out, format)
    kind.require_free(name, force=force)
    notes = {**augmentation.carried(plan.source.head), "seed": seed, "keys": plan.source.observation_keys}
    if augmenter.window > 1:
        notes["window"] = augmenter.window
    head = Head(augmenter.factors, plan.source.path, notes=notes, source_rows=plan.source.rows)
    folder, funnel, static = kind.parts(name), Funnel(), set(augmenter.factors.names)
    with (
        JobLedger(folder, _job(plan), resume=resume, force=force) as ledger,
        writer(name, head, format=format, force=force, folder=folder) as file,
    ):
        with behind(file.append) as put:
            for recording, new in augmentation.augmented(plan, ledger):
                put(recording)
                funnel += new
                static &= set(recording.head.notes.get("static", static))
                if progress is not None:
                    progress(file.rows)
        file.notes.update(funnel=asdict(funnel), static=[name for name in augmenter.factors.names if name in static])
    return Augmented(name, plan.source.rows, plan.size - plan.source.rows, funnel)


def planned(
    source: str | os.PathLike[str] | Scan,
    augmenter: Augmenter,
    out: str | os.PathLike[str],
    *,
    size: int | None = None,
    ratio: float | None = None,
    seed: int = 0,
    format: str | None = None,  # noqa: A002
) -> Plan:
    """Check the arguments of `augment`, and return what it would make."""
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    if (size is None) == (ratio is None):
        raise ValueError("size: give it or ratio, and only one of them.")
    if ratio is not None:
        if not 0 < ratio < float("inf"):
            raise ValueError(f"ratio: expected a positive number, got {ratio}.")
        size = scan.rows + round(ratio * scan.rows)
    kind, name = chosen(out, format), os.fspath(out)
    if kind.whole_episodes and augmenter.window == 1:
        raise FileProblem(f"{name}: {SINGLE_TRANSITIONS}")
    require_apart({"the output": kind.place(name)}, {"the data": place_of(scan)})
    assert size is not None  # noqa: S101
    return Plan(scan, augmenter, size, seed, unbroken=kind.unbroken)


def place_of(scan: Scan) -> Path:
    """Return the file or folder that a scan looked at."""
    return chosen(scan.path).place(scan.path)


def audit(
    source: str | os.PathLike[str] | Scan,
    step: Callable[..., Array],
    *,
    atol: float = 1e-6,
    rows: int | None = None,
    real: bool = False,
    progress: Progress = None,
) -> Audit:
    """Put the counterfactuals of a file back into a simulator, chunk by chunk, and compare.

    Args:
        source: an augmented file, or what `scan` returned. In a file without provenance all rows are looked at.
        step: ``(state, action) -> next_state``, batched; called with noise where the file holds noise.
        atol: largest difference in any column that still counts as agreement.
        rows: look at so many rows at most, spread evenly over the file; all by default.
        real: look at the real rows instead, which says how well simulator and data agree at all.
        progress: called with the number of rows read so far, now and then.

    Raises:
        FileProblem: if the file cannot be read, or holds no such rows.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    if rows is not None:
        require_count("rows", rows)
    window, found = 1 if real else augmentation.noted_window(scan.head), None
    for data in augmentation.whole_windows(_chosen_rows(scan, rows, window, real=real, progress=progress), window):
        made = (
            Counterfactuals(data.transitions, data.provenance, Funnel(), window, augmentation.noted_static(scan.head))
            if data.provenance
            else data.transitions
        )
        new = audit_rows(made, step, atol=atol)
        found = new if found is None else found + new
    if found is None:
        raise FileProblem(f"{scan.path}: it holds no {'real transitions' if real else 'counterfactuals to audit'}.")
    return found


def report(
    source: str | os.PathLike[str] | Scan,
    augmenter: Augmenter,
    page: str | os.PathLike[str],
    *,
    force: bool = False,
    step: Callable[..., Array] | None = None,
    **extras: Any,
) -> Path:
    """Write a report about an augmented file of any size: large ones are thinned evenly.

    Args:
        source: the file, or what `scan` returned.
        augmenter: what its counterfactuals were made with.
        page: where to write the report, an HTML page.
        force: replace a page that exists.
        step: a simulator that the counterfactuals are put back into, as for `audit`.
        **extras: ``atol`` as for `audit`; ``draw`` and ``labels`` as for `counterpoint.report.Extras`; ``judge``, a
            function of the real rows that returns a `counterpoint.report.Judgement` of the mask, or None.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    require_apart({"the report": Path(page)}, {"the data": place_of(scan)})
    require_free(Path(page), force=force)
    data, made = gathered(scan)
    atol, judge = extras.pop("atol", 1e-6), extras.pop("judge", None)
    about = {
        "file": scan.path,
        "made from": scan.head.source,
        "seed": scan.head.notes.get("seed"),
        "rows seen": f"{len(data) + len(made):,} of {scan.rows:,}",
    }
    pages = importlib.import_module("counterpoint.report")  # needs Matplotlib
    found: Path = pages.write_report(
        page,
        data,
        made,
        augmenter,
        rng=np.random.default_rng(0),
        audit=None if step is None else audit_rows(made, step, atol=atol),
        extras=pages.Extras(about=about, judgement=None if judge is None else judge(data), **extras),
    )
    return found


def check_task(
    source: str | os.PathLike[str] | Scan, augmenter: Augmenter, *, reward: bool = True, terminal: bool = True
) -> None:
    """Raise if the reward or the terminal function contradicts the real rows of a file.

    Counterfactuals are relabelled by these functions, so a wrong one makes every row wrong. About 65,536 rows are
    looked at, spread evenly over the file.

    Args:
        source: the file, or what `scan` returned.
        augmenter: has the functions.
        reward: look at the reward function.
        terminal: look at the terminal function, if there is one.

    Raises:
        CheckFailed: naming the worst row.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    for chunk in _chosen_rows(scan, ROWS, real=True, progress=None):
        data = chunk.transitions
        if reward:
            scale = float(np.abs(data.reward).max(initial=0.0))
            check_reward_fn(augmenter.reward_fn, data, atol=1e-5 + 1e-4 * scale)
        if terminal and augmenter.terminal_fn is not None:
            check_terminal_fn(augmenter.terminal_fn, data)


def _chosen_rows(
    scan: Scan, rows: int | None, window: int = 1, *, real: bool, progress: Progress
) -> Iterator[Recording]:
    """Yield the counterfactuals of a file, or its real rows, chunk by chunk, and not more than so many."""
    start, every = 0, 1 if rows is None else max(1, -(-scan.rows // rows))
    for chunk in scan.chunks(ROWS):
        wanted = augmentation.numbers(chunk, start, window) % every == 0
        if chunk.provenance is not None:
            wanted &= chunk.provenance.swapped.any(axis=1) != real
        start += len(chunk)
        if wanted.any():
            yield chunk[wanted]
        if progress is not None:
            progress(start)


def _job(plan: Plan) -> dict[str, Any]:
    """Return what tells this job apart from any other: data, arguments, code and versions."""
    augmenter = plan.augmenter
    parts = {part.name: getattr(augmenter, part.name) for part in fields(augmenter) if part.name != "pairs"}
    return {
        "counterpoint": fingerprints.of_package(),
        "versions": {name: metadata.version(name) for name in ("numpy", "numba")} | {"format": header.VERSION},
        "seed": plan.seed,
        "keys": plan.source.keys,
        "size": plan.size,
        "chunk_rows": plan.chunk_rows,
        "data": [plan.source.path, plan.source.rows, fingerprints.of_file(place_of(plan.source))],
        **{name: _known(part) for name, part in parts.items()},
    }


def _known(part: object) -> str | dict[str, str]:
    try:
        return fingerprints.of_value(part)
    except fingerprints.NoFingerprint as error:
        return {"unknown": str(error)}
