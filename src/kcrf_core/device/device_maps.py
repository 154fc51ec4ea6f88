"""Places for arrays, and feature maps there: products with Phi and its transpose, of a map that this process has.

Kernel values of pivots are held while the device has memory for them, others are computed again in every pass. Sums
over rows in single precision are taken some thousand rows at a time, and those in double precision.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._lazy import cached_property
from ..errors import DeviceError
from ..kernels import Inputs, Pivots
from ..maps import (
    Empty,
    ExplicitMap,
    Extent,
    FeatureMap,
    Head,
    KeptWeights,
    Partitions,
    PivotHead,
    ReducedMap,
    RepeatedMap,
)
from ..system import DOUBLE, Array, Backend, Budget, Workers, offsets_of, ranges, size_text
from .kernel_blocks import laid_out

ROWS_AT_ONCE, PIECES_AT_ONCE = 8192, 32
Block = np.ndarray | KeptWeights  # weights [D, C], or those at some places
SHARE = 0.7  # of free memory that tables may take by default: vectors, messages and products need some, too


class ArrayPlace:
    """Arrays of one backend."""

    def __init__(self, backend: Backend, memory: int | None = None, tell: Callable[[str], None] | None = None):
        self.backend, self._tell = backend, tell
        self._reported: set[str] = set()
        self.memory = Budget(int(SHARE * backend.free_memory()) if memory is None else memory)
        # What was made of maps and triangles of this process, for as long as those live.
        self.maps: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.triangles: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._known: dict[int, tuple[weakref.ref, Array]] = {}

    def say(self, line: str) -> None:
        """Report what users should know, once."""
        if self._tell is not None and line not in self._reported:
            self._reported.add(line)
            self._tell(f"engine {self.backend.name}: {line}")

    def remember(self, here: np.ndarray, there: Array) -> None:
        """Note that an array of this process, which never changes, is there already."""
        number = id(here)
        self._known[number] = weakref.ref(here, lambda _: self._known.pop(number, None)), there

    def known(self, here: np.ndarray) -> Array:
        """Return an array of this process in double precision there, copied once."""
        if id(here) not in self._known:
            self.remember(here, self.backend.array(here, DOUBLE))
        return self._known[id(here)][1]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Set what the backend needs for a block, and report in one line that memory there is short."""
        try:
            with self.backend.settings():
                yield
        except RuntimeError as error:
            if not self.backend.is_out_of_memory(error):
                raise
            free = size_text(self.backend.free_memory())
            raise DeviceError(
                f"{self.backend.name}: too little memory on {self.backend.title} ({free} free): use a smaller "
                "'memory', so that kernel values are computed again, or leave out 'engine' to use threads",
                settings=["memory", "engine"],
            ) from None


class DeviceMap(ABC):
    """A map on a place."""

    stays: bool = True  # nothing has to be computed by this process

    @abstractmethod
    def ready(self, W: Array) -> Array:
        """Return what rows are multiplied by."""

    @abstractmethod
    def scores(self, ready: Array) -> Array:
        """Return Phi W, [N, C] in the precision of a pass."""

    @abstractmethod
    def adjoint(self, R: Array) -> Array:
        """Return Phi^T R, [D, C] in double precision."""


def map_on(place: ArrayPlace, feature_map: FeatureMap, dtype: np.dtype) -> DeviceMap:
    """Return a map of this process there, made once for as long as that one lives."""
    found, dtype = place.maps.setdefault(feature_map, {}), np.dtype(dtype)
    if dtype not in found:
        with place.watched():
            found[dtype] = _made(feature_map, dtype, place, next(iter(found.values()), None))
    return found[dtype]


def _made(feature_map: FeatureMap, dtype: np.dtype, place: ArrayPlace, other: DeviceMap | None) -> DeviceMap:
    """Lay a map out there; it may be there in another precision already."""
    if isinstance(feature_map, RepeatedMap):
        return RepeatedDeviceMap(feature_map, map_on(place, feature_map.distinct, dtype), place.backend)
    if isinstance(feature_map, ReducedMap):
        return PivotMap(feature_map, dtype, place)
    if isinstance(feature_map, ExplicitMap):
        return ColumnsMap(feature_map, dtype, place.backend, other if isinstance(other, ColumnsMap) else None)
    raise TypeError(f"a device has no form of {type(feature_map).__name__}")


