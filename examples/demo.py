"""The main job on embedded data, end to end: record, augment, audit, and a report."""

import html
import time
from pathlib import Path

import numpy as np

from counterpoint import Augmenter
from counterpoint.checks import audit
from counterpoint.masks import Constant
from counterpoint.worlds import Place, Sprites, collect, uniform_policy

OUT = Path("demo")


def main() -> None:
    world = Sprites(noise_std=0.0)
    data = collect(world, uniform_policy(world), 2_000, np.random.default_rng(0), reward_fn=Place(4))
    rows = []
    for name, mask in (("exact mask", world.mask), ("no mask", Constant.identity(world.factors))):
        augmenter = Augmenter(world.factors, mask, Place(4))
        augmenter(data, rng=np.random.default_rng(0))  # compiles
        start = time.perf_counter()
        made = augmenter.fill(data, 35_000, rng=np.random.default_rng(1))
        seconds = time.perf_counter() - start
        found = audit(made, world.step)
        rows.append(
            (name, len(made), f"{made.funnel.acceptance:.1%}", f"{found.confirmed:.2%}", f"{35_000 / seconds:,.0f}")
        )
    head = ("mask", "counterfactuals", "accepted", "confirmed by the world", "samples/s")
    print(f"From {len(data):,} transitions of four bouncing sprites:")
    for row in (head, *rows):
        print("  " + "  ".join(str(cell).rjust(22) for cell in row))
    OUT.mkdir(exist_ok=True)
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in (head, *rows)
    )
    page = OUT / "report.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><title>Counterpoint</title><table border=1>{cells}</table>")
    print(f"Report: {page.resolve()}")


if __name__ == "__main__":
    main()
