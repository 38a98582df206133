"""Flags as bits: a row of flags in as few bytes as it takes, the first flag in the lowest bit."""

import numpy as np

from counterpoint.core.arrays import Array, Bools


def packed(flags: Bools) -> Array:
    """Pack flags (B, N) into bytes (B, ceil(N / 8)).

    Example:
        >>> import numpy as np
        >>> packed(np.array([[True, False, True]])), unpacked(np.array([[5]], np.uint8), 3)
        (array([[5]], dtype=uint8), array([[ True, False,  True]]))
    """
    width = -(-flags.shape[1] // 8)
    padded = np.zeros((len(flags), 8 * width), np.bool_)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded.reshape(-1), bitorder="little").reshape(len(flags), width)  # quicker than row by row


def unpacked(bits: Array, count: int) -> Bools:
    """Return the first so many flags of each row."""
    flags = np.unpackbits(bits.reshape(-1), bitorder="little").reshape(len(bits), 8 * bits.shape[1])
    return np.ascontiguousarray(flags[:, :count]).view(np.bool_)
