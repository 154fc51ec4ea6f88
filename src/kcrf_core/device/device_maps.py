"""Feature maps on a device: products with Phi and its transpose, of a map that this process has.

    ready(W)        what rows are multiplied with
    scores(ready)   Phi W, [N, C] in the precision of a pass
    adjoint(R)      Phi^T R, [D, C] in double precision
    rounding(W)     what rounding may change about an evaluation, as `maps.Head` says it

Kernel values of pivots are held there as far as the device's memory allows, and computed again in every pass where it
does not. Sums over rows in single precision are taken some thousand rows at a time, and those in double precision.
Sparse columns have a transpose of their own, in double precision: it takes hardly longer, for what counts there is
where values lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..kernels import Inputs, Pivots
from ..maps import (
    ExplicitMap,
    Extent,
    FeatureMap,
    KeptWeights,
    KernelRows,
    PivotHead,
    ReducedMap,
    RepeatedMap,
    Rounding,
)
from ..system import DOUBLE, Array, Backend, Workers, ranges
from .kernel_blocks import laid_out
from .place import ArrayPlace

ROWS_AT_ONCE, PIECES_AT_ONCE = 8192, 32


class DeviceMap(Protocol):
    """A map on a place."""

    @property
    def stays(self) -> bool: ...  # nothing has to be computed by this process

    def ready(self, W: Array) -> Array: ...

    def scores(self, ready: Array) -> Array: ...

    def adjoint(self, R: Array) -> Array: ...

    def rounding(self, W: Array, about: Evaluated) -> Rounding: ...


@dataclass(frozen=True)
class Evaluated:
    """What `Head.rounding` is told of an evaluation."""

    error_sum: float
    positions: int
    extent: Extent
    outside: Callable[[float], float]


def map_on(place: ArrayPlace, feature_map: FeatureMap, dtype: np.dtype) -> DeviceMap:
    """A map of this process there, made once for as long as that one lives."""
    found, dtype = place.maps.setdefault(feature_map, {}), np.dtype(dtype)
    if dtype not in found:
        with place.watched():
            found[dtype] = _made(feature_map, dtype, place, next(iter(found.values()), None))
    return found[dtype]


def _made(feature_map: FeatureMap, dtype: np.dtype, place: ArrayPlace, other: DeviceMap | None) -> DeviceMap:
    """The same map there; another one may be there in another precision."""
    if isinstance(feature_map, RepeatedMap):
        return RepeatedDeviceMap(feature_map, map_on(place, feature_map.distinct, dtype), place.backend)
    if isinstance(feature_map, ReducedMap):
        return PivotMap(feature_map, dtype, place)
    if isinstance(feature_map, ExplicitMap):
        return ColumnsMap(feature_map, dtype, place.backend, other if isinstance(other, ColumnsMap) else None)
    raise TypeError(f"a device has no form of {type(feature_map).__name__}")


def row_products(values: Array, right: Array, backend: Backend) -> Array:
    """values right for values [N, D] and right [D, C], where C is small."""
    whole, (_, D), C = len(values) // ROWS_AT_ONCE, values.shape, right.shape[1]
    if backend.dtype(values) == DOUBLE or whole < 2:
        return values @ right
    found = []
    for some in ranges(whole, PIECES_AT_ONCE):  # a library takes tiles that are less wide, so that less is wasted
        part, count = slice(some.start * ROWS_AT_ONCE, some.stop * ROWS_AT_ONCE), some.stop - some.start
        pieces = values[part].reshape(count, ROWS_AT_ONCE, D) @ backend.xp.stack([right] * count)
        found.append(pieces.reshape(-1, C))
    return backend.xp.concatenate([*found, values[whole * ROWS_AT_ONCE :] @ right])


def row_sums(values: Array, R: Array, backend: Backend) -> Array:
    """values^T R for values [N, D] and R [N, C] in double precision, which products are rounded from."""
    dtype, (N, D) = backend.dtype(values), values.shape
    if dtype == DOUBLE:
        return values.T @ R
    R, C, whole = backend.cast(R, dtype), R.shape[1], N // ROWS_AT_ONCE
    total = backend.cast(values[whole * ROWS_AT_ONCE :].T @ R[whole * ROWS_AT_ONCE :], DOUBLE)
    for some in ranges(whole, PIECES_AT_ONCE):  # many products in one go: one alone is too small for a GPU
        part = slice(some.start * ROWS_AT_ONCE, some.stop * ROWS_AT_ONCE)
        pieces = values[part].reshape(-1, ROWS_AT_ONCE, D)
        found = backend.permuted(pieces, (0, 2, 1)) @ R[part].reshape(-1, ROWS_AT_ONCE, C)
        total = total + backend.cast(found, DOUBLE).sum(0)
    return total


class ColumnsMap:
    """Sparse and real columns."""

    stays = True

    def __init__(self, own: ExplicitMap, dtype: np.dtype, backend: Backend, other: ColumnsMap | None = None):
        self._backend, self._dtype, self._split = backend, np.dtype(dtype), own.sparse_size
        rows = own.rows
        self._scale = backend.array(rows.scale[:, None], DOUBLE) if len(rows.scale) else None
        self._rows = self._columns = None
        if own.sparse_size:
            if other is not None and not len(rows.values):  # ones are ones in any precision
                self._rows = other._rows
            else:
                self._rows = self._laid_out(rows, own.sparse_size, self._dtype)
            self._columns = self._laid_out(own.columns, rows.shape[0], DOUBLE) if other is None else other._columns
        self._head = own.head
        self._real = backend.array(own.real(slice(None), self._dtype), self._dtype) if own.dense_size else None
        self._size = rows.shape[0]

    def _laid_out(self, matrix: Any, width: int, dtype: np.dtype) -> Any:
        values = matrix.values if len(matrix.values) else np.ones(len(matrix.indices))
        return self._backend.sparse(matrix.indptr, matrix.indices, values, width, dtype)

    def ready(self, W: Array) -> Array:
        if self._scale is not None:
            W = self._backend.xp.concatenate([W[: self._split] * self._scale, W[self._split :]])
        return self._backend.cast(W, self._dtype)

    def scores(self, ready: Array) -> Array:
        backend, found = self._backend, None
        if self._rows is not None:
            found = backend.sparse_product(self._rows, ready[: self._split])
        if self._real is not None:
            real = self._real @ ready[self._split :]
            found = real if found is None else found + real
        return backend.zeros((self._size, ready.shape[1]), self._dtype) if found is None else found

    def adjoint(self, R: Array) -> Array:
        parts = []
        if self._columns is not None:
            sparse = self._backend.sparse_product(self._columns, R)
            parts.append(sparse if self._scale is None else sparse * self._scale)
        if self._real is not None:
            parts.append(row_sums(self._real, R, self._backend))
        return self._backend.xp.concatenate(parts) if parts else self._backend.zeros((0, R.shape[1]))

    def rounding(self, W: Array, about: Evaluated) -> Rounding:
        squares = self._backend.numpy((W * W).sum(0))
        longest = float(np.sqrt(squares.max(initial=0.0)))
        return self._head.rounding_of(longest, about.error_sum, about.positions, about.extent)


class DeviceTriangle:
    """L of pivots on a place, and its inverse from the first time that it is needed."""

    def __init__(self, head: PivotHead, place: ArrayPlace):
        self._backend, self._memory = place.backend, place.memory
        self.values = place.known(head.triangle)
        self._memory.spend(self, head.triangle.nbytes)
        self._inverted: Array | None = None

    def _inverse(self) -> Array:
        if self._inverted is None:
            self._memory.spend(self, 8 * len(self.values) ** 2)
            self._inverted = self._backend.solve_lower(self.values, self._backend.array(np.eye(len(self.values))))
        return self._inverted

    def solve(self, right: Array, dtype: np.dtype, transposed: bool = False) -> Array:
        """L^-1 R, or L^-T R; for passes in double precision, which may prove something, by substitution."""
        if dtype == DOUBLE:
            return self._backend.solve_lower(self.values, right, transposed)
        inverse = self._inverse()
        return (inverse.T if transposed else inverse) @ right

    @cached_property
    def inverse_norm(self) -> float:
        """|L^-1| at the most, from its norms by rows and by columns."""
        sizes = abs(self._inverse())
        return float(np.sqrt(float(sizes.sum(0).max()) * float(sizes.sum(1).max())))


def _triangle_on(place: ArrayPlace, head: PivotHead) -> DeviceTriangle:
    if head not in place.triangles:
        place.triangles[head] = DeviceTriangle(head, place)
    return place.triangles[head]


class DeviceKernelRows:
    """Kernel values of positions with pivots, held as far as there is room and computed again where there is none."""

    def __init__(self, rows: KernelRows, dtype: np.dtype, place: ArrayPlace, held: bool = True):
        self._backend, self.dtype, self.shape = place.backend, np.dtype(dtype), rows.shape
        self._maker = BlockMaker(rows.inputs, rows.pivots.kernel, rows.pivots.inputs, self.dtype, place)
        N, M = self.shape
        row = max(M, 1) * self.dtype.itemsize
        count = place.memory.reserve(self, N * row, row) // row if held and rows.held else 0
        self._held = self._backend.empty((count, M), self.dtype)
        for part in ranges(count, ROWS_AT_ONCE):
            self._held[part] = self._maker.block(part)
        self.stays = count == N or self._maker.stays

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Rows, the held ones first and all at once."""
        held, (N, _) = len(self._held), self.shape
        if held:
            yield slice(0, held), self._held
        for part in ranges(N - held, ROWS_AT_ONCE):
            part = slice(held + part.start, held + part.stop)
            yield part, self._maker.block(part)

    def times(self, right: Array) -> Array:
        """K R, [N, C]."""
        found = [row_products(values, right, self._backend) for _, values in self.pieces()]
        return self._backend.xp.concatenate(found) if found else self._backend.zeros((0, right.shape[1]), self.dtype)

    def sums(self, R: Array) -> Array:
        """K^T R in double precision, [M, C]."""
        total = self._backend.zeros((self.shape[1], R.shape[1]))
        for part, values in self.pieces():
            total = total + row_sums(values, R[part], self._backend)
        return total


