"""A plain forward model, to see what data is worth: what it learns from it, and when it begins to overfit."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.require import require_generator
from counterpoint.core.transitions import Transitions
from counterpoint.learn.networks.layers import mlp
from counterpoint.learn.training.fitting import Training, TrainingTask, minimise, seeded
from counterpoint.learn.training.scaling import ScaledBatch, Scaling


@dataclass(frozen=True)
class LearningCurve:
    """Mean squared errors epoch by epoch, in variances of the change of each column."""

    train: tuple[float, ...]
    validation: tuple[float, ...]

    @property
    def overfitting(self) -> float:
        """How many times the last validation error is the smallest one."""
        return self.validation[-1] / min(self.validation)


def learning_curve(
    data: Transitions,
    validation: Transitions,
    *,
    rng: np.random.Generator,
    epochs: int = 100,
    width: int = 256,
    batch_size: int = 500,
    progress: bool = True,
) -> LearningCurve:
    """Train a network of two hidden layers to predict the change of the state, and return its errors.

    The defaults are those of the paper's experiment with a forward model of sprites. Both sets are measured
    in units of the validation set, so curves of different training data can be compared.

    Args:
        data: transitions to train on.
        validation: other, real ones.
        rng: source of initial weights and order.
        epochs: passes over the data; all are made.
        width: hidden units of each layer.
        batch_size: rows of a step.
        progress: whether to show a progress bar on the error stream.
    """
    require_generator(rng)
    scaling = Scaling.of(validation)
    rows, held = (scaling.batch(part.state, part.action, part.next_state) for part in (data, validation))
    with seeded(rng):
        network = mlp([data.state.shape[1] + data.action.shape[1], width, width, data.state.shape[1]])

    def loss(batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG001
        predicted = network(torch.cat([batch.state, batch.action], dim=1))
        return torch.as_tensor((predicted - batch.target("change")).square().mean())

    training = Training(epochs=epochs, batch_size=batch_size, patience=epochs)
    history = minimise(network, loss, TrainingTask(rows, held, training, rng, progress=progress, name="forward model"))
    return LearningCurve(history.train, history.validation)
