"""Building a network from a stranger's settings without giving it more memory than the stranger's weights need."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

SLACK = 1 << 20  # numbers that a network may hold for a moment beyond its largest weight
_SIZED = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye, torch.arange)


class _Bounded(TorchFunctionMode):
    """Refuses new tensors of more than so many numbers."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _SIZED:
            _require_at_most(self.most, args, dict(kwargs or {}))
        return func(*args, **(kwargs or {}))


@contextmanager
def no_larger_than(weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Raise ``ValueError`` as soon as a network asks for more, or larger, parameters than these weights."""
    count = 0

    def counted(_: nn.Module, __: str, ___: Any) -> None:
        nonlocal count
        count += 1
        if count > 2 * len(weights) + 16:
            raise ValueError("the settings ask for more weights than the file holds")

    largest = max((tensor.numel() for tensor in weights.values()), default=0)
    handle = register_module_parameter_registration_hook(counted)
    try:
        with _Bounded(largest + SLACK):
            yield
    finally:
        handle.remove()


def _require_at_most(most: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    size = 1
    for value in args or (kwargs.get("size", ()),):
        for length in value if isinstance(value, tuple | list) else (value,):
            if isinstance(length, int) and not isinstance(length, bool):
                size *= max(1, abs(length))
    if size > most:
        raise ValueError(
            f"the settings ask for an array of {size:,} numbers, the largest in the file has {most - SLACK:,}"
        )
