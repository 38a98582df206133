"""Figures about counterfactual rows in the logger of a Stable-Baselines3 agent, and so in TensorBoard."""

from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from counterpoint.replay import CounterfactualRows

HISTOGRAM_ROWS = 10_000


class LogCounterfactuals(BaseCallback):
    """Write figures about counterfactual rows to the agent's logger, after every round, under ``counterfactual/``.

    Scalars: ``acceptance`` of the last round, ``share`` of counterfactual rows in the last batch, ``size`` of their
    ring, ``seconds`` spent making them so far, ``reward_mean`` and ``reward_std`` (and the same of real rows,
    under ``real/``). TensorBoard gets histograms of both rewards as well.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rounds = 0

    def _on_step(self) -> bool:
        buffer = getattr(self.model, "replay_buffer", None)
        rows = getattr(buffer, "counterfactual", None)
        if isinstance(rows, CounterfactualRows) and rows.rounds != self._rounds:
            self._rounds = rows.rounds
            self._record(rows, buffer)
        return True

    def _record(self, rows: CounterfactualRows, buffer: Any) -> None:
        figures = {"acceptance": rows.acceptance, "share": rows.share, "size": len(rows.ring), "seconds": rows.seconds}
        for name, value in figures.items():
            self.logger.record(f"counterfactual/{name}", value)
        real = buffer.rewards[: buffer.size()].reshape(-1)
        for half, rewards in (("real", real), ("counterfactual", buffer.counterfactual_rewards(HISTOGRAM_ROWS))):
            if len(rewards):
                self.logger.record(f"{half}/reward_mean", float(rewards.mean()))
                self.logger.record(f"{half}/reward_std", float(rewards.std()))
                some = torch.as_tensor(rewards[:: len(rewards) // HISTOGRAM_ROWS + 1].astype(np.float32))
                self.logger.record(f"{half}/rewards", some, exclude=("stdout", "log", "json", "csv"))
