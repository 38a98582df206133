"""Plain networks that several estimators are made of."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

SELF = 1000.0  # the score of a self-edge where scores have no upper bound: above any threshold


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Return linear layers of these sizes, (..., sizes[0]) to (..., sizes[-1]), with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def add_identity(scores: Tensor) -> Tensor:
    """Add 1 to the score of every factor's edge to itself, (B, N, n)."""
    added = scores.clone()
    added.diagonal(dim1=1, dim2=2).add_(1.0)
    return added


def with_self_edges(scores: Tensor) -> Tensor:
    """Set the score of every factor's edge to itself to ``SELF``, (B, N, n)."""
    own = scores.clone()
    own.diagonal(dim1=1, dim2=2).fill_(SELF)
    return own
