"""The main job on embedded data, end to end: record, augment, audit, and a report that can be opened in a browser."""

import time
from pathlib import Path

import numpy as np

from counterpoint import Augmenter
from counterpoint.checks import audit
from counterpoint.masks import Constant
from counterpoint.report import write_report
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from counterpoint.worlds.draw import draw_sprites

REAL, MADE = 2_000, 35_000


def main() -> None:
    world, task = Sprites(noise_std=0.0), Place(4)
    data = collect(world, uniform_policy(world), REAL, np.random.default_rng(0), reward_fn=task)
    print(f"{REAL:,} transitions of four bouncing sprites, {MADE:,} counterfactuals:\n")
    print(f"{'mask':>12}{'accepted':>12}{'confirmed by the world':>26}{'samples a second':>20}")
    for name, mask in (("none", Constant.identity(world.factors)), ("exact", world.mask)):
        augmenter = Augmenter(world.factors, mask, task)
        augmenter(data, rng=np.random.default_rng(0))  # compiles, or loads what was compiled
        start = time.perf_counter()
        made = augmenter.fill(data, MADE, rng=np.random.default_rng(1))
        rate = MADE / (time.perf_counter() - start)
        found = audit(made, world.step)
        print(f"{name:>12}{made.funnel.acceptance:>12.1%}{found.confirmed:>26.2%}{rate:>20,.0f}")
    page = write_report(
        Path("demo") / "report.html",
        data,
        made,
        world.factors,
        world.mask,
        rng=np.random.default_rng(2),
        audit=found,
        draw=lambda state, action, mask: draw_sprites(state, action=action, mask=mask),
        about={"command": "make demo", "seed": 0, "world": "Sprites(noise_std=0.0)", "mask": "exact"},
    )
    print(f"\nReport: {page.resolve()}")


if __name__ == "__main__":
    main()
