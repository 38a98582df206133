"""How much is left of the yield when windows grow? Four worlds, both ways of pairing, windows of 1 to 32 rows.

A window of H rows is valid only if no edge crosses what is swapped in any of its rows, so yield must fall with H.
``pairing="sharing"`` pairs only windows whose components are apart, in both, throughout. Some of the accepted windows
are put back into the simulator, which starts once for each.

The paper mentions windows in a remark and has no numbers to compare with. Sprites, Pong and the two arms have exact
masks. FetchPush has the paper's 10 cm rule with the one for objects that have fallen off the table; its policy is the
scripted one of ``mujoco_exactness``.

    python -m experiments.window_yield run --preset laptop
    python -m experiments.window_yield report
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from counterpoint import Augmenter, Transitions
from counterpoint.checks import audit
from counterpoint.core.windows import Windows
from counterpoint.worlds import Pong, Sprites, TwoArms, collect, pong_policy, uniform_policy
from experiments import command, pages, rows
from experiments.exactness import no_reward

WORLDS = ("Sprites", "Pong", "TwoArms", "FetchPush")
PAIRINGS: tuple[Literal["uniform", "sharing"], ...] = ("uniform", "sharing")
Cell = tuple[str, str, int]  # world, pairing, rows of a window


@dataclass(frozen=True)
class Config:
    """One run: one world, one seed."""

    world: str
    transitions: int = 20_000
    pairs: int = 4_000
    audited: int = 100  # windows of each kind that are put back, at most
    lengths: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    seed: int = 0

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.world}-{self.seed}"


PRESETS = {
    "smoke": Config("", transitions=400, pairs=100, audited=5, lengths=(1, 4)),
    "laptop": Config(""),
}
SEEDS = {"smoke": (0,), "laptop": (0, 1, 2)}
ENOUGH = 0.1  # share of the pairs asked for that must be behind a point of the plot
FETCH_ROWS, FETCH_AUDITED = 4_000, 30  # a robot takes its time


@dataclass(frozen=True, eq=False)
class Place:
    """What there is of a world: recorded episodes, the parts of an augmenter, and a simulator."""

    data: Transitions
    factors: Any
    mask: Any
    step: Callable[..., Any]
    atol: float = 1e-6
    derive: Any = None


def place(config: Config) -> Place:
    """Record a world in episodes of 50 rows."""
    if config.world == "FetchPush":
        return _fetch(config)
    world: Any = {"Sprites": Sprites, "Pong": Pong, "TwoArms": TwoArms}[config.world]()
    policy = pong_policy if config.world == "Pong" else uniform_policy(world)
    rng = np.random.default_rng(config.seed)
    data = collect(world, policy, config.transitions, rng, episode_length=50, reset_probability=0.0)
    return Place(data, world.factors, world.mask, world.step, 1e-5)


def _fetch(config: Config) -> Place:
    from counterpoint.adapters.mujoco import Simulator, derive, factorization  # noqa: PLC0415  (needs MuJoCo)
    from experiments.mujoco_exactness import run  # noqa: PLC0415

    settings = run.Config("FetchPush", transitions=min(FETCH_ROWS, config.transitions), seed=config.seed)
    env, data = run.record(replace(settings, masks=("near or fallen",)))
    mask, _ = run.masks(replace(settings, masks=("near or fallen",)), env, data)["near or fallen"]()
    simulator = Simulator(env, real=data, sample=200, workers=1)
    return Place(data, factorization(env), mask, simulator, derive=derive(env))


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    start, there = time.perf_counter(), place(config)
    for length in config.lengths:
        every = Windows.of(there.data, length)
        for pairing in PAIRINGS:
            make = Augmenter(
                there.factors, there.mask, no_reward, _never, config.pairs,
                derive=there.derive, pairing=pairing, window=length,
            )  # fmt: skip
            made = make(there.data, rng=np.random.default_rng(config.seed + 1))
            some = made.windows[: FETCH_AUDITED if config.world == "FetchPush" else config.audited]
            put_back = replace(made, transitions=made.transitions[: len(some) * length],
                               provenance=made.provenance[: len(some) * length])  # fmt: skip
            found = audit(put_back, there.step, atol=there.atol) if len(some) else None
            funnel = made.funnel
            write(
                step=length,
                pairing=pairing,
                windows=len(every),
                pairs=funnel.pairs,
                accepted=funnel.accepted,
                static=funnel.static,
                per_pair=(funnel.accepted - funnel.static) / max(1, funnel.pairs),
                acceptance=funnel.acceptance,
                audited=len(some),
                wrong=None if found is None else len(found.wrong),
                seconds=time.perf_counter() - start,
            )


def _never(state: Any, action: Any, after: Any) -> Any:  # noqa: ARG001
    return np.zeros(len(state), np.bool_)


def report(folder: Path, docs: Path = pages.DOCS) -> None:
    """Write table and plot into ``windows.md``."""
    found = [rows.read(path) for path in sorted(folder.glob("*.jsonl"))]
    if not found:
        raise SystemExit(f"{folder}: no finished runs. Start some with: python -m experiments.window_yield run")
    lengths = sorted({row["step"] for _, body in found for row in body})
    worlds = [world for world in WORLDS if any(head["config"]["world"] == world for head, _ in found)]
    cells: dict[Cell, list[rows.Row]] = {}
    for head, body in found:
        for row in body:
            cells.setdefault((head["config"]["world"], row["pairing"], row["step"]), []).append(row)
    lines = [
        [world, pairing, *(_cell(cells.get((world, pairing, length), [])) for length in lengths)]
        for world in worlds
        for pairing in PAIRINGS
    ]
    every = [row for _, body in found for row in body]
    wrong, audited = (sum(row[key] or 0 for row in every) for key in ("wrong", "audited"))
    commits = ", ".join(sorted({head["commit"] for head, _ in found}))
    told = (
        f"Counterfactual windows per pair of windows, mean ± deviation over {len(SEEDS['laptop'])} seeds. Of "
        f"{audited:,} accepted windows that were put back into the simulator, {wrong:,} were wrong. "
        f"{found[0][0]['machine']}, commits {commits}."
    )
    _plot(cells, worlds, lengths, docs / "windows.png")
    picture = "![Yield against the length of windows, one panel for each world](windows.png)"
    pages.fill(
        docs / "windows.md",
        "\n\n".join([told, pages.table(("world", "pairing", *(f"H = {k}" for k in lengths)), lines), picture]),
    )


def _cell(found: list[rows.Row]) -> str:
    """Write the yield over seeds, and how many pairs there are if these are few."""
    pairs = [row["pairs"] for row in found]
    few = f" ({min(pairs):,} to {max(pairs):,} pairs)" if pairs and min(pairs) < PRESETS["laptop"].pairs else ""
    return pages.spread([row["per_pair"] for row in found], ".2g") + few


def _plot(cells: dict[Cell, list[rows.Row]], worlds: list[str], lengths: list[int], path: Path) -> None:
    plt = pages.plotting()
    most = max(row["pairs"] for found in cells.values() for row in found)
    figure, panels = plt.subplots(1, len(worlds), figsize=(3.0 * len(worlds), 3.0), sharey=True, layout="constrained")
    for panel, world in zip(np.atleast_1d(panels), worlds, strict=True):
        for pairing, mark in zip(PAIRINGS, ("o--", "s-"), strict=True):
            shown = []
            for length in lengths:
                found = cells.get((world, pairing, length), [])
                mean = np.mean([row["per_pair"] for row in found] or [0])
                if mean > 0 and np.mean([row["pairs"] for row in found]) >= ENOUGH * most:
                    shown.append((length, mean))
            panel.plot([k for k, _ in shown], [mean for _, mean in shown], mark, label=pairing)
        panel.set(title=world, xlabel="rows of a window", xscale="log", yscale="log")
        panel.set_xticks(lengths, [str(k) for k in lengths], minor=False)
        panel.minorticks_off()
    np.atleast_1d(panels)[0].set_ylabel("windows per pair")
    np.atleast_1d(panels)[0].legend(title="pairing")
    figure.savefig(path, dpi=110)


def main(arguments: list[str] | None = None) -> None:
    """Run a preset, or report on what has been run."""
    parser = command.parser(__doc__, PRESETS, "window_yield")
    parser.add_argument("--worlds", type=command.some_of(WORLDS), default=WORLDS)
    given = parser.parse_args(arguments)
    folder = given.folder / given.preset
    if given.command == "report":
        report(folder)
        return
    todo = [replace(PRESETS[given.preset], world=world, seed=k) for world in given.worlds for k in SEEDS[given.preset]]
    steps = max(PRESETS[given.preset].lengths)
    rows.run_all(work, {config.name: config for config in todo}, folder, processes=given.processes, steps=steps)


if __name__ == "__main__":
    main()
