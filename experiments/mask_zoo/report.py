"""The table of ``mask_zoo``: one line for each kind of influence and pair of types."""

from pathlib import Path

from experiments import pages, rows
from experiments.mask_zoo.run import ESTIMATORS


def write(folder: Path) -> None:
    """Print the tables of all finished runs of a folder."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.mask_zoo run")
    print(table(paths))


def table(paths: list[Path]) -> str:
    """Return both tables: areas under the ROC curve by kind of edge, and what the estimators cost."""
    areas: dict[tuple[str, int, str], dict[tuple[str, str], str]] = {}
    shares: dict[tuple[str, int, str], str] = {}
    costs: dict[str, list[tuple[float, float]]] = {}
    for path in paths:
        head, lines = rows.read(path)
        config, fit = head["config"], lines[0]["fit_seconds"]
        for line in lines[1:]:
            key = config["kind"], config["seed"], line["edges"]
            areas.setdefault(key, {})[config["estimator"], line["rows"]] = f"{line['auc']:.3f}"
            if line["rows"] == "recorded":
                shares[key] = f"{line['share']:.1%}"
                costs.setdefault(config["estimator"], []).append((fit, line["rows_per_second"]))
    used = [name for name in ESTIMATORS if name in costs]
    columns = [(name, which) for name in used for which in ("recorded", "recombined")]
    title = ["influence", "seed", "edges", "share of rows", *(f"`{name}`, {which}" for name, which in columns)]
    body = [
        [kind, str(seed), edges, shares.get((kind, seed, edges), "–"), *(found.get(column, "–") for column in columns)]
        for (kind, seed, edges), found in sorted(areas.items())
    ]
    cost = [
        [f"`{name}`", *(pages.spread(list(values), ",.0f") for values in zip(*costs[name], strict=True))]
        for name in used
    ]
    return f"{pages.table(title, body)}\n\n{pages.table(['estimator', 'fit, s', 'scores, rows a second'], cost)}"
