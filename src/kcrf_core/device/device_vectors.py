"""Vectors of parameters on a device: one array of a backend each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..objective import Pairs, SliceWork, Vectors
from ..system import DOUBLE, Array, Backend, ranges

PAIRS_SHARE = 1 / 16  # of a device's memory that pairs in double precision may take
PIECE, PIECES_AT_ONCE = 1 << 15, 1 << 7  # columns of pairs that are multiplied, and widened to double precision


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

    def _placed(self, matrix: np.ndarray) -> Array:
        """Return a matrix there; the last few stay."""
        for known, there in self._matrices:
            if known is matrix:
                return there
        self._matrices.append((matrix, self.backend.array(matrix, DOUBLE)))
        del self._matrices[: -2 * max(len(self.blocks), 1)]
        return self._matrices[-1][1]

    def _results(self, work: SliceWork, width: int, variances: list[float]) -> np.ndarray:
        results = [self.backend.zeros((0,))]
        for part, sigma2 in zip(self.slices, variances, strict=True):
            values = [
                self.backend.zeros((1,)) + value if isinstance(value, float) else value for value in work(part, sigma2)
            ]
            results += [self._double(value).reshape(-1) for value in values]
        return self.backend.numpy(self.xp.concatenate(results)).reshape(len(self.slices), width)

    def _beside(self, values: Array, kept: Array) -> Array:
        return self._double(values)

    def _row_products(self, rows: Array, vector: Array) -> Array:
        (m, n), vector = rows.shape, self._double(vector)
        whole = n // PIECE
        total = self._double(rows[:, whole * PIECE :]) @ vector[whole * PIECE :]
        for some in ranges(whole, PIECES_AT_ONCE):  # many products in one go: one alone is too small for a GPU
            part, count = slice(some.start * PIECE, some.stop * PIECE), some.stop - some.start
            pieces = self._double(rows[:, part]).reshape(m, count, PIECE).swapaxes(0, 1)
            total = total + (pieces @ vector[part].reshape(count, PIECE, 1)).sum(0)[:, 0]
        return total

    def _combined(self, weights: np.ndarray, rows: Array) -> Array:
        shares, results = self.from_array(weights), [self.backend.zeros((0,))]
        for part in ranges(rows.shape[1], PIECE * PIECES_AT_ONCE):
            results.append(shares @ self._double(rows[:, part]))
        return self.xp.concatenate(results)

    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        """Return room for so many pairs, in double precision where there is plenty."""
        plenty = 16 * most * self.size <= PAIRS_SHARE * self.backend.memory()
        dtype = DOUBLE if plenty else np.dtype(dtype)
        steps, changes = (self.backend.zeros((most, self.size), dtype) for _ in range(2))
        return Pairs(self, steps, changes, dtype)
