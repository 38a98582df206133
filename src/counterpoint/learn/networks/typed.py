"""Networks with weights of their own for each type, which factors of one type share."""

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class TypedMLP(nn.Module):
    """One network per kind: slot k of the input goes through the network of its kind.

    Args:
        kinds: the kind of each slot, (slots,).
        sizes: number of features, from input to output; two sizes make a linear layer.
        activation: what is applied between layers.
        bias: of the last layer at first, if it should not be random.
        straight: whether to add a linear path beside the layers, which makes simple laws exact. The layers
            then start at zero.
    """

    def __init__(
        self,
        kinds: Sequence[Hashable],
        sizes: Sequence[int],
        *,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        bias: float | None = None,
        straight: bool = False,
    ) -> None:
        super().__init__()
        self.activation, numbers = activation, numbered(kinds)
        self.kinds, count = numbers, int(numbers.max()) + 1 if len(numbers) else 0
        self.weights = nn.ParameterList(uniform(count, a, b, fan=a) for a, b in pairwise(sizes))
        self.biases = nn.ParameterList(uniform(count, 1, b, fan=a) for a, b in pairwise(sizes))
        self.straight = TypedMLP(kinds, [sizes[0], sizes[-1]]) if straight else None
        if straight:
            nn.init.zeros_(self.weights[-1])
            nn.init.zeros_(self.biases[-1])
        if bias is not None:
            nn.init.constant_(self.biases[-1], bias)

    def forward(self, features: Tensor) -> Tensor:
        """Map (B, slots, inputs) to (B, slots, outputs)."""
        return self.slots(features.transpose(0, 1)).transpose(0, 1)

    def slots(self, features: Tensor) -> Tensor:
        """Map (slots, B, inputs) to (slots, B, outputs)."""
        hidden = features
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            told = self.activation(hidden) if layer else hidden
            hidden = torch.baddbmm(bias[self.kinds], told, weight[self.kinds])
        return hidden if self.straight is None else hidden + self.straight.slots(features)


def numbered(items: Sequence[Hashable]) -> Tensor:
    """Number items by their first occurrence, equal ones alike, (items,)."""
    order = {item: number for number, item in enumerate(dict.fromkeys(items))}
    return torch.tensor([order[item] for item in items], dtype=torch.long)


def uniform(*shape: int, fan: int) -> nn.Parameter:
    """Return parameters U(±1/√fan), as linear layers draw them."""
    return nn.Parameter((2.0 * torch.rand(*shape) - 1.0) / math.sqrt(max(1, fan)))