def row_products(values: Array, right: Array, backend: Backend) -> Array:
    """Return values @ right for values [N, D] and right [D, C], where C is small."""
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
    """Return values^T R for values [N, D] and R [N, C] in double precision, from which products are rounded."""
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


class ColumnsMap(DeviceMap):
    """Sparse and real columns."""

    def __init__(self, own: ExplicitMap, dtype: np.dtype, backend: Backend, other: ColumnsMap | None = None):
        self._backend, self._dtype, self._split = backend, np.dtype(dtype), own.sparse_size
        rows = own.rows
        self._scale = backend.array(rows.scale[:, None], DOUBLE) if len(rows.scale) else None
        self._rows = self._columns = None
        if own.sparse_size:
            shared = other is not None and not len(rows.values)  # ones are ones in any precision
            self._rows = other._rows if shared and other else self._laid_out(rows, own.sparse_size, self._dtype)
            self._columns = other._columns if other else self._laid_out(own.columns, rows.shape[0], DOUBLE)
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


class DeviceTriangle:
    """L of pivots on a place, and its inverse once it is needed."""

    def __init__(self, head: PivotHead, place: ArrayPlace):
        self._backend, self._memory = place.backend, place.memory
        self.values = place.known(head.triangle)
        self._memory.spend(self, head.triangle.nbytes)

    @cached_property
    def _inverse(self) -> Array:
        M = len(self.values)
        self._memory.spend(self, 8 * M**2)
        identity = self._backend.zeros((M, M))
        identity.reshape(-1)[:: M + 1] = 1.0
        return self._backend.solve_lower(self.values, identity)

    def solve(self, right: Array, dtype: np.dtype, transposed: bool = False) -> Array:
        """Return L^-1 R, or L^-T R; by substitution for passes in double precision, which proofs rest on."""
        if dtype == DOUBLE:
            return self._backend.solve_lower(self.values, right, transposed)
        return (self._inverse.T if transposed else self._inverse) @ right

    @cached_property
    def inverse_norm(self) -> float:
        """Upper bound of |L^-1|, from its norms by rows and by columns."""
        sizes = abs(self._inverse)
        return float(np.sqrt(float(sizes.sum(0).max()) * float(sizes.sum(1).max())))


def triangle_on(place: ArrayPlace, head: PivotHead) -> DeviceTriangle:
    """Return L there, copied once for as long as the head lives."""
    if head not in place.triangles:
        place.triangles[head] = DeviceTriangle(head, place)
    return place.triangles[head]


class LentHead(PivotHead):
    """The triangle of pivots, with its systems in double precision solved on a device."""

    def __init__(self, here: PivotHead, place: ArrayPlace):
        vars(self).update(vars(here))
        self._there, self._backend = triangle_on(place, here), place.backend

    def dual(self, W: np.ndarray) -> np.ndarray:
        return self._backend.numpy(self._there.solve(self._backend.array(W, DOUBLE), DOUBLE, transposed=True))

    @property
    def inverse_norm(self) -> float:
        return self._there.inverse_norm


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
        self._pivots, self._rows = self._kernel.side(pivots, frame, pivots=True), self._kernel.side(inputs, frame)

    def block(self, part: slice) -> Array:
        """Return the values of some rows, [n, M]."""
        if self._kernel is not None:
            return self._kernel.block(self._rows, part, self._pivots)
        return self._backend.array(self._here.gram(self._inputs.take(part)), self._dtype)


