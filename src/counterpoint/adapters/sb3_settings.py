"""Keywords of the replay buffers for Stable-Baselines3: what there is, and whose is which."""

from typing import Any, Literal, TypedDict

from counterpoint.core.graphs import Policy
from counterpoint.core.protocols import DeriveFn, TerminalFn
from counterpoint.replay import Mixing

try:
    import torch
except ImportError as error:
    raise ImportError("This needs Stable-Baselines3: pip install counterpoint-rl[sb3]") from error


class BufferSettings(TypedDict, total=False):
    """What Stable-Baselines3 gives its buffers, and what both kinds of buffer here have in common."""

    device: torch.device | str
    n_envs: int
    optimize_memory_usage: bool  # refused
    handle_timeout_termination: bool
    every: int  # make rows once for every so many added ones (1000)
    seed: int  # of all that is random about made rows (0)
    terminal_fn: TerminalFn | None  # needed if episodes terminate, by more than a time limit


class CodaSettings(BufferSettings, total=False):
    """Further keywords of ``CodaReplayBuffer``; those without a comment are as in ``Augmenter``."""

    pairs: int
    samples_per_pair: int
    policy: Policy
    pairing: Literal["uniform", "sharing"]
    derive: DeriveFn | None
    coda_capacity: int  # how many counterfactual rows to keep (4,000,000)
    max_coda_fraction: float  # largest share of them in a batch (1: as many as in the union of both rings)
    noise_key: str | None  # where ``info`` has the simulator's noise; rows carry it, so that they can be audited


class DynaSettings(BufferSettings, total=False):
    """Further keywords of ``DynaReplayBuffer``."""

    starts: int  # rollouts per round (1500)
    steps: int  # steps per rollout (5)
    dyna_capacity: int  # how many rows to keep (4,000,000)
    max_dyna_fraction: float  # largest share of them in a batch (1)


def split(settings: Any, mine: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part settings into those of a buffer here and those of Stable-Baselines3's, unknown ones among them."""
    theirs = ("device", "n_envs", "optimize_memory_usage", "handle_timeout_termination")
    own = {name: value for name, value in settings.items() if name in mine.__annotations__ and name not in theirs}
    return own, {name: value for name, value in settings.items() if name not in own}


def take_mixing(own: dict[str, Any], kind: str) -> Mixing:
    """Take from the settings those of a ``Mixing``; which knows them by shorter names."""
    keys = {"every": "every", "seed": "seed", f"{kind}_capacity": "capacity", f"max_{kind}_fraction": "max_fraction"}
    return Mixing(**{keys[name]: own.pop(name) for name in list(own) if name in keys})
