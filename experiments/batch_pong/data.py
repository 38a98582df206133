"""The datasets of the arms: recorded rows, models fitted to them, and the rows that an arm adds, by origin.

Recorded rows and models are the same for all arms of one size and seed. They are computed once and kept as files;
whoever needs the same ones meanwhile waits.
"""

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint import Augmenter, Transitions, learn
from counterpoint.core.protocols import RewardFn
from counterpoint.learn.training.fitting import split
from counterpoint.masks import Constant, Threshold, Union
from counterpoint.replay import Rollouts
from counterpoint.worlds import Pong, collect, pong_policy
from experiments.batch_pong.peers import Diffusion, with_noise
from experiments.batch_pong.truth import with_best_aim, within_reach

CACHE = Path(__file__).parents[2] / "runs" / "batch_pong"  # not kept under version control
MASKS = ("transformer", "ours", "exact")


@dataclass(frozen=True)
class Source:
    """What all arms of one size and seed share; the defaults are the paper's, in brackets where it is silent."""

    rows: int = 25_000
    seed: int = 0
    noise_level: float = 0.5  # (as in the code)
    length: int = 250  # steps of a game, as in the code; the paper says 150
    mask_steps: int = 2_000  # of the transformer
    mask_width: int = 256
    tau: float = 0.02  # its threshold
    rewards: str = "classifier"  # whence added rows have theirs: a "classifier" fitted to the recording, or the "world"
    reward_steps: int = 2_000
    model_steps: int = 5_000  # of the ensemble; the code has 2,000 and more until its loss is below a mark
    model_width: int = 200
    attribution_epochs: int = 30  # of our mask
    attribution_rows: int = 40_000  # that it is fitted to, at the most, and a quarter as many to calibrate it
    attribution_tau: float | None = None  # its threshold; None: found without labels
    diffusion: Diffusion = field(default_factory=Diffusion)

    @property
    def folder(self) -> Path:
        """Where recorded rows and models are kept: one folder for each set of settings."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]
        return CACHE / f"{self.rows}_{self.seed}_{digest}"

    @property
    def world(self) -> Pong:
        """The world, with games of the right length."""
        return Pong(length=self.length)

    def rng(self, purpose: int) -> np.random.Generator:
        """Return a generator for one purpose, the same for all arms."""
        return np.random.default_rng([self.seed, self.rows, purpose])


def real(source: Source) -> Transitions:
    """Return the recorded rows."""

    def record() -> Transitions:
        world = source.world
        policy = partial(pong_policy, noise_level=source.noise_level)
        return collect(
            world, policy, source.rows, source.rng(0), reward_fn=world.reward,
            episode_length=world.length, points=world.points, reset_probability=0.0,
        )  # fmt: skip

    return _kept(source, "real.npz", record, _save_rows, _load_rows)


def reward_fn(source: Source) -> RewardFn:
    """Return what labels added rows."""
    return source.world.reward if source.rewards == "world" else reward_model(source)


def reward_model(source: Source) -> learn.RewardModel:
    """Return the classifier of rewards."""
    epochs = _epochs(source.reward_steps, 512, source.rows)
    settings = learn.RewardModel(width=128, batch_size=512, epochs=epochs, patience=epochs)
    return _fitted(source, "reward", settings, source.rng(1))


def transformer(source: Source) -> learn.SandyTransformer:
    """Return the paper's model of masks, which is Dyna's model, too."""
    epochs = _epochs(source.mask_steps, 256, source.rows)
    settings = learn.SandyTransformer(
        width=source.mask_width, query_key="shared", embedding="blocks", learning_rate=3e-4, weight_decay=1e-5,
        batch_size=256, epochs=epochs, patience=epochs, validation_share=0.1,
    )  # fmt: skip
    return _fitted(source, "transformer", settings, source.rng(2))


def ensemble(source: Source) -> learn.DynamicsEnsemble:
    """Return MBPO's model."""
    epochs = _epochs(source.model_steps, 256, source.rows)
    settings = learn.DynamicsEnsemble(width=source.model_width, epochs=epochs, patience=epochs)
    return _fitted(source, "ensemble", settings, source.rng(3))


