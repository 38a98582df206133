"""What recordings alone say of a mask, for a report."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from counterpoint.core.augment import Augmenter
from counterpoint.core.transitions import Transitions
from counterpoint.progress import announce

MOST_ROWS = 20_000  # that a mask is judged by


def judging(augmenter: Augmenter) -> Callable[[Transitions], Any]:
    """Return a function of real rows that says what they tell of the augmenter's mask; None if it cannot be asked.

    It needs PyTorch, and enough rows. A mask that looks at the noise is not judged: recordings do not show it.
    """

    def judge(data: Transitions) -> Any:
        try:
            learn: Any = importlib.import_module("counterpoint.learn")
        except ImportError:
            return None
        fewest = importlib.import_module("counterpoint.learn.calibration.calibrate").FEWEST_ROWS
        if len(data) < fewest or getattr(augmenter.mask_fn, "uses_noise", False):
            return None
        announce(f"judge the mask by {min(len(data), MOST_ROWS):,} rows")
        found = learn.calibrate(
            augmenter.mask_fn,
            data[:MOST_ROWS].replace(noise=None),
            augmenter.factors,
            rng=np.random.default_rng(0),
            derive=augmenter.derive,
            progress=False,
        )
        return importlib.import_module("counterpoint.report").Judgement(found.fine, found.verdict)

    return judge
