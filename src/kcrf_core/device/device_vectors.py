"""Vectors of parameters on a device: one array of a backend each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..objective import Pairs, Vectors
from ..system import DOUBLE, Array, Backend

PAIRS_SHARE = 1 / 16  # of a device's memory that pairs in double precision may take


class DeviceVectors(Vectors):
    """The vectors of one problem: as long as theta, with a block for each term."""

    def __init__(self, blocks: Sequence[slice], backend: Backend):
        super().__init__(blocks)
        self.backend, self.xp = backend, backend.xp
        self._matrices: list[tuple[np.ndarray, Array]] = []

    def empty(self, dtype: np.dtype | type = np.float64) -> Array:
        return self.backend.empty((self.size,), np.dtype(dtype))

    def zeros(self) -> Array:
        return self.backend.zeros((self.size,))

    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> Array:
        return self.backend.array(values, np.dtype(dtype))

    def to_array(self, vector: Array) -> np.ndarray:
        return self.backend.numpy(vector)

    def cast(self, vector: Array, dtype: np.dtype | type) -> Array:
        return self.backend.cast(vector, np.dtype(dtype))

    def _double(self, values: Array) -> Array:
        return self.backend.cast(values, DOUBLE)

    def of_block(self, number: int) -> DeviceVectors:
        block = self.blocks[number]
        return DeviceVectors([slice(0, block.stop - block.start)], self.backend)

    def _multiplied(self, matrix: np.ndarray, rows: Array) -> Array:
        for known, copied in self._matrices:
            if known is matrix:
                return copied @ rows
        self._matrices.append((matrix, self.backend.array(matrix, DOUBLE)))  # the last few stay on the device
        del self._matrices[: -2 * max(len(self.blocks), 1)]
        return self._matrices[-1][1] @ rows

    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        """Return room for so many pairs, in double precision where there is plenty."""
        plenty = 16 * most * self.size <= PAIRS_SHARE * self.backend.memory()
        dtype = DOUBLE if plenty else np.dtype(dtype)
        steps, changes = (self.backend.zeros((most, self.size), dtype) for _ in range(2))
        return Pairs(self, steps, changes, dtype)
