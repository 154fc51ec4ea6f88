"""Kernel matrices [M, M], and systems L X = B and L^T X = B with their Cholesky factors L, on many threads.

Substitution goes row after row. Here blocks on the diagonal of L are inverted once, and then a system is a few products
after another, each of which threads share by rows of X,

    L X = B:      X_i = L_ii^-1 (B_i - sum_{j<i} L_ij X_j)
    L^T X = B:    X_i = L_ii^-T (B_i - sum_{j>i} L_ji^T X_j)

Blocks and rows depend on M alone, so that results are the same for any number of threads.
"""

from __future__ import annotations

import numpy as np

from ..errors import NumericError
from ..kernels import Inputs, Kernel, gram
from ..system import FACTORISED_AT_ONCE, Budget, Workers, in_place, ranges
from .native import LOWER, UPPER, product

BLOCK = 512  # rows of a block that is inverted: more take memory, fewer make threads wait for each other more often


def square_gram(kernel: Kernel, inputs: Inputs, workers: Workers) -> np.ndarray:
    """Return the kernel matrix of some inputs, [M, M] float64."""
    K = np.empty((len(inputs), len(inputs)))

    def task(part: slice) -> None:
        K[part] = gram(kernel, inputs.take(part), inputs)

    workers.run(task, ranges(len(inputs), FACTORISED_AT_ONCE))
    return K


class Triangle:
    """L, with the inverses of its blocks from the first time that they are needed."""

    def __init__(self, values: np.ndarray, memory: Budget):
        self.values, self._memory = values, memory  # [M, M]
        self._blocks = ranges(len(values), BLOCK)
        self._inverted: list[np.ndarray] = []

    def _inverses(self, workers: Workers) -> list[np.ndarray]:
        """Return the inverses of the blocks on the diagonal, [b, b] each."""
        if not self._inverted:
            self._memory.spend(
                self, sum((block.stop - block.start) ** 2 for block in ranges(len(self.values), BLOCK)) * 8 // 2
            )
            self._inverted = list(workers.map(lambda block: inverted(self.values[block, block]), self._blocks))
        return self._inverted

    def solve(
        self, B: np.ndarray, workers: Workers, transposed: bool = False, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return L^-1 B, or L^-T B where `transposed`, for B [M, C]."""
        L, team = self.values, workers.team
        X = np.empty(B.shape) if out is None else out
        B = np.ascontiguousarray(B, dtype=np.float64)
        for block, inverse in list(zip(self._blocks, self._inverses(workers), strict=True))[:: -1 if transposed else 1]:
            known = slice(block.stop, len(L)) if transposed else slice(0, block.start)
            others = L[known, block].T if transposed else L[block, known]  # [b, rows of X that are there]
            left = B[block]
            if others.shape[1]:
                left = np.empty(left.shape)
                product(team, others, X[known], left, less=B[block])
            product(team, inverse.T if transposed else inverse, left, X[block], UPPER if transposed else LOWER)
        return X


def inverted(triangle: np.ndarray) -> np.ndarray:
    """Return the inverse of a lower triangle."""
    # What lies above the diagonal is zero and never touched, so that hardly any memory goes there.
    lower = np.zeros(triangle.shape)
    for i, row in enumerate(triangle):
        lower[i, : i + 1] = row[: i + 1]
    if in_place.invert_triangle(lower):
        raise NumericError("the kernel matrix of the pivots is singular: choose fewer of them")
    return lower
