"""Real rows that fit a factorisation."""

import numpy as np

from counterpoint.core.factors import Factorization
from counterpoint.core.transitions import Transitions


def fitting(data: Transitions, factors: Factorization, path: str) -> Transitions:
    """Return real rows that fit the factors, with whole numbers for episodes and steps.

    Raises:
        ValueError: if they hold noise, or hidden state, that no factor owns: a swap would lose it. Noise that never
            varies is no loss.
    """
    came, owned = 0 if data.noise is None else data.noise.shape[1], factors.noise_width
    if data.noise is not None and came != owned:
        if owned or (data.noise != data.noise[:1]).any():
            raise ValueError(
                f"noise: {path} holds {came} columns of noise or hidden state, and the factors own {owned}. Say "
                "who owns each: a section [noise] in a description, Factorization(noise=...) in Python. To leave them "
                "out, write noise = false in a description, or give scan(...).without('noise')."
            )
        data = data.replace(noise=None)
    numbers = {"episode": data.episode, "step": data.step}
    return data.replace(
        **{name: None if array is None else array.astype(np.int64, copy=False) for name, array in numbers.items()}
    )
