"""Maps that hold the columns of Phi: the linear kernel's own features, merged ones, and those of affine kernels.

**Merged columns.** Features seen only together, above all those of words seen once, have equal one-hot columns. For k
of them only the sum of their weights matters, and the prior shares it out evenly: one column of sqrt(k) with one weight
v gives the same scores, w = v / sqrt(k) each, and the same prior v^2 = k w^2. The optimum is the same exactly, and so
are the steps of L-BFGS, which never tells such features apart; on CoNLL-2000 with the chunking template 341,628 columns
become 241,690.

**Affine kernels**, which are polynomial ones of degree 1, have explicit features whatever the inputs are:
scale (gamma <x, x'> + coef0)  is the inner product of  (sqrt(scale gamma) x, sqrt(scale coef0)) with its like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..kernels import Inputs, PolynomialKernel, inverse_roots
from ..system import Workers, ranges
from . import _conjunctions, _sparse, native
from .columns import scaled_rows, sparse_block
from .feature_map import new_sums
from .hash_tables import empty_slots
from .native import Products
from .rounding import Rounding, summation_error

if TYPE_CHECKING:
    import scipy.sparse

ENTRIES_PER_TASK = 1 << 14  # of the transpose
MOST_TASKS = 256
ENTRIES_PER_FEATURE = 4  # as long as that takes what is done once for a feature, above all to write its sums
ROWS_PER_GRAM = 2048

# Below this many features the vectors of a solver are small anyway; above, a tenth less must be gained.
FEWEST_FEATURES = 20_000
WORTH_MERGING = 0.9


@dataclass(frozen=True)
class _Compressed:
    """Compressed rows in the types that the Cython core takes; no values means all ones."""

    indptr: np.ndarray  # [n+1] int64
    indices: np.ndarray  # [nnz] int32
    values: dict[np.dtype, np.ndarray]

    @classmethod
    def of(cls, matrix: scipy.sparse.csr_array) -> _Compressed:
        ones = bool((matrix.data == 1).all())
        data = matrix.data[:0] if ones else matrix.data
        # What has its type already is shared with the matrix.
        values = {np.dtype(kind): data.astype(kind, copy=False) for kind in (np.float32, np.float64)}
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), values)


def _squared(matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """The squares of all values."""
    import scipy.sparse

    return scipy.sparse.csr_array((np.square(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)


class ExplicitMap:
    """The linear kernel's own features: D = sparse columns, then real ones."""

    narrows_weights, nested = True, False

    def __init__(self, sparse: scipy.sparse.csr_array, dense: np.ndarray, dtype: np.dtype | type):
        self._matrix, self._dense = sparse, np.ascontiguousarray(dense, dtype=dtype)
        # What rounding took from real columns, for evaluations in double precision; None where it took nothing.
        rest = (dense - self._dense).astype(dtype)
        self._rest = rest if rest.any() else None
        self._rows = _Compressed.of(sparse)
        self._columns = _Compressed.of(sparse.T.tocsr())
        self.sparse_size, self.dense_size = sparse.shape[1], dense.shape[1]
        self.size, self.real_size = self.sparse_size + self.dense_size, self.dense_size

    @classmethod
    def of(cls, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        return cls(sparse_block(inputs), inputs.real, dtype)

    @classmethod
    def of_directions(cls, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        """Inputs divided by their lengths, for a cosine kernel."""
        scales = inverse_roots(inputs.squared_norms())
        return cls(scaled_rows(sparse_block(inputs), scales), inputs.real * scales[:, None], dtype)

    def prepare(self, W: np.ndarray, dtype: np.dtype, workers: Workers | None = None) -> tuple[np.ndarray, np.ndarray]:
        W = np.ascontiguousarray(W, dtype=dtype)
        return W[: self.sparse_size], native.padded(W[self.sparse_size :], dtype)

    def add_scores(
        self, prepared: tuple[np.ndarray, np.ndarray], rows: slice, out: np.ndarray, fresh: bool = False
    ) -> None:
        sparse, dense = prepared
        if self.dense_size:
            own = native.dense(self._real(rows, out.dtype), dense, out.shape[1])
            native.all_scores(native.ALONE, own, len(out), out, fresh)
        elif fresh:
            out[...] = 0
        if self.sparse_size:
            part = self._rows
            _sparse.multiply(part.indptr, part.indices, part.values[out.dtype], sparse, rows.start, rows.stop, out)

    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> np.ndarray | None:
        if not self.dense_size:
            return None
        sums = new_sums(self.dense_size, R.shape[1], R.dtype) if sums is None else sums
        native.add_sums(self._real(rows, R.dtype), R, sums)
        return sums

    def dense_rows(self, dtype: np.dtype) -> np.ndarray | None:
        return None if self._dense.dtype != dtype or (self._rest is not None and dtype == np.float64) else self._dense

    def native(self, prepared: tuple[np.ndarray, np.ndarray], columns: int) -> list[Products] | None:
        (sparse, dense), found = prepared, []
        if self.dense_size:
            values = self.dense_rows(dense.dtype)
            if values is None:
                return None
            found.append(native.dense(values, dense, columns))
        if self.sparse_size or not found:
            part = self._rows
            found.append(native.sparse(part.indptr, part.indices, part.values[sparse.dtype], sparse))
        return found

    def _real(self, rows: slice, dtype: np.dtype) -> np.ndarray:
        """Real columns of some rows; in double precision they are what was given, whatever they are held in."""
        values = self._dense[rows].astype(dtype, copy=False)
        if self._rest is not None and dtype == np.float64:
            values += self._rest[rows]  # a copy already: what is held is narrower
        return values

    def in_double(self, held: bool) -> ExplicitMap:
        """The same map: passes in double precision find all digits."""
        return self

    beyond_single = False

    def rounding(self, W: np.ndarray, error_sum: float, positions: int, errors: Callable[[], np.ndarray]) -> Rounding:
        """How far evaluations at W in double precision may be off; see `Rounding`."""
        longest, widest = self._longest_row
        largest = float(np.sqrt(np.einsum("dc,dc->c", W, W).max(initial=0.0)))
        return Rounding(
            loss=error_sum * longest * summation_error(widest) * largest,
            gradient=longest * summation_error(positions) * error_sum,
        )

    @cached_property
    def _longest_row(self) -> tuple[float, int]:
        """The largest length of a row, and how many values a row has at most."""
        N = self._matrix.shape[0]
        squares = np.square(self._dense, dtype=np.float64).sum(axis=1)
        for rows in ranges(N, ROWS_PER_GRAM):
            squares[rows] += _squared(self._matrix[rows]).sum(axis=1)
        widest = int(np.diff(self._matrix.indptr).max(initial=0)) + self.dense_size
        return float(np.sqrt(squares.max(initial=0.0))), widest

    def adjoint(
        self, summed: np.ndarray | None, R: np.ndarray, workers: Workers, out: np.ndarray | None = None
    ) -> np.ndarray:
        # Feature by feature through the transpose: no thread needs a gradient of its own.
        out = np.empty((self.size, R.shape[1])) if out is None else out
        part, R = self._columns, np.ascontiguousarray(R)
        native.features_gathered(
            workers.team, part.indptr, part.indices, part.values[R.dtype], R, self._tasks, out[: self.sparse_size]
        )
        if self.dense_size:
            out[self.sparse_size :] = summed[:, : R.shape[1]]
        return out

    @cached_property
    def _tasks(self) -> np.ndarray:
        """Features in runs (first, last) that take about as long as each other, the longest first, [tasks, 2]."""
        indptr = self._columns.indptr
        cost = indptr + ENTRIES_PER_FEATURE * np.arange(len(indptr))  # up to each feature
        runs = min(max(int(cost[-1]) // ENTRIES_PER_TASK, 1), MOST_TASKS)
        ends = np.unique(np.searchsorted(cost, np.linspace(0, cost[-1], runs + 1)))
        longest = np.argsort(-np.diff(cost[ends]), kind="stable")
        return np.stack([ends[:-1], ends[1:]], axis=1)[longest].astype(np.int64)

    def residual(self, workers: Workers) -> None:
        return None  # nothing lies outside

    def column_squares(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Sum of squares of each column, [D]; rows count `counts` [N] times, or once."""
        counts = np.ones(self._matrix.shape[0]) if counts is None else counts
        squares = _squared(self._matrix).T @ counts
        return np.concatenate([squares, counts @ np.square(self._dense, dtype=np.float64)])

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        """Mean of k(x, x)."""
        rows = self._matrix.shape[0] if counts is None else counts.sum()
        return max(float(self.column_squares(counts).sum()) / max(rows, 1), 1e-12)

    def real_gram(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Phi^T Phi of real columns on some rows [n], each counted so many times [n], in double precision, [R, R]."""
        R = self.dense_size
        total = np.zeros((R, R))
        for part in ranges(len(rows), ROWS_PER_GRAM):
            phi = self._dense[rows[part]].astype(np.float64)
            total += (phi * counts[part, None]).T @ phi
        return total

    def subset(self, rows: np.ndarray) -> ExplicitMap:
        return ExplicitMap(self._matrix[rows], self._real(rows, np.dtype(np.float64)), self._dense.dtype)

    def seen_with(self, rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
        """Places in W [D, width] of features that are not zero in a row [n] that goes with a column [n], ascending."""
        sparse = self._matrix[rows]
        pairs = sparse.indices.astype(np.int64) * width + np.repeat(columns, np.diff(sparse.indptr))
        found = [np.unique(pairs[sparse.data != 0])]
        for r in range(self.dense_size):
            there = np.unique(columns[self._dense[rows, r] != 0])
            found.append((self.sparse_size + r) * width + there)
        return np.concatenate(found)

    def used_columns(self) -> np.ndarray:
        """Columns that are not zero throughout."""
        return np.flatnonzero(self.column_squares())

    def narrow(self, columns: np.ndarray) -> ExplicitMap:
        """The same rows with some of the columns, given in ascending order."""
        split = np.searchsorted(columns, self.sparse_size)
        sparse, dense = columns[:split], columns[split:] - self.sparse_size
        real = self._real(slice(None), np.dtype(np.float64))[:, dense]
        return ExplicitMap(self._matrix[:, sparse], real, self._dense.dtype)


@dataclass(frozen=True)
class MergedColumns:
    """Which column each feature belongs to."""

    column: np.ndarray  # [D] int32, below G
    size: int  # G

    @cached_property
    def counts(self) -> np.ndarray:
        """k of each column, [G]."""
        return np.bincount(self.column, minlength=self.size)

    @property
    def _share(self) -> np.ndarray:
        """1 / sqrt(k) of each feature, [D]."""
        return 1 / np.sqrt(self.counts)[self.column]

    def rows(self, one_hot: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Rows [n, G] out of rows of single features [n, D]; those of new data may have only some of a column."""
        import scipy.sparse

        indices = self.column[one_hot.indices]
        values = one_hot.data * self._share[one_hot.indices]
        shape = (one_hot.shape[0], self.size)
        out = scipy.sparse.csr_array((values, indices, one_hot.indptr.copy()), shape=shape)  # changed in place below
        out.sum_duplicates()
        return out

    def spread(self, weights: np.ndarray) -> np.ndarray:
        """Weights [D + R, C] of single features out of weights [G + R, C] of columns; R real ones follow."""
        D = len(self.column)
        out = np.empty((D + len(weights) - self.size, weights.shape[1]))
        np.take(weights, self.column, axis=0, out=out[:D], mode="clip")  # any other mode makes a copy first
        out[:D] *= self._share[:, None]
        out[D:] = weights[self.size :]
        return out

    def gathered(self, weights: np.ndarray) -> np.ndarray:
        """Weights of columns [G + R, C] that give training rows the scores of weights of features [D + R, C]."""
        import scipy.sparse

        D = len(self.column)
        sums = scipy.sparse.csr_array((self._share, (self.column, np.arange(D))), shape=(self.size, D))
        return np.concatenate([sums @ weights[:D], weights[D:]])


def merged_columns(one_hot: scipy.sparse.csr_array) -> MergedColumns | None:
    """Columns with the same rows merged; None where that is not worth it."""
    D = one_hot.shape[1]
    if D < FEWEST_FEATURES:
        return None
    hashes, counts = np.zeros((D, 2), dtype=np.uint64), np.zeros(D, dtype=np.int64)
    _conjunctions.add_supports(one_hot.indptr.astype(np.int64), one_hot.indices.astype(np.int32), hashes, counts)
    first = np.empty(D, dtype=np.int32)
    _conjunctions.first_alike(hashes, empty_slots(D), first)
    leaders = np.flatnonzero(first == np.arange(D))
    if len(leaders) > WORTH_MERGING * D:
        return None
    number = np.empty(D, dtype=np.int32)
    number[leaders] = np.arange(len(leaders), dtype=np.int32)
    return MergedColumns(number[first], len(leaders))


class MergedMap(ExplicitMap):
    """The linear kernel on merged columns."""

    def __init__(self, merged: MergedColumns, inputs: Inputs, dtype: np.dtype):
        super().__init__(merged.rows(sparse_block(inputs)), inputs.real, dtype)
        self._counts = merged.counts

    def column_squares(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Those of single features: scaled by them, L-BFGS takes the steps that it would take without merging."""
        squares = super().column_squares(counts)
        squares[: len(self._counts)] /= self._counts
        return squares

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        """Mean of k(x, x), which merging does not change."""
        rows = self._matrix.shape[0] if counts is None else counts.sum()
        return max(float(super().column_squares(counts).sum()) / max(rows, 1), 1e-12)


@dataclass(frozen=True)
class Affine:
    """Factors of the inputs and of the constant column, which is the last."""

    slope: float
    constant: float

    @classmethod
    def of(cls, kernel: PolynomialKernel) -> Affine:
        return cls(sqrt(kernel.scale * kernel.gamma), sqrt(kernel.scale * kernel.coef0))

    def map_of(self, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        constant = np.full((len(inputs), 1), self.constant)
        return ExplicitMap(self.slope * sparse_block(inputs), np.hstack([self.slope * inputs.real, constant]), dtype)

    def weights(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the inputs themselves and a bias, out of weights of the map's columns."""
        return self.slope * W[:-1], self.constant * W[-1]

    def map_weights(self, inner: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Inverse of `weights`; a column that is zero has no say, and no weight."""
        last = bias / self.constant if self.constant else np.zeros_like(bias)
        return np.concatenate([inner / self.slope, last[None]])
