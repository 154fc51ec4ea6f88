"""The map of pivots B with L L^T = K_BB: Phi W = K_NB (L^-T W) and Phi^T R = L^-1 (K_NB^T R).

K_NB, the kernel values of N positions with M pivots, is held where memory allows. Rows that fit the budget are
computed when they are first needed and held from then on; the others are computed every time. `Pivots` gives a row the
same bits in any company, so results do not depend on which rows are held.

In single precision the values are rounded, and L^-1 makes what that changes larger: by |L^-1|, the root of a thousand
times the mean of k(x, x) and more. So what is to be proven is evaluated on the map in double precision (`in_double`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import NumericError
from ..kernels import Inputs, Kernel, Pivots
from ..system import Budget, Workers, factorise, ranges
from . import native
from .factorisation import FLOORS
from .feature_map import Block, FeatureMap
from .heads import Empty, Extent, PivotHead
from .native import Products
from .partition_sums import Partitions, summed_by
from .sparse_weights import KeptWeights
from .triangles import square_gram

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
        self.inputs, self.pivots, self.memory, self._source, self.held = inputs, pivots, memory, source, held
        self.shape = (len(inputs), len(pivots))
        self.dtype = pivots.dtype
        self._values_held: np.ndarray | None = None  # [rows that fit, M], from the first time that rows are asked for
        self._filled = np.zeros(0, dtype=bool)  # which blocks of them have been computed
        self._opening = threading.Lock()
        self._local = threading.local()

    @classmethod
    def of(cls, inputs: Inputs, kernel: Kernel, pivots: Inputs, memory: Budget, dtype: np.dtype | type) -> KernelRows:
        return cls(inputs, Pivots(pivots, kernel, dtype), memory)

    def subset(self, rows: np.ndarray) -> KernelRows:
        """Return some of the rows, for the same pivots."""
        return KernelRows(self.inputs.take(rows), self.pivots, self.memory, (self, rows), self.held)

    def leading(self, m: int) -> KernelRows:
        """Return rows for the first m pivots."""
        pivots = Pivots(self.pivots.inputs.take(slice(m)), self.pivots.kernel, self.dtype)
        return KernelRows(self.inputs, pivots, self.memory, None, self.held)

    def in_double(self, held: bool) -> KernelRows:
        """Return rows with values in double precision."""
        pivots = Pivots(self.pivots.inputs, self.pivots.kernel)
        return KernelRows(self.inputs, pivots, self.memory, None, held)

    def pieces(self, rows: slice) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows a piece at a time: its place within `rows` and its values, which the next piece may overwrite.

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
        block = self.pivots.block_rows()
        for number in range(rows.start // block, -(-rows.stop // block)):
            if not self._filled[number]:
                part = slice(number * block, min((number + 1) * block, len(held)))
                held[part] = self._first_values(part)
                self._filled[number] = True
        return held[rows]

    def fill(self, workers: Workers) -> None:
        """Compute the held rows that are not there yet, each block on one thread."""
        held, block = self._open(), self.pivots.block_rows()
        at_once = max(FILLED_ROWS // block, 1)  # blocks: what is done once for rows is done for many

        def task(blocks: slice) -> None:
            part = slice(blocks.start * block, min(blocks.stop * block, len(held)))
            held[part] = self._first_values(part)
            self._filled[blocks] = True

        workers.run(task, [part for part in ranges(len(self._filled), at_once) if not self._filled[part].all()])

    def _first_values(self, rows: slice) -> np.ndarray:
        """Return values of rows: they are put into their place at once, for two threads may do so."""
        if self._source is not None and (whole := self._source[0].whole()) is not None:
            return whole[self._source[1][rows]]
        return self.pivots.gram(self.inputs.take(rows))

    def whole(self) -> np.ndarray | None:
        """Return all rows, where they are held and computed."""
        complete = self._values_held is not None and len(self._values_held) == self.shape[0] and self._filled.all()
        return self._values_held if complete else None

    def _computed(self, rows: slice) -> np.ndarray:
        """Return rows that are not held, in a buffer of this thread; it still has them if they are asked for again."""
        local = self._local
        if getattr(local, "rows", None) != rows:
            n = rows.stop - rows.start
            if len(getattr(local, "buffer", ())) < n:
                local.buffer = np.empty((n, self.shape[1]), dtype=self.dtype)
            local.rows = None  # should the next line fail
            self.pivots.gram(self.inputs.take(rows), local.buffer[:n])
            local.rows = rows
        return local.buffer[: rows.stop - rows.start]

    def _open(self) -> np.ndarray:
        """Return the table of held rows. Its size is determined as late as possible, when other memory may be free."""
        if self._values_held is None:
            with self._opening:
                if self._values_held is None:
                    N, M = self.shape
                    row = max(M, 1) * self.dtype.itemsize
                    rows = self.memory.reserve(self, N * row, row) // row if self.held else 0
                    block = self.pivots.block_rows()
                    self._filled = np.zeros(-(-rows // block), dtype=bool)
                    self._values_held = np.empty((rows, M), dtype=self.dtype)
        return self._values_held


def pivot_triangle(kernel: Kernel, pivots: Inputs, workers: Workers) -> np.ndarray:
    """Return L [M, M] with L L^T = K_BB, in double precision."""
    K = None if workers.device is None else workers.device.triangle(kernel, pivots)
    if K is not None:
        return K
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


class ReducedMap(FeatureMap):
    """K_NB times L^-T; without a transform it is the row block K_NB, whose weights are alpha."""

    nested = True

    def __init__(
        self,
        rows: KernelRows,  # [N, M]
        head: PivotHead | None,
        diagonal: np.ndarray,  # [N] k(x, x)
        residual: np.ndarray | None = None,  # [N] where the selection has it already
        whole: bool = False,  # True if it stands for the whole space of the kernel, all inputs being pivots
    ):
        self.rows, self._head, self._diagonal, self._residual, self._whole = rows, head, diagonal, residual, whole
        self.size = self.dense_size = rows.shape[1]
        # Some pivots may differ from mixtures of others by less than single precision resolves.
        if head is not None and len(diagonal):
            smallest = float(np.diagonal(head.triangle).min(initial=np.inf)) ** 2
            self.beyond_single = smallest < FLOORS[np.dtype(np.float32)] * self.mean_diagonal()

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
        head = PivotHead(pivot_triangle(kernel, pivots, workers), curve, workers.memory)
        made = cls(rows, head, kernel.diagonal(inputs), residual, whole)
        workers.memory.spend(made, head.triangle.nbytes)
        return made

    @property
    def head(self) -> PivotHead:
        assert self._head is not None  # nothing asks a row block
        return self._head

    def spec(self, rows: np.ndarray) -> KernelSpec:
        pivots, inputs = self.rows.pivots, self.rows.inputs.take(rows)
        residual = None if self._residual is None else self._residual[rows]
        return KernelSpec(
            inputs, pivots.kernel, pivots.inputs, self._diagonal[rows], residual, self._whole, self.rows.dtype
        )

    def in_double(self, held: bool) -> ReducedMap:
        if self.rows.dtype == np.float64:
            return self
        return ReducedMap(self.rows.in_double(held), self._head, self._diagonal, self._residual, self._whole)

    def subset(self, rows: np.ndarray) -> ReducedMap:
        residual = None if self._residual is None else self._residual[rows]
        return ReducedMap(self.rows.subset(rows), self._head, self._diagonal[rows], residual, self._whole)

    def leading(self, m: int) -> ReducedMap:
        head = None if self._head is None else self._head.leading(m, self.rows.memory)
        return ReducedMap(self.rows.leading(m), head, self._diagonal)

    def used_columns(self, least_rows: int = 1) -> np.ndarray:
        return np.arange(self.size)

    def narrow(self, columns: np.ndarray) -> ReducedMap:
        return self  # all columns are in use: pivots do not fall away with rows

    def prepare(self, W: Block, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty) -> np.ndarray:
        assert isinstance(W, np.ndarray)
        if workers is not None:
            self.rows.fill(workers)
        return native.padded(W if self._head is None else self._head.ready(W, dtype, workers), dtype)

    def add_scores(self, prepared: np.ndarray, rows: slice, out: np.ndarray, fresh: bool = False) -> None:
        for part, K in self.rows.pieces(rows):
            own = native.dense(K.astype(out.dtype, copy=False), out.shape[1], prepared)
            native.all_scores(native.ALONE, own, len(K), out[part], fresh)

    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> np.ndarray:
        sums = native.new_sums(self.size, R.shape[1], R.dtype) if sums is None else sums
        for part, K in self.rows.pieces(rows):
            native.add_sums(K.astype(R.dtype, copy=False), R[part], sums)
        return sums

    def dense_rows(self, dtype: np.dtype) -> np.ndarray | None:
        return self.rows.whole() if self.rows.dtype == dtype else None

    def native(self, prepared: np.ndarray, columns: int) -> list[Products] | None:
        values = self.dense_rows(prepared.dtype)
        return None if values is None else [native.dense(values, columns, prepared)]

    def adjoint(
        self, sums: np.ndarray | None, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> np.ndarray:
        assert sums is not None and not isinstance(out, KeptWeights)
        sums = np.ascontiguousarray(sums[:, : R.shape[1]])
        return sums if self._head is None else self._head.finish(sums, None, R.dtype, workers, out)

    def features(self, workers: Workers, inverse: np.ndarray | None = None) -> np.ndarray:
        out = np.empty(self.rows.shape, dtype=self.rows.dtype)
        for part, phi in self._features(workers, inverse):
            out[part] = phi
        return out

    def _features(self, workers: Workers, inverse: np.ndarray | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield kernel values times a matrix [M, M], L^-T by default, some rows after others."""
        inverse = self.head.inverse(self.size, self.rows.dtype) if inverse is None else inverse

        def task(rows: slice) -> tuple[slice, np.ndarray]:
            return rows, np.concatenate([K @ inverse for _, K in self.rows.pieces(rows)])

        return workers.map(task, ranges(self.rows.shape[0], ROWS_PER_TASK))

    def residual(self, workers: Workers) -> np.ndarray:
        if self._residual is None:
            rows, device = self.rows, workers.device
            if device is None:
                parts = [np.square(phi, dtype=np.float64).sum(axis=1) for _, phi in self._features(workers)]
                squares = np.concatenate([*parts, []])
            else:
                pivots, inverse = rows.pivots, self.head.inverse(self.size, rows.dtype)
                squares = device.row_squares(pivots.kernel, rows.inputs, pivots.inputs, inverse, rows.dtype)
            self._residual = np.maximum(self._diagonal - squares, 0.0)
        return self._residual

    def raw_squares(self, counts: np.ndarray | None, partitions: Partitions | None = None) -> np.ndarray:
        def of_rows(part: slice) -> float:
            own = self._diagonal[part]
            return float(own.sum() if counts is None else own @ counts[part])

        return np.array([summed_by(partitions, len(self._diagonal), of_rows)])  # [1] the trace

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        return max(float(np.average(self._diagonal, weights=counts)), 1e-12)

    def extent(self, scale: np.ndarray) -> Extent:
        pivots = self.rows.pivots
        errors = (pivots.kernel.value_errors(inputs, pivots.inputs) for inputs in (self.rows.inputs, pivots.inputs))
        largest = max(float(own.max(initial=0.0)) for own in errors)
        outside = self._whole and self._residual is not None and bool(self._residual.any())
        return Extent(float(self._diagonal.max(initial=0.0)), self.size, largest, outside)

    def outside_roots(self, gram: float, errors: np.ndarray, partitions: Partitions | None = None) -> float:
        def of_rows(part: slice) -> float:
            assert self._residual is not None
            residual = self._residual[part]
            left = np.where(residual > 0, residual + gram, 0.0)
            return float(np.sqrt(left) @ np.linalg.norm(errors[part], axis=1))

        return summed_by(partitions, len(errors), of_rows)


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """Inputs and pivots that the row block of a reduced map is made of."""

    inputs: Inputs
    kernel: Kernel
    pivots: Inputs
    diagonal: np.ndarray  # [n] k(x, x)
    residual: np.ndarray | None
    whole: bool
    dtype: np.dtype

    columns = None  # all of them

    @property
    def nbytes(self) -> int:
        """Bytes without the table of kernel values, which is held where it fits and else computed again."""
        return self.inputs.nbytes + self.pivots.nbytes + self.diagonal.nbytes

    @property
    def table(self) -> int:
        """Bytes of kernel values."""
        return len(self.inputs) * len(self.pivots) * self.dtype.itemsize

    def load(self, workers: Workers) -> ReducedMap:
        rows = KernelRows.of(self.inputs, self.kernel, self.pivots, workers.memory, self.dtype)
        return ReducedMap(rows, None, self.diagonal, self.residual, self.whole)
