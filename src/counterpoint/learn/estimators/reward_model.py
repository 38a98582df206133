"""RewardModel: the reward, or the end of an episode, as a function learned from the data."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint.core.arrays import Array
from counterpoint.core.factors import Factorization
from counterpoint.core.require import require_choice, require_counts
from counterpoint.core.transitions import Transitions
from counterpoint.learn.networks.layers import mlp
from counterpoint.learn.training.fitting import History, TrainingTask
from counterpoint.learn.training.inputs import require_inputs
from counterpoint.learn.training.learner import Learner
from counterpoint.learn.training.scaling import Labelled, ScaledBatch, Scaling

Predicted = Literal["reward", "terminated"]

MOST_VALUES = 16  # a column with more different values than this is no choice between values, but a number
_BATCH = 16384  # rows that are predicted at once


@dataclass(frozen=True, kw_only=True)
class RewardModel(Learner):
    """A network of state, action and next state that predicts a column of the data, to relabel it by.

    If the reward takes few values, as in the paper's Pong (-1, 0 and 1), the model chooses the likeliest of them;
    otherwise it predicts a number. Use it as the ``reward_fn`` of an ``Augmenter``, or with
    ``predicts="terminated"`` as its ``terminal_fn``, or name its file in a description: ``kind = "learned"``.

    The model is only as good as the data. Counterfactuals bring situations that the data does not hold, for
    example two goals reached at once. If you know the function, use that instead.

    Attributes:
        predicts: the column to predict: "reward" or "terminated".
        width: hidden units; one layer, as in the paper.
        epochs, batch_size, ...: as in ``Training``.
    """

    predicts: Predicted = "reward"
    width: int = 128
    epochs: int = 50
    batch_size: int = 512
    weight_decay: float = 1e-4
    validation_share: float = 0.1
    allow_constant: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_counts(self, "width")
        require_choice(self, "predicts", get_args(Predicted))

    def build(self, factors: Factorization, scaling: Scaling) -> nn.Module:  # noqa: ARG002, D102
        return _Network(2 * factors.state_width + factors.action_width, self.width)

    def rows(self, data: Transitions, scaling: Scaling) -> Labelled:  # noqa: D102
        wanted = torch.from_numpy(np.asarray(getattr(data, self.predicts), np.float32).copy())
        if not bool(torch.isfinite(wanted).all()):
            raise ValueError(f"{self.predicts}: some values are NaN or infinite, which cannot be learned.")
        return Labelled(scaling.batch(data.state, data.action, data.next_state), wanted)

    def train(self, network: "_Network", task: TrainingTask[Labelled]) -> History:  # noqa: D102
        network.observe(task.train.label)
        return super().train(network, task)

    def loss(self, network: "_Network", batch: Labelled, generator: torch.Generator) -> Tensor:  # noqa: ARG002, D102
        return network.loss(batch)

    def __call__(self, state: Array, action: Array, next_state: Array) -> Array:
        """Return the predicted column, (B,): floats for rewards, booleans for the end of an episode."""
        learned = self.learned()
        arrays = require_inputs(learned.factors, state, action, next_state)
        found = np.empty(len(arrays[0]), np.float32)
        with torch.no_grad():
            for start in range(0, len(found), _BATCH):
                batch = learned.scaling.batch(*(array[start : start + _BATCH] for array in arrays))
                found[start : start + _BATCH] = learned.network.predict(batch).numpy()  # type: ignore[operator]
        return found > 0.5 if self.predicts == "terminated" else found


class _Network(nn.Module):
    """One hidden layer; the first output is a number in standard deviations, the others are log odds of values."""

    values: Tensor  # (MOST_VALUES,) the values to choose from; NaN where there are fewer, or none
    moments: Tensor  # (2,) mean and standard deviation

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.layers = mlp([inputs, width, 1 + MOST_VALUES])
        self.register_buffer("values", torch.full((MOST_VALUES,), torch.nan))
        self.register_buffer("moments", torch.tensor([0.0, 1.0]))

    def observe(self, wanted: Tensor) -> None:
        """Find out whether there are values to choose from, or numbers."""
        different = torch.from_numpy(np.unique(wanted.numpy()))
        if len(different) <= MOST_VALUES:
            self.values[: len(different)] = different
        self.moments.copy_(torch.stack([wanted.mean(), wanted.std().clamp(min=1e-6)]))

    def forward(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        """Return the number, (B,), and the log odds of the values, (B, MOST_VALUES)."""
        outputs = self.layers(torch.cat([batch.state, batch.action, batch.target("next")], dim=1))
        return outputs[:, 0], outputs[:, 1:].masked_fill(self.values.isnan(), -torch.inf)

    def loss(self, rows: Labelled) -> Tensor:
        number, odds = self(rows.batch)
        if self.values.isnan().all():
            return torch.as_tensor((number - (rows.label - self.moments[0]) / self.moments[1]).square().mean())
        return cross_entropy(odds, (rows.label[:, None] - self.values).abs().nan_to_num(torch.inf).argmin(dim=1))

    def predict(self, batch: ScaledBatch) -> Tensor:
        number, odds = self(batch)
        if self.values.isnan().all():
            return torch.as_tensor(number * self.moments[1] + self.moments[0])
        return self.values[odds.argmax(dim=1)]
