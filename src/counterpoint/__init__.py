"""Counterfactual data augmentation of reinforcement-learning data through local causal models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoint.core.augment import Augmenter, Counterfactuals
    from counterpoint.core.coda import coda, swap
    from counterpoint.core.engine import Funnel
    from counterpoint.core.factors import Factorization
    from counterpoint.core.graphs import Sparse, Uniform, components, independent, random_union
    from counterpoint.core.positions import Position
    from counterpoint.core.protocols import DeriveFn, Mask, MaskFn, NextStateMaskFn, NoiseMaskFn, RewardFn, TerminalFn
    from counterpoint.core.provenance import Provenance
    from counterpoint.core.transitions import Transitions

__version__ = "0.1.0"

__all__ = [
    "Augmenter",
    "Counterfactuals",
    "DeriveFn",
    "Factorization",
    "Funnel",
    "Mask",
    "MaskFn",
    "NextStateMaskFn",
    "NoiseMaskFn",
    "Position",
    "Provenance",
    "RewardFn",
    "Sparse",
    "TerminalFn",
    "Transitions",
    "Uniform",
    "coda",
    "components",
    "independent",
    "random_union",
    "swap",
]

# Names are loaded when they are first asked for. So the command is there at once, and can be stopped while it loads.
_PLACES = {
    "augment": ("Augmenter", "Counterfactuals"),
    "coda": ("coda", "swap"),
    "engine": ("Funnel",),
    "factors": ("Factorization",),
    "graphs": ("Sparse", "Uniform", "components", "independent", "random_union"),
    "positions": ("Position",),
    "protocols": ("DeriveFn", "Mask", "MaskFn", "NextStateMaskFn", "NoiseMaskFn", "RewardFn", "TerminalFn"),
    "provenance": ("Provenance",),
    "transitions": ("Transitions",),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"counterpoint.core.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
