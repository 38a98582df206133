"""Counterfactual rows beside real ones while an agent learns: what holds them, when to make more, how many to draw.

Nothing here knows a library of agents. An adapter keeps real transitions where its library wants them, tells
``CounterfactualRows`` about each one that is added, and asks it for the other part of every batch. What makes rows is
an ``Augmenter`` (CoDA), ``Rollouts`` of a forward model (Dyna), or any function ``(data, *, rng) -> Transitions``.
"""

from counterpoint.replay.actions import ActionScale
from counterpoint.replay.mixing import Mixing
from counterpoint.replay.ring import Ring
from counterpoint.replay.rollouts import Rollouts
from counterpoint.replay.rows import CounterfactualRows

__all__ = ["ActionScale", "CounterfactualRows", "Mixing", "Ring", "Rollouts"]
