"""The runs of online RL with sprites: an agent, the buffer that makes its arm, and what is measured on the way."""

import fcntl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import TD3
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import NormalActionNoise

import counterpoint.adapters.gymnasium as worlds
from counterpoint import Augmenter, learn
from counterpoint.adapters.sb3 import CodaReplayBuffer
from counterpoint.checks import audit
from counterpoint.masks import Constant, Threshold, Union
from counterpoint.replay import Mixing, Rollouts
from counterpoint.worlds import Place, Sprites, collect, uniform_policy
from experiments import pages, rows

MODELS = Path(__file__).parents[2] / "runs" / "online_sprites"  # not kept under version control
GROUPS = (("td3", "coda"), ("learned", "dyna"), ("attribution",))  # in the order in which they start
ARMS = tuple(arm for group in GROUPS for arm in group)
LEARNED_MASKS = ("learned", "attribution")
WORLD = Sprites()


@dataclass(frozen=True)
class Config:
    """One run; the defaults are the paper's. Figures in brackets are choices where the paper is silent."""

    task: str = "place-2"
    arm: str = "td3"
    seed: int = 0
    steps: int = 350_000
    warm_up: int = 5_000  # steps of random actions before the first update
    batch_size: int = 1000
    width: int = 256  # of both hidden layers of actor and critics
    buffer_size: int = 1_000_000
    training_length: int = 50
    every: int = 1_000  # steps between rounds of making counterfactuals
    pairs: int = 2_000
    samples_per_pair: int = 5
    rollouts: int = 1_500  # of Dyna, per round
    rollout_steps: int = 5
    evaluate_every: int = 1_000
    episodes: int = 50
    evaluation_length: int = 100  # (as in the code at the time of the experiments)
    tau: float = 0.05  # threshold of "learned"
    attribution_tau: float | None = None  # threshold of "attribution"; None: found without labels
    estimator_rows: int = 50_000  # random transitions to pretrain a model, of which a sixth is for validation
    estimator_width: int = 512  # of the transformer of "learned" and "dyna"
    estimator_epochs: int = 60  # likewise (as in the code)
    audit_rows: int = 2_000  # counterfactuals that are put back into the world at each evaluation

    @property
    def name(self) -> str:
        """The name of the run's file."""
        return f"{self.task}_{self.arm}_{self.seed}"


def runs(preset: str, arms: Sequence[str] = ARMS, tasks: Sequence[str] = ()) -> Iterator[Config]:
    """Give the runs of a preset, in the order in which they start: arms without a learned model first."""
    known, seeds, base = PRESETS[preset]
    for group in GROUPS:
        for task in tasks or known:
            for seed in range(seeds):
                yield from (replace(base, task=task, seed=seed, arm=arm) for arm in group if arm in arms)


ALL_TASKS = tuple(f"place-{n}{kind}" for kind in ("", "-sparse") for n in (1, 2, 3, 4))
_TINY = Config(
    steps=600, warm_up=200, batch_size=64, width=32, buffer_size=1000, every=200, pairs=100, rollouts=50,
    evaluate_every=200, episodes=5, evaluation_length=20, estimator_rows=600, estimator_width=16, estimator_epochs=2,
    tau=0.9, attribution_tau=0.9, audit_rows=200,  # a model that has learned nothing looks everywhere alike
)  # fmt: skip
PRESETS: dict[str, tuple[tuple[str, ...], int, Config]] = {  # tasks, number of seeds, settings
    "smoke": (("place-2",), 1, _TINY),
    "laptop": (("place-2", "place-4", "place-2-sparse"), 3, Config(steps=50_000, estimator_width=128)),
    "paper": (ALL_TASKS, 3, Config()),
}


@cache
def pretrained(config: Config) -> Any:
    """Return the learned model of an arm, fitted once for all runs and stored; others wait for it."""
    MODELS.mkdir(parents=True, exist_ok=True)
    settings = {"width": config.estimator_width, "epochs": config.estimator_epochs}
    estimator: Any = learn.SandyTransformer(validation_share=1 / 6, **settings)  # type: ignore[arg-type]
    if config.arm == "attribution":
        estimator = learn.ResidualAttribution(validation_share=1 / 6)
    name = (type(estimator).__name__, config.estimator_rows, estimator.width, estimator.epochs)
    path = MODELS / f"{'_'.join(map(str, name))}.safetensors"
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            rng = np.random.default_rng(2020)
            data = collect(WORLD, uniform_policy(WORLD), config.estimator_rows, rng)
            estimator.fit(data, WORLD.factors, rng=rng, progress=False).save(path)
    return learn.load(path)


