"""Vectors of parameters, and the operations of solvers on them, so that an engine can keep vectors anywhere.

`HostVectors` are NumPy arrays that threads go through in slices, with loops in C where those are faster. Slices depend
on the data alone and never cross the border of a block, and sums over them are taken in their order: results are the
same for any number of threads. An operation is one call of `_long_vectors`, as memory traffic is what counts. Long
vectors are used again once nothing refers to them (`Buffers`): fresh memory costs more than the arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from ..maps import product
from ..system import Workers, ranges
from . import _long_vectors
from ._long_vectors import Operation, Values

Vector: TypeAlias = Any  # an array of an engine: nothing but its `Vectors` looks inside

LEAST_BYTES = 1 << 20  # smaller arrays come from memory that the process has already

SHORTEST_SLICE, LONGEST_SLICE = 1 << 10, 1 << 15  # values
SLICES = 64  # wanted: they share out evenly among up to 16 threads
PIECE, PIECES_AT_ONCE = 1 << 15, 1 << 7  # columns of pairs that are multiplied, and widened to double precision
# Pairs and slopes of longer vectors are kept as upper halves of single numbers: passes to a gap of 1e-3 with whole ones
# and with halves: 149 and 146 (GROBID's header, 25 documents), 55 and 55, 100 and 105 (an eighth of CoNLL-2000).
LONGEST_WHOLE = 1 << 20
VALUES_PER_TASK = 1 << 15  # of all vectors together: with fewer it takes longer to hand a task over than to do it


class _Lease:
    """Memory that arrays use: with the last view of it, it is unused again, or released if its store is gone."""

    def __init__(self, memory: np.ndarray, unused: deque[np.ndarray]):
        self.__array_interface__ = memory.__array_interface__
        self._memory, self._unused = memory, ref(unused)

    def __del__(self) -> None:
        if (unused := self._unused()) is not None:
            unused.append(self._memory)


class Buffers:
    """A store of memory for arrays, which threads may share: a deque gives each item to one of them."""

    def __init__(self) -> None:
        self._unused: dict[tuple[int, np.dtype], deque[np.ndarray]] = {}

    def empty(self, shape: tuple[int, ...] | int, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Return an array whose values are not set, like np.empty."""
        size, dtype = int(np.prod(shape)), np.dtype(dtype)
        if size * dtype.itemsize < LEAST_BYTES:
            return np.empty(shape, dtype=dtype)
        unused = self._unused.setdefault((size, dtype), deque())
        try:
            memory = unused.pop()
        except IndexError:
            memory = np.empty(size, dtype=dtype)
        return np.asarray(_Lease(memory, unused)).reshape(shape)

    def forget_unused(self) -> None:
        """Release the memory that is not in use."""
        for unused in list(self._unused.values()):
            unused.clear()


