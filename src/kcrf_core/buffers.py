"""Large arrays that are used again once nobody holds them.

Fresh memory is handed out page by page by the system, and for vectors of millions of parameters that costs more than
what is done with them.
"""

from __future__ import annotations

import sys

import numpy as np

LEAST_BYTES = 1 << 20  # smaller ones come from memory that the process has already


def _references(buffers: list[np.ndarray], number: int) -> int:
    return sys.getrefcount(buffers[number])


def _references_held_by_nobody() -> int:
    """What an array counts that only its list holds: interpreters differ. Zero where nothing can be counted."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return _references([np.empty(0)], 0) if gil and hasattr(sys, "getrefcount") else 0


HELD_BY_NOBODY = _references_held_by_nobody()


class Buffers:
    """A store of arrays. Every view of an array holds it, so none is handed out while a part of it is in use."""

    def __init__(self) -> None:
        self._held: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...] | int, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Like np.empty."""
        size, dtype = int(np.prod(shape)), np.dtype(dtype)
        if size * dtype.itemsize < LEAST_BYTES or not HELD_BY_NOBODY:
            return np.empty(shape, dtype=dtype)
        for number in range(len(self._held)):
            fits = self._held[number].size == size and self._held[number].dtype == dtype
            if fits and _references(self._held, number) <= HELD_BY_NOBODY:
                return self._held[number].reshape(shape)
        fresh = np.empty(size, dtype=dtype)
        self._held.append(fresh)
        return fresh.reshape(shape)
