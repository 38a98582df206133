"""The runs of ``mask_zoo``: one world, one estimator, and how it ranks the edges between each pair of types."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from counterpoint import Factorization, Transitions, learn
from counterpoint.core.arrays import Bools, Floats
from counterpoint.core.coda import derived, mixed
from counterpoint.core.provenance import Provenance
from counterpoint.metrics import auc
from counterpoint.worlds import collect
from counterpoint.worlds.zoo import DEVELOPMENT, HELD_OUT, Zoo
from experiments import rows

ESTIMATORS = ("DistilledLikelihood", "ResidualAttribution")
FEWEST = 20  # true edges of a kind, below which its ranking is not reported


@dataclass(frozen=True)
class Config:
    """One run."""

    kind: str = "push"
    seed: int = 0
    estimator: str = "DistilledLikelihood"
    train: int = 20_000
    test: int = 5_000
    settings: dict[str, Any] = field(default_factory=dict)  # of the estimator, beside its defaults

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.kind}_{self.seed}_{self.estimator}"


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    torch.set_num_threads(1)
    world, rng = Zoo(config.seed, kinds=(config.kind,)), np.random.default_rng(config.seed)
    train, test = (collect(world, world.policy, size, rng) for size in (config.train, config.test))
    estimator = getattr(learn, config.estimator)(allow_constant=True, **config.settings)
    start = time.process_time()
    fitted = estimator.fit(train, world.factors, rng=rng, progress=False)
    write(fit_seconds=time.process_time() - start, factors=world.factors.names)
    for name, data in (("recorded", test), ("recombined", recombined(world, test, rng))):
        start = time.process_time()
        scores = fitted.scores(data.state, data.action)
        speed = len(data) / (time.process_time() - start)
        truth = world.mask(data.state, data.action, data.noise)
        for kind, row in by_types(scores, truth, world.factors).items():
            write(rows=name, edges=kind, rows_per_second=speed, **row)


def recombined(world: Zoo, data: Transitions, rng: np.random.Generator) -> Transitions:
    """Return rows in which every factor comes from one of two recorded rows, at random."""
    base, donor = rng.integers(len(data), size=(2, len(data)))
    nodes = rng.random((len(data), world.factors.n + world.factors.m)) < 0.5
    derive = world.derive if world.factors.derived else None
    return derived(mixed(data, Provenance(base, donor, nodes), world.factors), world.factors, derive)


def by_types(scores: Floats, truth: Bools, factors: Factorization) -> dict[str, rows.Row]:
    """Measure scores by the types of source and target, where there are edges and others."""
    types = [factors.types[name].rstrip("0123456789") for name in factors.names]
    pairs: dict[str, list[tuple[int, int]]] = {}
    for i, source in enumerate(types):
        for j, target in enumerate(types[: factors.n]):
            if i != j:
                pairs.setdefault(f"{source} to {target}", []).append((i, j))
    found = {}
    for kind, own in pairs.items():
        i, j = np.array(own).T
        edges, values = truth[:, i, j][..., None], scores[:, i, j][..., None]
        if FEWEST <= edges.sum() < edges.size:
            found[kind] = {"share": float(edges.mean()), "auc": auc(values, edges, "all")}
    return found


SHORT = {"DistilledLikelihood": {"lessons": 4000}, "ResidualAttribution": {"epochs": 10}}
# kinds, seeds, sizes, settings by estimator
PRESETS: dict[str, tuple[tuple[str, ...], int, dict[str, int], dict[str, dict[str, Any]]]] = {
    "smoke": (("push",), 1, {"train": 600, "test": 400}, {name: {"epochs": 1} for name in ESTIMATORS}),
    "short": (("elastic", "drag", "push", "soft", "fan", "carrier"), 1, {"train": 10_000, "test": 4_000}, SHORT),
    "laptop": (DEVELOPMENT, 3, {}, {}),
    "heldout": (HELD_OUT, 3, {}, {}),
}


def runs(preset: str, estimators: tuple[str, ...] = ESTIMATORS) -> Iterator[Config]:
    """Give the runs of a preset, in the order in which they start."""
    kinds, seeds, sizes, settings = PRESETS[preset]
    for seed in range(seeds):
        for estimator in estimators:
            for kind in kinds:
                yield Config(kind, seed, estimator, **sizes, settings=settings.get(estimator, {}))
