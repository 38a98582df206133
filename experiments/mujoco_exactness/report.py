"""The table of ``mujoco_exactness``."""

from pathlib import Path
from typing import Any

from experiments import pages, rows
from experiments.mujoco_exactness.run import ENVIRONMENTS

HEAD = (
    "environment", "mask", "accepted", "to the bit", "within 1e-6", "wrong", "of these off the table", "proposals kept",
    "wrong, as expected",
)  # fmt: skip


def write(folder: Path, docs: Path = pages.DOCS) -> None:
    """Write the tables into ``mujoco.md``, and print them."""
    others = [path for path in folder.parent.glob("*/*.jsonl") if path.parent.name not in ("smoke", folder.name)]
    found = [rows.read(path) for path in (*sorted(folder.glob("*.jsonl")), *sorted(others))]
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.mujoco_exactness run")
    found.sort(key=lambda each: list(ENVIRONMENTS).index(each[0]["config"]["environment"]))
    lines = [_line(head, row) for head, body in found for row in body if "mask" in row]
    real = {head["config"]["environment"]: _real(head, body[0]) for head, body in found}
    head = found[0][0]
    about = f"{head['machine']}, commits {_commits(found)}."
    tables = (
        pages.table(HEAD, lines),
        pages.table(("environment", "real steps", "to the bit", "islands exact"), list(real.values())),
    )
    pages.fill(docs / "mujoco.md", "\n\n".join([about, tables[0], "Real steps repeated first:", tables[1]]))


def _line(head: dict[str, Any], row: dict[str, Any]) -> list[str]:
    environment = head["config"]["environment"]
    if row["mask"] == "islands" and "masks" not in head["config"]:
        row = {**row, "mask": "islands, not strict"}  # measured before there was another way
    expected = (
        f"{row['expected']:.2%} ({row['low']:.2%} to {row['high']:.2%})" if row.get("expected") is not None else "–"
    )
    if "failed" in row:
        return [environment, row["mask"], "none", *["–"] * 5, expected]
    fallen = "–" if row["fallen"] is None else f"{row['fallen']:,}"
    return [
        environment,
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


def _real(head: dict[str, Any], row: dict[str, Any]) -> list[str]:
    environment = head["config"]["environment"]
    return [environment, f"{row['replayed']:,}", f"{row['same']:.1%}", "yes" if row["exact"] else "no"]