class BlockMaker:
    """Blocks of kernel values of some rows with some pivots, by the device where it knows the kernel."""

    def __init__(self, inputs: Inputs, kernel: Any, pivots: Inputs, dtype: np.dtype, place: ArrayPlace):
        self._backend, self._dtype = place.backend, np.dtype(dtype)
        self._kernel = laid_out(kernel, dtype, place.backend)
        self.stays = self._kernel is not None
        if self._kernel is None:
            self._inputs, self._here = inputs, Pivots(pivots, kernel, dtype)
            return
        frame = self._kernel.frame(pivots)
        self._pivots, self._rows = self._kernel.pivots(pivots, frame), self._kernel.rows(inputs, frame)

    def block(self, part: slice) -> Array:
        """[n, M]."""
        if self._kernel is not None:
            return self._kernel.block(self._rows, part, self._pivots)
        return self._backend.array(self._here.gram(self._inputs.take(part)), self._dtype)


class PivotMap:
    """Kernel values of pivots with L."""

    def __init__(self, own: ReducedMap, dtype: np.dtype, place: ArrayPlace):
        self._backend, self._dtype = place.backend, np.dtype(dtype)
        self.rows = DeviceKernelRows(own.rows, self._dtype, place)
        self.stays = self.rows.stays
        self._triangle, self._head = _triangle_on(place, own.head), own.head

    def ready(self, W: Array) -> Array:
        return self._backend.cast(self._triangle.solve(W, self._dtype, transposed=True), self._dtype)

    def scores(self, ready: Array) -> Array:
        return self.rows.times(ready)

    def adjoint(self, R: Array) -> Array:
        return self._triangle.solve(self.rows.sums(R), self._dtype)

    def rounding(self, W: Array, about: Evaluated) -> Rounding:
        alpha = abs(self._triangle.solve(W, DOUBLE, transposed=True))
        length, sums = float((alpha * alpha).sum()) ** 0.5, self._backend.numpy(alpha.sum(0))
        sizes = length, float(sums.max(initial=0.0)), self._triangle.inverse_norm
        return self._head.rounding_of(*sizes, about.error_sum, about.positions, about.extent, about.outside)


