"""What every network that learns from transitions has in common: fitting, saving and loading.

A learner is a frozen dataclass of settings. ``fit`` returns a copy that also holds what it learned, all of
it in the parameters and buffers of one network, for that is what is stored.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.training import storage
from counterpoint.learn.training.bounds import no_larger_than
from counterpoint.learn.training.fitting import History, Training, TrainingTask, minimise, seeded, split
from counterpoint.learn.training.inputs import require_training_data
from counterpoint.learn.training.scaling import Rows, Scaling
from counterpoint.learn.training.storable import Storable


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting adds to an estimator's settings."""

    factors: Factorization
    scaling: Scaling
    network: nn.Module
    history: History


@dataclass(frozen=True, kw_only=True)
class Learner(Training, Storable[Fitted], ABC):
    """Settings of a neural network that learns from transitions and, after ``fit``, what it learned.

    Attributes:
        epochs, batch_size, learning_rate, weight_decay, patience, warm_up, clip: as in ``Training``.
        validation_share: share of the rows held out for early stopping, unless ``fit`` is given some.
        allow_constant: accept state and action columns that never vary in the training data.
        fitted: None, or what ``fit`` learned.
    """

    validation_share: float = 0.2
    allow_constant: bool = False

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

    def contents(self) -> dict[str, Any]:
        """Return what a file holds beside name and settings."""
        learned = self.learned()
        weights = learned.network.state_dict()
        return {"factors": learned.factors, "scaling": learned.scaling, "history": learned.history, "weights": weights}

    def restored(self, record: storage.Record) -> Fitted:
        """Return what was learned, from a record that nobody has checked yet."""
        with seeded(np.random.default_rng(0)), no_larger_than(record.weights):
            network = self.build(record.factors, record.scaling)
        network.load_state_dict(record.weights)
        network.eval()
        return Fitted(record.factors, record.scaling, network, record.history)
