"""Sparse matrices of explicit maps in compressed rows, in the types that Cython takes.

Most have columns with one value each: ones of one-hot encodings, sqrt(k) of merged columns, the weight of a
conjunction. Then no entry has a value of its own: the factor of its column is multiplied into a row of W, or of
the gradient, instead, so that an entry takes four bytes and is read in four.

Attributes of value zero add nothing to a product, but a label that has them may have weights for
them. They stand apart: with the truth values of the usual features of words, passes over CoNLL-2000
would take 1.1 times as long, and training 1.7 times the memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._lazy import cached_property
from ..kernels import Inputs
from ..system import offsets_of, ranges, sequence_rows
from . import _sparse
from .columns import ColumnOrder, all_ones, sparse_block, zero_entries, zeros_apart

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
    # Ends of rows [N+1] int64 and columns int32 of entries that are zero: none of those above is.
    zeros: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, matrix: scipy.sparse.csr_array) -> CompressedRows:
        return ColumnValues().compressed(matrix)

    @classmethod
    def of_inputs(cls, inputs: Inputs) -> CompressedRows:
        """Return categorical columns as one-hot rows, then attributes: the rows of `sparse_block`."""
        ones = all_ones(inputs)
        if ones is None:
            return cls.of(sparse_block(inputs))
        return cls(ColumnOrder.of(inputs).first_real, *ones, NOTHING, NOTHING, zero_entries(inputs))

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

    def seen_places(self, ends: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
        """Return places feature * width + column, ascending, where a row of the feature has the column.

        The matrix is a transpose: features are its rows. `ends` [N+1] are those of the columns of
        each row of the matrix itself.
        """
        pairs = self.indptr, self.indices & np.int32(_sparse.ROWS), ends, columns, width
        places = np.empty(_sparse.seen_places(*pairs, np.empty(0, dtype=np.int64)), dtype=np.int64)
        if len(places):
            _sparse.seen_places(*pairs, places)
        places.sort()
        return places

    def take(self, rows: np.ndarray) -> CompressedRows:
        rows = np.asarray(rows, dtype=np.int64)
        ends, entries = offsets_of(np.diff(self.indptr)[rows]), sequence_rows(self.indptr, rows)
        values, zeros = self.values[entries] if len(self.values) else NOTHING, self.zeros
        if zeros is not None:
            zeros = offsets_of(np.diff(zeros[0])[rows]), zeros[1][sequence_rows(zeros[0], rows)]
        return replace(self, indptr=ends, indices=self.indices[entries], values=values, zeros=zeros)

    def narrow(self, columns: np.ndarray) -> CompressedRows:
        """Return some columns, by number, in ascending order."""
        number = np.full(self.width, -1, dtype=np.int32)
        number[columns] = np.arange(len(columns), dtype=np.int32)
        indices = number[self.indices]
        there = indices >= 0
        ends = offsets_of(there)[self.indptr]
        values, zeros = self.values[there] if len(self.values) else NOTHING, self.zeros
        scale = self.scale[columns] if len(self.scale) else NOTHING
        if zeros is not None:
            numbers = number[zeros[1]]
            zeros = offsets_of(numbers >= 0)[zeros[0]], numbers[numbers >= 0]
        return CompressedRows(len(columns), ends, indices[there], values, scale, zeros)

    def zeros_by_columns(self) -> CompressedRows:
        """Return the transpose of a matrix of ones where entries are zero."""
        assert self.zeros is not None
        return CompressedRows(self.width, *self.zeros, NOTHING, NOTHING).by_columns()

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
        kept, _, _ = zeros_apart(matrix)
        values, columns, width = matrix.data[kept], matrix.indices[kept], matrix.shape[1]
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
        kept, ends, zeros = zeros_apart(matrix)
        indices = matrix.indices[kept].astype(np.int32, copy=False)
        values = NOTHING if self._alike else matrix.data[kept].astype(np.float64, copy=False)
        scale = self._common if self._alike and not self._ones else NOTHING
        return CompressedRows(matrix.shape[1], ends, indices, values, scale, zeros)
