"""One training loop for all estimators: minibatches, Adam, early stopping, progress, interruption.

A new estimator usually needs nothing from here: ``NetworkEstimator.fit`` splits the data and calls
``minimise`` with the estimator's ``loss``. One that trains in stages overrides ``train`` and calls
``minimise`` once per stage, on the modules of that stage, with ``dataclasses.replace(task.training, ...)``
for other settings. A loss that draws random numbers takes them from the ``torch.Generator`` it is given,
and network weights are drawn inside ``with seeded(rng):``, so the global state is never touched.
"""

import copy
import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.arrays import Ints
from counterpoint.core.require import require_count
from counterpoint.core.transitions import Transitions
from counterpoint.learn.training.scaling import Rows
from counterpoint.progress import ProgressBar

AnyRows = TypeVar("AnyRows", bound=Rows)
LossFn: TypeAlias = Callable[[AnyRows, torch.Generator], Tensor]  # the mean loss of a batch, a scalar

FEWEST_EPISODES = 5  # with fewer episodes than this, validation rows are drawn one by one
_VALIDATION_ROWS = 4096  # rows of a validation batch, at the most


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of the loop.

    Attributes:
        epochs: passes over the training rows, at the most.
        batch_size: rows of a minibatch.
        learning_rate: of Adam.
        weight_decay: of Adam (an L2 penalty).
        patience: epochs without a better validation loss after which training stops.
        warm_up: steps over which the learning rate rises linearly from 0.
        clip: largest norm of a gradient; None leaves gradients alone.
    """

    epochs: int = 100
    batch_size: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    patience: int = 10
    warm_up: int = 0
    clip: float | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "warm_up"):
            require_count(name, getattr(self, name), 0 if name == "warm_up" else 1)
        if not self.learning_rate > 0 or not (self.clip is None or self.clip > 0):
            raise ValueError(
                f"learning_rate and clip: expected positive numbers, got {self.learning_rate!r} and {self.clip!r}."
            )
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay: expected 0 or more, got {self.weight_decay!r}.")


@dataclass(frozen=True)
class History:
    """What happened during training: mean losses epoch by epoch, and why it ended."""

    train: tuple[float, ...]
    validation: tuple[float, ...]
    best: int  # the epoch, counted from 0, whose weights were kept
    stopped: Literal["epochs", "patience", "interrupted"]
    seconds: float = field(compare=False)


@dataclass(frozen=True, eq=False)
class TrainingTask(Generic[AnyRows]):
    """What to learn from: standardised rows to train on and to validate on, and how to go about it."""

    train: AnyRows
    validation: AnyRows
    training: Training
    rng: np.random.Generator
    progress: bool = True
    name: str = "fit"  # shown by the progress bar


def minimise(
    network: nn.Module,
    loss: LossFn[AnyRows],
    task: TrainingTask[AnyRows],
    *,
    validate: LossFn[AnyRows] | None = None,
) -> History:
    """Train ``network`` in place and leave it with the weights of its best epoch, in evaluation mode.

    The best epoch is that of the smallest validation loss. A keyboard interrupt ends training with a
    warning and keeps the best weights so far; before the end of the first epoch it is passed on.

    Args:
        network: its parameters that require gradients are trained.
        loss: ``(batch, generator) -> scalar``, the mean over the batch.
        task: data, settings and randomness.
        validate: the loss for validation, if it is another one (without penalties, say). Its generator
            starts from the same seed in every epoch, so that epochs can be compared.

    Raises:
        ValueError: if a loss is not finite.
    """
    run = _Run(network, loss, validate or loss, task)
    with flushed_denormals(), deterministic():
        return run()


class _Run:
    """One call of ``minimise``."""

    def __init__(self, network: nn.Module, loss: LossFn[Any], validate: LossFn[Any], task: TrainingTask[Any]) -> None:
        self.network, self.loss, self.validate, self.task = network, loss, validate, task
        settings = task.training
        self.parameters = [p for p in network.parameters() if p.requires_grad]
        self.optimiser = torch.optim.Adam(
            self.parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.warm_up = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda step: min(1.0, (step + 1) / (settings.warm_up + 1))
        )
        self.generator = torch_generator(task.rng)
        self.validation_seed = int(task.rng.integers(2**63))
        self.losses: tuple[list[float], list[float]] = ([], [])
        self.best = -1
        self.weights: dict[str, Tensor] = {}

    def __call__(self) -> History:
        started = time.monotonic()
        stopped: Literal["epochs", "patience", "interrupted"] = "epochs"
        try:
            for epoch in self._epochs():
                self._record(self._train_epoch(), self._validation_loss())
                if epoch - self.best >= self.task.training.patience:
                    stopped = "patience"
                    break
        except KeyboardInterrupt:
            if self.best < 0:
                raise
            stopped = "interrupted"
            kept = f"{self.task.name}: interrupted after {len(self.losses[1])} epochs; the best weights are kept."
            warnings.warn(kept, stacklevel=4)
        self.network.load_state_dict(self.weights)
        self.network.eval()
        train, validation = self.losses
        ended = min(len(train), len(validation))
        seconds = time.monotonic() - started
        return History(tuple(train[:ended]), tuple(validation[:ended]), self.best, stopped, seconds)

    def _epochs(self) -> Iterator[int]:
        """Count epochs, and show how far it is."""
        total = self.task.training.epochs
        with ProgressBar(self.task.name, total, "epochs at most", shown=self.task.progress) as bar:
            for epoch in range(total):
                yield epoch
                train, validation = self.losses
                bar.advance(f"loss {train[-1]:.4g}, validation {validation[-1]:.4g}")

    def _train_epoch(self) -> float:
        self.network.train()
        rows = self.task.train
        order = torch.from_numpy(self.task.rng.permutation(len(rows)))
        total = 0.0
        for own in torch.split(order, self.task.training.batch_size):
            self.optimiser.zero_grad(set_to_none=True)
            loss = self.loss(rows[own], self.generator)
            loss.backward()  # type: ignore[no-untyped-call]
            if self.task.training.clip is not None:
                nn.utils.clip_grad_norm_(self.parameters, self.task.training.clip)
            self.optimiser.step()
            self.warm_up.step()
            total += loss.item() * len(own)
        return total / len(rows)

    def _validation_loss(self) -> float:
        self.network.eval()
        generator = torch.Generator().manual_seed(self.validation_seed)
        rows = self.task.validation
        with torch.no_grad():
            chunks = rows.chunks(_VALIDATION_ROWS)
            return sum(self.validate(chunk, generator).item() * len(chunk) for chunk in chunks) / len(rows)

    def _record(self, train: float, validation: float) -> None:
        if not (math.isfinite(train) and math.isfinite(validation)):
            raise ValueError(
                f"{self.task.name}: training diverged in epoch {len(self.losses[0])} (loss {train:g}, validation "
                f"{validation:g}). Try a smaller learning_rate than {self.task.training.learning_rate:g}, or clip=1.0."
            )
        self.losses[0].append(train)
        self.losses[1].append(validation)
        if self.best < 0 or validation < self.losses[1][self.best]:
            self.best = len(self.losses[1]) - 1
            self.weights = copy.deepcopy(self.network.state_dict())


def split(data: Transitions, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Divide rows into those to train on and those to validate on, each in ascending order.

    Whole episodes are held out if the data has episode ids and at least ``FEWEST_EPISODES`` of them,
    since rows of one episode are alike; otherwise single rows. About ``share`` of the rows validate.
    """
    groups = np.arange(len(data))
    if data.episode is not None:
        ids = np.unique(data.episode, return_inverse=True)[1]
        groups = ids if ids.max(initial=0) + 1 >= FEWEST_EPISODES else groups
    sizes = np.bincount(groups)
    order = rng.permutation(len(sizes))
    held = np.cumsum(sizes[order]) - sizes[order] < share * len(data)
    held[-1] = False
    validation = np.isin(groups, order[held])
    return np.flatnonzero(~validation), np.flatnonzero(validation)


def torch_generator(rng: np.random.Generator) -> torch.Generator:
    """Return a torch generator that is seeded from a NumPy one."""
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


@contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Draw inside from a torch state seeded from ``rng``, as module constructors do; then put the old one back."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(rng.integers(2**63)))
        yield


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Treat denormal numbers as zero inside; unscaled attention makes many, and they are slow."""
    before = float(torch.tensor(1e-40) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


@contextmanager
def deterministic() -> Iterator[None]:
    """Let several threads add up in one order inside: gradients of what was indexed would differ from run to run."""
    before, warned = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warned)
