"""Masks that need no learning.

A mask is any function ``(state, action) -> bool (B, N, n)``; these are ready-made ones. Missed edges
make wrong counterfactuals, extra edges only cost yield, so when in doubt add an edge.
"""

from counterpoint.masks.combine import And, Ensemble, Union
from counterpoint.masks.interventional import Interventional
from counterpoint.masks.proximity import Proximity
from counterpoint.masks.simple import Constant, Threshold
from counterpoint.masks.supported import Supported

__all__ = ["And", "Constant", "Ensemble", "Interventional", "Proximity", "Supported", "Threshold", "Union"]
