"""Ways to damage a file, drawn at random: bits, bytes, cuts, holes, absurd numbers, doubled parts, forgeries."""

import re

from tests.campaigns.forgeries import FORGERIES

ABSURD = [
    b"0", b"-1", b"99999999999", b"1180591620717411303424", b"null", b"NaN", b"1e400", b"[]", b"{}", b'"x"', b"true"
]  # fmt: skip


def mutated(raw, rng, suffix=""):
    """Return other bytes, and whether they are forged, which every third file is if its suffix is a known one."""
    while True:
        forged = suffix in FORGERIES and rng.random() < 1 / 3
        found = FORGERIES[suffix](raw, rng) if forged else WAYS[int(rng.integers(len(WAYS)))](bytearray(raw), rng)
        if bytes(found) != bytes(raw):
            return bytes(found), forged


def _place(raw, rng):
    return int(rng.integers(len(raw))) if raw else 0


def flip_bits(raw, rng):
    for _ in range(int(rng.integers(1, 5))):
        if raw:
            raw[_place(raw, rng)] ^= 1 << int(rng.integers(8))
    return raw


def overwrite(raw, rng):
    start, length = _place(raw, rng), int(rng.integers(1, 65))
    raw[start : start + length] = rng.bytes(len(raw[start : start + length]))
    return raw


def fill(raw, rng):
    start, length = _place(raw, rng), int(rng.integers(1, 65))
    raw[start : start + length] = bytes([int(rng.choice([0, 255]))]) * len(raw[start : start + length])
    return raw


def cut(raw, rng):
    return raw[: _place(raw, rng)]


def remove(raw, rng):
    start = _place(raw, rng)
    del raw[start : start + int(rng.integers(1, 300))]
    return raw


def repeat(raw, rng):
    start, length = _place(raw, rng), int(rng.integers(1, 300))
    return raw[:start] + raw[start : start + length] * 2 + raw[start + length :]


def absurd_number(raw, rng):
    """Put something absurd where text has a number or a word; lengths change, so binary formats see damage."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?|\"\w+\"", bytes(raw)))
    if not found:
        return raw
    spot = found[int(rng.integers(len(found)))]
    new = ABSURD[int(rng.integers(len(ABSURD)))]
    if rng.random() < 0.5:  # of the same length, so that offsets stay right
        new = (new + b" " * len(spot.group()))[: len(spot.group())]
    return raw[: spot.start()] + new + raw[spot.end() :]


def large_integer(raw, rng):
    """Overwrite eight bytes by a number that is far too large, as little-endian headers have them."""
    start = _place(raw, rng)
    number = int(rng.choice([2**31 - 1, 2**32 - 1, 2**40, 2**62]))
    raw[start : start + 8] = number.to_bytes(8, "little")[: len(raw[start : start + 8])]
    return raw


WAYS = (flip_bits, overwrite, fill, cut, remove, repeat, absurd_number, large_integer)
