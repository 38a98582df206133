"""Counterfactual data augmentation of reinforcement-learning data through local causal models."""

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