class RepeatedDeviceMap:
    """A map on distinct rows, seen through the positions that they stand at."""

    def __init__(self, own: RepeatedMap, distinct: DeviceMap, backend: Backend):
        self.distinct, self._backend, self.stays = distinct, backend, distinct.stays
        self._group = backend.array(own.group, np.dtype(np.int64))
        N, U = len(own.group), int(own.group.max(initial=-1)) + 1
        ends = np.concatenate([[0], np.cumsum(np.bincount(own.group, minlength=U))])
        self._positions = backend.sparse(ends, np.argsort(own.group, kind="stable"), np.ones(N), N, DOUBLE)

    def ready(self, W: Array) -> Array:
        return self.distinct.ready(W)

    def scores(self, ready: Array) -> Array:
        return self._backend.rows(self.distinct.scores(ready), self._group)

    def adjoint(self, R: Array) -> Array:
        return self.distinct.adjoint(self._backend.sparse_product(self._positions, R))

    def rounding(self, W: Array, about: Evaluated) -> Rounding:
        return self.distinct.rounding(W, about)


class LentMap:
    """A map of this process whose products are taken on a device: for all that an engine does not do there itself."""

    dense_size, narrows_weights = 0, False

    def __init__(self, here: FeatureMap, dtype: np.dtype, place: ArrayPlace):
        self.here, self._dtype, self._place = here, np.dtype(dtype), place

    @classmethod
    def of(cls, own: FeatureMap | LentMap, dtype: np.dtype, place: ArrayPlace) -> LentMap:
        """Lend a map, which may be lent already."""
        return cls(own.here if isinstance(own, LentMap) else own, dtype, place)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.here, name)

    def prepare(self, W: Any, dtype: np.dtype, workers: Workers | None = None, empty: Any = None) -> np.ndarray:
        """Scores of all positions, [N, C]."""
        own, backend = map_on(self._place, self.here, dtype), self._place.backend
        if isinstance(W, KeptWeights):
            W = W.places.tail(W.block, 0)
        return backend.numpy(own.scores(own.ready(backend.array(W, DOUBLE))))

    def add_scores(self, prepared: np.ndarray, rows: slice, out: np.ndarray, fresh: bool = False) -> None:
        if fresh:
            out[...] = prepared[rows]
        else:
            out += prepared[rows]

    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> None:
        return None  # residuals of all positions have to be there first

    def dense_rows(self, dtype: np.dtype) -> None:
        return None

    def native(self, prepared: object, columns: int) -> None:
        return None

    def adjoint(
        self, summed: object, R: np.ndarray, workers: Workers, out: Any = None, partitions: object = None
    ) -> np.ndarray | KeptWeights:
        own, backend = map_on(self._place, self.here, R.dtype), self._place.backend
        found = backend.numpy(own.adjoint(backend.array(R, DOUBLE)))
        if isinstance(out, KeptWeights):
            out.block[:] = found.ravel()[out.places.kept]
            return out
        return found

    def features(self, workers: Workers, inverse: np.ndarray) -> np.ndarray:
        """Return kernel values times a matrix, [N, M]."""
        return self._place.backend.numpy(self.features_there(inverse))

    def features_there(self, inverse: np.ndarray) -> Array:
        """Return kernel values times a matrix as an array of the device."""
        own, right = map_on(self._place, self.here, self._dtype), self._place.backend.array(inverse, self._dtype)
        return own.scores(right)

    def _lent(self, here: FeatureMap) -> LentMap:
        return LentMap(here, self._dtype, self._place)

    def subset(self, rows: np.ndarray) -> LentMap:
        return self._lent(self.here.subset(rows))

    def leading(self, m: int) -> LentMap:
        return self._lent(self.here.leading(m))

    def in_double(self, held: bool) -> LentMap:
        return LentMap(self.here.in_double(held), DOUBLE, self._place)
