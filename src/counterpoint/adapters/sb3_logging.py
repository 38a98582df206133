"""Figures about made rows in the logger of a Stable-Baselines3 agent, and so in TensorBoard."""

import numpy as np

from counterpoint.core.arrays import Array
from counterpoint.replay import MadeRows

try:
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
except ImportError as error:
    raise ImportError("This needs Stable-Baselines3: pip install counterpoint-rl[sb3]") from error

HISTOGRAM_ROWS = 10_000


class LogMadeRows(BaseCallback):
    """Write figures about made rows to the agent's logger, after every round, under ``made/``.

    Scalars: ``acceptance`` of the last round, ``share`` of made rows in the last batch, ``size`` of their
    ring, ``seconds`` spent making them so far, ``reward_mean`` and ``reward_std`` (and the same of real rows,
    under ``real/``). TensorBoard gets histograms of both rewards as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rounds = 0

    def _on_step(self) -> bool:
        buffer = getattr(self.model, "replay_buffer", None)
        made = getattr(buffer, "made", None)
        if buffer is not None and isinstance(made, MadeRows) and made.rounds != self._rounds:
            self._rounds = made.rounds
            self._record(made, buffer.rewards[: buffer.size()].reshape(-1))
        return True

    def _record(self, made: MadeRows, real: Array) -> None:
        figures = {"acceptance": made.acceptance, "share": made.share, "size": len(made.ring), "seconds": made.seconds}
        for name, value in figures.items():
            self.logger.record(f"made/{name}", value)
        rows = np.linspace(0, len(made.ring) - 1, min(len(made.ring), HISTOGRAM_ROWS)).astype(np.int64)
        halves = {"real": real}
        if len(rows):
            halves["made"] = made.ring.take(rows).reward
        for half, rewards in halves.items():
            self.logger.record(f"{half}/reward_mean", float(rewards.mean()))
            self.logger.record(f"{half}/reward_std", float(rewards.std()))
            some = torch.as_tensor(rewards[:: len(rewards) // HISTOGRAM_ROWS + 1].astype(np.float32))
            self.logger.record(f"{half}/rewards", some, exclude=("stdout", "log", "json", "csv"))
