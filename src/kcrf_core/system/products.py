"""Products and sums of rows, the bytes of a row being the same whatever rows it stands among.

BLAS sums in an order that depends on how many rows a product has and, at the ends of its tiles, on where a row stands.
Here every row is summed in the order of its values. So what is computed of a sequence does not depend on the sequences
that arrive with it.
"""

from __future__ import annotations

import numpy as np

from . import _row_products

# Rows at a time where others than those here are asked for products, and get zeros where there are fewer.
SLAB = 48
# Columns that NumPy adds up in one order; beyond them that order depends on the number of rows.
COLUMNS_AT_ONCE = 8192


class Factor:
    """A matrix [K, C] that rows are multiplied with, laid out for that."""

    def __init__(self, columns: np.ndarray):
        K, self.columns = columns.shape
        self.dtype = columns.dtype
        self._padded = np.zeros((K, _row_products.padded_width(self.columns, self.dtype == np.float32)), self.dtype)
        self._padded[:, : self.columns] = columns

    def __len__(self) -> int:
        return len(self._padded)

    @property
    def values(self) -> np.ndarray:
        """The matrix itself."""
        return self._padded[:, : self.columns]

    def products(self, rows: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """rows [n, K] times the matrix, [n, C]."""
        if out is None:
            out = np.empty((len(rows), self.columns), dtype=self.dtype)
        _row_products.multiply(np.ascontiguousarray(rows, dtype=self.dtype), self._padded, out)
        return out


def row_products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """rows [n, K] @ columns [K, C]; for many products with the same columns take a `Factor`."""
    return Factor(columns.astype(np.result_type(rows, columns), copy=False)).products(rows)


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
