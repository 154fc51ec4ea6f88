"""The map of pivots B with L L^T = K_BB: Phi W = K_NB (L^-T W) and Phi^T R = L^-1 (K_NB^T R).

K_NB, the kernel values of N positions with M pivots, is held as far as memory allows. Rows that fit the budget are
computed when they are first needed and held from then on; the others are computed every time. `Pivots` gives a row the
same bits in any company, so results do not depend on which rows are held.

In single precision the values are rounded, and L^-1 makes what that changes larger: by |L^-1|, the root of a thousand
times the mean of k(x, x) and more. So what is to be proven is evaluated on the map in double precision (`in_double`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np

from ..errors import NumericError
from ..kernels import Inputs, Kernel, Pivots
from ..system import Budget, Workers, linear_algebra, ranges
from . import native
from .factorisation import FLOORS
from .feature_map import Empty, new_sums
from .native import Products
from .rounding import Rounding, summation_error
from .triangles import Triangle, factorise, inverted, square_gram

ROWS_PER_TASK = 256
FILLED_ROWS = 512
# Values that are computed at a time where they are not held: what one thread needs of memory.
PIECE_VALUES, SMALLEST_PIECE, LARGEST_PIECE = 1 << 20, 256, 4096


class KernelRows:
    """Rows of K_NB, by slices of positions."""

    def __init__(
        self,
        inputs: Inputs,
        pivots: Pivots,
        memory: Budget,
        source: tuple[KernelRows, np.ndarray] | None = None,  # other rows that these are some of, and which
        held: bool = True,  # as many as fit, else none
    ):
        self._inputs, self._pivots, self.memory, self._source = inputs, pivots, memory, source
        self._hold = held
        self.shape = (len(inputs), len(pivots))
        self.dtype = pivots.dtype
        self._held: np.ndarray | None = None  # [rows that fit, M], from the first time that rows are asked for
        self._filled = np.zeros(0, dtype=bool)  # which blocks of them have been computed
        self._opening, self._filling = threading.Lock(), threading.Lock()
        self._local = threading.local()

    @classmethod
    def of(cls, inputs: Inputs, kernel: Kernel, pivots: Inputs, memory: Budget, dtype: np.dtype | type) -> KernelRows:
        return cls(inputs, Pivots(pivots, kernel, dtype), memory)

    def subset(self, rows: np.ndarray) -> KernelRows:
        """Some of the rows, for the same pivots."""
        return KernelRows(self._inputs.take(rows), self._pivots, self.memory, (self, rows), self._hold)

    def leading(self, m: int) -> KernelRows:
        """The same rows for the first m pivots."""
        pivots = Pivots(self._pivots.inputs.take(slice(m)), self._pivots.kernel, self.dtype)
        return KernelRows(self._inputs, pivots, self.memory, None, self._hold)

    def in_double(self, held: bool) -> KernelRows:
        """The same rows with values in double precision."""
        pivots = Pivots(self._pivots.inputs, self._pivots.kernel)
        return KernelRows(self._inputs, pivots, self.memory, None, held)

    @property
    def value_error(self) -> float:
        """How far values in double precision may be from those of the kernel, as a part of the largest."""
        pivots = self._pivots
        return max(pivots.kernel.value_error(inputs) for inputs in (self._inputs, pivots.inputs))

    def pieces(self, rows: slice) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows a piece at a time: where each stands within `rows`, and its values, which the next piece may overwrite.

        Pieces depend on `rows` alone, whether they are held or not, and so do sums over them.
        """
        size = min(max(PIECE_VALUES // max(self.shape[1], 1), SMALLEST_PIECE), LARGEST_PIECE)
        size -= size % SMALLEST_PIECE  # sums over rows are taken so many at a time
        for first in range(rows.start, rows.stop, size):
            part = slice(first, min(first + size, rows.stop))
            yield slice(part.start - rows.start, part.stop - rows.start), self._values(part)

    def _values(self, rows: slice) -> np.ndarray:
        held = self._open()
        if rows.stop > len(held):
            return self._computed(rows)
        block = self._pivots.block_rows()
        for number in range(rows.start // block, -(-rows.stop // block)):
            if not self._filled[number]:
                # Two threads may fill the same one: it has to be there at once, not inner products first.
                part = slice(number * block, min((number + 1) * block, len(held)))
                held[part] = self._first_values(part)
                self._filled[number] = True
        return held[rows]

    def fill(self, workers: Workers) -> None:
        """Compute at once what is held, each block on one thread, where it is not there yet."""
        held, block = self._open(), self._pivots.block_rows()
        at_once = max(FILLED_ROWS // block, 1)  # blocks: what is done once for rows is done for many

        def task(blocks: slice) -> None:
            part = slice(blocks.start * block, min(blocks.stop * block, len(held)))
            if self._source is not None and self._source[0]._complete():
                held[part] = self._first_values(part)
            else:
                self._pivots.gram(self._inputs.take(part), held[part])
            self._filled[blocks] = True

        with self._filling:  # one at a time, for values are inner products first
            workers.run(task, [part for part in ranges(len(self._filled), at_once) if not self._filled[part].all()])

    def _first_values(self, rows: slice) -> np.ndarray:
        if self._source is not None:
            whole, chosen = self._source
            if whole._complete():
                return whole._held[chosen[rows]]
        return self._pivots.gram(self._inputs.take(rows))

    def whole(self) -> np.ndarray | None:
        """All rows, where they are held and computed."""
        return self._held if self._complete() else None

    def _complete(self) -> bool:
        """Whether all rows are held and computed."""
        return self._held is not None and len(self._held) == self.shape[0] and bool(self._filled.all())

    def _computed(self, rows: slice) -> np.ndarray:
        """Rows that are not held, in a place of this thread; asked for again at once, they are still there."""
        local = self._local
        if getattr(local, "rows", None) != rows:
            n = rows.stop - rows.start
            if len(getattr(local, "buffer", ())) < n:
                local.buffer = np.empty((n, self.shape[1]), dtype=self.dtype)
            local.rows = None  # should the next line fail
            self._pivots.gram(self._inputs.take(rows), local.buffer[:n])
            local.rows = rows
        return local.buffer[: rows.stop - rows.start]

    def _open(self) -> np.ndarray:
        """The table of held rows. Its size is settled as late as possible: what came before may be gone by then."""
        if self._held is None:
            with self._opening:
                if self._held is None:
                    N, M = self.shape
                    row = max(M, 1) * self.dtype.itemsize
                    rows = self.memory.reserve(self, N * row, row) // row if self._hold else 0
                    block = self._pivots.block_rows()
                    self._filled = np.zeros(-(-rows // block), dtype=bool)
                    self._held = np.empty((rows, M), dtype=self.dtype)
        return self._held


def pivot_triangle(kernel: Kernel, pivots: Inputs, workers: Workers) -> np.ndarray:
    """L [M, M] with L L^T = K_BB, in double precision."""
    K = square_gram(kernel, pivots, workers)
    if not np.isfinite(K).all():
        raise NumericError("kernel values of the pivots are not finite: scale the columns, or choose a smaller gamma")
    if not factorise(K, workers):
        raise NumericError(
            "the kernel matrix of the pivots is not positive definite: some of them are alike; "
            "choose fewer pivots, or a kernel with a larger gamma"
        )
    for i, row in enumerate(K):
        row[i + 1 :] = 0.0
    return K


class ReducedMap:
    """K_NB against pivots B, whitened on the thin side."""

    narrows_weights, nested = False, True

    def __init__(
        self,
        rows: KernelRows,  # [N, M]
        triangle: np.ndarray,  # [M, M] L
        diagonal: np.ndarray,  # [N] k(x, x)
        curve: np.ndarray,  # [M+1] unexplained part of the trace with the first 0..M pivots
        residual: np.ndarray | None = None,  # [N] where the selection has it already
        whole: bool = False,  # whether it stands for the whole space of the kernel, all inputs being pivots
        system: Triangle | None = None,  # L once more, where another map has it
    ):
        self._system = Triangle(triangle, rows.memory) if system is None else system
        self._rows, self.triangle, self._diagonal, self._curve = rows, triangle, diagonal, curve
        self._residual, self._whole = residual, whole
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
        whole: bool = False,
    ) -> ReducedMap:
        rows = KernelRows.of(inputs, kernel, pivots, workers.memory, dtype)
        made = cls(rows, pivot_triangle(kernel, pivots, workers), kernel.diagonal(inputs), curve, residual, whole)
        workers.memory.spend(made, made.triangle.nbytes)
        return made

    def of_inputs(
        self, inputs: Inputs, kernel: Kernel, pivots: Inputs, workers: Workers, dtype: np.dtype | type
    ) -> ReducedMap:
        """The same map on other inputs, for its own kernel and pivots."""
        rows = KernelRows.of(inputs, kernel, pivots, workers.memory, dtype)
        return ReducedMap(rows, self.triangle, kernel.diagonal(inputs), self._curve, system=self._system)

    def in_double(self, held: bool) -> ReducedMap:
        """The same map with kernel values in double precision, held as far as memory allows or computed every time."""
        if self._rows.dtype == np.float64:
            return self
        rows = self._rows.in_double(held)
        return ReducedMap(rows, self.triangle, self._diagonal, self._curve, self._residual, self._whole, self._system)

    @property
    def beyond_single(self) -> bool:
        """Whether some pivots differ from mixtures of others by so little that single precision does not see it."""
        smallest = float(np.diagonal(self.triangle).min(initial=np.inf)) ** 2
        return smallest < FLOORS[np.dtype(np.float32)] * self.mean_diagonal()

    @cached_property
    def _inverse_norm(self) -> float:
        """|L^-1|, from LAPACK's estimates of its norms by rows and by columns."""
        norms = []
        for kind, axis in (("I", 0), ("1", 1)):  # of L^T, which LAPACK can take as it lies in memory
            reciprocal = linear_algebra.lapack.dtrcon(self.triangle.T, norm=kind, uplo="U")[0]
            norms.append(1 / max(reciprocal * float(np.abs(self.triangle).sum(axis=axis).max()), 1e-300))
        return float(np.sqrt(norms[0] * norms[1]))

    def rounding(self, W: np.ndarray, error_sum: float, positions: int, errors: Callable[[], np.ndarray]) -> Rounding:
        """How far evaluations at W on the map in double precision may be from the kernel's own; see `Rounding`."""
        M, largest = max(self.size, 1), float(self._diagonal.max(initial=0.0))
        value, inverse, alpha = self._rows.value_error, self._inverse_norm, self.dual(W)
        # L L^T is the kernel matrix of the pivots but for this, in norm: rounded values, and a rounded factorisation.
        # Seen in extended precision on random inputs: 0.05 to 6 times the root of M times a rounding, here it is 16.
        gram = largest * np.sqrt(M) * (summation_error(1) + value)
        length = float(np.linalg.norm(alpha))
        outside = 0.0
        if self._whole and self._residual is not None and self._residual.any():
            left = np.where(self._residual > 0, self._residual + gram, 0.0)
            outside = float(np.sqrt(left) @ np.linalg.norm(errors(), axis=1)) ** 2
        return Rounding(
            loss=error_sum * largest * (summation_error(M) + value) * float(np.abs(alpha).sum(axis=0).max(initial=0.0)),
            gradient=inverse * largest * np.sqrt(M) * (summation_error(positions) + value) * error_sum,
            prior=gram * length**2,
            prior_gradient=inverse * gram * length,
            factor=gram * inverse**2,
            outside=outside,
        )

    def dual(self, W: np.ndarray) -> np.ndarray:
        """alpha = L^-T W: scores are k(x, B) alpha."""
        return linear_algebra.solve_triangular(self.triangle, W, lower=True, trans="T", check_finite=False)

    def prepare(
        self, W: np.ndarray, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty
    ) -> np.ndarray:
        if workers is not None:
            self._rows.fill(workers)
        # What is to be proven, which is in double precision, is solved by substitution.
        quick = workers is not None and dtype != np.float64
        alpha = self._system.solve(W, workers, transposed=True) if quick else self.dual(W)
        return native.padded(alpha, dtype)

    def add_scores(self, prepared: np.ndarray, rows: slice, out: np.ndarray, fresh: bool = False) -> None:
        for part, K in self._rows.pieces(rows):
            own = native.dense(K.astype(out.dtype, copy=False), prepared, out.shape[1])
            native.all_scores(native.ALONE, own, len(K), out[part], fresh)

    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> np.ndarray:
        sums = new_sums(self.size, R.shape[1], R.dtype) if sums is None else sums
        for part, K in self._rows.pieces(rows):
            native.add_sums(K.astype(R.dtype, copy=False), R[part], sums)
        return sums

    def dense_rows(self, dtype: np.dtype) -> np.ndarray | None:
        return self._rows.whole() if self._rows.dtype == dtype else None

    def native(self, prepared: np.ndarray, columns: int) -> list[Products] | None:
        values = self.dense_rows(prepared.dtype)
        return None if values is None else [native.dense(values, prepared, columns)]

    def adjoint(
        self, summed: np.ndarray | None, R: np.ndarray, workers: Workers, out: np.ndarray | None = None
    ) -> np.ndarray:
        summed = np.ascontiguousarray(summed[:, : R.shape[1]])
        if R.dtype == np.float64:
            return linear_algebra.solve_triangular(self.triangle, summed, lower=True, check_finite=False)
        return self._system.solve(summed, workers, out=out)

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
        inverse = inverted(self.triangle).T.astype(self._rows.dtype)

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
        rows_of, diagonal = self._rows.subset(rows), self._diagonal[rows]
        return ReducedMap(rows_of, self.triangle, diagonal, self._curve, residual, self._whole, self._system)

    def used_columns(self) -> np.ndarray:
        return np.arange(self.size)

    def narrow(self, columns: np.ndarray) -> ReducedMap:
        """All columns are in use: pivots do not fall away with rows."""
        return self
