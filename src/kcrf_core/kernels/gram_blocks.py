"""Gram blocks: k(x, x') of many rows x with pivots x'.

Functions of inner products go block by block: BLAS for the dense part, matches and sparse products in Cython, the
function of the inner product while the block is in cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from ..system import SLAB, Factor
from . import _kernels
from .inputs import NOTHING, Inputs
from .kernel import Kernel

if TYPE_CHECKING:
    import scipy.sparse

# Rows per block are chosen so that a block stays near, and so that threads are long without the interpreter's lock.
BLOCK_BYTES = 1 << 22
# Rows that are prepared at a time: bounds the memory of what kernels make of them.
ROWS_AT_ONCE = 1024

# Writes the kernel values of some of the rows, [n, M].
Fill = Callable[[slice, np.ndarray], None]


def _compressed(matrix: scipy.sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return indptr, indices and values in the types that Cython takes."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), np.ascontiguousarray(matrix.data, float)


class Pivots:
    """One side of Gram blocks, laid out for fast evaluation against many rows of the other side."""

    def __init__(self, inputs: Inputs, kernel: Kernel, dtype: np.dtype | type = np.float64):
        self.inputs, self.kernel, self.dtype = inputs, kernel, np.dtype(dtype)
        self._prepared = kernel.prepared(inputs, self.dtype)

    def __len__(self) -> int:
        return len(self.inputs)

    def block_rows(self) -> int:
        """Return the number of rows of a block."""
        rows = BLOCK_BYTES // (self.dtype.itemsize * max(len(self), 1))
        return min(max(rows // SLAB, 1), ROWS_AT_ONCE // SLAB) * SLAB

    def gram(self, rows: Inputs, out: np.ndarray | None = None) -> np.ndarray:
        """Return k(rows, pivots), [n, M]; the bits of a row do not depend on the others.

        The GIL is released in the hot parts: give each thread rows of its own.
        """
        n, step = len(rows), self.block_rows()
        if out is None:
            out = np.empty((n, len(self)), dtype=self.dtype)
        at_once = ROWS_AT_ONCE // step * step
        for begin in range(0, n, at_once):
            some = rows if n <= at_once else rows.take(slice(begin, begin + at_once))
            fill = self._prepared(some)
            for first in range(0, len(some), step):
                part = slice(first, min(first + step, len(some)))
                fill(part, out[begin + part.start : begin + part.stop])
        return out


def gram(kernel: Kernel, rows: Inputs, pivots: Inputs, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Return k(rows, pivots), [n, M]."""
    return Pivots(pivots, kernel, dtype).gram(rows)


class InnerProducts(Protocol):
    """A kernel that turns blocks of inner products into its values; see `InnerProductKernel`."""

    of_distances: ClassVar[bool]

    def seen_by(self, inputs: Inputs) -> Inputs: ...

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None: ...


class PreparedPivots:
    """Pivots laid out for inner products with many rows."""

    def __init__(self, inputs: Inputs, kernel: InnerProducts, dtype: np.dtype):
        self.kernel = kernel
        inputs = kernel.seen_by(inputs)
        self._middle = inputs.real.mean(axis=0) if kernel.of_distances and len(inputs) else None
        self._exact = kernel.of_distances and inputs.bag is not None
        inputs = self._moved(inputs)
        self.norms, self.sizes = inputs.squared_norms(), inputs.sizes
        self._real = Factor(inputs.real.T.astype(np.float64 if self._exact else dtype, copy=False))  # [R, M]
        # Pivots know few of the values of a column: numbered among themselves they fit 16 bits, and a
        # value that no pivot has is skipped without a comparison.
        M, C = inputs.codes.shape
        width = np.int16 if max(M, C) < np.iinfo(np.int16).max else np.int32
        self._codes = np.full((C, M), -1, dtype=width)
        tables: list[np.ndarray] = []
        listed: list[np.ndarray] = []
        sizes: list[np.ndarray] = []
        first_list: list[int] = []
        for c in range(C):
            column = np.maximum(inputs.codes[:, c], NOTHING)
            table = np.full(int(inputs.sizes[c]) + 1, -1, dtype=width)  # the last entry serves a pivot's code -1
            values = np.unique(column[column >= 0])
            table[values] = np.arange(len(values), dtype=width)
            self._codes[c] = table[column]
            tables.append(table)
            having = np.argsort(self._codes[c], kind="stable")
            listed.append(having[np.count_nonzero(column < 0) :])
            first_list.append(sum(map(len, sizes)))
            sizes.append(np.bincount(self._codes[c][column >= 0], minlength=len(values)))
        self._listed = np.concatenate([*listed, []]).astype(np.int32)
        self._list_ends = np.concatenate([[0], np.cumsum(np.concatenate([*sizes, []]))]).astype(np.int64)
        self._first_list = np.array(first_list, dtype=np.int64)
        self._numbers = np.concatenate([*tables, np.zeros(0, dtype=width)])
        self._first_number = np.cumsum([0, *map(len, tables)])[:-1].astype(np.int64)
        self._bag = None if inputs.bag is None else _compressed(inputs.bag.T.tocsr())

    def _moved(self, inputs: Inputs) -> Inputs:
        return inputs if self._middle is None else replace(inputs, real=inputs.real - self._middle)

    def against(self, rows: Inputs) -> Fill:
        M = len(self.norms)
        rows = self._moved(self.kernel.seen_by(rows))
        norms = rows.squared_norms()
        codes = np.ascontiguousarray(rows.codes, dtype=np.int32)
        # Cython indexes without bounds checks, so nothing out of range may reach it.
        if codes.shape[1] != len(self._codes) or (codes.size and (codes.max(axis=0) >= self.sizes).any()):
            raise ValueError("rows do not have the columns of the pivots")
        counts = np.empty(M, dtype=self._codes.dtype)
        bag = None if rows.bag is None else _compressed(rows.bag)

        def fill(part: slice, out: np.ndarray) -> None:
            block = np.empty(out.shape) if self._exact and out.dtype != np.float64 else out
            if len(self._real):
                self._real.products(rows.real[part], block)
            elif not len(self._codes):
                block.fill(0)
            if len(self._codes):
                _kernels.add_matches(
                    codes[part],
                    self._numbers,
                    self._first_number,
                    self._codes,
                    self._first_list,
                    self._list_ends,
                    self._listed,
                    counts,
                    not len(self._real),
                    block,
                )
            if self._bag is not None and bag is not None:
                _kernels.add_sparse_products(*bag, *self._bag, part.start, block)
            self.kernel.apply(block, norms[part], self.norms)
            if block is not out:
                out[:] = block

        return fill
