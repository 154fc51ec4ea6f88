"""Hash tables of 64-bit keys: open addressing in arrays of slots, each the number of a key or -1."""

from __future__ import annotations

import numpy as np

NO_PAIR = -1


def empty_slots(keys: int, least: int = 2) -> np.ndarray:
    """Return slots for that many keys, at most half of them full."""
    return np.full(max(least, 1 << (2 * keys).bit_length()), NO_PAIR, dtype=np.int32)
