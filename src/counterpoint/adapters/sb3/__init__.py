"""Transitions for agents of Stable-Baselines3: handed over at once, or made while the agent learns.

``to_sb3_buffer`` fills a plain buffer. ``CodaReplayBuffer`` makes counterfactuals as real rows come in,
``CodaHerReplayBuffer`` does so in goal environments, with hindsight, and ``LogCounterfactuals`` writes figures about
them to the agent's logger.
"""

try:
    import stable_baselines3  # noqa: F401
except ImportError as error:
    raise ImportError("Agents need Stable-Baselines3: pip install counterpoint-rl[sb3]") from error

from counterpoint.adapters.sb3.callbacks import LogCounterfactuals
from counterpoint.adapters.sb3.goal_doors import FutureActual
from counterpoint.adapters.sb3.handover import to_sb3_buffer
from counterpoint.adapters.sb3.her_buffer import CodaHerReplayBuffer
from counterpoint.adapters.sb3.replay_buffer import CodaReplayBuffer

__all__ = ["CodaHerReplayBuffer", "CodaReplayBuffer", "FutureActual", "LogCounterfactuals", "to_sb3_buffer"]