def ours(source: Source) -> tuple[learn.ResidualAttribution, dict[str, Any]]:
    """Return our model of masks, and what ``calibrate`` says about it: a threshold, found without labels."""
    data = real(source)
    fit_to, other = split(data, 0.25, source.rng(4))
    fit_to, other = fit_to[: source.attribution_rows], other[: source.attribution_rows // 4]
    settings = learn.ResidualAttribution(epochs=source.attribution_epochs)
    model = _fitted(source, "attribution", settings, source.rng(5), fit_to)

    def judge() -> dict[str, Any]:
        if source.attribution_tau is not None:
            return {"tau": source.attribution_tau, "verdict": "given, not found"}
        found = learn.calibrate(model, data[other], source.world.factors, rng=source.rng(6), progress=False)
        return {"tau": float(found.tau), "verdict": found.verdict}

    return model, _kept(source, "attribution.json", judge, _save_text, lambda path: json.loads(path.read_text()))


def symmetrised(model: learn.SandyTransformer) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return scores as the paper's code has them on Pong: averaged over both directions, an action having but one."""

    def scores(state: np.ndarray, action: np.ndarray) -> np.ndarray:
        found = model.scores(state, action)
        n = found.shape[2]
        between = 0.5 * (found[:, :n] + found[:, :n].transpose(0, 2, 1))
        return np.concatenate([between, 0.5 * found[:, n:]], axis=1)

    return scores


def mask(source: Source, name: str) -> Any:
    """Return a mask by its name: transformer, ours, exact (classified: the same) or identity."""
    itself = Constant.identity(source.world.factors)
    if name == "identity":
        return itself
    if name in ("exact", "classified"):
        return partial(exact, source.world)
    if name == "transformer":
        return Union(itself, Threshold(symmetrised(transformer(source)), source.tau))
    model, found = ours(source)
    return Union(itself, Threshold(model, found["tau"]))


def exact(world: Pong, state: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Return the world's own mask, also of states that a model has imagined beyond the limits of joints."""
    return world.mask(within_reach(state), action.clip(-1.0, 1.0))


def added(source: Source, arm: str) -> dict[str, Transitions]:
    """Return the rows that an arm adds to the real ones, by origin: "model" or "counterfactual"."""
    data, size = real(source).replace(episode=None, step=None), source.rows
    if arm == "real":
        return {}
    if arm == "dyna":
        return {"model": _explained(source, _imagined_by_transformer(source, data))}
    if arm == "3D-diffusion":
        return {"model": _peer(source, _diffused(source, data, 3 * size))}
    if arm == "3N-noise":
        return {"model": _peer(source, with_noise(data, 3 * size, source.rng(10)))}
    kind, _, name = arm.partition("-")
    imagined = {}
    if arm == "mbpo" or kind.endswith("1M"):
        rows = ensemble(source).rollouts(data, size, rng=source.rng(8), reward_fn=reward_fn(source), steps=5)
        imagined = {"model": _explained(source, rows)}
    if arm == "mbpo":
        return imagined
    labels = reward_model(source) if name == "classified" else reward_fn(source)
    augmenter = Augmenter(source.world.factors, mask(source, name), labels)
    pool = enlarged(source, imagined)
    made = augmenter.fill(pool, int(kind[0]) * size, rng=source.rng(7))
    return {**imagined, "counterfactual": made.transitions}


def enlarged(source: Source, made: dict[str, Transitions]) -> Transitions:
    """Return real and added rows, each labelled with its origin."""
    parts = {"real": real(source), **made}
    return Transitions.concat(*(rows.labelled(origin) for origin, rows in parts.items()))


def _imagined_by_transformer(source: Source, data: Transitions) -> Transitions:
    def actions(rows: int, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (rows, 2)).astype(data.action.dtype)

    model = transformer(source)
    imagine = Rollouts(model.predict, reward_fn(source), starts=source.rows, steps=1, draw_actions=actions)
    return imagine(data, rng=source.rng(9))


def _diffused(source: Source, data: Transitions, size: int) -> Transitions:
    return _kept(
        source, "diffusion.npz", lambda: source.diffusion.enlarge(data, size, source.rng(11)), _save_rows, _load_rows
    )


def _peer(source: Source, rows: Transitions) -> Transitions:
    """Return rows of a peer; they bring rewards of their own, which the world's replace if it labels rows."""
    if source.rewards == "world":
        rows = rows.replace(reward=source.world.reward(rows.state, rows.action, rows.next_state))
    return _explained(source, rows)


def _explained(source: Source, rows: Transitions) -> Transitions:
    return with_best_aim(rows, source.world)


def _epochs(steps: int, batch_size: int, rows: int) -> int:
    """Return how many passes over nine tenths of the rows make at least so many steps."""
    return -(-steps // max(1, int(0.9 * rows) // batch_size))


def _fitted(source: Source, name: str, settings: Any, rng: np.random.Generator, rows: Any = slice(None)) -> Any:
    """Return a learner fitted to recorded rows, or the stored one."""

    def fit() -> Any:
        return settings.fit(real(source)[rows], source.world.factors, rng=rng, progress=False)

    return _kept(source, f"{name}.safetensors", fit, lambda model, path: model.save(path), type(settings).load)


def _kept(
    source: Source, name: str, make: Callable[[], Any], save: Callable[[Any, Path], None], load: Callable[[Path], Any]
) -> Any:
    """Return what a file holds; make it first if it is not there."""
    path = source.folder / name
    with _only_one(path):
        if not path.exists():
            part = path.with_name(f"part-{name}")
            save(make(), part)
            part.replace(path)
    return load(path)


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _save_rows(rows: Transitions, path: Path) -> None:
    np.savez(path, allow_pickle=False, **dict(rows.columns()))


def _load_rows(path: Path) -> Transitions:
    with np.load(path) as found:
        return Transitions(**found)


def _save_text(found: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(found))
