"""Networks with weights of their own for each type, which factors of one type share."""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
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
        weights, biases = ([each[self.kinds] for each in own] for own in (self.weights, self.biases))
        out = layered(features, weights, biases, self.activation)
        return out if self.straight is None else out + self.straight.slots(features)


def layered(
    inputs: Tensor,
    weights: Iterable[Tensor],
    biases: Iterable[Tensor],
    activation: Callable[[Tensor], Tensor] = torch.relu,
) -> Tensor:
    """Send (K, B, inputs) through K networks side by side; every layer is one batched product.

    Args:
        inputs: what each network sees.
        weights: (K, inputs, outputs) of each layer.
        biases: (K, 1, outputs) of each layer.
        activation: what is applied between layers.
    """
    hidden = inputs
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        hidden = torch.baddbmm(bias, activation(hidden) if layer else hidden, weight)
    return hidden


def numbered(items: Sequence[Hashable]) -> Tensor:
    """Number items by their first occurrence, equal ones alike, (items,)."""
    order = {item: number for number, item in enumerate(dict.fromkeys(items))}
    return torch.tensor([order[item] for item in items], dtype=torch.long)


def uniform(*shape: int, fan: int) -> nn.Parameter:
    """Return parameters U(±1/√fan), as linear layers draw them."""
    return nn.Parameter((2.0 * torch.rand(*shape) - 1.0) / math.sqrt(max(1, fan)))
