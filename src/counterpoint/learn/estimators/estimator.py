"""What an estimator of masks is, and the base class of those that are neural networks.

A new estimator is one frozen dataclass of settings that inherits ``NetworkEstimator``::

    @dataclass(frozen=True, kw_only=True)
    class MyEstimator(NetworkEstimator):
        width: int = 64                        # settings: numbers, strings, bools, None, tuples of these
        uses_next_state: ClassVar[bool] = True  # if ``edges`` looks at batch.next_state or batch.change

        def build(self, factors, scaling): ...            # -> nn.Module, weights not yet trained
        def loss(self, network, batch, generator): ...    # -> scalar Tensor, mean over the batch
        def edges(self, network, batch): ...              # -> Tensor (B, N, n), rows are sources

and one entry in the table of ``counterpoint.learn.estimators.loading``. ``fit``, ``scores``, ``save`` and ``load``
are inherited. All that is learned must be in the parameters and buffers of the network: that is what
is stored. What else training finds out (a threshold, say) becomes a buffer. Override ``validation_loss``
if early stopping should watch another loss, ``train`` to train in stages, and ``__post_init__`` (calling
``super().__post_init__()``) to check settings. ``edges`` runs without gradients; open
``torch.enable_grad()`` inside if it differentiates. See ``inputs`` for what a ``ScaledBatch`` holds.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from counterpoint.core.arrays import Array, Floats
from counterpoint.learn.training.fitting import flushed_denormals
from counterpoint.learn.training.inputs import require_inputs
from counterpoint.learn.training.learner import Learner
from counterpoint.learn.training.scaling import ScaledBatch

_BATCH_TOKENS = 16384  # tokens that are scored at once, which bounds memory


class Estimator(Protocol):
    """Anything that scores how strongly each factor depends on each other, transition by transition.

    ``counterpoint.masks.Threshold(estimator, tau)`` makes a mask of it.
    """

    @property
    def uses_next_state(self) -> bool:
        """Whether ``scores`` needs the next state."""
        ...

    def scores(self, state: Array, action: Array, next_state: Array | None = None, /) -> Floats:
        """Return scores, (B, N, n): rows are sources, columns targets, larger means more dependent."""
        ...


@dataclass(frozen=True, kw_only=True)
class NetworkEstimator(Learner):
    """An estimator that is a neural network; settings as for every ``Learner``."""

    uses_next_state: ClassVar[bool] = False

    @abstractmethod
    def edges(self, network: Any, batch: ScaledBatch) -> Tensor:
        """Return the scores of a batch, (B, N, n)."""

    def scores(self, state: Array, action: Array, next_state: Array | None = None, /) -> Floats:
        """Return how strongly each target depends on each source, float32 (B, N, n).

        Rows are sources (state factors, then action factors), columns are next-state factors; larger
        means more dependent. Works through the rows in batches of bounded memory.

        Args:
            state: (B, S).
            action: (B, A).
            next_state: (B, S); needed if ``uses_next_state``, otherwise ignored.
        """
        learned = self.learned()
        if self.uses_next_state and next_state is None:
            raise ValueError(
                f"next_state: {type(self).__name__} scores what happened, so it needs the next state. "
                "Call scores(state, action, next_state)."
            )
        arrays = require_inputs(learned.factors, state, action, next_state if self.uses_next_state else None)
        nodes, n = learned.factors.n + learned.factors.m, learned.factors.n
        scores = np.empty((len(arrays[0]), nodes, n), np.float32)
        rows = max(1, _BATCH_TOKENS // nodes)
        with torch.no_grad(), flushed_denormals():
            for start in range(0, len(scores), rows):
                batch = learned.scaling.batch(*(array[start : start + rows] for array in arrays))
                scores[start : start + rows] = self.edges(learned.network, batch).detach().numpy()
        return scores
