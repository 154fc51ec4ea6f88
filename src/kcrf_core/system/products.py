"""Products and sums of rows, the bytes of a row being the same whatever rows it stands among.

BLAS sums in an order that depends on how many rows a product has and, at the ends of its tiles, on where a row stands.
It always gets the same number of rows here, a multiple of the heights of all tiles, with zeros where there are fewer.
So what is computed of a sequence does not depend on the sequences that arrive with it.
"""

from __future__ import annotations

import numpy as np

# Rows of one product. A short sequence pays for all of them, so there are no more than keep BLAS nearly as fast as
# it gets: 95 % of what it does with thousands.
SLAB = 48
# Columns that NumPy adds up in one order; beyond them that order depends on the number of rows.
COLUMNS_AT_ONCE = 8192


def row_products(rows: np.ndarray, columns: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """rows [n, K] @ columns [K, C], to be held to one BLAS thread by the caller (`Workers`)."""
    n = len(rows)
    if out is None:
        out = np.empty((n, columns.shape[1]), dtype=np.result_type(rows, columns))
    rows = np.ascontiguousarray(rows)
    whole = n - n % SLAB
    for first in range(0, whole, SLAB):
        np.matmul(rows[first : first + SLAB], columns, out=out[first : first + SLAB])
    if whole < n:
        out[whole:] = (padded(rows[whole:]) @ columns)[: n - whole]
    return out


def padded(rows: np.ndarray) -> np.ndarray:
    """At most SLAB rows, and zeros below them, [SLAB, K]."""
    if len(rows) == SLAB:
        return rows
    out = np.zeros((SLAB, rows.shape[1]), dtype=rows.dtype)
    out[: len(rows)] = rows
    return out


def row_squares(rows: np.ndarray) -> np.ndarray:
    """The sum of squares of each row of [n, K], [n]."""
    rows = np.ascontiguousarray(rows)
    out = np.zeros(len(rows), dtype=rows.dtype)
    for first in range(0, rows.shape[1], COLUMNS_AT_ONCE):
        part = rows[:, first : first + COLUMNS_AT_ONCE]
        out += np.einsum("nk,nk->n", part, part)
    return out
