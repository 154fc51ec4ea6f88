"""Vectors of parameters, and what solvers do with them: here NumPy arrays that threads go through in slices.

Solvers know vectors only by what `Vectors` does with them, so that another engine can keep them elsewhere. Slices
depend on the data alone and sums over them are taken in their order, so that results are the same for any number of
threads. A slice never crosses the border of a block, the parameters of one term.

Long vectors are used again once nothing refers to them (`Buffers`): the system hands out fresh memory page by page, and
for millions of parameters that costs more than what is done with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from ..system import Workers, ranges

LEAST_BYTES = 1 << 20  # smaller arrays come from memory that the process has already

SLICE = 1 << 15  # values: a dozen slices of as many vectors stay in cache
FEWEST_SLICES = 4  # fewer are not worth a thread
SLICES_PER_TASK = 8  # to hand a task to a thread takes as long as to work on a slice


def _references(buffers: list[np.ndarray], number: int) -> int:
    return sys.getrefcount(buffers[number])


def _references_when_unused() -> int:
    """The count of an array that only its list refers to: interpreters differ. Zero where nothing can be counted."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return _references([np.empty(0)], 0) if gil and hasattr(sys, "getrefcount") else 0


UNUSED = _references_when_unused()


class Buffers:
    """A store of arrays. Every view of an array refers to it, so none is handed out while a part of it is in use."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...] | int, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Like np.empty."""
        size, dtype = int(np.prod(shape)), np.dtype(dtype)
        if size * dtype.itemsize < LEAST_BYTES or not UNUSED:
            return np.empty(shape, dtype=dtype)
        for number in range(len(self._arrays)):
            fits = self._arrays[number].size == size and self._arrays[number].dtype == dtype
            if fits and _references(self._arrays, number) <= UNUSED:
                return self._arrays[number].reshape(shape)
        fresh = np.empty(size, dtype=dtype)
        self._arrays.append(fresh)
        return fresh.reshape(shape)


