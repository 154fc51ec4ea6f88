"""Products and sums of rows, with the same bytes for a row whatever rows it stands among.

BLAS sums in an order that depends on the number of rows and, at the ends of its tiles, on the place of a row. Here
every row is summed in the order of its values, so results of a sequence do not depend on other sequences.
"""

from __future__ import annotations

import numpy as np

from . import _row_products

SLAB = 48  # rows at a time of products by BLAS, padded with zeros
COLUMNS_AT_ONCE = 8192  # that NumPy adds up in one order; beyond, the order depends on the number of rows


class Factor:
    """A matrix [K, C] that rows are multiplied with, laid out for that."""

    def __init__(self, columns: np.ndarray):
        K, self.columns = columns.shape
        self.dtype = columns.dtype
        self._padded = np.zeros((K, _row_products.padded_width(self.columns, self.dtype == np.float32)), self.dtype)
        self._padded[:, : self.columns] = columns
        self.values = self._padded[:, : self.columns]

    def __len__(self) -> int:
        return len(self._padded)

    def products(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Return rows [n, K] times the matrix, [n, C]."""
        if out is None:
            out = np.empty((len(rows), self.columns), dtype=self.dtype)
        _row_products.multiply(np.ascontiguousarray(rows, dtype=self.dtype), self._padded, out)
        return out


def row_products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return rows [n, K] @ columns [K, C]; for many products with the same columns take a `Factor`."""
    return Factor(columns.astype(np.result_type(rows, columns), copy=False)).products(rows)


def padded(rows: np.ndarray) -> np.ndarray:
    """Return at most SLAB rows, and zeros below them, [SLAB, K]."""
    return rows if len(rows) == SLAB else np.pad(rows, ((0, SLAB - len(rows)), (0, 0)))


def row_squares(rows: np.ndarray) -> np.ndarray:
    """Return the sum of squares of each row of [n, K], [n]."""
    rows = np.ascontiguousarray(rows)
    out = np.zeros(len(rows), dtype=rows.dtype)
    for first in range(0, rows.shape[1], COLUMNS_AT_ONCE):
        part = rows[:, first : first + COLUMNS_AT_ONCE]
        out += np.einsum("nk,nk->n", part, part)
    return out
