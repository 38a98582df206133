"""Three forward models: linear, a network with one hidden layer, and an LSTM over the columns of the next state."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from counterpoint import Transitions
from counterpoint.learn.networks.layers import mlp
from counterpoint.learn.training.fitting import Training, TrainingTask, flushed_denormals, minimise, seeded, split
from counterpoint.learn.training.scaling import ScaledBatch, Scaling

NAMES = ("linear", "mlp", "lstm")
PATIENCE = 15


class Forward(Protocol):
    """What all of them are."""

    def predict(self, state: np.ndarray, action: np.ndarray, /) -> np.ndarray:
        """Return the next states, (B, S)."""
        ...


@dataclass(frozen=True, eq=False)
class Linear:
    """Least squares with an intercept."""

    weights: np.ndarray  # (S + A + 1, S)

    @classmethod
    def fit(cls, data: Transitions) -> "Linear":
        """Fit to transitions."""
        return cls(np.linalg.lstsq(_with_one(data.state, data.action), data.next_state.astype(np.float64))[0])

    def predict(self, state: np.ndarray, action: np.ndarray, /) -> np.ndarray:
        """Return the next states, (B, S)."""
        return (_with_one(state, action) @ self.weights).astype(state.dtype)


@dataclass(frozen=True, eq=False)
class Network:
    """A network of standardised states and actions that gives standardised next states."""

    network: Any
    scaling: Scaling

    @classmethod
    def fit(cls, name: str, data: Transitions, rng: np.random.Generator, *, width: int, epochs: int) -> "Network":
        """Fit an ``mlp`` or an ``lstm``, with a fifth of the episodes to stop early by."""
        train, held = (data[rows] for rows in split(data, 0.2, rng))
        scaling = Scaling.of(train)
        rows, other = (scaling.batch(part.state, part.action, part.next_state) for part in (train, held))
        inputs, outputs = data.state.shape[1] + data.action.shape[1], data.state.shape[1]
        with seeded(rng):
            network: Any = Columnwise(inputs, outputs, width) if name == "lstm" else Plain([inputs, width, outputs])
        settings = Training(
            epochs=epochs, batch_size=64 if name == "mlp" else 256, weight_decay=1e-5, patience=min(PATIENCE, epochs)
        )

        def loss(batch: ScaledBatch, generator: torch.Generator) -> Tensor:  # noqa: ARG001
            return torch.as_tensor((network.told(batch) - batch.target("next")).square().mean())

        minimise(network, loss, TrainingTask(rows, other, settings, rng, progress=False, name=name))
        return cls(network, scaling)

    def predict(self, state: np.ndarray, action: np.ndarray, /) -> np.ndarray:
        """Return the next states, (B, S)."""
        with torch.no_grad(), flushed_denormals():
            found = self.network(self.scaling.batch(state, action))
        return self.scaling.next_state.undo(found).numpy().astype(state.dtype)


class Plain(nn.Module):
    """All columns at once."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.layers = mlp(sizes)

    def forward(self, batch: ScaledBatch) -> Tensor:
        """Return the standardised next state, (B, S)."""
        return torch.as_tensor(self.layers(torch.cat([batch.state, batch.action], dim=1)))

    told = forward


class Columnwise(nn.Module):
    """One column after another: each is predicted from state, action and the columns before it."""

    def __init__(self, inputs: int, outputs: int, width: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.begin = nn.Linear(inputs, width)
        self.lstm = nn.LSTM(2, width, batch_first=True)
        self.end = nn.Linear(width, 1)

    def told(self, batch: ScaledBatch) -> Tensor:
        """Return all columns, (B, S), each told of the true ones before it, as in training."""
        after = batch.target("next")
        before = torch.cat([after.new_zeros(len(after), 1), after[:, :-1]], dim=1)
        hidden, _ = self.lstm(torch.stack([before, batch.state], dim=2), self._start(batch))
        return torch.as_tensor(self.end(hidden).squeeze(-1))

    def forward(self, batch: ScaledBatch) -> Tensor:
        """Return the standardised next state, (B, S), each column told of the predicted ones before it."""
        state, last, found = self._start(batch), batch.state.new_zeros(len(batch.state), 1), []
        for column in range(self.outputs):
            seen = torch.stack([last, batch.state[:, column : column + 1]], dim=2)
            hidden, state = self.lstm(seen, state)
            last = self.end(hidden).squeeze(-1)
            found.append(last)
        return torch.cat(found, dim=1)

    def _start(self, batch: ScaledBatch) -> tuple[Tensor, Tensor]:
        first = torch.tanh(self.begin(torch.cat([batch.state, batch.action], dim=1))).unsqueeze(0)
        return first, first


def fit(name: str, data: Transitions, rng: np.random.Generator, *, epochs: int) -> Forward:
    """Return a fitted model by its name."""
    if name == "linear":
        return Linear.fit(data)
    return Network.fit(name, data, rng, width=500 if name == "mlp" else 128, epochs=epochs)


def _with_one(state: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.concatenate([state, action, np.ones((len(state), 1))], axis=1).astype(np.float64)
