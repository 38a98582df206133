"""Transitions as the nested arrays of a TorchRL replay buffer; TorchRL itself is not needed here.

The keys follow TorchRL's episode data format: values before the step are at the top, values after it under ``next``.
Slice samplers and hindsight buffers join neighbouring rows with the same ``traj_ids`` until ``done``. So every
transition without an episode gets an id of its own and is marked truncated.
"""

from typing import Any

import numpy as np

from counterpoint.core.augment import Counterfactuals
from counterpoint.core.transitions import Transitions
from counterpoint.files.episodes import cut_off
from counterpoint.files.recording import Recording


def to_torchrl(data: Transitions | Counterfactuals | Recording) -> dict[str, Any]:
    """Return nested arrays for ``TensorDict(arrays, batch_size=[len(data)])``, with which to ``extend`` a buffer.

    Args:
        data: transitions, counterfactuals, or what `counterpoint.files.read` returned.

    Example:
        >>> import numpy as np
        >>> data = Transitions(np.zeros((5, 4)), np.zeros((5, 1)), np.zeros(5), np.ones((5, 4)), np.zeros(5, bool))
        >>> arrays = to_torchrl(data)
        >>> arrays["next"]["reward"].shape, arrays["collector"]["traj_ids"].tolist()
        ((5, 1), [0, 1, 2, 3, 4])
    """
    rows = Recording.of(data).transitions
    truncated = cut_off(rows)
    trajectory = np.arange(len(rows)) if rows.episode is None else rows.episode.astype(np.int64)
    before = np.zeros((len(rows), 1), np.bool_)
    return {
        "observation": rows.state,
        "action": rows.action,
        "done": before,
        "terminated": before.copy(),
        "truncated": before.copy(),
        "collector": {"traj_ids": trajectory},
        "next": {
            "observation": rows.next_state,
            "reward": rows.reward[:, None],
            "done": (rows.terminated | truncated)[:, None],
            "terminated": rows.terminated[:, None],
            "truncated": truncated[:, None],
        },
    }
