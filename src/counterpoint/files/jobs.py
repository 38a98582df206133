"""Whole jobs on files of any size: augment, audit, report. The command line is a thin layer over these."""

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.checks import Audit
from counterpoint.checks import audit as audit_rows
from counterpoint.core.arrays import Array, counted
from counterpoint.core.augment import Augmenter, Counterfactuals
from counterpoint.core.funnel import Funnel
from counterpoint.core.require import require_count
from counterpoint.files import fingerprints
from counterpoint.files.apart import require_apart
from counterpoint.files.augmentation import Check, Plan, augmented, head_of, written
from counterpoint.files.episodes import SINGLE_TRANSITIONS
from counterpoint.files.formats import chosen, look
from counterpoint.files.gathering import gathered
from counterpoint.files.job_folder import identity
from counterpoint.files.ledger import JobLedger
from counterpoint.files.notes import noted_static, noted_window, whole_windows
from counterpoint.files.output import require_free
from counterpoint.files.recording import FileProblem
from counterpoint.files.sampling import chosen_rows
from counterpoint.files.scanning import Scan
from counterpoint.files.writing import writer
from counterpoint.progress import Progress
from counterpoint.simulators import Tolerance


@dataclass(frozen=True)
class Augmented:
    """What an augment job wrote."""

    path: str
    real: int  # rows that were there
    counterfactuals: int  # rows that were added
    funnel: Funnel
    shards: int | None = None  # files in a folder, if it is one

    def __str__(self) -> str:
        made = counted(self.counterfactuals, "counterfactual")
        rows = f"{self.path}: {counted(self.real, 'real transition')} and {made}"
        rows += "" if self.shards is None else f" in {counted(self.shards, 'shard')}"
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
    progress: Progress | None = None,
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
    return carry_out(plan, out, format=format, resume=resume, force=force, progress=progress)


def carry_out(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    resume: bool = False,
    force: bool = False,
    progress: Progress | None = None,
    check: Check | None = None,
) -> Augmented:
    """Do what is planned; arguments as for `augment`. ``check`` is given real rows before anything is made of them."""
    name, kind = os.fspath(out), chosen(out, format)
    kind.require_free(name, force=force)
    head = head_of(plan, plan.source.path, plan.source.rows)
    folder = kind.parts(name)
    with (
        JobLedger(folder, _job(plan), resume=resume, force=force) as ledger,
        writer(name, head, format=format, force=force, folder=folder) as file,
    ):
        funnel = written(augmented(plan, ledger, check), file, progress)
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
        raise ValueError("size and ratio: give exactly one of them.")
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
    atol: float | Tolerance = 1e-6,
    rows: int | None = None,
    real: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Put the counterfactuals of a file back into a simulator, chunk by chunk, and compare.

    Args:
        source: an augmented file, or what `scan` returned. In a file without provenance all rows are looked at.
        step: ``(state, action) -> next_state``, batched or for one row; called with noise where the file holds noise.
        atol: largest difference in any column that still counts as agreement; or a `Tolerance`.
        rows: look at so many rows at most, spread evenly over the file; all by default.
        real: look at the real rows instead, which says how well simulator and data agree at all.
        progress: called with the number of rows put back so far, now and then.

    Raises:
        FileProblem: if the file cannot be read, or holds no such rows.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    if rows is not None:
        require_count("rows", rows)
    window, found = 1 if real else noted_window(scan.head), None
    for data in whole_windows(chosen_rows(scan, rows, window, real=real), window):
        made = (
            Counterfactuals(data.transitions, data.provenance, Funnel(), window, noted_static(scan.head))
            if data.provenance
            else data.transitions
        )
        new = audit_rows(made, step, atol=atol, progress=_beyond(found, window, progress))
        found = new if found is None else found + new
    if found is None:
        raise FileProblem(f"{scan.path}: it holds no {'real transitions' if real else 'counterfactuals to audit'}.")
    return found


def _beyond(found: Audit | None, window: int, progress: Progress | None) -> Progress | None:
    """Return progress that goes on after what was audited before; windows are counted as rows."""
    before = 0 if found is None else len(found.error)
    return None if progress is None else lambda done: progress((before + done) * window)


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
        **extras: ``atol`` as for `audit`; ``command``, to be put on record; ``draw`` and ``labels`` as for
            `counterpoint.report.Extras`; ``judge``, a function of the real rows that returns a
            `counterpoint.report.Judgement` of the mask, or None.
    """
    scan = source if isinstance(source, Scan) else look(os.fspath(source), None)
    require_apart({"the report": Path(page)}, {"the data": place_of(scan)})
    require_free(Path(page), force=force)
    data, made = gathered(scan)
    atol, judge = extras.pop("atol", 1e-6), extras.pop("judge", None)
    command = extras.pop("command", None)
    about = {
        **({} if command is None else {"command": command}),
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
        extras=pages.Extras(about=about, judgement=None if judge is None else judge(data), force=force, **extras),
    )
    return found


def _job(plan: Plan) -> dict[str, Any]:
    """Return what tells this job apart from any other."""
    data = [plan.source.path, plan.source.rows, fingerprints.of_file(place_of(plan.source))]
    about = {"seed": plan.seed, "keys": plan.source.keys, "size": plan.size, "chunk_rows": plan.chunk_rows}
    return identity(plan.augmenter, **about, data=data)