class Vectors(ABC):
    """The vectors of one problem: as long as theta, with a block for each term."""

    xp: ModuleType = np  # whose functions take vectors: numpy or torch

    def __init__(self, blocks: Sequence[slice]):
        self.blocks = list(blocks)
        self.size = max((block.stop for block in blocks), default=0)

    @abstractmethod
    def empty(self, dtype: np.dtype | type = np.float64) -> Vector:
        """Return a vector whose values are not set."""

    @abstractmethod
    def zeros(self) -> Vector: ...

    @abstractmethod
    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> Vector: ...

    @abstractmethod
    def to_array(self, vector: Vector) -> np.ndarray:
        """Return its values; they are not to be changed."""

    @abstractmethod
    def cast(self, vector: Vector, dtype: np.dtype | type) -> Vector: ...

    @abstractmethod
    def _double(self, values: Vector) -> Vector:
        """Return an array, or a slice of a vector, in double precision."""

    def length(self, vector: Vector) -> int:
        """Return how many values a vector has, which may be one of another problem."""
        return len(vector)

    def is_zero(self, vector: Vector) -> bool:
        return not bool((vector != 0).any())

    def copy(self, vector: Vector) -> Vector:
        return vector * 1

    def negated(self, vector: Vector) -> Vector:
        return -vector

    def dot(self, a: Vector, b: Vector) -> float:
        return float((self._double(a) * self._double(b)).sum())

    def block_dots(self, a: Vector, b: Vector) -> list[float]:
        """Return the inner product of each block."""
        products = self._double(a) * self._double(b)
        return self._numbers([products[block].sum() for block in self.blocks])

    def _numbers(self, sums: Sequence[Vector]) -> list[float]:
        """Return sums as numbers, waiting for a device once."""
        return self.to_array(self.xp.stack(list(sums))).tolist() if sums else []

    def stepped(self, start: Vector, step: float, direction: Vector) -> Vector:
        """Return start + step * direction."""
        return self._double(start) + step * self._double(direction)

    def add_scaled(self, target: Vector, factor: float, vector: Vector) -> None:
        """Add factor * vector to target."""
        target[:] = self._double(target) + factor * self._double(vector)

    def product(self, a: Vector, b: Vector) -> Vector:
        """Multiply entry by entry."""
        return a * b

    def quotient(self, a: Vector, b: Vector) -> Vector:
        """Divide entry by entry."""
        return a / b

    @abstractmethod
    def of_block(self, number: int) -> Vectors:
        """Return vectors that are one block of these."""

    def take(self, vector: Vector, number: int) -> Vector:
        """Return a block of a vector; it is not to be changed."""
        return vector[self.blocks[number]]

    def put(self, target: Vector, number: int, block: Vector) -> None:
        target[self.blocks[number]] = block

    def multiply_rows(
        self, target: Vector, vector: Vector, number: int, matrix: np.ndarray, width: int, first: int = 0
    ) -> None:
        """Put matrix [m, m] times m rows [m, width] of a vector's block into the same place of a target.

        `first` says where in the block they begin.
        """
        first += self.blocks[number].start
        part = slice(first, first + len(matrix) * width)
        rows = self._double(vector[part]).reshape(len(matrix), width)
        target[part] = self._multiplied(matrix, rows).reshape(-1)

    @abstractmethod
    def _multiplied(self, matrix: np.ndarray, rows: Vector) -> Vector:
        """Multiply a matrix [m, m] by rows [m, C] beside vectors."""

    def widened(self, vector: Vector, narrow: Vectors) -> Vector:
        """Return a vector of other, shorter blocks as one of these: their values come first, the others are zero."""
        out = self.zeros()
        for few, whole in zip(narrow.blocks, self.blocks, strict=True):
            out[whole.start : whole.start + few.stop - few.start] = vector[few]
        return out

    def _each_block(self, variances: np.ndarray) -> list[tuple[slice, float]]:
        return list(zip(self.blocks, np.asarray(variances, dtype=np.float64).tolist(), strict=True))

    def add_prior(self, gradient: Vector, theta: Vector, variances: np.ndarray) -> tuple[float, float]:
        """Add theta / sigma^2 to a gradient; return sums of |theta|^2 / (2 sigma^2) and of sigma^2 |gradient|^2 / 2."""
        sums = []
        for block, sigma2 in self._each_block(variances):
            point, own = self._double(theta[block]), gradient[block]
            own += point / sigma2
            sums += [(point * point).sum(), (own * own).sum()]
        found = np.array(self._numbers(sums)).reshape(-1, 2)
        return float((found[:, 0] / variances).sum() / 2), float((found[:, 1] * variances).sum() / 2)

    def add_curvature(self, target: Vector, vector: Vector, variances: np.ndarray) -> None:
        """Add vector / sigma^2 to target."""
        for block, sigma2 in self._each_block(variances):
            target[block] += (1.0 / sigma2) * self._double(vector[block])

    def linearised(
        self, theta: Vector, gradient: Vector, variances: np.ndarray, dtype: np.dtype | type, others: Sequence[Vector]
    ) -> tuple[Vector, float, list[float]]:
        """Linearise the loss, from P's gradient: sigma g, <g, theta>, and products of sigma g with others and itself.

        g is the gradient without the prior's part; sigma g is kept in `dtype`.
        """
        scaled, along = self.empty(dtype), []
        for block, sigma2 in self._each_block(variances):
            point = self._double(theta[block])
            own = gradient[block] - point / sigma2
            along.append((own * point).sum())
            scaled[block] = own * float(np.sqrt(sigma2))
        exact = self._double(scaled)
        sums = self._numbers([sum(along), *((exact * self._double(other)).sum() for other in (*others, scaled))])
        return scaled, sums[0], sums[1:]

    def add_sparse_prior(self, gradient: Vector, theta: Vector, variances: np.ndarray, thresholds: Vector) -> float:
        """Add theta / sigma^2 to a gradient; return what the prior and an L1 penalty beside it add to P."""
        self.add_curvature(gradient, theta, variances)
        squares = float((np.array(self.block_dots(theta, theta)) / variances).sum())
        return squares / 2 + float((thresholds * abs(theta)).sum())

    def steepest_square(self, theta: Vector, gradient: Vector, thresholds: Vector) -> float:
        """Return the squared length of the shortest subgradient of P, from its gradient without the L1 penalty."""
        places = np.union1d(self.beyond(gradient, thresholds), np.flatnonzero(self.to_array(theta)))
        point, slopes, limits = (self.values_at(vector, places) for vector in (theta, gradient, thresholds))
        shortest = np.where(point != 0, slopes + np.copysign(limits, point), abs(slopes) - limits)
        return float(shortest @ shortest)

    def beyond(self, gradient: Vector, thresholds: Vector) -> np.ndarray:
        """Return the places where a slope is beyond its threshold, in their order."""
        return self.to_array(self.xp.where(abs(gradient) > thresholds)[0])

    def values_at(self, vector: Vector, places: np.ndarray) -> np.ndarray:
        return self.to_array(vector)[places]

    def with_values(self, vector: Vector, places: np.ndarray, values: np.ndarray) -> Vector:
        """Return a copy with other values at some places."""
        changed = self.to_array(vector).copy()
        changed[places] = values
        return self.from_array(changed)

    @abstractmethod
    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        """Return room for so many pairs of a step and a change of the gradient."""


