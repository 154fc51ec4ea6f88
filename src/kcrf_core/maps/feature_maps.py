"""Feature maps: operators Phi [N, D] with Phi Phi^T = K, or nearly.

A map never hands out Phi itself. For weights W [D, C] and residuals R [N, C],

    prepare(W)            W in the form that `add_scores` wants, once per evaluation
    add_scores            out += Phi[rows] W
    adjoint_rows          the part of Phi^T R that is summed chunk by chunk while a chunk is in cache
    adjoint               Phi^T R from those sums and R, in double precision

`explicit` holds sparse and dense columns themselves (linear kernel); `reduced` has K_NB for pivots B with L L^T = K_BB
and folds L into the thin side: Phi W = K_NB (L^-T W), Phi^T R = L^-1 (K_NB^T R).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from ..errors import NumericError
from ..kernels import Inputs, Kernel, Pivots
from ..system import Workers, ranges
from . import _sparse
from .kernel_rows import KernelRows
from .sparse_rows import sparse_block

ROWS_PER_TASK = 1024
FEATURES_PER_TASK = 8192


class FeatureMap(Protocol):
    """What training needs of a map on its N positions."""

    size: int  # D
    dense_size: int  # values of a row that are held densely
    narrows_weights: bool  # `prepare` does nothing but cast them

    def prepare(self, W: np.ndarray, dtype: np.dtype) -> object: ...

    def add_scores(self, prepared: object, rows: slice, out: np.ndarray) -> None: ...

    def adjoint_rows(self, R: np.ndarray, rows: slice) -> np.ndarray | None: ...

    def adjoint(
        self, summed: np.ndarray | None, R: np.ndarray, workers: Workers, out: np.ndarray | None = None
    ) -> np.ndarray: ...  # may be put into `out` [D, C], and then is that

    def column_squares(self, counts: np.ndarray | None = None) -> np.ndarray: ...

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float: ...

    def residual(self, workers: Workers) -> np.ndarray | None: ...

    def subset(self, rows: np.ndarray) -> FeatureMap: ...

    def used_columns(self) -> np.ndarray: ...

    def narrow(self, columns: np.ndarray) -> FeatureMap: ...


# ----------------------------------------------------------------------------- explicit


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
        values = {np.dtype(kind): data.astype(kind) for kind in (np.float32, np.float64)}
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), values)


class ExplicitMap:
    """The linear kernel's own features: D = sparse columns, then real ones."""

    narrows_weights = True

    def __init__(self, sparse: scipy.sparse.csr_array, dense: np.ndarray, dtype: np.dtype | type):
        self._matrix, self._dense = sparse, np.ascontiguousarray(dense, dtype=dtype)
        self._rows = _Compressed.of(sparse)
        self._columns = _Compressed.of(sparse.T.tocsr())
        self.sparse_size, self.dense_size = sparse.shape[1], dense.shape[1]
        self.size = self.sparse_size + self.dense_size

    @classmethod
    def of(cls, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        return cls(sparse_block(inputs), inputs.real, dtype)

    def prepare(self, W: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        W = np.ascontiguousarray(W, dtype=dtype)
        return W[: self.sparse_size], W[self.sparse_size :]

    def add_scores(self, prepared: tuple[np.ndarray, np.ndarray], rows: slice, out: np.ndarray) -> None:
        sparse, dense = prepared
        if self.dense_size:
            out += self._dense[rows].astype(out.dtype, copy=False) @ dense
        if self.sparse_size:
            part = self._rows
            _sparse.multiply(part.indptr, part.indices, part.values[out.dtype], sparse, rows.start, rows.stop, out)

    def adjoint_rows(self, R: np.ndarray, rows: slice) -> np.ndarray | None:
        if not self.dense_size:
            return None
        return self._dense[rows].astype(R.dtype, copy=False).T @ R

    def adjoint(
        self, summed: np.ndarray | None, R: np.ndarray, workers: Workers, out: np.ndarray | None = None
    ) -> np.ndarray:
        # Feature by feature through the transpose: no thread needs a gradient of its own.
        out = np.empty((self.size, R.shape[1])) if out is None else out
        part = self._columns

        def task(features: slice) -> None:
            _sparse.gather(part.indptr, part.indices, part.values[R.dtype], R, features.start, features.stop, out)

        workers.run(task, ranges(self.sparse_size, FEATURES_PER_TASK))
        if self.dense_size:
            out[self.sparse_size :] = summed
        return out

    def residual(self, workers: Workers) -> None:
        return None  # nothing lies outside

    def column_squares(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Sum of squares of each column, [D]; rows count `counts` [N] times, or once."""
        counts = np.ones(self._matrix.shape[0]) if counts is None else counts
        squares = self._matrix.multiply(self._matrix).T @ counts
        return np.concatenate([squares, counts @ np.square(self._dense, dtype=np.float64)])

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        """Mean of k(x, x)."""
        rows = self._matrix.shape[0] if counts is None else counts.sum()
        return max(float(self.column_squares(counts).sum()) / max(rows, 1), 1e-12)

    def subset(self, rows: np.ndarray) -> ExplicitMap:
        return ExplicitMap(self._matrix[rows], self._dense[rows], self._dense.dtype)

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
        return ExplicitMap(self._matrix[:, sparse], self._dense[:, dense], self._dense.dtype)


# ----------------------------------------------------------------------------- reduced


def pivot_triangle(kernel: Kernel, pivots: Inputs) -> np.ndarray:
    """L [M, M] with L L^T = K_BB, in double precision."""
    K = Pivots(pivots, kernel).gram(pivots)
    if not np.isfinite(K).all():
        raise NumericError("kernel values of the pivots are not finite: scale the columns, or choose a smaller gamma")
    try:
        return cholesky(K.T, lower=True, overwrite_a=True)  # K is symmetric, and transposed it needs no copy
    except LinAlgError:
        raise NumericError(
            "the kernel matrix of the pivots is not positive definite: some of them are alike; "
            "choose fewer pivots, or a kernel with a larger gamma"
        ) from None


class ReducedMap:
    """K_NB against pivots B, whitened on the thin side."""

    narrows_weights = False

    def __init__(
        self,
        rows: KernelRows,  # [N, M]
        triangle: np.ndarray,  # [M, M] L
        diagonal: np.ndarray,  # [N] k(x, x)
        curve: np.ndarray,  # [M+1] unexplained part of the trace with the first 0..M pivots
        residual: np.ndarray | None = None,  # [N] where the selection has it already
    ):
        self._rows, self.triangle, self._diagonal, self._curve = rows, triangle, diagonal, curve
        self._residual = residual
        self.size = self.dense_size = len(triangle)

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        kernel: Kernel,
        pivots: Inputs,
        curve: np.ndarray,
        workers: Workers,
        dtype: np.dtype | type,
        residual: np.ndarray | None = None,
    ) -> ReducedMap:
        rows = KernelRows.of(inputs, kernel, pivots, workers.memory, dtype)
        made = cls(rows, pivot_triangle(kernel, pivots), kernel.diagonal(inputs), curve, residual)
        workers.memory.spend(made, made.triangle.nbytes)
        return made

    def of_inputs(
        self, inputs: Inputs, kernel: Kernel, pivots: Inputs, workers: Workers, dtype: np.dtype | type
    ) -> ReducedMap:
        """The same map on other inputs, for its own kernel and pivots."""
        rows = KernelRows.of(inputs, kernel, pivots, workers.memory, dtype)
        return ReducedMap(rows, self.triangle, kernel.diagonal(inputs), self._curve)

    def dual(self, W: np.ndarray) -> np.ndarray:
        """alpha = L^-T W: scores are k(x, B) alpha."""
        return solve_triangular(self.triangle, W, lower=True, trans="T", check_finite=False)

    def prepare(self, W: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return np.ascontiguousarray(self.dual(W), dtype=dtype)

    def add_scores(self, prepared: np.ndarray, rows: slice, out: np.ndarray) -> None:
        for part, K in self._rows.pieces(rows):
            out[part] += K.astype(out.dtype, copy=False) @ prepared

    def adjoint_rows(self, R: np.ndarray, rows: slice) -> np.ndarray:
        summed = np.zeros((self.size, R.shape[1]), dtype=R.dtype)
        for number, (part, K) in enumerate(self._rows.pieces(rows)):
            product = K.astype(R.dtype, copy=False).T @ R[part]
            summed = product if number == 0 else summed + product
        return summed

    def adjoint(
        self, summed: np.ndarray | None, R: np.ndarray, workers: Workers, out: np.ndarray | None = None
    ) -> np.ndarray:
        return solve_triangular(self.triangle, summed, lower=True, check_finite=False)

    def leading(self, m: int) -> ReducedMap:
        """The map of the first m pivots, which is the first m columns of this one: L is triangular."""
        triangle = np.ascontiguousarray(self.triangle[:m, :m])
        return ReducedMap(self._rows.leading(m), triangle, self._diagonal, self._curve[: m + 1])

    def features(self, workers: Workers) -> np.ndarray:
        """Phi itself, [N, M]."""
        out = np.empty(self._rows.shape, dtype=self._rows.dtype)
        for part, phi in self._features(workers):
            out[part] = phi
        return out

    def _features(self, workers: Workers) -> Iterator[tuple[slice, np.ndarray]]:
        """Phi, some rows after others."""
        inverse = solve_triangular(self.triangle, np.eye(self.size), lower=True).T.astype(self._rows.dtype)

        def task(rows: slice) -> tuple[slice, np.ndarray]:
            return rows, np.concatenate([K @ inverse for _, K in self._rows.pieces(rows)])

        return workers.map(task, ranges(self._rows.shape[0], ROWS_PER_TASK))

    def column_squares(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Sum of squares of each column of Phi, [D]: what each pivot took from the trace when it was chosen."""
        trace = self._diagonal.sum() if counts is None else self._diagonal @ counts
        return -np.diff(self._curve) * trace

    def residual(self, workers: Workers) -> np.ndarray:
        """k(x, x) - |Phi(x)|^2 of each position, [N] float64 (the error bar of the basis)."""
        if self._residual is None:
            squares = [np.square(phi, dtype=np.float64).sum(axis=1) for _, phi in self._features(workers)]
            self._residual = np.maximum(self._diagonal - np.concatenate([*squares, []]), 0.0)
        return self._residual

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        """Mean of k(x, x)."""
        return max(float(np.average(self._diagonal, weights=counts)), 1e-12)

    def subset(self, rows: np.ndarray) -> ReducedMap:
        residual = None if self._residual is None else self._residual[rows]
        return ReducedMap(self._rows.subset(rows), self.triangle, self._diagonal[rows], self._curve, residual)

    def used_columns(self) -> np.ndarray:
        return np.arange(self.size)

    def narrow(self, columns: np.ndarray) -> ReducedMap:
        """All columns are in use: pivots do not fall away with rows."""
        return self
