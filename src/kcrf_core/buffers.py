"""Large arrays that are used again once nobody holds them.

Fresh memory is handed out page by page by the system, and for vectors of millions of parameters that costs more than
what is done with them.
"""

from __future__ import annotations

import sys

import numpy as np

LEAST_BYTES = 1 << 20  # smaller ones come from memory that the process has already
HELD_BY_NOBODY = 3  # references to a buffer while it is looked at: the list, the loop and the call


class Buffers:
    """A store of arrays. Every view of an array holds it, so none is handed out while a part of it is in use."""

    def __init__(self) -> None:
        self._held: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...] | int, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Like np.empty."""
        size, dtype = int(np.prod(shape)), np.dtype(dtype)
        if size * dtype.itemsize < LEAST_BYTES or not hasattr(sys, "getrefcount"):
            return np.empty(shape, dtype=dtype)
        for buffer in self._held:
            if buffer.size == size and buffer.dtype == dtype and sys.getrefcount(buffer) <= HELD_BY_NOBODY:
                return buffer.reshape(shape)
        fresh = np.empty(size, dtype=dtype)
        self._held.append(fresh)
        return fresh.reshape(shape)