class PivotMap(DeviceMap):
    """Kernel values of positions with pivots, held while there is room and computed again otherwise, and L."""

    def __init__(self, own: ReducedMap, dtype: np.dtype, place: ArrayPlace):
        self._backend, self._dtype, rows = place.backend, np.dtype(dtype), own.rows
        self._maker = BlockMaker(rows.inputs, rows.pivots.kernel, rows.pivots.inputs, self._dtype, place)
        self._size, M = rows.shape
        row = max(M, 1) * self._dtype.itemsize
        count = place.memory.reserve(self, self._size * row, row) // row if rows.held else 0
        self._held = self._backend.empty((count, M), self._dtype)
        for part in ranges(count, ROWS_AT_ONCE):
            self._held[part] = self._maker.block(part)
        self.stays = count == self._size or self._maker.stays
        self._triangle = triangle_on(place, own.head)

    def _pieces(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows, the held ones first and all at once."""
        held = len(self._held)
        if held:
            yield slice(0, held), self._held
        for part in ranges(self._size - held, ROWS_AT_ONCE):
            part = slice(held + part.start, held + part.stop)
            yield part, self._maker.block(part)

    def ready(self, W: Array) -> Array:
        return self._backend.cast(self._triangle.solve(W, self._dtype, transposed=True), self._dtype)

    def scores(self, ready: Array) -> Array:
        found = [row_products(values, ready, self._backend) for _, values in self._pieces()]
        return self._backend.xp.concatenate(found) if found else self._backend.zeros((0, ready.shape[1]), self._dtype)

    def adjoint(self, R: Array) -> Array:
        total = self._backend.zeros((self._held.shape[1], R.shape[1]))
        for part, values in self._pieces():
            total = total + row_sums(values, R[part], self._backend)
        return self._triangle.solve(total, self._dtype)


class RepeatedDeviceMap(DeviceMap):
    """A map on distinct rows, seen through the positions that they stand at."""

    def __init__(self, own: RepeatedMap, distinct: DeviceMap, backend: Backend):
        self.distinct, self._backend, self.stays = distinct, backend, distinct.stays
        self._group = backend.array(own.group, np.dtype(np.int64))
        N, U = len(own.group), int(own.group.max(initial=-1)) + 1
        ends = offsets_of(np.bincount(own.group, minlength=U))
        self._positions = backend.sparse(ends, np.argsort(own.group, kind="stable"), np.ones(N), N, DOUBLE)

    def ready(self, W: Array) -> Array:
        return self.distinct.ready(W)

    def scores(self, ready: Array) -> Array:
        return self._backend.rows(self.distinct.scores(ready), self._group)

    def adjoint(self, R: Array) -> Array:
        return self.distinct.adjoint(self._backend.sparse_product(self._positions, R))


class LentMap(FeatureMap):
    """A map of this process with products on a device, for all that a partition does not do there itself."""

    def __init__(self, here: FeatureMap, dtype: np.dtype, place: ArrayPlace):
        self.here: FeatureMap = here.here if isinstance(here, LentMap) else here  # it may be lent already
        self._dtype, self._place = np.dtype(dtype), place
        self.size, self.dense_size, self.nested = here.size, 0, here.nested
        self.real_size, self.beyond_single = here.real_size, here.beyond_single

    @cached_property
    def head(self) -> Head:
        own = self.here.head
        return LentHead(own, self._place) if isinstance(own, PivotHead) else own

    def prepare(self, W: Block, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty) -> np.ndarray:
        """Return scores of all positions, [N, C]."""
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
        self, sums: np.ndarray | None, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        own, backend = map_on(self._place, self.here, R.dtype), self._place.backend
        found = backend.numpy(own.adjoint(backend.array(R, DOUBLE)))
        if isinstance(out, KeptWeights):
            out.block[:] = found.ravel()[out.places.kept]
            return out
        return found

    def features_there(self, inverse: np.ndarray) -> Array:
        """Return kernel values times a matrix as an array of the device."""
        own, right = map_on(self._place, self.here, self._dtype), self._place.backend.array(inverse, self._dtype)
        return own.scores(right)

    def subset(self, rows: np.ndarray) -> LentMap:
        return LentMap(self.here.subset(rows), self._dtype, self._place)

    def leading(self, m: int) -> LentMap:
        return LentMap(self.here.leading(m), self._dtype, self._place)

    def in_double(self, held: bool) -> LentMap:
        return LentMap(self.here.in_double(held), DOUBLE, self._place)

    # What takes no product with weights is asked of the map itself.

    def adjoint_of_squares(
        self, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        return self.here.adjoint_of_squares(R, workers, out, partitions)

    def raw_squares(self, counts: np.ndarray | None, partitions: Partitions | None = None) -> np.ndarray:
        return self.here.raw_squares(counts, partitions)

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        return self.here.mean_diagonal(counts)

    def extent(self, scale: np.ndarray) -> Extent:
        return self.here.extent(scale)

    def outside_roots(self, gram: float, errors: np.ndarray, partitions: Partitions | None = None) -> float:
        return self.here.outside_roots(gram, errors, partitions)

    def real_gram(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self.here.real_gram(rows, counts)

    def spec(self, rows: np.ndarray) -> Any:
        return self.here.spec(rows)

    def narrow(self, columns: np.ndarray) -> LentMap:
        return LentMap(self.here.narrow(columns), self._dtype, self._place)