class Vectors:
    """The vectors of one problem: as long as theta, with a block for each term."""

    def __init__(self, blocks: Sequence[slice], workers: Workers):
        self.blocks = list(blocks)
        self._workers, self.buffers = workers, Buffers()
        self.size = max((block.stop for block in blocks), default=0)
        # With the number of its block each.
        self._parts = [
            (slice(block.start + part.start, block.start + part.stop), number)
            for number, block in enumerate(blocks)
            for part in ranges(block.stop - block.start, SLICE)
        ]
        self._tasks = [self._parts[some] for some in ranges(len(self._parts), SLICES_PER_TASK)]

    def _each(self, work: Callable[[slice, int], object]) -> Iterator:
        """What `work` makes of every slice and the number of its block, in their order."""
        if self.size < FEWEST_SLICES * SLICE:
            return (work(*part) for part in self._parts)
        return chain.from_iterable(self._workers.map(lambda some: [work(*part) for part in some], self._tasks))

    def _run(self, work: Callable[[slice, int], object]) -> None:
        for _ in self._each(work):
            pass

    def _total(self, work: Callable[[slice, int], np.ndarray | float]) -> np.ndarray | float:
        """The sum of what `work` makes of the slices, in double precision."""
        total = 0.0
        for part in self._each(work):
            total = total + np.asarray(part, dtype=np.float64)
        return total

    # ------------------------------------------------------------------------- to and from arrays

    def empty(self, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """A vector whose values are not set."""
        return self.buffers.empty(self.size, dtype)

    def zeros(self) -> np.ndarray:
        return np.zeros(self.size)

    def from_array(self, values: np.ndarray, dtype: np.dtype | type = np.float64) -> np.ndarray:
        return values.astype(dtype, copy=False)

    def to_array(self, vector: np.ndarray) -> np.ndarray:
        """Its values; they are not to be changed."""
        return vector

    def cast(self, vector: np.ndarray, dtype: np.dtype) -> np.ndarray:
        if vector.dtype == dtype:
            return vector
        out = self.empty(dtype)

        def work(part: slice, _: int) -> None:
            out[part] = vector[part]

        self._run(work)
        return out

    # ------------------------------------------------------------------------- arithmetic

    def length(self, vector: np.ndarray) -> int:
        """How many values a vector has, which may be one of another problem."""
        return len(vector)

    def is_zero(self, vector: np.ndarray) -> bool:
        return not vector.any()

    def copy(self, vector: np.ndarray) -> np.ndarray:
        return vector.copy()

    def negated(self, vector: np.ndarray) -> np.ndarray:
        return -vector

    def dot(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(self._total(lambda part, _: float(a[part] @ b[part])))

    def block_dots(self, a: np.ndarray, b: np.ndarray) -> list[float]:
        """The inner product of each block."""
        return [float(a[block] @ b[block]) for block in self.blocks]

    def stepped(self, start: np.ndarray, step: float, direction: np.ndarray) -> np.ndarray:
        """start + step * direction, in double precision."""
        out = self.empty()

        def work(part: slice, _: int) -> None:
            np.multiply(direction[part], step, out=out[part], dtype=np.float64)
            out[part] += start[part]

        self._run(work)
        return out

    def add_scaled(self, target: np.ndarray, factor: float, vector: np.ndarray) -> None:
        """target += factor * vector."""
        target += factor * vector

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of each pair of entries."""
        return a * b

    def quotient(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of each pair of entries."""
        return a / b

    # ------------------------------------------------------------------------- blocks

    def of_block(self, number: int) -> Vectors:
        """Vectors that are one block of these."""
        block = self.blocks[number]
        return Vectors([slice(0, block.stop - block.start)], self._workers)

    def take(self, vector: np.ndarray, number: int) -> np.ndarray:
        """A block of a vector; it is not to be changed."""
        return vector[self.blocks[number]]

    def put(self, target: np.ndarray, number: int, block: np.ndarray) -> None:
        target[self.blocks[number]] = block

    def multiply_rows(
        self, target: np.ndarray, vector: np.ndarray, number: int, matrix: np.ndarray, width: int, first: int = 0
    ) -> None:
        """Put matrix [m, m] times m rows [m, width] of a vector's block into the same place of a target.

        `first` says where in the block they begin.
        """
        first += self.blocks[number].start
        part = slice(first, first + len(matrix) * width)
        rows = vector[part].reshape(len(matrix), width)
        target[part] = (matrix @ rows.astype(matrix.dtype, copy=False)).ravel()

    def multiply_columns(self, target: np.ndarray, vector: np.ndarray, number: int, matrices: np.ndarray) -> None:
        """The same with a matrix [C, m, m] for each of C columns."""
        C, m, _ = matrices.shape
        first = self.blocks[number].start
        part = slice(first, first + m * C)
        leading = vector[part].reshape(m, C)
        target[part] = np.matmul(matrices, leading.T[:, :, None])[:, :, 0].T.ravel()

    def widened(self, vector: np.ndarray, narrow: Vectors) -> np.ndarray:
        """A vector of other, shorter blocks as one of these: their values come first, the others are zero."""
        out = np.zeros(self.size)
        for few, whole in zip(narrow.blocks, self.blocks, strict=True):
            out[whole.start : whole.start + few.stop - few.start] = vector[few]
        return out

    # ------------------------------------------------------------------------- a Gaussian prior and linearisations

    def add_prior(self, gradient: np.ndarray, theta: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
        """Add theta / sigma^2 to a gradient; sums of |theta|^2 / (2 sigma^2) and of sigma^2 |gradient|^2 / 2."""

        def work(part: slice, block: int) -> np.ndarray:
            variance, own, slope = variances[block], theta[part], gradient[part]
            slope += own / variance
            return np.array([float(own @ own) / (2 * variance), variance / 2 * float(slope @ slope)])

        if not self.size:
            return 0.0, 0.0
        prior, squares = self._total(work)
        return float(prior), float(squares)

    def add_curvature(self, target: np.ndarray, vector: np.ndarray, variances: np.ndarray) -> None:
        """target += vector / sigma^2."""
        for block, variance in zip(self.blocks, variances, strict=True):
            target[block] += vector[block] / variance

    def linearised(
        self,
        theta: np.ndarray,
        gradient: np.ndarray,
        variances: np.ndarray,
        dtype: np.dtype | type,
        others: Sequence[np.ndarray],
    ) -> tuple[np.ndarray, float, list[float]]:
        """The loss at a point, from P's gradient: sigma g, <g, theta>, and products of sigma g with others and itself.

        g is the gradient without the prior's part; sigma g is kept in `dtype`.
        """
        scaled = self.empty(dtype)
        known = [*others, scaled]

        def work(part: slice, block: int) -> np.ndarray:
            variance, own = variances[block], theta[part]
            loss = gradient[part] - own / variance
            constant = float(loss @ own)
            np.multiply(loss, np.sqrt(variance), out=scaled[part], casting="same_kind")
            return np.array([constant, *(float(scaled[part] @ other[part]) for other in known)])

        constant, *products = self._total(work)
        return scaled, constant, products

    def pairs(self, most: int, dtype: np.dtype | type) -> Pairs:
        """Room for so many pairs of a step and a change of the gradient."""
        return Pairs(self, most, dtype)


class Pairs:
    """Steps s and changes y of the gradient, by slot, and the products with them that L-BFGS takes.

    `rows` is how many slots to go through; slots out of use among them hold zeros.
    """

    def __init__(self, vectors: Vectors, most: int, dtype: np.dtype | type):
        self._vectors, self.most, self.dtype = vectors, most, np.dtype(dtype)
        self._steps = np.empty((most, vectors.size), dtype=dtype)
        self._changes = np.empty((most, vectors.size), dtype=dtype)

    def put(
        self,
        slot: int,
        before: np.ndarray,
        after: np.ndarray,
        gradient: np.ndarray,
        new_gradient: np.ndarray,
        rows: int,
    ) -> np.ndarray:
        """Take up a step between two points; products of all steps with its change and the new gradient, [rows, 2]."""

        def work(part: slice, _: int) -> np.ndarray:
            self._steps[slot, part] = after[part] - before[part]
            self._changes[slot, part] = new_gradient[part] - gradient[part]
            right = np.stack([self._changes[slot, part], new_gradient[part].astype(self.dtype, copy=False)])
            return self._steps[:rows, part] @ right.T

        return self._vectors._total(work)

    def forget(self, slot: int) -> None:
        self._steps[slot] = self._changes[slot] = 0.0

    def step(self, slot: int) -> np.ndarray:
        return self._steps[slot]

    def change(self, slot: int) -> np.ndarray:
        return self._changes[slot]

    def along(self, vector: np.ndarray, rows: int) -> np.ndarray:
        """Products of all steps with a vector, [rows]."""
        steps = self._steps[:rows]
        return self._vectors._total(lambda part, _: steps[:, part] @ vector[part].astype(self.dtype, copy=False))

    def changes_along(self, vector: np.ndarray, rows: int) -> np.ndarray:
        """Products of all changes with a vector, [rows]."""
        changes = self._changes[:rows]
        return self._vectors._total(lambda part, _: changes[:, part] @ vector[part])

    def reduced(self, gradient: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Minus the gradient less its shares [rows] of changes."""
        out, shares = self._vectors.empty(self.dtype), shares.astype(self.dtype)

        def work(part: slice, _: int) -> None:
            out[part] = self._reduced(part, gradient, shares)

        self._vectors._run(work)
        return out

    def _reduced(self, part: slice, gradient: np.ndarray, shares: np.ndarray) -> np.ndarray:
        out = shares @ self._changes[: len(shares), part]
        out += gradient[part].astype(self.dtype, copy=False)
        return np.negative(out, out=out)

    def reduced_and_scaled(
        self, gradient: np.ndarray, shares: np.ndarray, scale: np.ndarray, newest: int | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """`reduced` times a diagonal, its products with all changes [rows], and y.(scale y) of the newest change y."""
        out, shares = self._vectors.empty(self.dtype), shares.astype(self.dtype)
        changes = self._changes[: len(shares)]

        def work(part: slice, _: int) -> np.ndarray:
            inverse = scale[part]
            np.multiply(self._reduced(part, gradient, shares), inverse, out=out[part])
            if newest is None:
                return np.zeros(1)
            change = changes[newest, part]
            return np.append(changes[:, part] @ out[part], change @ (change * inverse))

        found = self._vectors._total(work)
        return out, found[:-1], float(found[-1])

    def finish(self, target: np.ndarray, length: float, weights: np.ndarray, gradient: np.ndarray) -> float:
        """target = length target + weights [rows] times steps, in place; its product with the gradient."""
        weights = weights.astype(self.dtype)
        steps = self._steps[: len(weights)]

        def work(part: slice, _: int) -> float:
            target[part] *= length
            target[part] += weights @ steps[:, part]
            return float(target[part] @ gradient[part])

        return float(self._vectors._total(work))
