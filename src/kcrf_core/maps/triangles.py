"""Systems of equations with L [M, M], lower triangular, on many threads: L X = B and L^T X = B.

Substitution goes row after row. Blocks of L on its diagonal are inverted once instead, and then a system is a few products
after another, each of which threads share by rows of X,

    L X = B:      X_i = L_ii^-1 (B_i - sum_{j<i} L_ij X_j)
    L^T X = B:    X_i = L_ii^-T (B_i - sum_{j>i} L_ji^T X_j)

X is as near to the solution as substitution would bring it, |L^-1| |L| |X| times a rounding, but leaves more of B behind.
Blocks and rows depend on M alone, so that results are the same for any number of threads.
"""

from __future__ import annotations

from functools import cached_property
from threading import Lock

import numpy as np
from scipy.linalg import lapack

from ..errors import NumericError
from ..system import Budget, Workers, ranges

BLOCK = 2048  # rows of a block that is inverted: half of M times this has to be held
ROWS_PER_TASK = 64


class Triangle:
    """L, with the inverses of its blocks from the first time that they are needed."""

    def __init__(self, triangle: np.ndarray, memory: Budget):
        self._triangle, self._memory, self._lock = triangle, memory, Lock()
        self._blocks = ranges(len(triangle), BLOCK)

    @cached_property
    def _inverses(self) -> list[np.ndarray]:
        """Inverses of the blocks on the diagonal, [b, b] each; above it they are not set."""
        self._memory.spend(self, sum((block.stop - block.start) ** 2 * 4 for block in self._blocks))
        return [_inverse(self._triangle[block, block]) for block in self._blocks]

    def solve(self, B: np.ndarray, workers: Workers, out: np.ndarray | None = None) -> np.ndarray:
        """L^-1 B for B [M, C]."""
        X = np.empty_like(B) if out is None else out
        L = self._triangle
        for block, inverse in zip(self._blocks, self._inverses, strict=True):
            left, before = B[block], slice(0, block.start)
            if block.start:
                left = np.empty_like(left)

                def reduce(rows: slice, block: slice = block, left: np.ndarray = left, before: slice = before) -> None:
                    own = slice(block.start + rows.start, block.start + rows.stop)
                    np.subtract(B[own], L[own, before] @ X[before], out=left[rows])

                workers.run(reduce, ranges(len(left), ROWS_PER_TASK))

            def multiply(
                rows: slice, block: slice = block, left: np.ndarray = left, inverse: np.ndarray = inverse
            ) -> None:
                own = slice(block.start + rows.start, block.start + rows.stop)
                np.matmul(inverse[rows, : rows.stop], left[: rows.stop], out=X[own])

            workers.run(multiply, ranges(len(left), ROWS_PER_TASK)[::-1])
        return X

    def solve_transposed(self, B: np.ndarray, workers: Workers) -> np.ndarray:
        """L^-T B for B [M, C]."""
        X = np.empty(B.shape)
        L = self._triangle
        for block, inverse in zip(self._blocks[::-1], self._inverses[::-1], strict=True):
            left, after = B[block], slice(block.stop, len(L))
            if block.stop < len(L):
                left = np.empty(left.shape)

                def reduce(rows: slice, block: slice = block, left: np.ndarray = left, after: slice = after) -> None:
                    own = slice(block.start + rows.start, block.start + rows.stop)
                    np.subtract(B[own], L[after, own].T @ X[after], out=left[rows])

                workers.run(reduce, ranges(len(left), ROWS_PER_TASK))

            def multiply(
                rows: slice, block: slice = block, left: np.ndarray = left, inverse: np.ndarray = inverse
            ) -> None:
                own = slice(block.start + rows.start, block.start + rows.stop)
                np.matmul(inverse[rows.start :, rows].T, left[rows.start :], out=X[own])

            workers.run(multiply, ranges(len(left), ROWS_PER_TASK))
        return X


def _inverse(triangle: np.ndarray) -> np.ndarray:
    """The inverse of a lower triangle; above its diagonal are zeros."""
    # Of its transpose, which lies in memory by columns as LAPACK wants it.
    upper = np.zeros(triangle.shape)
    rows = np.tril_indices(len(triangle))
    upper[rows] = triangle[rows]
    found, status = lapack.dtrtri(upper.T, lower=0, overwrite_c=1)
    if status:
        raise NumericError("the kernel matrix of the pivots is singular: choose fewer of them")
    return found.T
