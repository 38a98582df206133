"""Transitions as arrays for d3rlpy's ``MDPDataset``; d3rlpy itself is not needed here.

d3rlpy stores no next observations: within an episode it uses the following row. So if the following row does not
continue a transition, we add one that holds its next state and a timeout. d3rlpy makes no transition of that row:
``[s, s'], [a, a], [r, 0]`` gives exactly (s, a, r, s'). A terminal row needs none; d3rlpy uses zeros as its next
observation.
"""

import numpy as np

from counterpoint.core.arrays import Array, Bools
from counterpoint.core.augment import Counterfactuals
from counterpoint.core.transitions import Transitions
from counterpoint.files.recording import Recording


def to_d3rlpy(data: Transitions | Counterfactuals | Recording) -> dict[str, Array]:
    """Return the keyword arguments of ``d3rlpy.dataset.MDPDataset``.

    Consecutive rows of one episode stay together; every other transition becomes its own episode. Note that a
    scaler fitted to such a dataset also sees the added rows, with reward 0.

    Args:
        data: transitions, counterfactuals, or what `counterpoint.files.read` returned.

    Example:
        >>> import numpy as np
        >>> data = Transitions(np.zeros((5, 4)), np.zeros((5, 1)), np.zeros(5), np.ones((5, 4)), np.zeros(5, bool))
        >>> arrays = to_d3rlpy(data)  # MDPDataset(**arrays) has 5 transitions
        >>> arrays["observations"].shape, int(arrays["timeouts"].sum())
        ((10, 4), 5)
    """
    rows = Recording.of(data).transitions
    closed = ~(_continued(rows) | rows.terminated)
    place = np.arange(len(rows)) + np.cumsum(closed) - closed  # of each row in the output
    closing = place[closed] + 1
    total = len(rows) + int(closed.sum())
    found: dict[str, Array] = {}
    for name, array, last in (
        ("observations", rows.state, rows.next_state),
        ("actions", rows.action, rows.action),
        ("rewards", rows.reward[:, None].astype(np.float32), np.zeros((len(rows), 1), np.float32)),
        ("terminals", rows.terminated.astype(np.float32), np.zeros(len(rows), np.float32)),
        ("timeouts", np.zeros(len(rows), np.float32), np.ones(len(rows), np.float32)),
    ):
        found[name] = np.empty((total, *array.shape[1:]), array.dtype)
        found[name][place], found[name][closing] = array, last[closed]
    return found


def _continued(data: Transitions) -> Bools:
    """Say which rows the following one continues, (B,)."""
    found = np.zeros(len(data), np.bool_)
    if data.episode is not None:
        found[:-1] = (data.episode[1:] == data.episode[:-1]) & (data.next_state[:-1] == data.state[1:]).all(axis=1)
    return found & ~data.terminated
