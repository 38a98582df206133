"""The table of ``mujoco_exactness``."""

from pathlib import Path
from typing import Any

from experiments import pages, rows
from experiments.mujoco_exactness.run import ENVIRONMENTS

HEAD = (
    "environment", "seed", "mask", "accepted", "to the bit", "within 1e-6", "wrong", "of these off the table", "kept",
    "wrong, as expected",
)  # fmt: skip


def write(folder: Path, docs: Path = pages.DOCS) -> None:
    """Write the tables into ``mujoco.md``, and print them."""
    found = [rows.read(path) for path in sorted(folder.glob("*.jsonl"))]
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.mujoco_exactness run")
    found.sort(key=lambda run: (list(ENVIRONMENTS).index(run[0]["config"]["environment"]), run[0]["config"]["seed"]))
    lines = [[*_of(head), *_line(row)] for head, body in found for row in body if "mask" in row]
    real = [[*_of(head), *_real(body[0])] for head, body in found]
    head = found[0][0]
    about = f"{head['machine']}, commits {_commits(found)}."
    tables = (
        pages.table(HEAD, lines),
        pages.table(("environment", "seed", "real steps", "to the bit", "islands exact"), real),
    )
    pages.fill(docs / "mujoco.md", "\n\n".join([about, tables[0], "Real steps repeated first:", tables[1]]))


def _of(head: dict[str, Any]) -> list[str]:
    return [head["config"]["environment"], str(head["config"]["seed"])]


def _line(row: dict[str, Any]) -> list[str]:
    expected = (
        f"{row['expected']:.2%} ({row['low']:.2%} to {row['high']:.2%})" if row.get("expected") is not None else "–"
    )
    if "failed" in row:
        return [row["mask"], "none", *["–"] * 5, expected]
    fallen = "–" if row["fallen"] is None else f"{row['fallen']:,}"
    return [
        row["mask"],
        f"{row['made']:,}",
        f"{row['same']:.2%}",
        f"{1 - row['wrong'] / row['made']:.2%}",
        f"{row['wrong']:,}",
        fallen,
        f"{row['share']:.1%}",
        expected,
    ]


def _commits(found: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> str:
    return ", ".join(sorted({head["commit"] for head, _ in found}))


def _real(row: dict[str, Any]) -> list[str]:
    return [f"{row['replayed']:,}", f"{row['same']:.1%}", "yes" if row["exact"] else "no"]
