"""Vectors of parameters, and the operations of solvers on them, so that an engine can keep vectors anywhere.

Formulas are written for slices of vectors, in operators that NumPy and PyTorch share. Slices depend on the length of
vectors alone and never cross the border of a block, and sums over them are taken in their order: results are the same
for any number of threads. `HostVectors` are NumPy arrays whose slices stay in a cache while threads go through them.
Long vectors are used again once nothing refers to them (`Buffers`): fresh memory costs more than the arithmetic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ..maps import product
from ..system import Workers, ranges
from . import _proximal

Vector: TypeAlias = Any  # an array of an engine: nothing but its `Vectors` looks inside
SliceWork: TypeAlias = Callable[[slice, float], Sequence[Vector | float]]  # sums over a slice with this sigma^2

LEAST_BYTES = 1 << 20  # smaller arrays come from memory that the process has already

# Values of a slice: with fewer NumPy takes longer to call than to compute, with more ten pairs in single precision do
# not fit the second cache. A fit of CoNLL-2000 with 2.1 million parameters took 3 % less processor time with C loops.
SLICE = 1 << 15
VALUES_PER_TASK = 1 << 16  # with fewer it takes longer to hand a task over than to do it


class _Lease:
    """Memory that arrays use: each view refers to this object, and with the last of them it is unused again."""

    def __init__(self, memory: np.ndarray, unused: deque[np.ndarray]):
        self.__array_interface__ = memory.__array_interface__
        self._memory, self._unused = memory, unused

    def __del__(self) -> None:
        self._unused.append(self._memory)


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

    def __init__(self, blocks: Sequence[slice], longest_slice: int | None = None):
        self.blocks = list(blocks)
        self.size = max((block.stop for block in blocks), default=0)
        parts = [
            (slice(block.start + part.start, block.start + part.stop), number)
            for number, block in enumerate(self.blocks)
            for part in ranges(block.stop - block.start, longest_slice or max(self.size, 1))
        ]
        self.slices = [part for part, _ in parts]
        self._block_of = np.array([number for _, number in parts], dtype=np.int64)  # [S]

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

    @abstractmethod
    def _results(self, work: SliceWork, width: int, variances: list[float]) -> np.ndarray:
        """Call `work` for each slice with its sigma^2; it returns `width` numbers in all, [S, width] comes back."""

    def _sums(self, work: SliceWork, width: int, variances: np.ndarray | None = None) -> np.ndarray:
        """Return sums over all slices [width]."""
        return self._results(work, width, self._variances(variances).tolist()).sum(axis=0)

    def _variances(self, variances: np.ndarray | None) -> np.ndarray:
        """Return sigma^2 of each slice [S], zero where that does not matter."""
        each = np.zeros(len(self.blocks)) if variances is None else np.asarray(variances, dtype=np.float64)
        return each[self._block_of]

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
        return float(np.sum(self.block_dots(a, b)))

    def block_dots(self, a: Vector, b: Vector) -> list[float]:
        """Return the inner product of each block."""

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            return (self._double(a[part]) @ self._double(b[part]),)

        products = self._results(work, 1, [0.0] * len(self.slices))
        return np.bincount(self._block_of, products[:, 0], minlength=len(self.blocks)).tolist()

    def stepped(self, start: Vector, step: float, direction: Vector) -> Vector:
        """Return start + step * direction, in double precision."""
        target = self.empty()

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] = direction[part]
            target[part] *= step
            target[part] += start[part]
            return ()

        self._sums(work, 0)
        return target

    def add_scaled(self, target: Vector, factor: float, vector: Vector) -> None:
        """Add factor * vector to target."""

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] += factor * self._double(vector[part])
            return ()

        self._sums(work, 0)

    def product(self, a: Vector, b: Vector) -> Vector:
        """Multiply entry by entry, in double precision."""
        target = self.empty()

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] = a[part]
            target[part] *= b[part]
            return ()

        self._sums(work, 0)
        return target

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

    def _multiplied(self, matrix: np.ndarray, rows: Vector) -> Vector:
        """Multiply a matrix [m, m] by rows [m, C] beside vectors."""
        return self._placed(matrix) @ rows

    def multiply_columns(self, target: Vector, vector: Vector, number: int, matrices: np.ndarray) -> None:
        """Put matrices [C, m, m] times C columns [m, C] of a vector's block into the same place of a target."""
        C, m, _ = matrices.shape
        first = self.blocks[number].start
        part = slice(first, first + m * C)
        leading = self._double(vector[part]).reshape(m, C)
        target[part] = (self._placed(matrices) @ leading.T[:, :, None])[:, :, 0].T.reshape(-1)

    def _placed(self, matrix: np.ndarray) -> Vector:
        """Return a matrix that is multiplied with again and again as an array beside vectors."""
        return matrix

    @abstractmethod
    def _beside(self, values: Vector, kept: Vector) -> Vector:
        """Return a slice in the precision in which it is multiplied with slices that are kept for many steps."""

    @abstractmethod
    def _row_products(self, rows: Vector, vector: Vector) -> Vector:
        """Multiply a slice of pairs [m, n] by one of a vector [n]."""

    @abstractmethod
    def _combined(self, weights: np.ndarray, rows: Vector) -> Vector:
        """Multiply weights [m] by a slice of pairs [m, n]."""

    def widened(self, vector: Vector, narrow: Vectors) -> Vector:
        """Return a vector of other, shorter blocks as one of these: their values come first, the others are zero."""
        wide = self.zeros()
        for few, whole in zip(narrow.blocks, self.blocks, strict=True):
            wide[whole.start : whole.start + few.stop - few.start] = vector[few]
        return wide

    def add_prior(self, gradient: Vector, theta: Vector, variances: np.ndarray) -> tuple[float, float]:
        """Add theta / sigma^2 to a gradient; return sums of |theta|^2 / (2 sigma^2) and of sigma^2 |gradient|^2 / 2."""

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            point, slope = self._double(theta[part]), gradient[part]
            slope += (1.0 / sigma2) * point
            return point @ point, slope @ slope

        each = self._variances(variances)
        squares, slopes = self._results(work, 2, each.tolist()).T
        return float((squares / each).sum() / 2), float((slopes * each).sum() / 2)

    def add_curvature(self, target: Vector, vector: Vector, variances: np.ndarray) -> None:
        """Add vector / sigma^2 to target."""

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] += (1.0 / sigma2) * self._double(vector[part])
            return ()

        self._sums(work, 0, variances)

    def linearised(
        self, theta: Vector, gradient: Vector, variances: np.ndarray, dtype: np.dtype | type, others: Sequence[Vector]
    ) -> tuple[Vector, float, list[float]]:
        """Linearise the loss, from P's gradient: sigma g, <g, theta>, and products of sigma g with others and itself.

        g is the gradient without the prior's part; sigma g is kept in `dtype`.
        """
        scaled = self.empty(dtype)

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            point = self._double(theta[part])
            slope = gradient[part] - (1.0 / sigma2) * point
            along = slope @ point
            slope *= float(np.sqrt(sigma2))
            scaled[part] = slope
            kept = self._beside(scaled[part], scaled)
            return along, *(kept @ self._beside(other[part], scaled) for other in others), kept @ kept

        along, *products = self._sums(work, len(others) + 2, variances).tolist()
        return scaled, along, products

    def add_sparse_prior(
        self, gradient: Vector, theta: Vector, variances: np.ndarray, thresholds: Vector
    ) -> tuple[float, float, float, float]:
        """Add theta / sigma^2 to a loss's gradient g, with an L1 penalty of thresholds c beside the Gaussian prior.

        Return what both add to P, <g, theta>, and `soft_square` of g.
        """

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            slope, point, least = gradient[part], theta[part], thresholds[part]
            square, excess = self._softened(abs(slope), least, sigma2)
            prior = (point * point).sum() * (1.0 / sigma2) / 2 + (least * abs(point)).sum()
            along = (slope * point).sum()
            slope += (1.0 / sigma2) * point
            return prior, along, square, excess

        prior, along, square, excess = self._results(work, 4, self._variances(variances).tolist()).T
        return float(prior.sum()), float(along.sum()), float(square.sum()), float(excess.max(initial=0.0))

    def soft_square(self, gradient: Vector, variances: np.ndarray, thresholds: Vector) -> tuple[float, float]:
        """Return the sum of sigma^2 soft_c(g)^2 over blocks of finite sigma^2, and max |g| / c of the others."""

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            return self._softened(abs(self._double(gradient[part])), thresholds[part], sigma2)

        square, excess = self._results(work, 2, self._variances(variances).tolist()).T
        return float(square.sum()), float(excess.max(initial=0.0))

    def _softened(self, size: Vector, thresholds: Vector, sigma2: float) -> Sequence[Vector | float]:
        """Return the sum of sigma^2 soft_c(g)^2 and zero; where sigma^2 is infinite, zero and max |g| / c."""
        if np.isinf(sigma2):
            return 0.0, self.xp.amax(size / thresholds)
        soft = self.xp.clip(size - thresholds, 0.0, None)
        return sigma2 * (soft * soft).sum(), 0.0

    def soft_products(
        self, gradients: Sequence[Vector], shares: np.ndarray, variances: np.ndarray, thresholds: Vector
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the sum of sigma^2 soft_c(G)^2 for the combination G of K gradients, and derivatives by the shares.

        Half of the first ones [K] and half of the second ones [K, K] come back.
        """
        K, xp, weights = len(gradients), self.xp, self._placed(shares)

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            rows, least = [self._double(gradient[part]) for gradient in gradients], thresholds[part]
            total = weights @ xp.stack(rows)
            beyond = xp.where(abs(total) > least)[0]
            chosen, total = xp.stack([row[beyond] for row in rows]), total[beyond]
            soft = sigma2 * (total - xp.copysign(least[beyond], total))
            return (soft * soft).sum() / sigma2, chosen @ soft, sigma2 * (chosen @ chosen.T)

        sums = self._sums(work, 1 + K + K * K, variances)
        return float(sums[0]), sums[1 : K + 1], sums[K + 1 :].reshape(K, K)

    def loss_gradient(
        self, theta: Vector, gradient: Vector, variances: np.ndarray, dtype: np.dtype | type = np.float64
    ) -> Vector:
        """Return a gradient without that of the Gaussian prior."""
        target = self.empty(dtype)

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] = gradient[part] - (1.0 / sigma2) * theta[part]
            return ()

        self._sums(work, 0, variances)
        return target

    def steepest_square(self, theta: Vector, gradient: Vector, thresholds: Vector) -> float:
        """Return the squared length of the shortest subgradient of P, from its gradient without the L1 penalty."""
        xp = self.xp

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            slope, point, least = gradient[part], theta[part], thresholds[part]
            soft = xp.clip(abs(slope) - least, 0.0, None)
            shortest = xp.where(point != 0, slope + xp.copysign(least, point), soft)
            return ((shortest * shortest).sum(),)

        return float(self._sums(work, 1)[0])

    def _free(self, theta: Vector, gradient: Vector, thresholds: Vector) -> Vector:
        """Return a mask of parameters that are not zero, or have a slope beyond their threshold."""
        return (theta != 0) | (abs(gradient) > thresholds)

    def free_count(self, theta: Vector, gradient: Vector, thresholds: Vector) -> int:
        """Count the parameters that are free."""

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            return (self._free(theta[part], gradient[part], thresholds[part]).sum(),)

        return int(self._sums(work, 1)[0])

    @abstractmethod
    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        """Return room for so many pairs of a step and a change of the gradient."""


class HostVectors(Vectors):
    """Vectors that are NumPy arrays of this process."""

    def __init__(self, blocks: Sequence[slice], workers: Workers):
        super().__init__(blocks, SLICE)
        self._workers, self.buffers = workers, Buffers()

    def _results(self, work: SliceWork, width: int, variances: list[float]) -> np.ndarray:
        results = np.empty((len(self.slices), width))

        def go(numbers: range) -> None:
            for number in numbers:
                values = work(self.slices[number], variances[number])
                if width:
                    results[number] = np.concatenate(values, axis=None)

        tasks = min(self._workers.threads, max(self.size // VALUES_PER_TASK, 1))
        ends = [len(self.slices) * task // tasks for task in range(tasks + 1)]
        self._workers.run(go, [range(*some) for some in pairwise(ends)])
        return results

    def empty(self, dtype: np.dtype | type = np.float64) -> np.ndarray:
        return self.buffers.empty(self.size, dtype)

    def zeros(self) -> np.ndarray:
        return np.zeros(self.size)

    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        return values.astype(dtype, copy=False)

    def to_array(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def cast(self, vector: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
        if vector.dtype == dtype:
            return vector
        target = self.empty(dtype)

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] = vector[part]
            return ()

        self._sums(work, 0)
        return target

    def _double(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64, copy=False)

    def of_block(self, number: int) -> HostVectors:
        block = self.blocks[number]
        return HostVectors([slice(0, block.stop - block.start)], self._workers)

    def _multiplied(self, matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
        target = np.empty(rows.shape)
        product(self._workers.team, matrix, np.ascontiguousarray(rows), target)
        return target

    def _beside(self, values: np.ndarray, kept: np.ndarray) -> np.ndarray:
        return values.astype(kept.dtype, copy=False)

    def _row_products(self, rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return rows @ vector.astype(rows.dtype, copy=False)

    def _combined(self, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return weights.astype(rows.dtype) @ rows

    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        steps, changes = (np.zeros((most, self.size), dtype=dtype) for _ in range(2))
        return Pairs(self, steps, changes, dtype)


class Pairs:
    """Steps s and changes y of the gradient, by slot, and the products with them that L-BFGS takes.

    `rows` is how many slots to go through; slots out of use among them hold zeros. Sums over a slice of pairs kept in
    single precision may be in single precision, those over slices are in double.
    """

    def __init__(self, vectors: Vectors, steps: Vector, changes: Vector, dtype: np.dtype | type):
        self._vectors, self.most, self.dtype = vectors, len(steps), np.dtype(dtype)
        self._steps, self._changes = steps, changes  # [most, size] each

    def put(
        self, slot: int, before: Vector, after: Vector, gradient: Vector, new_gradient: Vector, rows: int
    ) -> tuple[np.ndarray, float]:
        """Take up a step; return products of all steps with its change [rows], and its own with the new gradient."""
        vectors = self._vectors

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            slope = new_gradient[part]
            self._steps[slot, part] = after[part] - before[part]
            self._changes[slot, part] = slope - gradient[part]
            steps = self._steps[:rows, part]
            products = vectors._row_products(steps, self._changes[slot, part])
            return products, vectors._beside(steps[slot], steps) @ vectors._beside(slope, steps)

        sums = vectors._sums(work, rows + 1)
        return sums[:-1], float(sums[-1])

    def forget(self, slot: int) -> None:
        self._steps[slot] = 0.0
        self._changes[slot] = 0.0

    def step(self, slot: int) -> Vector:
        return self._steps[slot]

    def change(self, slot: int) -> Vector:
        return self._changes[slot]

    def along(self, vector: Vector, rows: int) -> np.ndarray:
        """Return products of all steps with a vector, [rows]."""
        return self._along(self._steps[:rows], vector)

    def changes_along(self, vector: Vector, rows: int) -> np.ndarray:
        """Return products of all changes with a vector, [rows]."""
        return self._along(self._changes[:rows], vector)

    def _along(self, rows: Vector, vector: Vector) -> np.ndarray:
        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            return (self._vectors._row_products(rows[:, part], vector[part]),)

        return self._vectors._sums(work, len(rows))

    def reduced(self, gradient: Vector, shares: np.ndarray) -> Vector:
        """Return minus the gradient less its shares [rows] of changes."""
        target = self._vectors.empty(self.dtype)

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] = self._reduced(gradient[part], shares, self._changes[: len(shares), part])
            return ()

        self._vectors._sums(work, 0)
        return target

    def reduced_and_scaled(
        self, gradient: Vector, shares: np.ndarray, scale: Vector, newest: int | None
    ) -> tuple[Vector, np.ndarray, float]:
        """Return `reduced` times a diagonal, its products with all changes [rows], and y.(scale y) of the newest y."""
        vectors, target = self._vectors, self._vectors.empty(self.dtype)

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            changes, factors = self._changes[: len(shares), part], scale[part]
            direction = self._reduced(gradient[part], shares, changes)
            direction *= factors
            target[part] = direction
            products = vectors._row_products(changes, target[part])
            if newest is None:
                return products, 0.0
            change = self._changes[newest, part]
            return products, vectors._beside(change * factors, change) @ vectors._beside(change, change)

        *products, curvature = vectors._sums(work, len(shares) + 1).tolist()
        return target, np.array(products), curvature

    def _reduced(self, gradient: Vector, shares: np.ndarray, changes: Vector) -> Vector:
        """Return minus a slice of a gradient less its shares of changes."""
        total = self._vectors._combined(-shares, changes)
        total -= self._vectors._beside(gradient, changes)
        return total

    def finish(self, target: Vector, length: float, weights: np.ndarray, gradient: Vector) -> float:
        """Set target = length target + weights [rows] times steps; return its product with the gradient."""
        vectors = self._vectors

        def work(part: slice, sigma2: float) -> Sequence[Vector | float]:
            target[part] *= length
            target[part] += vectors._combined(weights, self._steps[: len(weights), part])
            return (vectors._double(target[part]) @ gradient[part],)

        return float(vectors._sums(work, 1)[0])

    def minimise_model(
        self,
        theta: Vector,
        gradient: Vector,
        thresholds: Vector,
        scale: Vector,
        matrix: np.ndarray,
        slots: Sequence[int],
        most: int,
        tolerance: float,
    ) -> tuple[Vector, float]:
        """Find the step d from theta to where a model of P with an L1 penalty is about the smallest; see `_proximal`.

        Its curvature is diag(b) - W M W^T, where W [n, 2 k] has b times the steps of these slots, then their changes,
        and M is a matrix [2 k, 2 k]. Parameters that are zero and whose slope is within their threshold stay. Return it
        with <g, d> and what d adds to the penalty. Coordinate descent runs in this process.
        """
        vectors = self._vectors
        free = vectors.xp.where(vectors._free(theta, gradient, thresholds))[0]
        curvature, slope, least, start = (
            vectors.to_array(values[free]) for values in (scale, gradient, thresholds, theta)
        )
        k, n = len(slots), len(start)
        rows = np.zeros((n, max(2 * k + 3 & ~3, 4)), dtype=self.dtype)
        for place, slot in enumerate(slots):
            rows[:, place] = vectors.to_array(self._steps[slot][free]) * curvature
            rows[:, place + k] = vectors.to_array(self._changes[slot][free])
        wide = np.zeros((rows.shape[1], rows.shape[1]), dtype=self.dtype)
        wide[: 2 * k, : 2 * k] = matrix
        point, along = start.copy(), np.zeros(rows.shape[1])
        room = np.empty(n), np.empty(n, dtype=np.int32)
        _proximal.minimise(rows, rows @ wide, curvature, slope, least, start, point, along, *room, most, tolerance)
        moved, direction = point - start, vectors.zeros()
        direction[free] = vectors.from_array(moved)
        return direction, float((slope * moved).sum() + (least * (np.abs(point) - np.abs(start))).sum())
