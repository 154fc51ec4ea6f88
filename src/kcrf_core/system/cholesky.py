"""Cholesky factors on many threads.

Blocks of rows depend on the matrix alone, so that results are the same for any number of threads.
"""

from __future__ import annotations

import numpy as np

from .late_scipy import in_place
from .threads import Workers, ranges

FACTORISED_AT_ONCE, SOLVED_AT_ONCE = 256, 8  # rows


def factorise(matrix: np.ndarray, workers: Workers) -> bool:
    """Put the Cholesky factor L of a matrix in its lower triangle; return False if it has none.

    Column blocks come one after the other, the rows below each of them on all threads. The next block is factorised
    while other threads still work at the rows below it.
    """
    blocks = ranges(len(matrix), FACTORISED_AT_ONCE)
    positive = not blocks or not in_place.factorise(matrix[blocks[0], blocks[0]])
    for number, block in enumerate(blocks):
        if not positive:
            return False
        below = blocks[number + 1 :]

        def solve(rows: slice, block: slice = block) -> None:
            in_place.substitute_rows(matrix[block, block], matrix[rows, block])

        def update(rows: slice, block: slice = block) -> None:
            nonlocal positive
            matrix[rows, block.stop : rows.stop] -= matrix[rows, block] @ matrix[block.stop : rows.stop, block].T
            if rows.start == block.stop:
                positive = not in_place.factorise(matrix[rows, rows])

        workers.run(solve, below)
        workers.run(update, below[:1] + below[:0:-1])  # the next one, and then those with most to do
    return positive


def solve_factorised(triangle: np.ndarray, rows: np.ndarray, workers: Workers) -> np.ndarray:
    """Return (L L^T)^-1 times each row [C, M]."""
    rows = np.array(rows, dtype=triangle.dtype, order="C")

    def solve(some: slice) -> None:
        in_place.substitute_rows(triangle, rows[some])
        in_place.substitute_rows(triangle, rows[some], True)

    workers.run(solve, ranges(len(rows), SOLVED_AT_ONCE))
    return rows
