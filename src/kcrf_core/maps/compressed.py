"""Sparse matrices of explicit maps in compressed rows, in the types that Cython takes.

Most have columns with one value each: ones of one-hot encodings, sqrt(k) of merged columns, the weight of a
conjunction. Then no entry has a value of its own: the factor of its column is multiplied into a row of W, or of
the gradient, instead, so that an entry takes four bytes and is read in four.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._lazy import cached_property
from ..kernels import Inputs
from ..system import offsets_of, ranges, sequence_rows
from . import _sparse
from .columns import ColumnOrder, all_ones, sparse_block

if TYPE_CHECKING:
    import scipy.sparse

NOTHING = np.empty(0)
ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """A matrix [N, D]: an entry is its value, or 1, times the factor of its column, or 1."""

    width: int  # D
    indptr: np.ndarray  # [N+1] int64
    indices: np.ndarray  # [nnz] int32
    values: np.ndarray  # [nnz] float64, or [0] for all ones
    scale: np.ndarray  # [D] float64, or [0] for all ones

    @classmethod
    def of(cls, matrix: scipy.sparse.csr_array) -> CompressedRows:
        return ColumnValues().compressed(matrix)

    @classmethod
    def of_inputs(cls, inputs: Inputs) -> CompressedRows:
        """Return categorical columns as one-hot rows, then attributes: the rows of `sparse_block`."""
        ones = all_ones(inputs)
        if ones is None:
            return cls.of(sparse_block(inputs))
        return cls(ColumnOrder.of(inputs).first_real, *ones, NOTHING, NOTHING)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.width

    def matrix(self) -> scipy.sparse.csr_array:
        """Return the entries as they are, factors included."""
        import scipy.sparse

        values = self.values if len(self.values) else np.ones(len(self.indices))
        values = values * self.scale[self.indices] if len(self.scale) else values
        return scipy.sparse.csr_array((values, self.indices, self.indptr), shape=self.shape)

    @cached_property
    def _in_single(self) -> np.ndarray:
        return self.values.astype(np.float32)

    def values_in(self, dtype: np.dtype) -> np.ndarray:
        """Return the values of entries, without factors of columns."""
        return self.values if dtype == np.float64 else self._in_single

    def by_columns(self) -> CompressedRows:
        """Return the transpose; factors are still those of the columns here, which are rows there."""
        N, D = self.shape
        ends, rows = np.empty(D + 1, dtype=np.int64), np.empty(len(self.indices), dtype=np.int32)
        values = np.empty(len(self.values))
        _sparse.transposed(self.indptr, self.indices, self.values, ends, rows, values)
        return CompressedRows(N, ends, rows, values, self.scale)

    def take(self, rows: np.ndarray) -> CompressedRows:
        rows = np.asarray(rows, dtype=np.int64)
        ends, entries = offsets_of(np.diff(self.indptr)[rows]), sequence_rows(self.indptr, rows)
        values = self.values[entries] if len(self.values) else NOTHING
        return replace(self, indptr=ends, indices=self.indices[entries], values=values)

    def narrow(self, columns: np.ndarray) -> CompressedRows:
        """Return some columns, by number, in ascending order."""
        number = np.full(self.width, -1, dtype=np.int32)
        number[columns] = np.arange(len(columns), dtype=np.int32)
        indices = number[self.indices]
        there = indices >= 0
        ends = offsets_of(there)[self.indptr]
        values = self.values[there] if len(self.values) else NOTHING
        scale = self.scale[columns] if len(self.scale) else NOTHING
        return CompressedRows(len(columns), ends, indices[there], values, scale)

    def row_squares(self) -> np.ndarray:
        """Return the sum of squares of each row, [N]."""
        out = np.empty(self.shape[0])
        for part in ranges(self.shape[0], ROWS_AT_ONCE):
            ends = self.indptr[part.start : part.stop + 1]
            entries, rows = slice(ends[0], ends[-1]), np.repeat(np.arange(len(ends) - 1), np.diff(ends))
            values = self.values[entries] if len(self.values) else np.ones(len(rows))
            values = values * self.scale[self.indices[entries]] if len(self.scale) else values
            out[part] = np.bincount(rows, values * values, minlength=len(ends) - 1)
        return out


class ColumnValues:
    """Values that entries of each column have in common, for matrices that come in parts."""

    def __init__(self) -> None:
        self._common: np.ndarray | None = None  # [D] ones, or the value of the column; None: nothing came yet
        self._seen = np.empty(0, dtype=bool)  # [D] columns that had entries
        self._alike = self._ones = True

    def add(self, matrix: scipy.sparse.csr_array) -> None:
        """Take more rows."""
        values, columns, width = matrix.data, matrix.indices, matrix.shape[1]
        if self._common is None:
            self._common, self._seen = np.ones(width), np.zeros(width, dtype=bool)
        self._ones = self._ones and bool((values == 1).all())
        if self._alike:
            known, before = self._seen[columns], self._common[columns]
            self._common[columns] = values
            self._seen[columns] = True
            self._alike = bool((self._common[columns] == values).all() and (before[known] == values[known]).all())

    def compressed(self, matrix: scipy.sparse.csr_array) -> CompressedRows:
        """Return rows in the form that suits all parts that were added; this one, if there were none."""
        if self._common is None:
            self.add(matrix)
        assert self._common is not None
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
        values = NOTHING if self._alike else matrix.data.astype(np.float64, copy=False)
        scale = self._common if self._alike and not self._ones else NOTHING
        return CompressedRows(matrix.shape[1], indptr, indices, values, scale)