@cache
def threshold(config: Config) -> float:
    """Return the threshold of an arm's scores: that of the settings, or one found without labels on other rows."""
    if config.arm == "learned":
        return config.tau
    if config.attribution_tau is not None:
        return config.attribution_tau
    rng = np.random.default_rng(2021)
    held_out = collect(WORLD, uniform_policy(WORLD), config.estimator_rows // 5, rng)
    return learn.calibrate(pretrained(config), held_out, WORLD.factors, rng=rng, progress=False).tau


def buffer(config: Config) -> dict[str, Any]:
    """Return what makes an arm: the class and keywords of the agent's replay buffer."""
    if config.arm == "td3":
        return {}
    reward, mixing = Place.named(config.task), Mixing(every=config.every, seed=config.seed)
    if config.arm == "dyna":
        model = Rollouts(pretrained(config).predict, reward, starts=config.rollouts, steps=config.rollout_steps)
        return {"replay_buffer_class": CodaReplayBuffer, "replay_buffer_kwargs": {"augmenter": model, "mixing": mixing}}
    mask: Any = WORLD.mask
    if config.arm in LEARNED_MASKS:
        mask = Union(Constant.identity(WORLD.factors), Threshold(pretrained(config), threshold(config)))
    augmenter = Augmenter(WORLD.factors, mask, reward, pairs=config.pairs, samples_per_pair=config.samples_per_pair)
    coda = {"augmenter": augmenter, "mixing": mixing, "noise_key": "noise"}
    return {"replay_buffer_class": CodaReplayBuffer, "replay_buffer_kwargs": coda}


def agent(config: Config) -> TD3:
    """Return TD3 as in the paper, with the arm's buffer."""
    return TD3(
        "MlpPolicy",
        gymnasium.make(worlds.IDS[config.task], length=config.training_length, disable_env_checker=True),
        learning_rate=3e-4,
        buffer_size=config.buffer_size,
        learning_starts=config.warm_up,
        batch_size=config.batch_size,
        action_noise=NormalActionNoise(np.zeros(2), np.full(2, 0.1)),
        policy_kwargs={"net_arch": [config.width, config.width]},
        train_freq=1,
        gradient_steps=1,
        seed=config.seed,
        device="cpu",
        **buffer(config),
    )


def evaluate(policy: TD3, config: Config, step: int) -> float:
    """Return the mean reward per step of greedy episodes, all at once, from states that only seed and step decide."""
    rng, task = np.random.default_rng([config.seed, step, 1]), Place.named(config.task)
    state, total = WORLD.reset(config.episodes, rng), 0.0
    for _ in range(config.evaluation_length):
        action = policy.predict(state, deterministic=True)[0]
        state = WORLD.step(state, action, WORLD.noise(config.episodes, rng))
        total += float(task(state, action, state).mean())
    return total / config.evaluation_length


class Measure(BaseCallback):
    """Evaluate now and then and write a row about it, and about the counterfactual rows."""

    def __init__(self, config: Config, write: rows.Write) -> None:
        super().__init__()
        self.config, self.write, self.evaluating, self.start = config, write, 0.0, perf_counter()

    def _on_training_start(self) -> None:
        self._row(0)

    def _on_step(self) -> bool:
        if self.num_timesteps % self.config.evaluate_every == 0:
            self._row(self.num_timesteps)
        return True

    def _row(self, step: int) -> None:
        start = perf_counter()
        found = {"step": step, "reward": evaluate(self.model, self.config, step)}  # type: ignore[arg-type]
        if self.config.arm in LEARNED_MASKS and step == 0:
            found["tau"] = threshold(self.config)
        held = self.model.replay_buffer  # type: ignore[attr-defined]
        if isinstance(held, CodaReplayBuffer):
            found |= counterfactual_figures(held, self.config, step)
        now = perf_counter()
        self.evaluating += now - start
        self.write(**found, seconds=now - self.start, evaluating=self.evaluating)


def counterfactual_figures(held: CodaReplayBuffer, config: Config, step: int) -> dict[str, float]:
    """Return figures of the counterfactual rows, and what the world says of some of them.

    ``confirmed`` is the share that comes out of the world as stored, with its noise. A model's rows have no noise:
    for these ``model_error`` is the mean absolute difference from the world without noise.
    """
    rows = held.counterfactual
    found = {"made": len(rows.ring), "share": rows.share, "acceptance": rows.acceptance, "making": rows.seconds}
    if not len(rows.ring):
        return found
    rng = np.random.default_rng([config.seed, step, 2])
    some = rows.ring.take(rng.integers(len(rows.ring), size=config.audit_rows))
    found |= {"made_reward": some.reward.mean(), "real_reward": held.rewards[: held.size()].mean()}
    if some.noise is None:
        return found | {"model_error": np.abs(WORLD.step(some.state, some.action) - some.next_state).mean()}
    return found | {"confirmed": audit(some, WORLD.step).confirmed}


def model_errors(config: Config, size: int = 10_000) -> str:
    """Return a table of how far a model's predictions are off on other random rows, beside taking nothing to change."""
    data = collect(WORLD, uniform_policy(WORLD), size, np.random.default_rng(2022))
    truth, acted_on = WORLD.step(data.state, data.action), WORLD.mask(data.state, data.action)[:, -1]
    guesses = (pretrained(config).predict(data.state, data.action), data.state)
    errors = [np.abs(guess - truth).reshape(*acted_on.shape, 2, 2).mean(-1) for guess in guesses]
    lines = [
        (sprite, of, *(f"{error[which, column].mean():.4f}" for error in errors))
        for sprite, which in (("acted on", acted_on), ("others", ~acted_on))
        for column, of in enumerate(("position", "velocity"))
    ]
    return pages.table(("sprite", "mean error of", "model", "unchanged"), lines)


def work(config: Config, write: rows.Write) -> None:
    """Do one run."""
    torch.set_num_threads(1)
    agent(config).learn(config.steps, callback=Measure(config, write))
