"""The runs: forward models rolled out beside the truth, and learning curves with and without counterfactuals."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from counterpoint import Augmenter, Mask, Transitions, learn
from counterpoint.checks import audit
from counterpoint.learn.estimators.learning_curve import learning_curve
from counterpoint.masks import Constant, Threshold
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from experiments import rows
from experiments.dynamics import models

CURVES = ("none", "identity", "learned", "exact")
FRAMES = 30  # steps of the first rollout that are written down, to be drawn
LOST = 0.1  # of the canvas: a sprite farther than this from the truth is lost
LATE = 50  # steps at the end of a rollout that tell whether anything still moves


@dataclass(frozen=True)
class Config:
    """One run of either kind."""

    kind: str = "forward"  # or "curve"
    arm: str = "linear"
    seed: int = 0
    sprites: int = 6
    train: int = 10_000
    test: int = 10_000
    epochs: int = 40
    starts: int = 50  # rollouts
    steps: int = 200  # of a rollout
    base: int = 2_000  # rows of a curve
    added: int = 35_000
    held: int = 2_000  # other rows, for the threshold of the learned mask
    validation: int = 5_000
    curve_epochs: int = 100
    mask_epochs: int = 100

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.kind}_{self.arm}_{self.seed}"


_TINY = Config(
    train=500, test=300, epochs=2, starts=3, steps=60, base=2_000, added=1_000, validation=300, curve_epochs=2,
    mask_epochs=1,
)  # fmt: skip
PRESETS = {"smoke": (1, _TINY), "laptop": (3, Config())}  # number of seeds, settings


def runs(preset: str) -> Iterator[Config]:
    """Give the runs of a preset in the order in which they start."""
    seeds, base = PRESETS[preset]
    for kind, arms in (("curve", CURVES), ("forward", models.NAMES)):
        for seed in range(seeds):
            yield from (replace(base, kind=kind, arm=arm, seed=seed) for arm in arms)


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    torch.set_num_threads(1)
    (forward if config.kind == "forward" else curve)(config, write)


def forward(config: Config, write: rows.Write) -> None:
    """Fit a forward model and roll it out; write its errors, how long it follows the truth, and some frames."""
    world = Sprites(n=config.sprites, action_rule="reverse")
    rng = np.random.default_rng([config.seed, 0])
    policy = uniform_policy(world)
    train, test = (collect(world, policy, size, rng, episode_length=500) for size in (config.train, config.test))
    model = models.fit(config.arm, train, np.random.default_rng([config.seed, 1]), epochs=config.epochs)
    off = np.square(model.predict(test.state, test.action) - test.next_state)
    off = (off / (test.next_state - test.state).var(axis=0)).reshape(len(test), config.sprites, -1).mean(axis=2)
    touched = world.mask(test.state, test.action)[:, : config.sprites].sum(axis=1) > 1
    errors = {"error": off.mean(), "error_free": off[~touched].mean(), "error_touched": off[touched].mean()}
    state = world.reset(config.starts, np.random.default_rng([config.seed, 2]))
    truth, imagined = rolled(world.step, state, config), rolled(model.predict, state, config)
    write(step=0, **errors, **lifetimes(truth, imagined))
    for frame in range(min(FRAMES, config.steps)):
        write(step=frame, state=imagined[frame, 0].tolist(), truth=truth[frame, 0].tolist())


def rolled(step: object, state: np.ndarray, config: Config) -> np.ndarray:
    """Return states of rollouts, (T, B, S), the first included; the same clicks for whoever steps."""
    rng, found = np.random.default_rng([config.seed, 3]), [state]
    for _ in range(config.steps):
        action = rng.uniform(-1.0, 1.0, (len(state), 2)).astype(state.dtype)
        found.append(step(found[-1], action))  # type: ignore[operator]
    return np.stack(found)


def lifetimes(truth: np.ndarray, imagined: np.ndarray) -> dict[str, float]:
    """Return how long rollouts are of use, from states (T, B, S).

    ``follows`` is the median number of steps before any sprite is lost. ``moving`` is how fast places change in the
    last steps, relative to the truth: 0 where all has come to rest. ``outside`` is the share of places beyond the
    canvas, and ``collisions`` that of steps in which a sprite turns back where no wall is, relative to the truth.
    """
    places, real = (_places(states) for states in (imagined, truth))
    distance = np.linalg.norm(places - real, axis=-1).max(axis=2)  # (T, B)
    lost = np.where((distance > LOST).any(axis=0), (distance > LOST).argmax(axis=0), len(distance))
    return {
        "follows": float(np.median(lost)),
        "moving": _pace(places) / _pace(real),
        "outside": float(((places < -0.01) | (places > 1.01)).any(axis=-1).mean()),
        "collisions": _turns(places) / max(_turns(real), 1e-9),
    }


def _places(states: np.ndarray) -> np.ndarray:
    return states.reshape(*states.shape[:2], -1, 4)[..., :2].astype(np.float64)


def _pace(places: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(places[-LATE:], axis=0), axis=-1).mean())


def _turns(places: np.ndarray) -> float:
    """Return the share of steps after which a sprite goes back, away from walls."""
    moved = np.diff(places, axis=0)
    back = (moved[1:] * moved[:-1]).sum(axis=-1) < -1e-5
    inner = ((places[1:-1] > 0.1) & (places[1:-1] < 0.9)).all(axis=-1)
    return float((back & inner).mean())


def curve(config: Config, write: rows.Write) -> None:
    """Train a forward model on one kind of data and write its errors, epoch by epoch."""
    world, rng = Sprites(), np.random.default_rng([config.seed, 0])
    policy = uniform_policy(world)
    sizes = (config.base, config.held, config.validation)
    data, held, validation = (collect(world, policy, size, rng) for size in sizes)
    mine, told = enlarged(config, data, held)
    found = learning_curve(
        mine, validation, rng=np.random.default_rng([config.seed, 1]), epochs=config.curve_epochs, progress=False
    )
    write(step=0, rows=len(mine), **told)
    for epoch, (train, error) in enumerate(zip(found.train, found.validation, strict=True)):
        write(step=epoch, train=train, validation=error)


def enlarged(config: Config, data: Transitions, held: Transitions) -> tuple[Transitions, dict[str, object]]:
    """Return the rows of an arm, and what the world says of those that were added."""
    if config.arm == "none":
        return data[np.arange(config.base + config.added) % config.base], {}
    world, rng = Sprites(), np.random.default_rng([config.seed, 4])
    told: dict[str, object] = {}
    mask: Mask = Constant.identity(world.factors) if config.arm == "identity" else world.mask
    if config.arm == "learned":
        estimator = learn.ResidualAttribution(epochs=config.mask_epochs, patience=15, batch_size=128)  # few rows
        estimator = estimator.fit(data, world.factors, rng=rng, progress=False)
        found = learn.calibrate(estimator, held, world.factors, rng=rng, progress=False)
        mask, told = Threshold(estimator, found.tau), {"tau": float(found.tau), "verdict": found.verdict}
    made = Augmenter(world.factors, mask, Place(4)).fill(data, config.added, rng=rng)
    return Transitions.concat(data, made.transitions), {**told, "confirmed": audit(made, world.step).confirmed}