class HostVectors(Vectors):
    """Vectors that are NumPy arrays of this process."""

    def __init__(self, blocks: Sequence[slice], workers: Workers):
        super().__init__(blocks)
        self._workers, self.buffers = workers, Buffers()
        shortest = -(-self.size // (SLICES * SHORTEST_SLICE)) * SHORTEST_SLICE
        length = min(max(shortest, SHORTEST_SLICE), LONGEST_SLICE)
        ends = [
            (block.start + part.stop, number)
            for number, block in enumerate(self.blocks)
            for part in ranges(block.stop - block.start, length)
        ]
        self._slices = len(ends)
        self._bounds = np.array([0, *(end for end, _ in ends)], dtype=np.int64)  # [S + 1]
        self._block_of = np.array([number for _, number in ends], dtype=np.int64)  # [S]
        self._runs: dict[int, np.ndarray] = {}  # of slices, about as long as each other, by their number

    def _go(self, operation: Operation, vectors: int, sums: int, **given: Any) -> np.ndarray:
        """Run an operation that goes through so many vectors on threads; return its sums over slices [S, sums]."""
        found = np.empty((self._slices, sums))
        if self._slices:
            team = self._workers.team
            count = min(team.threads, 1 + vectors * self.size // VALUES_PER_TASK)
            if count not in self._runs:
                self._runs[count] = np.unique(np.searchsorted(self._bounds, np.linspace(0, self.size, count + 1)))
            _long_vectors.go(team, self._bounds, self._runs[count], operation, found.ravel(), **given)
        return found

    def _values(self, vector: np.ndarray) -> Values:
        return Values(np.ascontiguousarray(vector), self.size)

    def _written(self, vector: np.ndarray) -> Values:
        return Values(vector, self.size, True)

    def empty(self, dtype: np.dtype | type = np.float64) -> np.ndarray:
        return self.buffers.empty(self.size, dtype)

    def kept(self, dtype: np.dtype | type) -> np.dtype | type:
        """Return the type of pairs and slopes that are remembered in a precision."""
        return np.uint16 if dtype == np.float32 and self.size > LONGEST_WHOLE else dtype

    def zeros(self) -> np.ndarray:
        return np.zeros(self.size)

    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        return values.astype(dtype, copy=False)

    def to_array(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def cast(self, vector: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
        if vector.dtype == dtype:
            return vector
        out = self.empty(dtype)
        self._go(_long_vectors.copied, 2, 0, a=self._values(vector), b=self._written(out))
        return out

    def _double(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64, copy=False)

    def dot(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(self._go(_long_vectors.dots, 2, 1, a=self._values(a), b=self._values(b)).sum())

    def block_dots(self, a: np.ndarray, b: np.ndarray) -> list[float]:
        products = self._go(_long_vectors.dots, 2, 1, a=self._values(a), b=self._values(b))
        return [float(products[self._block_of == number].sum()) for number in range(len(self.blocks))]

    def stepped(self, start: np.ndarray, step: float, direction: np.ndarray) -> np.ndarray:
        # The longest vectors come in the precision of the direction: passes have no other.
        out = self.empty(direction.dtype if self.size > LONGEST_WHOLE else np.float64)
        self._add(start, step, direction, out)
        return out

    def add_scaled(self, target: np.ndarray, factor: float, vector: np.ndarray) -> None:
        self._add(target, factor, vector, target)

    def _add(self, start: np.ndarray, factor: float, vector: np.ndarray, out: np.ndarray) -> None:
        given = {"a": self._values(start), "b": self._values(vector), "c": self._written(out)}
        self._go(_long_vectors.stepped, 3, 0, factor=factor, **given)

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = self.empty(np.result_type(a, b))
        given = {"a": self._values(a), "b": self._values(b), "c": self._written(out)}
        self._go(_long_vectors.multiplied, 3, 0, **given)
        return out

    def of_block(self, number: int) -> HostVectors:
        block = self.blocks[number]
        return HostVectors([slice(0, block.stop - block.start)], self._workers)

    def _multiplied(self, matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
        out = np.empty(rows.shape)
        product(self._workers.team, matrix, np.ascontiguousarray(rows), out)
        return out

    def _precisions(self, variances: np.ndarray) -> np.ndarray:
        """Return 1 / sigma^2 of each slice."""
        return 1.0 / np.asarray(variances, dtype=np.float64)[self._block_of]

    def add_prior(self, gradient: np.ndarray, theta: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
        precisions, given = self._precisions(variances), {"a": self._written(gradient), "b": self._values(theta)}
        sums = self._go(_long_vectors.add_prior, 3, 2, factors=precisions, **given)
        return float(precisions @ sums[:, 0] / 2), float((sums[:, 1] / precisions).sum() / 2)

    def linearised(
        self,
        theta: np.ndarray,
        gradient: np.ndarray,
        variances: np.ndarray,
        dtype: np.dtype | type,
        others: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, float, list[float]]:
        scaled, rows = self.empty(self.kept(dtype)), [self._values(other) for other in others]
        given = {"a": self._values(theta), "b": self._values(gradient), "c": self._written(scaled), "rows": rows}
        factors = self._precisions(variances)
        sums = self._go(_long_vectors.linearised, len(rows) + 3, len(rows) + 2, factors=factors, **given)
        constant, *products = sums.sum(axis=0).tolist()
        return scaled, constant, products

    def add_curvature(self, target: np.ndarray, vector: np.ndarray, variances: np.ndarray) -> None:
        given = {"a": self._written(target), "b": self._values(vector)}
        self._go(_long_vectors.add_prior, 3, 2, factors=self._precisions(variances), **given)

    def add_sparse_prior(
        self, gradient: np.ndarray, theta: np.ndarray, variances: np.ndarray, thresholds: np.ndarray
    ) -> float:
        given = {"a": self._written(gradient), "b": self._values(theta), "c": self._values(thresholds)}
        precisions = self._precisions(variances)
        sums = self._go(_long_vectors.add_sparse_prior, 4, 2, factors=precisions, **given)
        return float(precisions @ sums[:, 0] / 2 + sums[:, 1].sum())

    def beyond(self, gradient: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        places = np.empty(self.size, dtype=np.uint16)  # memory that nothing is written to takes none
        given = {"a": self._values(gradient), "b": self._values(thresholds), "c": self._written(places)}
        counts = self._go(_long_vectors.beyond, 2, 1, **given)[:, 0].astype(np.int64).tolist()
        found = [places[first : first + count] for first, count in zip(self._bounds.tolist(), counts, strict=False)]
        return np.repeat(self._bounds[:-1], counts) + np.concatenate([places[:0], *found])

    def with_values(self, vector: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        out = self.empty()
        self._go(_long_vectors.copied, 2, 0, a=self._values(vector), b=self._written(out))
        out[places] = values
        return out

    def pairs(self, most: int, dtype: np.dtype | type) -> HostPairs:
        return HostPairs(self, most, dtype)


class Pairs:
    """Steps s and changes y of the gradient, by slot, and the products with them that L-BFGS takes.

    `rows` is how many slots to go through; slots out of use among them hold zeros. Products of pairs kept in single
    precision are summed in double, a block of columns at a time.
    """

    def __init__(self, vectors: Vectors, steps: Vector, changes: Vector, dtype: np.dtype | type):
        self._vectors, self.most, self.dtype = vectors, len(steps), np.dtype(dtype)
        self._steps, self._changes = steps, changes  # [most, size] each
        self._step_rows, self._change_rows = self._steps, self._changes  # in the form that `_along` takes

    def put(
        self, slot: int, before: Vector, after: Vector, gradient: Vector, new_gradient: Vector, rows: int
    ) -> np.ndarray:
        """Take up a step; return products of all steps with its change and with the new gradient, [rows, 2]."""
        double = self._vectors._double
        self._steps[slot] = after - before
        self._changes[slot] = new_gradient - gradient
        both = self._vectors.xp.stack([double(self._changes[slot]), double(new_gradient)], 1)
        return self._products(self._steps, both, rows)

    def _products(self, own: Vector, vectors: Vector, rows: int) -> np.ndarray:
        """Multiply the first rows by vectors [size, k], in double precision, [rows, k]."""
        size, k = vectors.shape
        whole, double = size // PIECE, self._vectors._double
        total = double(own[:rows, whole * PIECE :]) @ vectors[whole * PIECE :]
        for some in ranges(whole, PIECES_AT_ONCE):  # many products in one go: one alone is too small for a GPU
            part, count = slice(some.start * PIECE, some.stop * PIECE), some.stop - some.start
            pieces = double(own[:rows, part]).reshape(rows, count, PIECE).swapaxes(0, 1)
            total = total + (pieces @ vectors[part].reshape(count, PIECE, k)).sum(0)
        return self._vectors.to_array(total)

    def _mixed(self, own: Vector, shares: np.ndarray) -> Vector:
        """Multiply shares [rows] by rows, in double precision."""
        weights, rows, found = self._vectors.from_array(shares), len(shares), []
        for part in ranges(self._vectors.size, PIECE * PIECES_AT_ONCE):
            found.append(weights @ self._vectors._double(own[:rows, part]))
        return self._vectors.xp.concatenate(found) if found else self._vectors.zeros()

    def forget(self, slot: int) -> None:
        self._steps[slot] = 0.0
        self._changes[slot] = 0.0

    def step(self, slot: int) -> Vector:
        return self._steps[slot]

    def change(self, slot: int) -> Vector:
        return self._changes[slot]

    def along(self, vector: Vector, rows: int) -> np.ndarray:
        """Return products of all steps with a vector, [rows]."""
        return self._along(self._step_rows, vector, rows)

    def changes_along(self, vector: Vector, rows: int) -> np.ndarray:
        """Return products of all changes with a vector, [rows]."""
        return self._along(self._change_rows, vector, rows)

    def _along(self, own: Any, vector: Vector, rows: int) -> np.ndarray:
        return self._products(own, self._vectors._double(vector)[:, None], rows)[:, 0]

    def reduced(self, gradient: Vector, shares: np.ndarray) -> Vector:
        """Return minus the gradient less its shares [rows] of changes."""
        return self._vectors.cast(-(gradient + self._mixed(self._changes, shares)), self.dtype)

    def reduced_and_scaled(
        self, gradient: Vector, shares: np.ndarray, scale: Vector, newest: int | None
    ) -> tuple[Vector, np.ndarray, float]:
        """Return `reduced` times a diagonal, its products with all changes [rows], and y.(scale y) of the newest y."""
        double = self._vectors._double
        found = -(gradient + self._mixed(self._changes, shares)) * double(scale)
        out, bent = self._vectors.cast(found, self.dtype), 0.0
        if newest is not None:
            change = double(self._changes[newest])
            bent = float((change * change * double(scale)).sum())
        return out, self.changes_along(out, len(shares)), bent

    def finish(self, target: Vector, length: float, weights: np.ndarray, gradient: Vector) -> float:
        """Set target = length target + weights [rows] times steps; return its product with the gradient."""
        target[:] = length * self._vectors._double(target) + self._mixed(self._steps, weights)
        return self._vectors.dot(target, gradient)


class HostPairs(Pairs):
    """Pairs that are NumPy arrays of this process."""

    _vectors: HostVectors

    def __init__(self, vectors: HostVectors, most: int, dtype: np.dtype | type):
        # The threads that first write a step touch its memory first.
        steps, changes = (np.empty((most, vectors.size), dtype=vectors.kept(dtype)) for _ in range(2))
        super().__init__(vectors, steps, changes, dtype)
        self._step_rows, self._change_rows = ([vectors._written(row) for row in rows] for rows in (steps, changes))

    def step(self, slot: int) -> np.ndarray:
        return self._whole(self._steps[slot])

    def change(self, slot: int) -> np.ndarray:
        return self._whole(self._changes[slot])

    @staticmethod
    def _whole(values: np.ndarray) -> np.ndarray:
        return values if values.dtype != np.uint16 else (values.astype(np.uint32) << 16).view(np.float32)

    def put(
        self,
        slot: int,
        before: np.ndarray,
        after: np.ndarray,
        gradient: np.ndarray,
        new_gradient: np.ndarray,
        rows: int,
    ) -> np.ndarray:
        b, c, d, e = (self._vectors._values(vector) for vector in (before, after, gradient, new_gradient))
        given = {"a": self._change_rows[slot], "b": b, "c": c, "d": d, "e": e, "number": slot}
        steps = self._step_rows[:rows]
        sums = self._vectors._go(_long_vectors.put_pair, rows + 6, 2 * rows, rows=steps, **given)
        return sums.sum(axis=0).reshape(rows, 2)

    def _along(self, own: list[Values], vector: np.ndarray, rows: int) -> np.ndarray:
        given = self._vectors._values(vector)
        return self._vectors._go(_long_vectors.products, rows + 1, rows, rows=own[:rows], a=given).sum(axis=0)

    def reduced(self, gradient: np.ndarray, shares: np.ndarray) -> np.ndarray:
        return self._reduced(gradient, shares, 0)[0]

    def reduced_and_scaled(
        self, gradient: np.ndarray, shares: np.ndarray, scale: np.ndarray, newest: int | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        given = {"b": self._vectors._values(scale), "number": -1 if newest is None else newest}
        out, found = self._reduced(gradient, shares, len(shares) + 1, **given)
        return out, found[:-1], float(found[-1])

    def _reduced(
        self, gradient: np.ndarray, shares: np.ndarray, sums: int, **given: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        out, rows = self._vectors.empty(self.dtype), self._change_rows[: len(shares)]
        given |= {"a": self._vectors._values(gradient), "c": self._vectors._written(out), "factors": shares}
        found = self._vectors._go(_long_vectors.reduced, len(shares) + 3, sums, rows=rows, **given)
        return out, found.sum(axis=0)

    def finish(self, target: np.ndarray, length: float, weights: np.ndarray, gradient: np.ndarray) -> float:
        given = {"a": self._vectors._written(target), "b": self._vectors._values(gradient), "factor": length}
        rows = self._step_rows[: len(weights)]
        return float(
            self._vectors._go(_long_vectors.finished, len(weights) + 3, 1, rows=rows, factors=weights, **given).sum()
        )
