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
except ImportError as error:
    raise ImportError(
        f"counterpoint.learn needs {error.name}. Install it with: pip install counterpoint-rl[torch]"
    ) from error

from counterpoint.learn.calibration.calibrate import calibrate
from counterpoint.learn.calibration.verdict import Calibration
from counterpoint.learn.estimators.action_influence import ActionInfluence
from counterpoint.learn.estimators.distilled_likelihood import DistilledLikelihood
from counterpoint.learn.estimators.dynamics_ensemble import DynamicsEnsemble
from counterpoint.learn.estimators.estimator import Estimator, NetworkEstimator
from counterpoint.learn.estimators.input_gradient import InputGradient
from counterpoint.learn.estimators.loading import load
from counterpoint.learn.estimators.masked_likelihood import MaskedLikelihood
from counterpoint.learn.estimators.residual_attribution import ResidualAttribution
from counterpoint.learn.estimators.reward_model import RewardModel
from counterpoint.learn.estimators.sandy_mixture import SandyMixture
from counterpoint.learn.estimators.sandy_transformer import SandyTransformer
from counterpoint.learn.estimators.tree_attribution import TreeAttribution
from counterpoint.learn.training.fitting import History

__all__ = [
    "ActionInfluence",
    "Calibration",
    "DistilledLikelihood",
    "DynamicsEnsemble",
    "Estimator",
    "History",
    "InputGradient",
    "MaskedLikelihood",
    "NetworkEstimator",
    "ResidualAttribution",
    "RewardModel",
    "SandyMixture",
    "SandyTransformer",
    "TreeAttribution",
    "calibrate",
    "load",
]

del safetensors, torch
