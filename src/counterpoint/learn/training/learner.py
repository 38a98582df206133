"""What every network that learns from transitions has in common: fitting, saving and loading.

A learner is a frozen dataclass of settings. ``fit`` returns a copy that also holds what it learned, all of
it in the parameters and buffers of one network, for that is what is stored.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import FileProblem
from counterpoint.learn.training import storage
from counterpoint.learn.training.bounds import no_larger_than
from counterpoint.learn.training.fitting import History, Training, TrainingTask, minimise, seeded, split
from counterpoint.learn.training.inputs import require_training_data
from counterpoint.learn.training.scaling import Rows, Scaling


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting adds to an estimator's settings."""

    factors: Factorization
    scaling: Scaling
    network: nn.Module
    history: History


@dataclass(frozen=True, kw_only=True)
class Learner(Training, ABC):
    """Settings of a neural network that learns from transitions and, after ``fit``, what it learned.

    Attributes:
        epochs, batch_size, learning_rate, weight_decay, patience, warm_up, clip: as in ``Training``.
        validation_share: share of the rows held out for early stopping, unless ``fit`` is given some.
        allow_constant: accept state and action columns that never vary in the training data.
        fitted: None, or what ``fit`` learned.
    """

    validation_share: float = 0.2
    allow_constant: bool = False
    fitted: Fitted | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.validation_share < 1:
            raise ValueError(f"validation_share: expected a share between 0 and 1, got {self.validation_share!r}.")

    @abstractmethod
    def build(self, factors: Factorization, scaling: Scaling) -> nn.Module:
        """Return a new network; it may draw initial weights from torch's global state, which is seeded."""

    @abstractmethod
    def loss(self, network: Any, batch: Any, generator: torch.Generator) -> Tensor:
        """Return the mean training loss of a batch, a scalar."""

    def rows(self, data: Transitions, scaling: Scaling) -> Rows:
        """Return what the losses see of transitions."""
        return scaling.batch(data.state, data.action, data.next_state)

    def validation_loss(self, network: Any, batch: Any, generator: torch.Generator) -> Tensor:
        """Return the loss that early stopping watches, a scalar; by default the training loss."""
        return self.loss(network, batch, generator)

    def train(self, network: Any, task: TrainingTask[Any]) -> History:
        """Train the network in place; by default in one go."""
        return minimise(network, partial(self.loss, network), task, validate=partial(self.validation_loss, network))

    @property
    def training(self) -> Training:
        """The settings of the training loop."""
        return Training(**{setting.name: getattr(self, setting.name) for setting in fields(Training)})

    def fit(
        self,
        data: Transitions,
        factors: Factorization,
        *,
        rng: np.random.Generator,
        validation: Transitions | None = None,
        progress: bool = True,
    ) -> Self:
        """Return a copy of this estimator that has learned from ``data``; this one stays as it is.

        The same data, settings and state of ``rng`` give the same weights, on one machine with one
        number of threads. A keyboard interrupt after the first epoch returns what was learned until then.

        Args:
            data: transitions to learn from. Their standard scores are what the network sees.
            factors: how columns split into factors.
            rng: source of all randomness: split, initial weights, order of minibatches.
            validation: transitions for early stopping; without them ``validation_share`` of the data is
                held out, by whole episodes if the data has episode ids.
            progress: whether to show a progress bar on the error stream.

        Raises:
            ValueError: if the data does not fit the factors, has too few rows, or has a constant column.
        """
        require_generator(rng)
        require_training_data(data, factors, allow_constant=self.allow_constant)
        if validation is None:
            train_rows, validation_rows = split(data, self.validation_share, rng)
            data, validation = data[train_rows], data[validation_rows]
        else:
            require_training_data(validation, factors, allow_constant=True)
        scaling = Scaling.of(data)
        rows, held = (self.rows(part, scaling) for part in (data, validation))
        with seeded(rng):
            network = self.build(factors, scaling)
        task = TrainingTask(rows, held, self.training, rng, progress=progress, name=type(self).__name__)
        history = self.train(network, task)
        return replace(self, fitted=Fitted(factors, scaling, network, history))

    def learned(self) -> Fitted:
        """Return what ``fit`` learned, or raise."""
        if self.fitted is None:
            raise ValueError(
                f"{type(self).__name__}: it has learned nothing yet. fit returns a new estimator: "
                "estimator = estimator.fit(data, factors, rng=rng)."
            )
        return self.fitted

    def save(self, path: str | Path, *, force: bool = True) -> None:
        """Write settings, factors and weights to one safetensors file, whole or not at all.

        Args:
            path: the file.
            force: replace one that is there.
        """
        learned = self.learned()
        record = storage.Record(
            name=type(self).__name__,
            settings={f.name: getattr(self, f.name) for f in fields(self) if f.name != "fitted"},
            factors=learned.factors,
            scaling=learned.scaling,
            history=learned.history,
            weights=learned.network.state_dict(),
        )
        storage.write(path, record, force=force)

    @classmethod
    def load(cls, path: str | Path, *, factors: Factorization | None = None) -> Self:
        """Read an estimator of this class that ``save`` wrote.

        Args:
            path: the file.
            factors: the factorisation you are going to use it with; refuse a file of another one.
        """
        return cls.from_record(storage.read(path, factors=factors), path)

    @classmethod
    def from_record(cls, record: storage.Record, path: str | Path) -> Self:
        """Rebuild an estimator from what was stored at ``path``."""
        if record.name != cls.__name__:
            raise FileProblem(
                f"{path}: expected a {cls.__name__}, it holds a {record.name}. Use counterpoint.learn.load."
            )
        try:
            estimator = cls(**record.settings)
            with seeded(np.random.default_rng(0)), no_larger_than(record.weights):
                network = estimator.build(record.factors, record.scaling)
            network.load_state_dict(record.weights)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            why = " ".join(str(error).split("\n\t")[:2])
            raise FileProblem(f"{path}: its settings or weights do not make a {cls.__name__}: {why}") from error
        network.eval()
        return replace(estimator, fitted=Fitted(record.factors, record.scaling, network, record.history))
