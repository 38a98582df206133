"""Masks learned from transitions.

An estimator is a frozen set of settings; ``fit`` returns a copy that has learned, which gives scores,
and ``counterpoint.masks.Threshold`` makes a mask of scores::

    estimator = SandyTransformer().fit(data, factors, rng=rng)
    estimator.save("mask.safetensors")
    mask_fn = Threshold(counterpoint.learn.load("mask.safetensors"), tau=0.05)
"""

try:
    import safetensors
    import torch
    import tqdm
except ImportError as error:
    raise ImportError(
        f"counterpoint.learn needs {error.name}. Install it with: pip install counterpoint-rl[torch]"
    ) from error

from counterpoint.learn.calibration import calibrate
from counterpoint.learn.estimator import Estimator, NetworkEstimator
from counterpoint.learn.fitting import History
from counterpoint.learn.gradient import InputGradient
from counterpoint.learn.influence import ActionInfluence
from counterpoint.learn.loading import load
from counterpoint.learn.masked import MaskedLikelihood
from counterpoint.learn.residual import ResidualAttribution
from counterpoint.learn.reward import RewardModel
from counterpoint.learn.sandy_mixture import SandyMixture
from counterpoint.learn.sandy_transformer import SandyTransformer
from counterpoint.learn.verdict import Calibration

__all__ = [
    "ActionInfluence",
    "Calibration",
    "Estimator",
    "History",
    "InputGradient",
    "MaskedLikelihood",
    "NetworkEstimator",
    "ResidualAttribution",
    "RewardModel",
    "SandyMixture",
    "SandyTransformer",
    "calibrate",
    "load",
]

del safetensors, torch, tqdm
