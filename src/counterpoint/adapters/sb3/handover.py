"""Transitions handed over to an agent of Stable-Baselines3 at once, in a plain replay buffer."""

from typing import Any

from stable_baselines3.common.buffers import ReplayBuffer

from counterpoint.adapters.sb3.doors import action_scale
from counterpoint.core.arrays import listed
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import Recording


def to_sb3_buffer(
    data: Transitions | Counterfactuals | Recording,
    observation_space: Any,
    action_space: Any,
    *,
    size: int | None = None,
    device: str = "auto",
) -> ReplayBuffer:
    """Return a replay buffer that holds the transitions, for ``agent.replay_buffer``.

    Stable-Baselines3 keeps actions scaled to [-1, 1] by the bounds of the action space, and so does this buffer.
    Its rows form no episodes: each has its own next state and none counts as a timeout, so the agent bootstraps
    wherever a row is not terminal. For sequences, use `to_d3rlpy`, `to_torchrl` or a file.

    Args:
        data: transitions, counterfactuals, or what `counterpoint.files.read` returned.
        observation_space: the environment's, a flat ``Box``.
        action_space: the environment's.
        size: how many rows the buffer has room for; as many as the data has by default.
        device: where sampled batches go.
    """
    _require_flat(observation_space)
    rows = Recording.of(data).transitions
    room = len(rows) if size is None else size
    if not 0 < len(rows) <= room:
        raise ValueError(f"size: expected room for the {len(rows):,} rows (at least one), got {room:,}.")
    buffer = ReplayBuffer(room, observation_space, action_space, device=device)
    for name, array, target in (("state", rows.state, buffer.observations), ("action", rows.action, buffer.actions)):
        if (1, *array.shape[1:]) != target.shape[1:]:
            raise ValueError(f"{name}: the data has {array.shape[1]} columns, its space needs {target.shape[2:]}.")
    filled = slice(0, len(rows))
    buffer.observations[filled, 0], buffer.next_observations[filled, 0] = rows.state, rows.next_state
    buffer.actions[filled, 0] = _scaled(rows.action, action_space, buffer.actions.dtype)
    buffer.rewards[filled, 0], buffer.dones[filled, 0] = rows.reward, rows.terminated
    buffer.pos, buffer.full = len(rows) % room, len(rows) == room
    return buffer


def _require_flat(space: Any) -> None:
    """Raise unless observations are plain arrays, as a `ReplayBuffer` holds them."""
    parts = getattr(space, "spaces", None)
    if parts is not None:
        raise TypeError(
            f"observation_space: expected a Box, got a {type(space).__name__} with the parts {listed(list(parts))}. A "
            "plain replay buffer holds flat states. For a goal environment use CodaHerReplayBuffer, which relabels "
            "goals; or flatten: Goals.of_space(space) tells how, and gymnasium.wrappers.FlattenObservation does it."
        )


def _scaled(action: Any, space: Any, dtype: Any) -> Any:
    """Scale actions as the agents do before they store them."""
    scale = action_scale(space, dtype)
    if (action < scale.low).any() or (action > scale.high).any():
        raise ValueError("action: some lie outside the bounds of the action space. Clip them, or correct the space.")
    return scale.stored(action)
