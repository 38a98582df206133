"""What both replay buffers check and read at their doors: spaces, the augmenter, ends of episodes, noise."""

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium import spaces

from counterpoint.core.arrays import Array
from counterpoint.core.augment import Augmenter
from counterpoint.replay import ActionScale, CounterfactualRows, Mixing, Rollouts

Infos = list[dict[str, Any]]


def require_action_space(space: Any) -> None:
    """Raise unless actions are numbers that lie in a row."""
    if not isinstance(space, spaces.Box | spaces.Discrete):
        raise TypeError(f"action_space: expected a Box or Discrete, got {space}.")


def action_scale(space: Any, dtype: np.dtype[Any]) -> ActionScale:
    """Return how actions of a space are stored."""
    if isinstance(space, spaces.Box):
        return ActionScale(space.low.reshape(-1), space.high.reshape(-1), dtype)
    return ActionScale(np.array([space.start]), np.array([space.start + space.n - 1]), dtype)


def counterfactual_rows(augmenter: Any, mixing: Mixing, scale: ActionScale) -> CounterfactualRows:
    """Return the counterfactual half of a buffer; raise if its two settings are something else."""
    if not callable(augmenter):
        raise TypeError(
            f"augmenter: expected Augmenter(factors, mask_fn, reward_fn), Rollouts(forward_model, reward_fn) or a "
            f"function (data, *, rng) -> Transitions, got {augmenter!r}."
        )
    if not isinstance(mixing, Mixing):
        raise TypeError(f"mixing: expected counterpoint.replay.Mixing(every=..., ...), got {mixing!r}.")
    if isinstance(augmenter, Rollouts) and augmenter.draw_actions is None:
        augmenter = replace(augmenter, draw_actions=scale.draw)
    return CounterfactualRows(augmenter, mixing)


def require_terminal_fn(augmenter: Any, done: Array, infos: Infos, *, timeouts: bool) -> None:
    """Raise if an episode terminates and nobody could say whether a counterfactual does."""
    if getattr(augmenter, "terminal_fn", None) is not None or not np.any(done):
        return
    for over, info in zip(done, infos, strict=True):
        if over and not (timeouts and info.get("TimeLimit.truncated", False)):
            raise ValueError(
                "terminal_fn: an episode terminated, and whether a counterfactual is terminal cannot be copied from "
                "real rows. Give the augmenter terminal_fn(state, action, next_state) -> bool (B,). If it was only a "
                "time limit, the environment must return it as truncated."
            )


def empty_noise(augmenter: Any, key: str | None, shape: tuple[int, int], dtype: Any) -> Array | None:
    """Return room for the noise of every real row, (buffer_size, n_envs, U); None if no noise is kept."""
    if key is None:
        return None
    if not isinstance(augmenter, Augmenter):
        raise ValueError("noise_key: only an Augmenter knows which noise belongs to which factor. Leave it out.")
    return np.zeros((*shape, augmenter.factors.noise_width), dtype)


def noise_of(infos: Infos, key: str) -> Array:
    """Return the noise that the environments tell, (n_envs, U)."""
    for info in infos:
        if key not in info:
            raise ValueError(
                f"noise_key: the environment's info has no {key!r}, only {', '.join(map(repr, info)) or 'nothing'}."
            )
    return np.array([info[key] for info in infos])
