"""Estimators whose network is a forward model: they can be asked for the next state itself."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Array, Floats
from counterpoint.core.require import require_choice
from counterpoint.learn.estimators.estimator import NetworkEstimator
from counterpoint.learn.training.fitting import flushed_denormals
from counterpoint.learn.training.inputs import require_inputs
from counterpoint.learn.training.scaling import ScaledBatch, Target
from counterpoint.learn.training.tokens import node_columns

_BATCH = 4096  # rows that are predicted at once


@dataclass(frozen=True, kw_only=True)
class Predictor(NetworkEstimator):
    """An estimator whose network predicts all of the next state.

    Attributes:
        target: what the network predicts, the "next" state or its "change".
    """

    target: Target = "next"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self, "target", get_args(Target))

    @abstractmethod
    def prediction(self, network: Any, batch: ScaledBatch) -> Tensor:
        """Return the standardised target, the columns of one state factor after those of another, (B, D)."""

    def predict(self, state: Array, action: Array, /) -> Floats:
        """Return the next states that are expected, (B, S), in the units of the data.

        Args:
            state: (B, S).
            action: (B, A).

        Raises:
            ValueError: if the factors have derived columns, which no model predicts.
        """
        learned = self.learned()
        if learned.factors.derived:
            raise ValueError(
                f"factors: state columns {learned.factors.derived} are derived, and only factors are predicted. "
                "Fit without these columns, and compute them from the prediction."
            )
        state, action = require_inputs(learned.factors, state, action, None)
        moments = learned.scaling.next_state if self.target == "next" else learned.scaling.change
        columns = node_columns(learned.factors)[: state.shape[1]]
        found = np.empty(state.shape)
        with torch.no_grad(), flushed_denormals():
            for start in range(0, len(found), _BATCH):
                rows = slice(start, start + _BATCH)
                batch = learned.scaling.batch(state[rows], action[rows])
                found[rows, columns] = self.prediction(learned.network, batch).numpy()
        found = found * moments.std + moments.mean + (state if self.target == "change" else 0.0)
        return found.astype(np.result_type(state, np.float32))
