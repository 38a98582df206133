"""From rows to the tables of the page."""

from pathlib import Path
from typing import Any

from counterpoint.core.arrays import counted
from experiments import pages, rows

PAGE = pages.DOCS / "billion.md"


def report(folder: Path) -> None:
    """Write the tables into the page."""
    found = {path.stem: rows.read(path) for path in sorted(folder.glob("*.jsonl"))}
    runs = {name: (head["config"], lines[0]) for name, (head, lines) in found.items() if lines}
    pages.fill(PAGE, "\n\n".join([_speed(runs), _kills(runs), _plan(runs), _origin(found)]))


def _speed(runs: dict[str, tuple[Any, Any]]) -> str:
    head = [
        "run",
        "shards",
        "rows written",
        "seconds",
        "rows a second",
        "x one worker",
        "MB a worker, 1st half",
        "2nd half",
    ]
    lines = []
    for name, (config, row) in runs.items():
        if config["kills"] or config["drivers"] > 1 or name.startswith("calm"):
            continue
        one = runs.get(f"{config['engine']}-1")
        same = one is not None and one[0]["shards"] == config["shards"]
        gain = f"{row['rows_per_second'] / one[1]['rows_per_second']:.2f}" if one is not None and same else "–"
        lines.append(
            [
                name,
                f"{config['shards']}",
                f"{row['rows']:,}",
                f"{row['seconds']:.0f}",
                f"{row['rows_per_second']:,.0f}",
                gain,
                f"{row['peak_mb_first_half']:.0f}",
                f"{row['peak_mb_second_half']:.0f}",
            ]
        )
    large = {row["manifest"] for config, row in runs.values() if config["rows"] == 500_000 and config["shards"] == 40}
    verdict = "All outputs of 40 large shards have the same bytes." if len(large) == 1 else "The outputs DIFFER."
    return pages.table(head, lines) + f"\n\n{verdict if large else ''}"


def _kills(runs: dict[str, tuple[Any, Any]]) -> str:
    killed = {name: run for name, run in runs.items() if run[0]["kills"]}
    calm = runs["calm"][1]["manifest"] if "calm" in runs else None
    equal = [row["manifest"] == calm for _, row in killed.values()]
    total = sum(row["kills"] for _, row in killed.values())
    lines = ["The runs with killed workers have not been made."]
    if killed:
        lines = [f"Workers killed: {total}, in {len(killed)} jobs; complete and equal to a calm job: {sum(equal)}."]
    shares = [row["confirmed"] for _, row in runs.values() if row["confirmed"] is not None]
    if shares:
        audited = counted(len(shares), "job")
        lines.append(f"Counterfactuals that the world confirms: at least {min(shares):.2%} ({audited} audited).")
    for _, row in runs.values():
        lines += [f"A second driver ended with exit code {code}: `{said.strip()}`" for code, said in row["refused"]]
    return "\n\n".join(lines)


def _plan(runs: dict[str, tuple[Any, Any]]) -> str:
    """Extrapolate from one worker: a core takes so long for a billion real transitions, and writes so much."""
    config, row = next(run for name, run in runs.items() if name in ("pool-1", "pool-2"))
    rows_made = 1e9 * (1 + config["ratio"])
    hours = rows_made / (row["rows_per_second"] / config["workers"]) / 3600
    size = row["output_bytes"] / row["rows"] * rows_made
    lines = [
        [f"{cores}", f"{hours / cores:.2f}", f"{size / (hours / cores * 3600) / 1e6:,.0f}"] for cores in (1, 2, 16, 128)
    ]
    title = (
        f"A billion real transitions to {rows_made / 1e9:g} billion, {size / 1e9:,.0f} GB, if cores were all that "
        f"matters (from {config['workers']} measured here):"
    )
    return f"{title}\n\n{pages.table(['cores', 'hours', 'MB written a second'], lines)}"


def _origin(found: dict[str, Any]) -> str:
    commits = sorted({head["commit"] for head, _ in found.values()})
    return f"Measured at {', '.join(commits)}, one run each, on {next(iter(found.values()))[0]['machine']}."
