"""The runs of the experiment on learned masks: what each one fits, scores and audits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from counterpoint import Transitions, independent, learn
from counterpoint.checks import audit
from counterpoint.core.arrays import Bools, Floats, NodeSet
from counterpoint.core.coda import propose
from counterpoint.masks import Threshold
from counterpoint.metrics import EDGE_KINDS, auc, average_precision, bootstrap, roc, threshold_for_miss_rate
from counterpoint.worlds import NonstationaryMP, Pong, Sprites, StationaryMP, collect, pong_policy, uniform_policy
from experiments import rows

FIRST_SEED = 100  # smaller ones were for development
WORLDS = ("stationary", "nonstationary", "sprites", "pong", "sprites-8")
EXTRA = "sprites-8"  # for the best estimator alone
ESTIMATORS = (
    "SandyMixture", "SandyTransformer", "MaskedLikelihood", "ResidualAttribution", "InputGradient", "ActionInfluence",
)  # fmt: skip
CALIBRATED = ("SandyTransformer", "ResidualAttribution")  # where the threshold is chosen without labels, too
MISS_RATES = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
GRID = np.linspace(0.0, 1.0, 101)  # false-positive rates at which ROC curves are averaged
AUTHORS_TAU = 0.05  # of the transformer on sprites
STEPS = 60  # of the trajectory that is drawn


@dataclass(frozen=True)
class Config:
    """One run."""

    world: str = "sprites"
    estimator: str = "SandyTransformer"
    run: int = 0
    train: int = 40_000
    validation: int = 10_000
    test: int = 10_000
    audit: int = 4_000  # transitions that are swapped
    pairs: int = 4_000  # of them
    calibrate: bool = False  # whether to choose a threshold without labels, too
    settings: dict[str, Any] = field(default_factory=dict)  # of the estimator, beside its defaults

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.world}_{self.estimator}_{self.run}"


def world(name: str, seed: int, *, noise: bool = True) -> Any:
    """Return a world; processes have maps of their own for each seed, and one factor per column, as in the paper."""
    if name in ("stationary", "nonstationary"):
        return {"stationary": StationaryMP, "nonstationary": NonstationaryMP}[name](features=True, seed=seed)
    if name == "pong":
        return Pong()
    n = 8 if name == "sprites-8" else 4
    return Sprites(n) if noise else Sprites(n, noise_std=0.0)


def record(name: str, seed: int, size: int, rng: np.random.Generator, *, noise: bool = True) -> Transitions:
    """Record transitions of a random policy, in Pong those of the scripted player; processes start anew each time."""
    place = world(name, seed, noise=noise)
    policy = pong_policy if name == "pong" else uniform_policy(place)
    fresh = {"episode_length": 1} if "stationary" in name else {}
    return collect(place, policy, size, rng, **fresh)  # type: ignore[arg-type]


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    torch.set_num_threads(1)
    seed = FIRST_SEED + config.run
    rng, place = np.random.default_rng(seed), world(config.world, seed)
    train, validation, test = (
        record(config.world, seed, size, rng) for size in (config.train, config.validation, config.test)
    )
    estimator = getattr(learn, config.estimator)(**config.settings)
    fitted = estimator.fit(train, place.factors, rng=rng, validation=validation, progress=False)
    history = fitted.learned().history
    write(fit_seconds=history.seconds, epochs=len(history.train), best=history.best, stopped=history.stopped)
    scores = fitted.scores(test.state, test.action, test.next_state)
    truth = place.mask(test.state, test.action, test.noise)
    found = Audit.of(fitted, config)
    for row in (
        *accuracy(scores, truth, rng),
        by_columns(scores, truth, place.factors.widths),
        *swaps(found, scores, truth),
    ):
        write(**row)
    if config.calibrate:
        write(**label_free(found, validation, rng))
    if config.world == "sprites" and config.run == 0:
        write(**trajectory(fitted, config))


def accuracy(scores: Floats, truth: Bools, rng: np.random.Generator) -> Iterator[rows.Row]:
    """Measure scores against the truth, by kind of edge, with ROC curves and an interval of the off-diagonal AUC."""
    for kind in EDGE_KINDS:
        row: rows.Row = {
            "kind": kind,
            "auc": auc(scores, truth, kind),
            "average_precision": average_precision(scores, truth, kind),
        }
        if kind in ("all", "off-diagonal"):
            curve = roc(scores, truth, kind)
            if len(curve.false_positive_rate) > 1 and not np.isnan(curve.area):
                heights = np.interp(GRID, curve.false_positive_rate, curve.true_positive_rate)
                row["roc"] = [round(float(y), 4) for y in heights]
        if kind == "off-diagonal":
            found = bootstrap(auc, scores, truth, rng=rng, resamples=50)
            row |= {"low": found.low, "high": found.high}
        yield row


def by_columns(scores: Floats, truth: Bools, widths: Sequence[int]) -> rows.Row:
    """Measure as the authors' code does, where an edge between factors is one between all of their columns.

    Precision and recall are those of the threshold that they chose for the transformer.
    """
    targets = widths[: truth.shape[2]]

    def by_column(each: Any) -> Any:
        return np.repeat(np.repeat(each, widths, axis=1), targets, axis=2)

    wide, edges = by_column(scores), by_column(truth)
    found = wide > AUTHORS_TAU
    hits = int((found & edges).sum())
    precision, recall = hits / max(int(found.sum()), 1), hits / max(int(edges.sum()), 1)
    return {"kind": "columns", "auc": auc(wide, edges, "all"), "precision": precision, "recall": recall}


@dataclass(frozen=True, eq=False)
class Audit:
    """Fresh transitions without noise to swap, scored once, and how many swaps the exact mask allows."""

    place: Any
    data: Transitions
    fitted: Any
    scores: Floats
    best: float  # accepted per pair with the exact mask
    config: Config

    @classmethod
    def of(cls, fitted: Any, config: Config) -> "Audit":
        """Record and score the transitions."""
        seed = FIRST_SEED + config.run
        place = world(config.world, seed, noise=False)
        data = record(config.world, seed, config.audit, np.random.default_rng([seed, 1]), noise=False)
        scores = fitted.scores(data.state, data.action, data.next_state)
        found = cls(place, data, fitted, scores=scores, best=float("nan"), config=config)
        proposal, nodes = found.proposed(place.mask(data.state, data.action))
        valid = independent(place.mask(proposal.state, proposal.action), nodes)
        return replace(found, best=float(valid.sum() / config.pairs))

    def proposed(self, mask: Bools) -> tuple[Transitions, NodeSet]:
        """Make one proposal for each of the same pairs of different rows, from the masks of all rows."""
        rng = np.random.default_rng([FIRST_SEED + self.config.run, 2])
        base = rng.integers(len(mask), size=self.config.pairs)
        donor = (base + rng.integers(1, len(mask), size=self.config.pairs)) % len(mask)
        overlaid = mask[base] | mask[donor]
        proposal, nodes = propose(self.data[base], self.data[donor], overlaid, self.place.factors, rng=rng)
        some = nodes.any(axis=1)
        return proposal[some], nodes[some]

    def quality(self, tau: float) -> rows.Row:
        """Make one proposal per pair with the mask of a threshold, and put the accepted ones back into the world."""
        proposal, nodes = self.proposed(self.scores > tau)
        valid = independent(Threshold(self.fitted, tau)(*inputs(self.fitted, proposal)), nodes)
        accepted = float(valid.sum() / self.config.pairs)
        confirmed = audit(proposal[valid], self.place.step).confirmed if valid.any() else float("nan")
        return {"confirmed": confirmed, "accepted": accepted, "relative_yield": accepted / self.best}


def inputs(fitted: Any, data: Transitions) -> tuple[Floats, ...]:
    """Return what a mask looks at."""
    return (data.state, data.action, data.next_state) if fitted.uses_next_state else (data.state, data.action)


def swaps(found: Audit, scores: Floats, truth: Bools) -> Iterator[rows.Row]:
    """Audit the masks of several thresholds, chosen with labels."""
    for rate in MISS_RATES:
        tau = threshold_for_miss_rate(scores, truth, rate)
        yield {"missed": rate, "tau": tau, **found.quality(tau)}


def label_free(found: Audit, data: Transitions, rng: np.random.Generator) -> rows.Row:
    """Choose a threshold without labels, and audit it."""
    try:
        chosen = learn.calibrate(found.fitted, data, found.place.factors, rng=rng, progress=False)
    except ValueError as error:
        return {"calibrated": False, "verdict": str(error)}
    row: rows.Row = {"calibrated": True, "tau": chosen.tau, "wrong": chosen.wrong.value, "low": chosen.wrong.low}
    row |= {"high": chosen.wrong.high, "fine": chosen.fine, "verdict": chosen.verdict}
    return row | found.quality(chosen.tau)


def trajectory(fitted: Any, config: Config) -> rows.Row:
    """Return the scores along one trajectory, the same for all estimators, and the true edges."""
    place = world(config.world, FIRST_SEED)
    data = collect(
        place, uniform_policy(place), STEPS, np.random.default_rng(FIRST_SEED), environments=1, reset_probability=0.0
    )
    scores = fitted.scores(data.state, data.action, data.next_state)
    truth = place.mask(data.state, data.action, data.noise)
    return {"trajectory": np.round(scores, 4).tolist(), "truth": truth.astype(int).tolist()}


TINY = {"train": 1000, "validation": 600, "test": 500, "audit": 500, "pairs": 500}
PRESETS: dict[str, tuple[int, dict[str, Any], dict[str, dict[str, Any]]]] = {  # runs, sizes, settings by estimator
    "smoke": (1, TINY, {name: {"epochs": 2} for name in ESTIMATORS}),
    "laptop": (3, {}, {"SandyTransformer": {"width": 128, "epochs": 60}}),
    "paper": (5, {}, {}),
}


def runs(preset: str, worlds: tuple[str, ...], estimators: tuple[str, ...]) -> Iterator[Config]:
    """Give the runs of a preset, in the order in which they start."""
    count, sizes, settings = PRESETS[preset]
    for run in range(count):
        for place in worlds:
            for name in estimators:
                if useful(place, name):
                    calibrated = name in CALIBRATED and "stationary" not in place
                    yield Config(place, name, run, calibrate=calibrated, **sizes, settings=settings.get(name, {}))


def useful(place: str, estimator: str) -> bool:
    """Tell whether an estimator has anything to say about a world: processes have no actions."""
    if estimator == "ActionInfluence":
        return "stationary" not in place and place != EXTRA
    return place != EXTRA or estimator == "ResidualAttribution"
